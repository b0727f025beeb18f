#!/usr/bin/env python3
"""Writes a Hugging Face checkpoint of a published shape with random weights, to measure speed on where the real one is not at hand.

    bench/random_checkpoint.py qwen3.5-0.8b DIR [--layers N] [--seed S]

BF16, a few seconds per gigabyte, standard library only. The tokenizer is the small one of the golden case of the same architecture; ids
beyond it are padding. `penelope convert DIR -o FILE.gguf --type T` makes the files.
"""
import argparse
import json
import random
import struct
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"

# golden case of the architecture, and what its config.json says instead
SHAPES = {
    "qwen3.5-0.8b": ("qwen35", dict(hidden_size=1024, intermediate_size=3584, num_hidden_layers=24, num_attention_heads=8, num_key_value_heads=2, head_dim=256,
                                    linear_conv_kernel_dim=4, linear_key_head_dim=128, linear_value_head_dim=128, linear_num_key_heads=16,
                                    linear_num_value_heads=16, vocab_size=248320, max_position_embeddings=262144, tie_word_embeddings=True,
                                    rope_parameters=dict(mrope_interleaved=True, mrope_section=[11, 11, 10], partial_rotary_factor=0.25, rope_theta=1e7,
                                                         rope_type="default"))),
    "qwen3-0.6b": ("qwen3", dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
                                 vocab_size=151936, max_position_embeddings=40960, tie_word_embeddings=True)),
    "qwen2.5-0.5b": ("qwen2", dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2,
                                   vocab_size=151936, max_position_embeddings=32768, tie_word_embeddings=True)),
}


def attention(config, gated):
    width, head = config["hidden_size"], config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    q, kv = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    return {"self_attn.q_proj.weight": [2 * q if gated else q, width], "self_attn.k_proj.weight": [kv, width],
            "self_attn.v_proj.weight": [kv, width], "self_attn.o_proj.weight": [width, q]}


def layer(config, case, il):
    width, inner = config["hidden_size"], config["intermediate_size"]
    tensors = {"input_layernorm.weight": [width], "post_attention_layernorm.weight": [width], "mlp.gate_proj.weight": [inner, width],
               "mlp.up_proj.weight": [inner, width], "mlp.down_proj.weight": [width, inner]}
    if case == "qwen35" and config["layer_types"][il] == "linear_attention":
        heads, values = config["linear_num_value_heads"], config["linear_num_value_heads"] * config["linear_value_head_dim"]
        channels = 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"] + values
        return tensors | {"linear_attn.in_proj_qkv.weight": [channels, width], "linear_attn.in_proj_z.weight": [values, width],
                          "linear_attn.in_proj_a.weight": [heads, width], "linear_attn.in_proj_b.weight": [heads, width],
                          "linear_attn.conv1d.weight": [channels, 1, config["linear_conv_kernel_dim"]], "linear_attn.dt_bias": [heads],
                          "linear_attn.A_log": [heads], "linear_attn.norm.weight": [config["linear_value_head_dim"]],
                          "linear_attn.out_proj.weight": [width, values]}
    tensors |= attention(config, case == "qwen35")
    head = config.get("head_dim") or width // config["num_attention_heads"]
    if case in ("qwen3", "qwen35"):
        tensors |= {"self_attn.q_norm.weight": [head], "self_attn.k_norm.weight": [head]}
    if case == "qwen2":
        tensors |= {name.replace("weight", "bias"): shape[:1] for name, shape in tensors.items()
                    if name.split(".")[1] in ("q_proj", "k_proj", "v_proj")}
    return tensors


def values(name, n, case, rng):
    """n BF16 numbers of either sign between 2^-7 and 2^-5; ones for norms, which Qwen3.5 stores less one; decays and kernels of usual size."""
    low = rng.randbytes(n)
    if "norm" in name:
        one = case != "qwen35" or "linear_attn.norm" in name
        return (b"\x80\x3f" if one else b"\0\0") * n
    high = rng.randbytes(n).translate(bytes(0x3C | (b & 0x80) for b in range(256)))
    if "conv1d" in name:
        high = bytes(b + 2 for b in high)
    out = bytearray(2 * n)
    out[0::2], out[1::2] = low, high
    return bytes(out)


def write_checkpoint(folder, shape, n_layers=None, seed=1):
    case, changes = SHAPES[shape]
    config = json.loads((GOLDEN / case / "model" / "config.json").read_text()) | changes
    if n_layers:
        config["num_hidden_layers"] = n_layers
    if case == "qwen35":
        config["layer_types"] = ["full_attention" if il % 4 == 3 else "linear_attention" for il in range(config["num_hidden_layers"])]
    else:
        config.pop("layer_types", None)
        config.get("max_window_layers") and config.update(max_window_layers=config["num_hidden_layers"])
    folder.mkdir(parents=True, exist_ok=True)
    shapes = {"model.embed_tokens.weight": [config["vocab_size"], config["hidden_size"]], "model.norm.weight": [config["hidden_size"]]}
    for il in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{il}.{name}": shape for name, shape in layer(config, case, il).items()}
    header, offset = {}, 0
    for name, dims in shapes.items():
        size = 2
        for n in dims:
            size *= n
        header[name] = {"dtype": "BF16", "shape": dims, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    rng = random.Random(seed)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, entry in header.items():
            n = (entry["data_offsets"][1] - entry["data_offsets"][0]) // 2
            for start in range(0, n, 1 << 24):
                file.write(values(name, min(1 << 24, n - start), case, rng))
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((GOLDEN / case / "model" / name).read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, help="fewer of the same width")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write_checkpoint(options.folder, options.shape, options.layers, options.seed)


if __name__ == "__main__":
    main()
