#!/usr/bin/env python3
"""Side by side with llama.cpp: prefill, decoding, start-up and peak memory of the same files on the same threads.

Builds llama.cpp from the archive that also brings ggml, makes the quantizations of SmolLM2 with `penelope quantize` (or files of
a published shape with random weights), runs both programs alternately and prints a Markdown table of medians. A ratio above 1
is in our favour; behind each median stands the ratio of the best runs, which other work on the machine disturbs least.

    bench/llama_cpp/run.py [--penelope build/release/bin/penelope] [--types Q4_1,Q4_0,Q8_0,F16,BF16,F32] [--runs 5] [--threads N]
    bench/llama_cpp/run.py --shape qwen3.5-0.8b --types Q8_0,Q4_0,F16
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from llama_tools import CACHE, build_llama_cpp, fetched

TOOLS = ["llama-bench", "llama-quantize", "llama-simple"]


def measured(command):
    """Standard output, wall seconds and peak resident bytes of a command."""
    start = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return output.decode(), time.monotonic() - start, usage.ru_maxrss * 1024


def make_models(penelope, types):
    """One file per type, from the F32 copy of the fetched model."""
    folder = CACHE / "bench-models"
    folder.mkdir(parents=True, exist_ok=True)
    source = fetched("smollm2")
    files = {"Q4_1": source}
    full = folder / "smollm2-F32.gguf"
    if not full.exists():
        subprocess.run([penelope, "quantize", source, full, "F32", "--allow-requantize"], check=True, stdout=subprocess.DEVNULL)
    files["F32"] = full
    for kind in types:
        if kind not in files:
            files[kind] = folder / f"smollm2-{kind}.gguf"
            if not files[kind].exists():
                subprocess.run([penelope, "quantize", full, files[kind], kind], check=True, stdout=subprocess.DEVNULL)
    return files


def make_shape(penelope, shape, types):
    """One file per type of a shape with random weights, which the text of an answer does not matter for."""
    from random_checkpoint import write_checkpoint
    folder = CACHE / "bench-models"
    files = {kind: folder / f"{shape}-{kind}.gguf" for kind in types}
    if not all(path.exists() for path in files.values()):
        checkpoint = folder / f"{shape}-hf"
        write_checkpoint(checkpoint, shape)
        for kind, path in files.items():
            if not path.exists():
                subprocess.run([penelope, "convert", checkpoint, "-o", path, "--type", kind], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(checkpoint)
    return files


def theirs(tools, model, threads, prompt, gen):
    output, _, peak = measured([tools / "llama-bench", "-m", model, "-p", prompt, "-n", gen, "-r", 1, "-t", threads, "-o", "json"])
    rows = json.loads(output)
    return {"pp": next(r["avg_ts"] for r in rows if r["n_prompt"]), "tg": next(r["avg_ts"] for r in rows if r["n_gen"]), "peak": peak}


def ours(penelope, model, threads, prompt, gen):
    output, _, peak = measured([penelope, "bench", "-m", model, "--prompt", prompt, "--gen", gen, "-r", 1, "-t", threads, "-o", "json"])
    rows = json.loads(output)
    return {"pp": next(r["tokens_per_second"] for r in rows if r["test"].startswith("pp")),
            "tg": next(r["tokens_per_second"] for r in rows if r["test"].startswith("tg")), "peak": peak}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--penelope", type=Path, default=ROOT / "build" / "release" / "bin" / "penelope")
    parser.add_argument("--llama-bin", type=Path, help="folder of llama.cpp's tools, instead of building them")
    parser.add_argument("--shape", help="random weights of this shape instead of SmolLM2: qwen3.5-0.8b, qwen3-0.6b or qwen2.5-0.5b")
    parser.add_argument("--types", default="Q4_1,Q4_0,Q8_0,F16,BF16,F32")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--gen", type=int, default=64)
    options = parser.parse_args()
    if not options.penelope.exists():
        sys.exit(f"{options.penelope}: not built; run scripts/quickstart or give --penelope")
    tools = options.llama_bin or build_llama_cpp(*TOOLS)
    types = options.types.split(",")
    files = make_shape(options.penelope, options.shape, types) if options.shape else make_models(options.penelope, types)

    print(f"{options.shape or 'SmolLM2-135M-Instruct'}, {options.threads} threads, medians of {options.runs} alternating runs; ratio = ours / llama.cpp for tokens per second, "
          "llama.cpp / ours for time and memory\n")
    print(f"| type | pp{options.prompt} llama.cpp | ours | ratio | tg{options.gen} llama.cpp | ours | ratio | first token llama.cpp | ours | ratio | peak llama.cpp | ours | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for kind in types:
        model, a, b, start_a, start_b = files[kind], [], [], [], []
        for run in range(options.runs + 1):
            one, two = theirs(tools, model, options.threads, options.prompt, options.gen), ours(options.penelope, model, options.threads, options.prompt, options.gen)
            first_a = measured([tools / "llama-simple", "-m", model, "-n", 1, "The capital of France is"])[1]
            first_b = measured([options.penelope, "run", "-m", model, "-n", 1, "-t", options.threads, "--raw", "-p", "The capital of France is"])[1]
            if run > 0:  # the first round only warms the page cache
                a.append(one), b.append(two), start_a.append(first_a), start_b.append(first_b)
        median = lambda rows, key: statistics.median(row[key] for row in rows)
        ratio = lambda key: statistics.median(two[key] / one[key] for one, two in zip(a, b))
        best = lambda key: max(two[key] for two in b) / max(one[key] for one in a)
        print(f"| {kind} | {median(a, 'pp'):.0f} t/s | {median(b, 'pp'):.0f} t/s | {ratio('pp'):.2f} ({best('pp'):.2f}) | {median(a, 'tg'):.1f} t/s | {median(b, 'tg'):.1f} t/s | {ratio('tg'):.2f} ({best('tg'):.2f}) "
              f"| {statistics.median(start_a) * 1e3:.0f} ms | {statistics.median(start_b) * 1e3:.0f} ms | {statistics.median(x / y for x, y in zip(start_a, start_b)):.2f} "
              f"| {median(a, 'peak') / 2**20:.0f} MiB | {median(b, 'peak') / 2**20:.0f} MiB | {1 / ratio('peak'):.2f} |", flush=True)


if __name__ == "__main__":
    main()
