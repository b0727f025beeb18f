#!/usr/bin/env python3
"""Do llama.cpp and this program agree on each other's files? Every architecture, on the golden cases.

    cmake --build build/release --target bench-logits
    bench/peer/agree.py [--build build/release] [--llama-build DIR] [--llama-source DIR]

A table on stdout, exit 1 if a line is wrong:
  F32        both on the backbone we convert: each against PyTorch, and against each other
  Q8_0 ...   both on our quantization of it, and on llama-quantize's
  converter  ours on what convert_hf_to_gguf.py wrote, if --their-python (with torch, transformers) is given

Qwen3.5's delta nets scale q and k to length one. transformers divides by sqrt(|x|^2 + 1e-6), llama.cpp by max(|x|, 1e-6); with the
small q and k of the golden case that shows. The line `qwen35 x8` has its convolution kernels eight times as large, where it does not.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("PENELOPE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penelope.cpp")
CASES = {"last": "llama-bpe", "qwen2": "qwen2", "qwen3": "qwen2", "qwen35": "qwen35", "qwen35 x8": "qwen35"}  # and how their text is split
SAME_FILE = 1e-4
EPSILON = 1e-3  # what the two roundings of a unit length make of the golden qwen35
THEIR_CONVERTER = """
import runpy, sys
tree, split = sys.argv[1:3]
sys.path[:0] = [tree, tree + "/gguf-py"]
import conversion.base as base
for kind in vars(base).values():
    if isinstance(kind, type) and hasattr(kind, "get_vocab_base_pre"):
        kind.get_vocab_base_pre = lambda self, tokenizer: split  # it knows published tokenizers by their hash
sys.argv = [tree + "/convert_hf_to_gguf.py", *sys.argv[3:]]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: {done.stderr.decode(errors='replace')[-800:]}")
    return done.stdout


def logits(tool, model, ids):
    out = run(tool, model, "-", *ids)
    return struct.unpack(f"<{len(out) // 4}f", out)


def apart(a, b):
    return max(abs(x - y) if x == x and y == y else float("inf") for x, y in zip(a, b)) if len(a) == len(b) else float("inf")


def tensors_of(path):
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    return data, 8 + size, json.loads(data[8:8 + size])


def checkpoint(case, work):
    """The folder of a case; with " x8" a copy with larger kernels."""
    source = ROOT / "tests" / "golden" / case.split()[0] / "model"
    if " " not in case:
        return source
    copy = work / "x8"
    copy.mkdir()
    for file in source.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    data, base, header = tensors_of(source / "model.safetensors")
    data = bytearray(data)
    for name, entry in header.items():
        if "conv1d" in name:
            begin, end = (base + offset for offset in entry["data_offsets"])
            values = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
            data[begin:end] = struct.pack(f"<{len(values)}f", *(8 * v for v in values))
    (copy / "model.safetensors").write_bytes(data)
    return copy


def pytorch_logits(case):
    data, base, header = tensors_of(ROOT / "tests" / "golden" / case / "expected.safetensors")
    begin, end = (base + offset for offset in header["base_logits"]["data_offsets"])
    return struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--llama-build", type=Path, default=CACHE / "llama.cpp-build", help="as bench/llama_cpp/run.py makes it")
    parser.add_argument("--llama-source", type=Path)
    parser.add_argument("--their-python", help="an interpreter with torch and transformers, for llama.cpp's converter")
    options = parser.parse_args()
    source = options.llama_source or Path(run(sys.executable, ROOT / "ggml" / "fetch", "llama.cpp").decode().strip())
    penelope, ours = options.build / "bin" / "penelope", options.build / "bench" / "bench-logits"
    quantize, good = options.llama_build / "bin" / "llama-quantize", True

    def line(case, file, what, difference, limit):
        nonlocal good
        good &= difference < limit
        print(f"| {case} | {file} | {what} | {difference:.1e} | {limit:.0e} | {'ok' if difference < limit else 'WRONG'} |", flush=True)

    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        theirs, library = work / "llama_logits", options.llama_build / "bin"
        run("c++", "-O2", "-std=c++17", f"-I{source}/include", f"-I{source}/ggml/include", ROOT / "bench/peer/llama_logits.cpp", f"-L{library}",
            "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{library}", "-o", theirs)
        print("| case | file | what | largest difference of a logit | limit | |\n|---|---|---|---|---|---|")
        for case, split in CASES.items():
            golden, folder = case.split()[0], checkpoint(case, work)
            ids = json.loads((ROOT / "tests" / "golden" / golden / "expected.json").read_text())["examples"][0]["prompt_ids"]
            limit = EPSILON if case == "qwen35" else SAME_FILE
            base = work / "base.gguf"
            run(penelope, "convert", folder, "-o", base, "--type", "F32", "--force")
            a, b = logits(ours, base, ids), logits(theirs, base, ids)
            if case == golden:
                line(case, "F32", "ours, PyTorch", apart(a, pytorch_logits(case)), 2e-4)
                line(case, "F32", "llama.cpp, PyTorch", apart(b, pytorch_logits(case)), limit)
            line(case, "F32", "ours, llama.cpp", apart(a, b), limit)
            for kind in ("Q8_0", "Q4_K_M"):
                mine, other = work / "ours.gguf", work / "theirs.gguf"
                run(penelope, "quantize", base, mine, kind, "--force")
                run(quantize, base, other, kind)
                a, b = logits(ours, mine, ids), logits(theirs, mine, ids)
                line(case, f"our {kind}", "ours, llama.cpp", apart(a, b), 0.5)
                line(case, f"their {kind}", "ours on ours", apart(a, logits(ours, other, ids)), 1e-6)
            if options.their_python:
                converted = work / "converted.gguf"
                run(options.their_python, "-c", THEIR_CONVERTER, source, split, folder, "--outtype", "f32", "--outfile", converted,
                    *(["--no-mtp"] if golden == "qwen35" else []))
                line(case, "their converter", "ours on ours", apart(logits(ours, base, ids), logits(ours, converted, ids)), 1e-4)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
