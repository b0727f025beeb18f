#!/usr/bin/env python3
"""Pre-answer time and peak memory of Penelope: this program against PyTorch in F32, alternating in one run.

Both sides carry the LoRA of rank 16 that belongs to Penelope beside the weights; with --merged PyTorch has it folded into
them. Needs torch, transformers and peft for PyTorch's side.

    bench/pytorch/inference.py [--penelope build/release/bin/penelope] [--model SmolLM2-Q8_0.gguf] [-K 5] [--prompt 60] [--runs 7] [--threads N]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pytorch_worker(options):
    """Answers each line on standard input with the milliseconds of one pre-answer pass."""
    import torch
    from reference import PROJECTIONS, Modules, backbone, trajectory
    torch.set_num_threads(options.threads)
    model = backbone("smollm2-135m")
    if not options.merged:
        from peft import LoraConfig, get_peft_model
        get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=PROJECTIONS)).eval()  # changes the model itself
    modules = Modules(model.config.hidden_size).eval()
    ids = (torch.arange(options.prompt) * 37 % 1000).unsqueeze(0)
    start, end = (int(part) for part in options.interval.split(":"))
    with torch.inference_mode():
        def once():
            begin = time.perf_counter()
            out, _ = trajectory(model, modules, ids, (start, end), options.K)
            model.lm_head(model.model.norm(out[:, -1])).argmax()
            return (time.perf_counter() - begin) * 1e3
        for _ in range(2):
            once()
        print("ready", flush=True)
        for _ in sys.stdin:
            print(once(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--penelope", type=Path, default=ROOT / "build" / "release" / "bin" / "penelope")
    parser.add_argument("--model", help="SmolLM2 as Q8_0; default: random weights of that shape")
    parser.add_argument("--interval", default="21:30")
    parser.add_argument("-K", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=60)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--merged", action="store_true", help="PyTorch without separate LoRA pairs")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return pytorch_worker(options)

    worker = subprocess.Popen([sys.executable, __file__, "--worker", "-K", str(options.K), "--prompt", str(options.prompt), "--interval", options.interval,
                               "--threads", str(options.threads), *(["--merged"] if options.merged else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if worker.stdout.readline().strip() != "ready":
        sys.exit("the PyTorch side did not start: are torch and transformers installed?")
    source = ["-m", options.model] if options.model else ["--shape", "smollm2-135m", "--type", "q8_0"]
    theirs, ours, peak = [], [], 0
    for _ in range(options.runs):
        worker.stdin.write("go\n")
        worker.stdin.flush()
        theirs.append(float(worker.stdout.readline()))
        process = subprocess.Popen([options.penelope, "bench", *source, "--methods", f"penelope:{options.K}", "--interval", options.interval, "--prompt", str(options.prompt),
                                    "--gen", "1", "-r", "3", "-t", str(options.threads), "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        rows = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit("penelope bench failed")
        ours.append(next(row["ms"] for row in rows if row["test"] == "latent" and row["K"] == options.K))
        peak = max(peak, usage.ru_maxrss * 1024)
    worker.stdin.close()
    _, _, usage = os.wait4(worker.pid, 0)
    a, b = statistics.median(theirs), statistics.median(ours)
    print(f"SmolLM2-135M, interval [{options.interval}), {options.prompt}-token prompt, K={options.K}, {options.threads} threads, medians of {options.runs} alternating runs\n")
    print(f"LoRA of rank 16 beside the weights{' here only' if options.merged else ''}\n")
    print(f"| | PyTorch F32 | penelope {rows[0]['type']} | ratio |\n|---|---|---|---|")
    print(f"| pre-answer | {a:.0f} ms | {b:.0f} ms | {statistics.median(y / x for x, y in zip(theirs, ours)):.2f} |")
    print(f"| peak memory | {usage.ru_maxrss / 1024:.0f} MiB | {peak / 2**20:.0f} MiB | {peak / 1024 / usage.ru_maxrss:.2f} |")


if __name__ == "__main__":
    main()
