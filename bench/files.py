#!/usr/bin/env python3
"""The file commands beside llama.cpp: does it load what we write, are quantized tensors the same, who is faster?

    bench/files.py --penelope build/bin/penelope --llama-build DIR --llama-source DIR [--model F32.gguf] [--checkpoint]
    bench/files.py --penelope build/bin/penelope [--base BASE --sidecar SIDECAR --data TEST.jsonl]

Tables on stdout, each with a verdict per line; exit 1 if any check fails:
  sidecar     what quantizing a sidecar does to the reference states and answers of tests/golden, and, with --sidecar, to the
              score and the answers of a trained one
  logits      llama.cpp on the converted golden cases against the logits PyTorch computed (needs llama.cpp)
  tensors     llama-quantize and penelope quantize on --model in turns, byte by byte, medians of time and memory (needs it too)
  checkpoint  penelope convert on checkpoints of Llama-3.2-1B's shape, BF16 in four shards, F16 and F32: time and peak memory
Standard library only. llama.cpp: a build directory (bin/ with llama-quantize and the libraries) and its source tree.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ["last", "middle", "full", "overwrite"]
LOGIT_TOLERANCE = 1e-3
MEMORY_LIMIT = 1500  # MB
STEPS = (0, 1, 3, 6)  # K of the golden answers


# A process starts its life as a copy of its parent, whose memory counts as its own peak: this one is small. It runs a
# command and puts exit code, seconds and peak memory in KB into the file named first.
LAUNCHER = """
import os, sys, time
before = time.monotonic()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as report:
    report.write(f"{os.waitstatus_to_exitcode(status)} {time.monotonic() - before} {usage.ru_maxrss}")
