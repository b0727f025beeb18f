"""A Qwen3.5 that writes what it is told: every token is followed by the one a table names.

Its layers add nothing, its embeddings are the unit vectors, and row b of its head looks for token a where a is followed by b.
Bytes are tokens, so lengths are easily counted. The chat template is Qwen3.5's own, from llama.cpp's collection.
"""

import json
import os
import struct
from pathlib import Path

from support import GOLDEN

SPECIAL = {"<|im_start|>": True, "<|im_end|>": True, "<|endoftext|>": True, "<think>": False, "</think>": False}


def byte_alphabet():
    """The printable character that stands for each byte in byte-level vocabularies."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(b) if b in kept else chr(next(others)) for b in range(256)]


def template():
    folder = os.environ.get("PENELOPE_TEST_VOCAB_DIR", "")
    path = Path(folder) / "templates" / "Qwen3.5-4B.jinja"
    return path.read_text() if folder and path.exists() else None


def safetensors(path, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_model(folder, follows, chat_template, n_context=512):
    """follows: text of a token -> text of the next; bytes as characters below 256."""
    ids = {chr(b): b for b in range(256)}
    ids.update({text: 256 + i for i, text in enumerate(SPECIAL)})
    n_vocab = width = 264
    head = [0.0] * (n_vocab * width)
    for token, after in follows.items():
        head[ids[after] * width + ids[token]] = 1.0

    def zeros(*shape):
        count = 1
        for n in shape:
            count *= n
        return list(shape), [0.0] * count

    tensors = {"model.embed_tokens.weight": ([n_vocab, width], [float(r == c) for r in range(n_vocab) for c in range(width)]),
               "lm_head.weight": ([n_vocab, width], head), "model.norm.weight": zeros(width)}
    kinds = ["linear_attention", "full_attention"]
    for il, kind in enumerate(kinds):
        at = f"model.layers.{il}."
        tensors[at + "input_layernorm.weight"] = tensors[at + "post_attention_layernorm.weight"] = zeros(width)
        for name, shape in {"gate_proj": (32, width), "up_proj": (32, width), "down_proj": (width, 32)}.items():
            tensors[f"{at}mlp.{name}.weight"] = zeros(*shape)
        if kind == "full_attention":
            for name, shape in {"q_proj": (128, width), "k_proj": (32, width), "v_proj": (32, width), "o_proj": (width, 64)}.items():
                tensors[f"{at}self_attn.{name}.weight"] = zeros(*shape)
            for name in ("q_norm", "k_norm"):
                tensors[f"{at}self_attn.{name}.weight"] = zeros(32)
        else:
            for name, shape in {"in_proj_qkv.weight": (96, width), "in_proj_z.weight": (32, width), "in_proj_a.weight": (2, width),
                                "in_proj_b.weight": (2, width), "out_proj.weight": (width, 32), "conv1d.weight": (96, 1, 4), "dt_bias": (2,),
                                "A_log": (2,), "norm.weight": (16,)}.items():
                tensors[f"{at}linear_attn.{name}"] = zeros(*shape)
    folder.mkdir()
    safetensors(folder / "model.safetensors", tensors)

    golden = GOLDEN / "qwen35" / "model"
    config = json.loads((golden / "config.json").read_text())
    config.update(hidden_size=width, intermediate_size=32, layer_types=kinds, num_hidden_layers=2, linear_num_key_heads=2, linear_num_value_heads=2,
                  num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=False, vocab_size=n_vocab, eos_token_id=ids["<|im_end|>"], max_position_embeddings=n_context)
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = json.loads((golden / "tokenizer.json").read_text())
    tokenizer["model"].update(vocab={c: i for i, c in enumerate(byte_alphabet())}, merges=[])
    tokenizer["added_tokens"] = [{"id": ids[text], "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                                  "special": special} for text, special in SPECIAL.items()]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": "<|im_end|>",
                                                              "add_bos_token": False, "chat_template": chat_template}))
