#!/usr/bin/env python3
"""Training on Deep ListOps: this program against PyTorch in F32, alternating in one run.

Visible chain of thought (LoRA through PEFT, minibatches padded to their longest example) and Penelope's last stage (K latent
steps, answer only, examples one after the other as the usual implementations do). Needs torch, transformers and peft.

    bench/pytorch/training.py --model SmolLM2-F32.gguf [--methods cot,penelope] [--rounds 3] [--updates 6] [--threads N]
    bench/pytorch/training.py --model QWEN35-F16.gguf --methods penelope --interval 16:24 --updates 2

bench/random_checkpoint.py makes backbones of published shapes.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BATCH = 4


def target_text(example, steps):
    return "".join(step + "\n" for step in example["steps"] if steps) + "### " + example["answer"]


def pytorch_worker(options):
    """Answers each line on standard input with milliseconds, examples and target tokens of one round."""
    import torch
    import torch.nn.functional as F
    from peft import LoraConfig, get_peft_model
    from reference import PROJECTIONS, Modules, trajectory
    from transformers import AutoModelForCausalLM, AutoTokenizer
    torch.set_num_threads(options.threads)
    tokenizer = AutoTokenizer.from_pretrained(options.hf)
    model = AutoModelForCausalLM.from_pretrained(options.hf, dtype=torch.float32)
    lora = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules=PROJECTIONS)).train()
    parameters = [p for p in lora.parameters() if p.requires_grad]
    latent = options.method == "penelope"
    modules = Modules(model.config.hidden_size, time=model.config.hidden_size // 2, bottleneck=model.config.hidden_size // 8) if latent else None
    groups = [{"params": parameters, "lr": 2e-5 if latent else 1e-4}] + ([{"params": list(modules.parameters()), "lr": 1e-4}] if latent else [])
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    encode = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]
    lines = (Path(options.data) / "train.jsonl").read_text().splitlines()
    examples = [(encode(e["question"] + "\n"), encode(target_text(e, not latent)) + [tokenizer.eos_token_id]) for e in map(json.loads, lines)]
    start, end = (int(part) for part in options.interval.split(":"))

    def padded_loss(batch):
        width = max(len(p) + len(t) for p, t in batch)
        ids = torch.full((len(batch), width), tokenizer.eos_token_id)
        labels = torch.full((len(batch), width), -100)
        seen = torch.zeros((len(batch), width), dtype=torch.long)
        for i, (p, t) in enumerate(batch):
            n = len(p) + len(t)
            ids[i, :n], seen[i, :n] = torch.tensor(p + t), 1
            labels[i, len(p):n] = torch.tensor(t)
        return lora(input_ids=ids, attention_mask=seen, labels=labels).loss

    def backward(batch):
        if not latent:
            padded_loss(batch).backward()
            return
        n = sum(len(t) for _, t in batch)
        for p, t in batch:
            rows, _ = trajectory(model, modules, torch.tensor([p]), (start, end), options.K, torch.tensor([t[:-1]]))
            logits = model.lm_head(model.model.norm(rows[0, -len(t):]))
            (F.cross_entropy(logits, torch.tensor(t), reduction="sum") / n).backward()

    def round_():
        begin, n_targets = time.perf_counter(), 0
        for u in range(options.updates):
            batch = examples[u * BATCH:(u + 1) * BATCH]
            optimizer.zero_grad()
            backward(batch)
            torch.nn.utils.clip_grad_norm_([p for g in groups for p in g["params"]], 1.0)
            optimizer.step()
            n_targets += sum(len(t) for _, t in batch)
        return {"ms": (time.perf_counter() - begin) * 1e3, "examples": options.updates * BATCH, "targets": n_targets}

    backward(examples[:BATCH])
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(round_()), flush=True)


def our_round(options, method, data, out):
    """One run of the program; only updates of the last stage count, and not the first of them."""
    command = [options.penelope, "train", "-m", options.model, "--method", method, "--data", data, "--out", out, "--force", "--batch-size", str(BATCH),
               "--eval-every", "0", "--save-every", "0", "-n", "1", "-t", str(options.threads), "-q", "--updates"]
    command += [str(options.updates + 1)] if method == "cot" else [str(2 * (options.updates + 1)), "--latent-steps", str(options.K), "--interval", options.interval]
    process = subprocess.Popen([*map(str, command), *options.flags.split()], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit("penelope train failed")
    lines = [json.loads(line) for line in (Path(out) / "metrics.jsonl").read_text().splitlines()]
    updates = [line for line in lines if "loss" in line][-options.updates:]
    return {"ms": sum(u["ms"] for u in updates), "examples": options.updates * BATCH, "targets": sum(u["target_tokens"] for u in updates)}, usage.ru_maxrss


def compare(options, method, folder):
    data = folder / f"data-{method}"
    n = options.updates * BATCH
    subprocess.run([options.penelope, "data", "listops", "--out", data, "--train", str(n), "--valid", "8", "--test", "8", "--depth", "1-8", "--test-depth", "1-8",
                    "-q", "--force"], check=True, stdout=subprocess.DEVNULL)
    (data / "valid.jsonl").unlink()
    if method == "penelope":  # without steps every stage has the target of the last one
        examples = [json.loads(line) | {"steps": []} for line in (data / "train.jsonl").read_text().splitlines()]
        (data / "train.jsonl").write_text("".join(json.dumps(e) + "\n" for e in examples))
    arguments = ["--worker", "--method", method, "--hf", folder / "hf", "--data", data, "--interval", options.interval, "-K", options.K, "--updates", options.updates,
                 "--threads", options.threads]
    worker = subprocess.Popen([sys.executable, __file__, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if worker.stdout.readline().strip() != "ready":
        sys.exit("the PyTorch side did not start: are torch, transformers and peft installed?")
    theirs, ours, peak = [], [], 0
    for i in range(options.rounds):
        worker.stdin.write("go\n")
        worker.stdin.flush()
        theirs.append(json.loads(worker.stdout.readline()))
        result, memory = our_round(options, method, data, folder / f"run-{method}")
        ours.append(result)
        peak = max(peak, memory)
        print(f"  {method} round {i + 1}: {theirs[-1]} | {result}", file=sys.stderr)
    worker.stdin.close()
    _, _, usage = os.wait4(worker.pid, 0)
    unit = "targets" if method == "cot" else "examples"
    rate = lambda r: r[unit] / r["ms"] * 1e3
    name = "visible CoT, target tokens/s" if method == "cot" else f"Penelope K={options.K}, examples/s"
    print(f"| {name} | {statistics.median(map(rate, theirs)):.2f} | {statistics.median(map(rate, ours)):.2f} "
          f"| {statistics.median(rate(b) / rate(a) for a, b in zip(theirs, ours)):.2f} |")
    print(f"| peak memory, MiB | {usage.ru_maxrss / 1024:.0f} | {peak / 1024:.0f} | {peak / usage.ru_maxrss:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--penelope", type=Path, default=ROOT / "build" / "release" / "bin" / "penelope")
    parser.add_argument("--model", type=Path, help="a backbone as a GGUF of any type; PyTorch gets it in F32")
    parser.add_argument("--methods", default="cot,penelope")
    parser.add_argument("--interval", default="21:30")
    parser.add_argument("-K", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=6, help="of a round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--flags", default="", help="more flags for penelope train")
    for hidden in ("--method", "--hf", "--data"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return pytorch_worker(options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([options.penelope, "export", options.model, "--as", "hf", "-o", folder / "hf", "-q"], check=True, stdout=subprocess.DEVNULL)
        print(f"{options.model.name}, Deep ListOps in minibatches of {BATCH}, {options.threads} threads, medians of {options.rounds} alternating rounds of "
              f"{options.updates} updates\n\n| | PyTorch F32 | penelope | ratio |\n|---|---|---|---|")
        for method in options.methods.split(","):
            compare(options, method, folder)


if __name__ == "__main__":
    main()
