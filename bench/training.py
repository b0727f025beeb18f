#!/usr/bin/env python3
"""What an update costs: how time and memory grow with latent steps and with the minibatch, and how much of the rate of plain
prefill the whole update reaches.

    bench/training.py --model SmolLM2-F16.gguf [--penelope build/release/bin/penelope] [--interval 21:30] [--threads N]
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def penelope(options, *arguments):
    result = subprocess.run([options.penelope, *map(str, arguments), "-t", str(options.threads), "-q"], check=True, stdout=subprocess.PIPE, text=True)
    return result.stdout


def listops(options, folder, name, n, steps):
    data = folder / name
    penelope(options, "data", "listops", "--out", data, "--train", n, "--valid", 8, "--test", 8, "--depth", "4-4", "--test-depth", "4-4")
    (data / "valid.jsonl").unlink()
    if not steps:  # every stage then has the target of the last one
        examples = [json.loads(line) | {"steps": []} for line in (data / "train.jsonl").read_text().splitlines()]
        (data / "train.jsonl").write_text("".join(json.dumps(e) + "\n" for e in examples))
    return data


def updates(options, folder, data, *arguments):
    """The metrics of the updates of the last stage but its first one, and the bytes of the largest graph."""
    common = ["train", "-m", options.model, "--data", data, "--out", folder / "run", *arguments]
    plan = json.loads(penelope(options, *common, "--dry-run", "--json"))
    penelope(options, *common, "--eval-every", 0, "--save-every", 0, "--force")
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    rows = [line for line in lines if "loss" in line]
    return rows[len(rows) // 2 + 1:], plan["memory"]["graph"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--penelope", type=Path, default=ROOT / "build" / "release" / "bin" / "penelope")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--interval", default="21:30")
    parser.add_argument("--updates", type=int, default=3, help="measured at each point")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    n = 2 * (options.updates + 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        visible, answers = listops(options, folder, "visible", 20 * n, True), listops(options, folder, "answers", 20 * n, False)
        median = lambda rows: statistics.median(row["ms"] for row in rows)
        latent = lambda k, batch: updates(options, folder, answers, "--method", "penelope", "--interval", options.interval, "--latent-steps", k, "--batch-size", batch, "--updates", n)

        print("| K (batch 4) | ms | graph MiB |\n|---|---|---|")
        graph = {}
        for k in (1, 2, 4, 6, 8):
            rows, graph[k] = latent(k, 4)
            print(f"| {k} | {median(rows):.0f} | {graph[k] / 2**20:.0f} |", flush=True)
        print(f"\nMemory of one more latent step of four examples: {(graph[8] - graph[1]) / 7 / 2**20:.1f} MiB\n")

        print("| batch (K=4) | ms | ms an example |\n|---|---|---|")
        for batch in (1, 2, 4, 8):
            rows, _ = latent(4, batch)
            print(f"| {batch} | {median(rows):.0f} | {median(rows) / batch:.0f} |", flush=True)

        # An update multiplies every frozen weight twice, once forward and once for the gradient of its input.
        shares = []
        for _ in range(3):
            rows, _ = updates(options, folder, visible, "--method", "cot", "--batch-size", 4, "--updates", n)
            bench = json.loads(penelope(options, "bench", "-m", options.model, "-p", 512, "-n", 0, "-r", 2, "-o", "json"))
            prefill = next(row["tokens_per_second"] for row in bench if row["test"] == "pp512")
            shares.append(statistics.median(2 * row["tokens"] / row["ms"] * 1e3 for row in rows) / prefill)
        print(f"\nA visible-CoT update runs its matrix products, everything else included, at {statistics.median(shares):.2f} of the rate of plain prefill")


if __name__ == "__main__":
    main()
