#!/usr/bin/env python3
"""The service under load, beside llama-server of the same archive.

  bench/serve/run.py peer MODEL.gguf      tokens/s and time to the first token with 1, 4, 8 and 16 clients, the two servers in turns
  bench/serve/run.py latent               answers/s of the model in the box with mixed K, 1 and 16 clients
  bench/serve/run.py soak [-n 10000]      many requests, a third cut off by the client: answers, memory, loss

Both servers run on 127.0.0.1 with as many slots as there are clients. Every client streams; the first event with text ends the
time to the first token. Prints Markdown.
"""

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from llama_tools import build_llama_cpp

WORDS = "the sea was calm and a small boat went out to look for birds that nobody had seen before in this part of the world".split()


class Server:
    def __init__(self, command, port):
        self.port = port
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"{command[0]} does not start")
            time.sleep(0.2)

    def cpu_seconds(self):
        """Of all its threads so far, in the program and in the kernel."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0

    def close(self):
        self.process.terminate()
        self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def penelope(args, clients, port, *model):
    size = ["-c", 1024] if model else []
    return Server([args.penelope, "serve", *model, *size, "--port", port, "--slots", clients, "-t", args.threads, "--connections", 256,
                   "--queue", 1024, *(["--no-batch-invariance"] if args.no_batch_invariance else [])], port)


def llama_server(args, clients, port, model):
    return Server([args.llama_server, "-m", model, "--port", port, "-np", clients, "-t", args.threads, "-c", 1024 * clients,
                   "--no-webui", "--cache-ram", 0], port)


def stream(port, body, cut_after=None):
    """Time to the first text, tokens, text; cut_after closes the connection after so many events."""
    start = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    first, n, text = None, 0, ""
    try:
        connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            return None, 0, f"status {answer.status}"
        for line in answer:
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            event = json.loads(line[6:])
            if event.get("choices") and event["choices"][0].get("text"):
                first = first or time.monotonic() - start
                n += 1
                text += event["choices"][0]["text"]
                if cut_after and n >= cut_after:
                    return first, n, None
        return first or time.monotonic() - start, n, text  # an answer may end without a word
    finally:
        connection.close()


def load(port, bodies, clients):
    """All bodies through so many clients; seconds in all, times to the first token, tokens."""
    waiting, results, lock = list(enumerate(bodies)), [None] * len(bodies), threading.Lock()

    def client():
        while True:
            with lock:
                if not waiting:
                    return
                index, body = waiting.pop(0)
            results[index] = stream(port, body)

    start = time.monotonic()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - start, results


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


def peer(args):
    print("| clients | tokens/s, penelope | llama-server | ratio | first token, median ms | llama-server | ratio | 95th percentile ms | llama-server | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for clients in args.clients:
        figures = {"penelope": [], "llama": []}
        for turn in range(args.rounds):
            rng = random.Random(turn)
            bodies = [{"prompt": " ".join(rng.choices(WORDS, k=rng.randint(20, 60))), "max_tokens": args.tokens, "temperature": 0,
                       "ignore_eos": True} for _ in range(max(8, 2 * clients))]
            for name, start in (("penelope", lambda: penelope(args, clients, 18180, "-m", args.model)),
                                ("llama", lambda: llama_server(args, clients, 18181, args.model))):
                with start() as server:
                    load(server.port, bodies[:1], 1)  # warm
                    seconds, results = load(server.port, bodies, clients)
                    figures[name].append((sum(r[1] for r in results) / seconds, percentile([r[0] for r in results], .5) * 1000,
                                          percentile([r[0] for r in results], .95) * 1000))
        ours, theirs = ([statistics.median(f[i] for f in figures[name]) for i in range(3)] for name in ("penelope", "llama"))
        cells = [f"{clients}"]
        for a, b in zip(ours, theirs):
            cells += [f"{a:.1f}", f"{b:.1f}", f"{a / b:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def questions(n, seed=0):
    """Threads as the model in the box knows them: three chains of edges in shuffled order, the end of each leading to itself."""
    rng, letters = random.Random(seed), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    made = []
    for _ in range(n):
        names = rng.sample(letters, 27)
        chains = [names[9 * i:9 * i + 9] for i in range(3)]
        edges = [a + b for chain in chains for a, b in zip(chain, chain[1:] + chain[-1:])]
        rng.shuffle(edges)
        made.append(" ".join(edges) + " ?" + rng.choice(rng.choice(chains)[:8]))
    return made


def box_props(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/props")
    return json.loads(connection.getresponse().read())


def latent(args):
    print("| clients | answers/s | first token, median ms | 95th percentile ms | computing time of the server, ms an answer |\n|---|---|---|---|---|")
    rates = {}
    for turn in range(args.rounds):
        for clients in (1, 16):
            with penelope(args, 16, 18180) as server:
                deepest = box_props(server.port)["latent_steps"]["max"]
                bodies = [{"prompt": q, "max_tokens": 16, "latent_steps": i % (deepest + 1)} for i, q in enumerate(questions(args.n or 200, turn))]
                load(server.port, bodies[:8], 1)
                before = server.cpu_seconds()
                seconds, results = load(server.port, bodies, clients)
                rates.setdefault(clients, []).append((len(bodies) / seconds, percentile([r[0] for r in results], .5) * 1000,
                                                      percentile([r[0] for r in results], .95) * 1000,
                                                      (server.cpu_seconds() - before) / len(bodies) * 1000))
    for clients, figures in rates.items():
        print(f"| {clients} | " + " | ".join(f"{statistics.median(f[i] for f in figures):.1f}" for i in range(4)) + " |")
    print(f"\n16 clients get {statistics.median(f[0] for f in rates[16]) / statistics.median(f[0] for f in rates[1]):.2f} times the answers/s of one.")


def run_tokens(args, question, k):
    """What `penelope run` answers."""
    ran = subprocess.run([str(args.penelope), "run", "-p", question, "-K", str(k), "-n", "16", "-t", str(args.threads), "--json", *box_files()],
                         capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)["tokens"]


def box_files():
    models = ROOT / "models"
    return ["-m", str(models / "thread-0.6M-Q8_0.gguf"), "--sidecar", str(models / "thread-0.6M-thread-penelope-Q8_0.gguf")]


def whole(port, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        return answer["choices"][0]["tokens"], answer["choices"][0]["text"]
    finally:
        connection.close()


def soak(args):
    """A third of the requests is cut off, at any moment; the others stream or do not. Wrong is what differs from `penelope run` in one token."""
    n, texts = args.n or 10000, questions(32)
    cases = [(q, k) for q in texts for k in range(9)]
    expected = {case: run_tokens(args, *case) for case in cases}
    with penelope(args, 8, 18180) as server:
        texts_of = {case: whole(server.port, {"prompt": case[0], "max_tokens": 16, "latent_steps": case[1]}) for case in cases}
        alone = sum(texts_of[case][0] != expected[case] for case in cases)
        print(f"{len(cases)} answers of the idle server, {alone} other than those of penelope run", flush=True)
        counts, lock, left = {"right": 0, "wrong": 0, "cut": 0, "lost": 0}, threading.Lock(), [n]
        memory, start = [server.memory()], time.monotonic()

        def client(seed):
            rng = random.Random(seed)
            while True:
                with lock:
                    if left[0] == 0:
                        return
                    left[0] -= 1
                    if (n - left[0]) % max(1, n // 10) == 0:
                        memory.append(server.memory())
                case = rng.choice(cases)
                body = {"prompt": case[0], "max_tokens": 16, "latent_steps": case[1]}
                try:
                    chance = rng.random()
                    if chance < 1 / 6:
                        text = stream(server.port, body, cut_after=1)[2]
                        kind = "cut" if text is None else "right" if text == texts_of[case][1] == "" else "lost"  # no word, no cut
                    elif chance < 1 / 3:
                        gone = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
                        gone.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
                        time.sleep(rng.random() * 0.05)
                        gone.close()
                        kind = "cut"
                    elif chance < 2 / 3:
                        kind = "right" if stream(server.port, body)[2] == texts_of[case][1] else "wrong"
                    else:
                        kind = "right" if whole(server.port, body)[0] == expected[case] else "wrong"
                except (OSError, KeyError, http.client.HTTPException):
                    kind = "lost"
                with lock:
                    counts[kind] += 1

        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"{n} requests in {time.monotonic() - start:.0f} s: {counts}")
        print("memory in MiB at every tenth of them: " + " ".join(f"{m:.1f}" for m in memory))
    if alone or counts["wrong"] or counts["lost"]:
        sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["peer", "latent", "soak"])
    parser.add_argument("model", nargs="?", help="for peer: a GGUF file")
    parser.add_argument("--penelope", default=ROOT / "build" / "release" / "bin" / "penelope")
    parser.add_argument("--llama-server", default=None, help="instead of one built from the archive that brings ggml")
    parser.add_argument("--no-batch-invariance", action="store_true", help="penelope serve --no-batch-invariance")
    parser.add_argument("--clients", type=lambda t: [int(x) for x in t.split(",")], default=[1, 4, 8, 16])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-n", type=int, default=0)
    args = parser.parse_args()
    if args.what == "peer":
        if not args.model:
            parser.error("peer needs a model")
        if not args.llama_server:
            args.llama_server = build_llama_cpp("llama-server") / "llama-server"
    {"peer": peer, "latent": latent, "soak": soak}[args.what](args)


if __name__ == "__main__":
    main()
