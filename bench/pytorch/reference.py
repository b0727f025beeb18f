"""Penelope on transformers, as a PyTorch user would write it: the modules and the latent trajectory over HF Llama and Qwen layers."""

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

# What LoRA adapts; the last three are those of Qwen3.5's delta nets.
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "in_proj_qkv", "in_proj_z", "out_proj"]

SHAPES = {
    "smollm2-135m": dict(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3, vocab_size=49152,
                         max_position_embeddings=8192, rope_theta=100000.0, tie_word_embeddings=True),
}


def backbone(shape):
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(**SHAPES[shape])).float().eval()


class Modules(nn.Module):
    def __init__(self, d, m=8, q=2, k_max=8, time=1024, bottleneck=256):
        super().__init__()
        self.m, self.q, self.k_max = m, q, k_max
        row = lambda n: nn.Parameter(torch.randn(n, d) * 0.02)
        self.anchor, self.group, self.step, self.readout_anchor, self.readout_step = row(m), row(m), row(k_max), row(q), row(k_max)
        self.time = nn.Sequential(nn.Linear(2, time), nn.SiLU(), nn.Linear(time, 2 * d + 1))
        self.adapter = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, bottleneck), nn.SiLU(), nn.Linear(bottleneck, d))
        self.proj = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, q * d))
        self.memory_gru, self.readout_gru = nn.GRUCell(d, d), nn.GRUCell(d, d)


class Cache:
    """What the rows left behind, as new tensors only, so that gradients flow through it and an earlier state can be gone back to."""

    def __init__(self):
        self.kv, self.conv, self.recurrent = {}, {}, {}

    def copy(self):
        other = Cache()
        other.kv, other.conv, other.recurrent = dict(self.kv), dict(self.conv), dict(self.recurrent)
        return other

    def update(self, k, v, layer, *_, **__):
        if layer in self.kv:
            k, v = (torch.cat(pair, 2) for pair in zip(self.kv[layer], (k, v)))
        self.kv[layer] = k, v
        return k, v

    def get_conv_state(self, layer, **_):
        return self.conv.get(layer)

    def get_recurrent_state(self, layer, **_):
        return self.recurrent.get(layer)

    def update_conv_state(self, x, layer, conv_kernel_size, **_):
        before = self.conv.get(layer)
        x = torch.cat([x.new_zeros(*x.shape[:2], conv_kernel_size - 1) if before is None else before, x], 2)
        self.conv[layer] = x[:, :, 1 - conv_kernel_size:]
        return x

    def update_recurrent_state(self, state, layer, **_):
        self.recurrent[layer] = state

    def is_recording_past(self, *_):
        return True  # the path without updates in place


def layers(model, first, last, x, start, cache):
    """Layers [first, last) on rows x at positions start.., reading and extending the cache."""
    base, n = model.model, x.shape[1]
    position = torch.arange(start, start + n).unsqueeze(0)
    rotary = base.rotary_emb(x, position)
    mask = torch.full((n, start + n), float("-inf")).triu(start + 1)[None, None]
    for layer in base.layers[first:last]:
        out = layer(x, attention_mask=mask if hasattr(layer, "self_attn") else None, position_ids=position, past_key_values=cache, use_cache=True,
                    position_embeddings=rotary)
        x = out[0] if isinstance(out, tuple) else out
    return x


def trajectory(model, modules, ids, interval, steps, target=None):
    """Everything before the answer; with target ids, their rows too. Returns the rows the answer is read from."""
    s, e = interval
    total, n = model.config.num_hidden_layers, ids.shape[1]
    assert e == total
    cache = Cache()
    x = model.model.embed_tokens(ids)
    parts = [x, (modules.anchor + modules.group)[None], modules.readout_anchor[None]]
    if target is not None:
        parts.append(model.model.embed_tokens(target))
    h = layers(model, 0, s, torch.cat(parts, 1), 0, cache)
    prompt, memory, readout, tail = h.split([n, modules.m, modules.q, h.shape[1] - n - modules.m - modules.q], 1)
    layers(model, s, e, prompt, 0, cache)
    for t in range(1, steps + 1):
        features = layers(model, s, e, memory + modules.group + modules.step[t - 1], n, cache.copy())
        gamma, beta, scale = modules.time(torch.tensor([t / modules.k_max, 1 / modules.k_max])).split([x.shape[-1], x.shape[-1], 1])
        hidden = (1 + 0.1 * gamma.tanh()) * features + 0.1 * beta
        hidden = hidden + modules.adapter(hidden)
        alpha = 1 + 0.5 * scale.tanh()
        candidate = modules.memory_gru(hidden[0], memory[0])[None]
        memory = memory + 0.5 * alpha * (candidate - memory)
        query = modules.proj(features.mean(1) + modules.readout_step[t - 1]).view(modules.q, -1)
        readout = modules.readout_gru(query, readout[0])[None]
    return layers(model, s, total, torch.cat([memory, readout, tail], 1), n, cache), cache