"""


def run(command):
    """Runs a command; returns its output, wall time and peak memory in MB."""
    with tempfile.NamedTemporaryFile() as report:
        done = subprocess.run([sys.executable, "-I", "-S", "-c", LAUNCHER, report.name, *map(str, command)], capture_output=True)
        code, seconds, memory = report.read().split() or (b"1", b"0", b"0")
    if code != b"0":
        sys.exit(f"{command[0]} failed ({code.decode()}): {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout, float(seconds), float(memory) * 1.024e-3


def read_safetensors(path):
    """Tensor name -> F32 values."""
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
    return tensors


def largest_difference(a, b):
    return max(abs(x - y) for x, y in zip(a, b)) if len(a) == len(b) else float("inf")


def convert_golden(arguments, case, work):
    """Backbone, LoRA and sidecar of a golden case in F32."""
    golden = ROOT / "tests/golden" / case
    backbone, lora, sidecar = (work / f"{case}-{name}.gguf" for name in ("base", "lora", "sidecar"))
    if not backbone.exists():
        run([arguments.penelope, "convert", golden / "model", "-o", backbone, "--type", "F32"])
        run([arguments.penelope, "convert", golden / "lora", "-o", lora, "--base", backbone])
        run([arguments.penelope, "convert", golden / "penelope", "-o", sidecar, "--base", backbone, "--lora", golden / "lora"])
    return backbone, lora, sidecar


def read_gguf(path):
    """Tensor name -> (type, shape, bytes)."""
    data = path.read_bytes()
    at = 8

    def number(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize("<" + form)
        return value

    def text():
        nonlocal at
        size = number("Q")
        at += size
        return data[at - size:at]

    forms = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def value(kind):
        if kind == 8:
            text()
        elif kind == 9:
            element, count = number("I"), number("Q")
            for _ in range(count):
                value(element)
        else:
            number(forms[kind])

    n_tensors, n_keys = number("Q"), number("Q")
    for _ in range(n_keys):
        text()
        value(number("I"))
    tensors = []
    for _ in range(n_tensors):
        name = text().decode()
        shape = [number("Q") for _ in range(number("I"))]
        tensors.append((name, number("I"), shape, number("Q")))
    base = (at + 31) // 32 * 32
    ends = sorted(offset for _, _, _, offset in tensors) + [len(data) - base]
    following = dict(zip(ends, ends[1:]))
    return {name: (kind, shape, data[base + offset:base + following[offset]].rstrip(b"\0"))
            for name, kind, shape, offset in tensors}


def check_logits(arguments, work):
    tool = work / "llama_logits"
    source, build = Path(arguments.llama_source), Path(arguments.llama_build) / "bin"
    run(["c++", "-O2", "-std=c++17", f"-I{source}/include", f"-I{source}/ggml/include", ROOT / "bench/peer/llama_logits.cpp",
         f"-L{build}", "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{build}", "-o", tool])
    print("\n| case | logits | largest difference | |\n|---|---|---|---|")
    good = True
    for case in CASES:
        golden = ROOT / "tests/golden" / case
        backbone, lora, _ = convert_golden(arguments, case, work)
        ids = json.loads((golden / "expected.json").read_text())["examples"][0]["prompt_ids"]
        expected = read_safetensors(golden / "expected.safetensors")
        for name, adapter in (("base_logits", "-"), ("lora_logits", lora)):
            out, _, _ = run([tool, backbone, adapter, *ids])
            difference = largest_difference(expected[name], struct.unpack(f"<{len(out) // 4}f", out))
            good &= difference < LOGIT_TOLERANCE
            print(f"| {case} | {name} | {difference:.1e} | {'ok' if difference < LOGIT_TOLERANCE else 'WRONG'} |")
    return good


def golden_effect(arguments, case, sidecar, work):
    """Largest difference from the reference over all states and first logits; how many answers begin alike and are the same."""
    golden = ROOT / "tests/golden" / case
    reference = json.loads((golden / "expected.json").read_text())
    expected = read_safetensors(golden / "expected.safetensors")
    backbone, _, _ = convert_golden(arguments, case, work)
    worst, begin, same = 0.0, 0, 0
    for k in STEPS:
        for i, example in enumerate(reference["examples"]):
            key, dump = f"K{k}.ex{i}", work / "dump.safetensors"
            if key not in reference["greedy"]:
                continue
            out, _, _ = run([arguments.penelope, "run", "-m", backbone, "--sidecar", sidecar, "-p", example["prompt"], "--raw", "-K", k, "-n", 12,
                             "-t", 1, "--kv-type", "f32", "--dump", dump, "--force", "--json"])
            for name, values in read_safetensors(dump).items():
                if f"{key}.{name}" in expected:
                    worst = max(worst, largest_difference(values, expected[f"{key}.{name}"]))
            tokens = json.loads(out)["tokens"]
            begin += tokens[:1] == reference["greedy"][key][:1]
            same += tokens == reference["greedy"][key]
    return worst, begin, same


def check_sidecar(arguments, work):
    print("\n| sidecar | case | bytes | largest difference of a state | answers that begin alike | the same to the end |\n|---|---|---|---|---|---|")
    good = True
    for kind in ("F32", "F16", "Q8_0", "Q4_0"):
        for case in CASES:
            _, _, sidecar = convert_golden(arguments, case, work)
            quantized = work / f"{case}-{kind}.gguf"
            run([arguments.penelope, "quantize", sidecar, quantized, kind])
            worst, begin, same = golden_effect(arguments, case, quantized, work)
            good &= kind != "F32" or (worst < LOGIT_TOLERANCE and begin == 8)
            print(f"| {kind} | {case} | {quantized.stat().st_size} | {worst:.1e} | {begin} of 8 | {same} of 8 |", flush=True)
    return good


def check_trained_sidecar(arguments, work):
    """The score of a trained sidecar and of its quantized copies on the same questions."""
    print("\n| sidecar | bytes | exact match | answers other than with F32 |\n|---|---|---|---|")
    first = None
    for kind in ("F32", "F16", "Q8_0", "Q4_0"):
        sidecar, predictions = work / f"trained-{kind}.gguf", work / f"{kind}.jsonl"
        run([arguments.penelope, "quantize", arguments.sidecar, sidecar, kind, "--allow-requantize"])
        out, _, _ = run([arguments.penelope, "eval", "-m", arguments.base, "--sidecar", sidecar, "--data", arguments.data, "--json",
                         "--predictions", predictions])
        answers = {line["id"]: line["text"] for line in map(json.loads, predictions.read_text().splitlines())}
        first = first or answers
        changed = sum(answers[name] != first[name] for name in first)
        score = json.loads(out)["results"][0]["em"]
        print(f"| {kind} | {sidecar.stat().st_size} | {100 * score:.2f} % | {changed} of {len(first)} |", flush=True)
    return True


def check_quantize(arguments, work):
    model = Path(arguments.model)
    quantize = Path(arguments.llama_build) / "bin/llama-quantize"
    threads = str(arguments.threads)
    print("\n| type | penelope s | llama-quantize s | ratio | penelope MB | llama-quantize MB | tensors |\n|---|---|---|---|---|---|---|")
    good = True
    for kind in arguments.types.split(","):
        ours, theirs = work / "ours.gguf", work / "theirs.gguf"
        times, memory = {"ours": [], "theirs": []}, {}
        for _ in range(arguments.repeat):
            # llama-quantize does not wait for the disk, so neither is charged for what the other left to write.
            os.sync()
            _, seconds, memory["ours"] = run([arguments.penelope, "quantize", model, ours, kind, "--force", "-t", threads])
            times["ours"].append(seconds)
            os.sync()
            _, seconds, memory["theirs"] = run([quantize, model, theirs, kind, threads])
            times["theirs"].append(seconds)
        median = {who: statistics.median(values) for who, values in times.items()}
        a, b = read_gguf(ours), read_gguf(theirs)
        different = [name for name in a.keys() | b.keys() if a.get(name) != b.get(name)]
        good &= not different
        verdict = f"{len(a)} identical" if not different else f"WRONG: {len(different)} differ, e.g. {different[0]}"
        print(f"| {kind} | {median['ours']:.2f} | {median['theirs']:.2f} | {median['theirs'] / median['ours']:.2f} | "
              f"{memory['ours']:.0f} | {memory['theirs']:.0f} | {verdict} |", flush=True)
        ours.unlink()
        theirs.unlink()
    return good


def make_checkpoint(path, dtype, n_shards):
    """Llama-3.2-1B's shape with random weights; the tokenizer is the golden one with the vocabulary padded."""
    golden = ROOT / "tests/golden/last/model"
    path.mkdir()
    config = json.loads((golden / "config.json").read_text())
    config.update(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64,
                  vocab_size=128256, max_position_embeddings=131072)
    (path / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(golden / name, path / name)
    shapes = {"model.embed_tokens.weight": [128256, 2048], "model.norm.weight": [2048]}
    for il in range(16):
        for name, shape in (("input_layernorm", [2048]), ("post_attention_layernorm", [2048]), ("self_attn.q_proj", [2048, 2048]),
                            ("self_attn.k_proj", [512, 2048]), ("self_attn.v_proj", [512, 2048]), ("self_attn.o_proj", [2048, 2048]),
                            ("mlp.gate_proj", [8192, 2048]), ("mlp.up_proj", [8192, 2048]), ("mlp.down_proj", [2048, 8192])):
            shapes[f"model.layers.{il}.{name}.weight"] = shape
    generator = random.Random(1)
    values = [generator.gauss(0.0, 0.02) for _ in range(1 << 19)]
    if dtype == "BF16":
        block = b"".join(struct.pack("<f", value)[2:] for value in values)
    else:
        block = struct.pack(f"<{len(values)}{'f' if dtype == 'F32' else 'e'}", *values)
    width = {"F32": 4, "F16": 2, "BF16": 2}[dtype]
    names = list(shapes)
    weight_map = {}
    for shard in range(n_shards):
        name = "model.safetensors" if n_shards == 1 else f"model-{shard + 1:05}-of-{n_shards:05}.safetensors"
        header, offset = {}, 0
        for tensor in names[shard * len(names) // n_shards:(shard + 1) * len(names) // n_shards]:
            shape = shapes[tensor]
            size = width * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
            offset += size
            weight_map[tensor] = name
        text = json.dumps(header).encode()
        with open(path / name, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for start in range(0, offset, len(block)):
                file.write(block[:min(len(block), offset - start)])
    if n_shards > 1:
        (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def check_checkpoint(arguments, work):
    print("\n| source | to | s | MB/s read | peak MB | |\n|---|---|---|---|---|---|")
    good = True
    for dtype in ("BF16", "F16", "F32"):
        source = work / f"llama-1b-{dtype}"
        make_checkpoint(source, dtype, 4 if dtype == "BF16" else 1)
        size = sum(file.stat().st_size for file in source.glob("*.safetensors")) / 1e6
        for kind in ("F32", "Q8_0", "Q4_K_M") if dtype == "BF16" else ("Q8_0",):
            out = work / "out.gguf"
            os.sync()
            _, seconds, memory = run([arguments.penelope, "convert", source, "-o", out, "--type", kind, "-t", arguments.threads])
            good &= memory < MEMORY_LIMIT
            print(f"| {dtype} | {kind} | {seconds:.1f} | {size / seconds:.0f} | {memory:.0f} | {'ok' if memory < MEMORY_LIMIT else 'WRONG'} |", flush=True)
            out.unlink()
        shutil.rmtree(source)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--penelope", required=True)
    parser.add_argument("--llama-build")
    parser.add_argument("--llama-source")
    parser.add_argument("--model", help="an F32 backbone for the quantizers")
    parser.add_argument("--checkpoint", action="store_true", help="also the 1B checkpoints (needs 10 GB of disk)")
    parser.add_argument("--base", help="backbone of --sidecar")
    parser.add_argument("--sidecar", help="a trained sidecar, scored on --data")
    parser.add_argument("--data", help="questions for it")
    parser.add_argument("--types", default="Q8_0,Q4_0,Q4_K,Q6_K,Q4_K_M,Q5_K_M,Q4_1,Q5_0,Q5_1,Q5_K,F16,BF16")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--work", help="directory for temporary files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work) as name:
        work = Path(name)
        good = check_sidecar(arguments, work)
        if arguments.sidecar:
            good &= check_trained_sidecar(arguments, work)
        if arguments.llama_build and arguments.llama_source:
            good &= check_logits(arguments, work)
        if arguments.llama_build and arguments.model:
            good &= check_quantize(arguments, work)
        if arguments.checkpoint:
            good &= check_checkpoint(arguments, work)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
