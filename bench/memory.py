#!/usr/bin/env python3
"""Memory of one process that works for long, on the small model in the box.

  bench/memory.py questions [-n 50000] [--lengths 9]    answers as many questions through `penelope run --batch -`
  bench/memory.py updates [-n 20000]                    trains a sidecar for as many updates, with validations and checkpoints in between

Prints Markdown: memory of its own (RssAnon, so without files that are mapped) by the number of answers or updates.
"""

import argparse
import json
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "models" / "thread-0.6M-Q8_0.gguf"
SIDECAR = ROOT / "models" / "thread-0.6M-thread-penelope-Q8_0.gguf"


def own_mib(process):
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0


class Table:
    """A row at 1,000 and at every twentieth of the way."""

    def __init__(self, unit, n):
        self.places = sorted({1000, *(n * i // 20 for i in range(1, 21))})
        print(f"| {unit} | MiB |\n|---:|---:|")

    def show(self, process, n):
        if self.places and n >= self.places[0]:
            print(f"| {n} | {own_mib(process):.1f} |", flush=True)
            self.places = [place for place in self.places if place > n]


def make_data(penelope, out, *flags):
    subprocess.run([penelope, "data", "thread", "--seed", "77", "--out", out, *flags], check=True, stdout=subprocess.DEVNULL)


def questions(penelope, n, lengths, folder):
    texts = []
    for depth in range(10 - lengths, 10):  # chains of 9 edges, of 8 and 9, ...
        make_data(penelope, folder / str(depth), "--train", "0", "--valid", "0", "--test", "500", "--depth", f"1-{depth}", "--chains", "3")
        texts += [json.loads(line)["question"] for line in (folder / str(depth) / "test.jsonl").open()]
    process = subprocess.Popen([penelope, "run", "-m", MODEL, "--sidecar", SIDECAR, "--batch", "-", "-K", "8", "-n", "4", "-t", "1"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask():
        for i in range(n):
            process.stdin.write(json.dumps({"id": str(i), "prompt": texts[i * 997 % len(texts)]}) + "\n")
        process.stdin.close()

    threading.Thread(target=ask, daemon=True).start()
    table = Table("answers", n)
    for i, _ in enumerate(process.stdout):
        table.show(process, i + 1)
    return process.wait()


def updates(penelope, n, _, folder):
    make_data(penelope, folder / "data", "--train", "20000", "--valid", "40", "--test", "0", "--depth", "1-4", "--chains", "2")
    run = folder / "run"
    process = subprocess.Popen([penelope, "train", "-m", MODEL, "--method", "penelope", "--interval", "1:3", "--latent-steps", "2", "--batch-size", "2", "--lora-rank", "4",
                                "--data", folder / "data", "-n", "8", "--eval-limit", "4", "--eval-every", "500", "--save-every", "500", "-t", "1",
                                "--updates", str(n), "--out", run], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    table = Table("updates", n)
    done, metrics = 0, None
    while process.poll() is None:
        if metrics is None and (run / "metrics.jsonl").exists():
            metrics = (run / "metrics.jsonl").open()
        if metrics:
            done += sum('"loss"' in line for line in metrics.readlines())
            table.show(process, done)
        time.sleep(0.2)
    return process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("questions", "updates"))
    parser.add_argument("-n", type=int, default=0, help="how many")
    parser.add_argument("--lengths", type=int, default=9, choices=range(1, 10), help="of questions, how many different ones")
    parser.add_argument("--penelope", default=str(ROOT / "build" / "release" / "bin" / "penelope"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work, n = (questions, 50000) if options.what == "questions" else (updates, 20000)
        code = work(options.penelope, options.n or n, options.lengths, Path(folder))
    raise SystemExit(code)


if __name__ == "__main__":
    main()
