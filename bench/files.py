#!/usr/bin/env python3
"""The file commands beside llama.cpp: does it load what we write, are quantized tensors the same, who is faster?

    bench/files.py --penelope build/bin/penelope --llama-build DIR --llama-source DIR [--model F32.gguf] [--checkpoint DIR]

Three tables on stdout, each with a verdict per line; exit 1 if any check fails:
  logits      llama.cpp on the converted golden cases (tests/golden) against the logits PyTorch computed
  tensors     llama-quantize and penelope quantize on the same F32 file, byte by byte, with times and peak memory
  checkpoint  penelope convert on a checkpoint of Llama-3.2-1B's shape, F32, F16 and BF16: time and peak memory
Standard library only. llama.cpp: a build directory (bin/ with llama-quantize and the libraries) and its source tree.
"""
import argparse
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ["last", "middle", "full", "overwrite"]
LOGIT_TOLERANCE = 1e-3


def run(command):
    """Runs a command; returns its output, wall time and peak memory in MB."""
    with tempfile.TemporaryFile() as log:
        before = time.monotonic()
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=log)
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - before
        if process.returncode != 0:
            log.seek(0)
            sys.exit(f"{command[0]} failed ({process.returncode}): {log.read().decode(errors='replace')[-500:]}")
    return out, seconds, usage.ru_maxrss / 1000


def read_safetensors(path, name):
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])


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
    print("| case | logits | largest difference | |\n|---|---|---|---|")
    good = True
    for case in CASES:
        golden = ROOT / "tests/golden" / case
        backbone, lora = work / f"{case}.gguf", work / f"{case}-lora.gguf"
        run([arguments.penelope, "convert", golden / "model", "-o", backbone, "--type", "F32"])
        run([arguments.penelope, "convert", golden / "lora", "-o", lora, "--base", backbone])
        ids = json.loads((golden / "expected.json").read_text())["examples"][0]["prompt_ids"]
        for name, adapter in (("base_logits", "-"), ("lora_logits", lora)):
            expected = read_safetensors(golden / "expected.safetensors", name)
            out, _, _ = run([tool, backbone, adapter, *ids])
            actual = struct.unpack(f"<{len(out) // 4}f", out)
            difference = max(abs(a - b) for a, b in zip(expected, actual)) if len(actual) == len(expected) else float("inf")
            good &= difference < LOGIT_TOLERANCE
            print(f"| {case} | {name} | {difference:.1e} | {'ok' if difference < LOGIT_TOLERANCE else 'WRONG'} |")
    return good


def check_quantize(arguments, work):
    model = Path(arguments.model)
    quantize = Path(arguments.llama_build) / "bin/llama-quantize"
    threads = str(arguments.threads)
    print("\n| type | penelope s | llama-quantize s | ratio | penelope MB | llama-quantize MB | tensors |\n|---|---|---|---|---|---|---|")
    good = True
    for kind in arguments.types.split(","):
        ours, theirs = work / "ours.gguf", work / "theirs.gguf"
        best = {"ours": (1e9, 0), "theirs": (1e9, 0)}
        for _ in range(arguments.repeat):
            # llama-quantize does not wait for the disk, so neither is charged for what the other left to write.
            os.sync()
            _, seconds, memory = run([arguments.penelope, "quantize", model, ours, kind, "--force", "-t", threads])
            best["ours"] = min(best["ours"], (seconds, memory))
            os.sync()
            _, seconds, memory = run([quantize, model, theirs, kind, threads])
            best["theirs"] = min(best["theirs"], (seconds, memory))
        a, b = read_gguf(ours), read_gguf(theirs)
        different = [name for name in a.keys() | b.keys() if a.get(name) != b.get(name)]
        good &= not different
        verdict = f"{len(a)} identical" if not different else f"WRONG: {len(different)} differ, e.g. {different[0]}"
        print(f"| {kind} | {best['ours'][0]:.2f} | {best['theirs'][0]:.2f} | {best['theirs'][0] / best['ours'][0]:.2f} | "
              f"{best['ours'][1]:.0f} | {best['theirs'][1]:.0f} | {verdict} |", flush=True)
        ours.unlink()
        theirs.unlink()
    return good


def make_checkpoint(path, dtype):
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
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = width * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for start in range(0, offset, len(block)):
            file.write(block[:min(len(block), offset - start)])


def check_checkpoint(arguments, work):
    print("\n| source | to | s | MB/s read | peak MB | |\n|---|---|---|---|---|---|")
    good = True
    for dtype in ("BF16", "F16", "F32"):
        source = work / f"llama-1b-{dtype}"
        make_checkpoint(source, dtype)
        size = (source / "model.safetensors").stat().st_size / 1e6
        for kind in ("F32", "Q8_0", "Q4_K_M") if dtype == "BF16" else ("Q8_0",):
            out = work / "out.gguf"
            os.sync()
            _, seconds, memory = run([arguments.penelope, "convert", source, "-o", out, "--type", kind, "-t", arguments.threads])
            good &= memory < 1500
            print(f"| {dtype} | {kind} | {seconds:.1f} | {size / seconds:.0f} | {memory:.0f} | {'ok' if memory < 1500 else 'WRONG'} |", flush=True)
            out.unlink()
        shutil.rmtree(source)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--penelope", required=True)
    parser.add_argument("--llama-build", required=True)
    parser.add_argument("--llama-source", required=True)
    parser.add_argument("--model", help="an F32 backbone for the quantizers")
    parser.add_argument("--checkpoint", action="store_true", help="also the 1B checkpoints (needs 10 GB of disk)")
    parser.add_argument("--types", default="Q8_0,Q4_0,Q4_K,Q6_K,Q4_1,Q5_0,Q5_1,Q5_K,F16,BF16")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--work", help="directory for temporary files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work) as name:
        work = Path(name)
        good = check_logits(arguments, work)
        if arguments.model:
            good &= check_quantize(arguments, work)
        if arguments.checkpoint:
            good &= check_checkpoint(arguments, work)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
