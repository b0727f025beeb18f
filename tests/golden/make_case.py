#!/usr/bin/env python3
"""Makes a golden case: a small random model with LoRA and Penelope modules, and what PyTorch computes on them in F32.

    python3 -m venv venv && venv/bin/pip install torch transformers peft
    venv/bin/python tests/golden/make_case.py gemma3            # a new case, from the table CASES
    venv/bin/python tests/golden/make_case.py --check qwen3     # computes an existing case again and compares

The layers are those of transformers. No cache is used: every pass runs over the prompt and the rows after it, so the reference knows
nothing about how the runtime keeps keys and values.
"""
import argparse
import contextlib
import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

GOLDEN = Path(__file__).resolve().parent
M, Q, K_MAX, TIME, ADAPTER = 8, 2, 8, 32, 16  # memory and readout rows, largest K, widths of the modules
STEPS = (0, 1, 3, 6)
N_PREDICT = 12

DENSE = dict(hidden_size=64, intermediate_size=160, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
             initializer_range=0.08, use_cache=False)
SEVEN = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

# name: (tokenizer, class of the configuration, what it says, interval, modules with LoRA)
CASES = {
    # Layer 3 has no rotation.
    "smollm3": ("last", "SmolLM3Config", dict(DENSE, num_hidden_layers=6, rope_parameters=dict(rope_type="default", rope_theta=50000.0),
                                              rms_norm_eps=1e-6, tie_word_embeddings=True), (2, 5), SEVEN),
    "granite": ("last", "GraniteConfig", dict(DENSE, num_hidden_layers=4, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
                                              rms_norm_eps=1e-5, embedding_multiplier=6.0, residual_multiplier=0.4, attention_multiplier=0.125,
                                              logits_scaling=3.0, tie_word_embeddings=True), (1, 3), SEVEN),
    # Layer 5 sees everything, the others 12 positions: less than a prompt, more than the memory. Made with --seed 2.
    "gemma3": ("last", "Gemma3TextConfig", dict(DENSE, num_hidden_layers=7, num_key_value_heads=1, head_dim=32, query_pre_attn_scalar=32,
                                                 sliding_window=12, rms_norm_eps=1e-6, tie_word_embeddings=True,
                                                 rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=1000000.0),
                                                                      sliding_attention=dict(rope_type="default", rope_theta=10000.0))),
               (4, 7), SEVEN),
    "phi3": ("last", "Phi3Config", dict(DENSE, num_hidden_layers=4, rms_norm_eps=1e-5, sliding_window=12, tie_word_embeddings=False,
                                       original_max_position_embeddings=256,
                                       rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75,
                                                            original_max_position_embeddings=256,
                                                            short_factor=[1.0, 1.1, 1.25, 1.5, 1.75, 2.0], long_factor=[1.0, 1.5, 3.0, 6.0, 9.0, 12.0])),
             (2, 4), ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]),
}


def make_tokenizer(kind, out):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (out / name).write_text((GOLDEN / kind / "model" / name).read_text())
    return len(json.loads((out / "tokenizer.json").read_text())["model"]["vocab"]) + 2


def randomize(model, scale):
    """Weights of a random model; the norms are not all alike."""
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            weight.data += torch.randn_like(weight) * 0.1
        else:
            weight.data = torch.randn_like(weight) * scale


def make_inputs(case, seed):
    import transformers
    from peft import LoraConfig, get_peft_model
    from tokenizers import Tokenizer

    tokenizer, config_class, fields, interval, targets = CASES[case]
    torch.manual_seed(seed)
    out = GOLDEN / case
    for part in ("model", "lora", "penelope"):
        (out / part).mkdir(parents=True, exist_ok=True)
    n_vocab = make_tokenizer(tokenizer, out / "model")
    special = json.loads((out / "model" / "tokenizer_config.json").read_text())
    id_of = Tokenizer.from_file(str(out / "model" / "tokenizer.json")).token_to_id
    config = getattr(transformers, config_class)(**fields, vocab_size=n_vocab, pad_token_id=None, bos_token_id=id_of(special["bos_token"]),
                                                 eos_token_id=id_of(special["eos_token"]))
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    randomize(model, config.initializer_range)
    model.save_pretrained(out / "model")
    lora = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=targets, task_type="CAUSAL_LM"))
    for name, weight in lora.named_parameters():
        if "lora_B" in name:
            weight.data = torch.randn_like(weight) * 0.05
    lora.save_pretrained(out / "lora")
    (out / "lora" / "README.md").unlink(missing_ok=True)

    d = config.hidden_size
    shapes = {"memory.anchor": (M, d), "memory.group": (M, d), "memory.step": (K_MAX, d), "readout.anchor": (Q, d), "readout.step": (K_MAX, d),
              "time.in.weight": (TIME, 2), "time.in.bias": (TIME,), "time.out.weight": (2 * d + 1, TIME), "time.out.bias": (2 * d + 1,),
              "adapter.norm.weight": (d,), "adapter.norm.bias": (d,), "adapter.down.weight": (ADAPTER, d), "adapter.down.bias": (ADAPTER,),
              "adapter.up.weight": (d, ADAPTER), "adapter.up.bias": (d,), "readout.proj.norm.weight": (d,), "readout.proj.norm.bias": (d,),
              "readout.proj.weight": (Q * d, d), "readout.proj.bias": (Q * d,)}
    for gru in ("memory.gru", "readout.gru"):
        for side in ("input", "hidden"):
            shapes |= {f"{gru}.{side}.weight": (3 * d, d), f"{gru}.{side}.bias": (3 * d,)}
    modules = {}
    for name, shape in sorted(shapes.items()):
        scale = 0.3 if "anchor" in name else 0.1 if len(shape) == 1 or "group" in name or "step" in name else 1 / math.sqrt(shape[1])
        modules["penelope." + name] = torch.randn(shape) * scale + (1.0 if name.endswith("norm.weight") else 0.0)
    save_file(modules, out / "penelope" / "penelope.safetensors")
    (out / "penelope" / "penelope_config.json").write_text(json.dumps(dict(
        version=1, method="penelope", interval=interval, memory_count=M, readout_count=Q, k_max=K_MAX, k_default=3, time_length=TIME,
        adapter_length=ADAPTER, transition="gru", prompt_template="{question}\n", answer_prefix="### ", task="golden",
        base=dict(architecture=case, block_count=config.num_hidden_layers, embedding_length=d, vocab_size=n_vocab)), indent=1))


def make_examples(case):
    """Prompts and targets of the other cases in this case's tokens."""
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(GOLDEN / case / "model" / "tokenizer.json"))
    special = json.loads((GOLDEN / case / "model" / "tokenizer_config.json").read_text())
    bos, eos = (tokenizer.token_to_id(special[name]) for name in ("bos_token", "eos_token"))
    examples = [{name: example[name] for name in ("prompt", "target")} for example in json.loads((GOLDEN / "last" / "expected.json").read_text())["examples"]]
    for example in examples:
        ids = {name: tokenizer.encode(example[name], add_special_tokens=False).ids for name in ("prompt", "target")}
        example |= dict(prompt_ids=[bos] * special.get("add_bos_token", True) + ids["prompt"], target_ids=ids["target"] + [eos])
    return dict(examples=examples, eos=eos, bos=bos)


class Reference:
    def __init__(self, case):
        import transformers
        from peft import PeftModel
        self.dir = GOLDEN / case
        base = transformers.AutoModelForCausalLM.from_pretrained(self.dir / "model", dtype=torch.float32, attn_implementation="eager")
        self.peft = PeftModel.from_pretrained(base, self.dir / "lora", is_trainable=True).eval()
        self.causal = base
        self.decoder = base.model
        self.config = base.config
        settings = json.loads((self.dir / "penelope" / "penelope_config.json").read_text())
        self.start, self.end = settings["interval"]
        self.transition = settings["transition"]
        self.n_layer = self.config.num_hidden_layers
        self.modules = {name.removeprefix("penelope."): torch.nn.Parameter(value)
                        for name, value in load_file(self.dir / "penelope" / "penelope.safetensors").items()}

    def trainable(self):
        pairs = {name.removeprefix("base_model.model.").replace(".default.", "."): weight
                 for name, weight in self.peft.named_parameters() if weight.requires_grad}
        return pairs | {"penelope." + name: weight for name, weight in self.modules.items()}

    @contextlib.contextmanager
    def only_layers(self, first, last):
        """The decoder as a stack of these layers: no other ones, no norm, no factor of what enters."""
        decoder, config = self.decoder, self.config
        held = decoder.layers, decoder.norm, getattr(decoder, "embedding_multiplier", None), getattr(config, "layer_types", None)
        decoder.layers, decoder.norm, config.num_hidden_layers = torch.nn.ModuleList(held[0][first:last]), torch.nn.Identity(), last - first
        if held[2] is not None:
            decoder.embedding_multiplier = 1.0
        if held[3] is not None:
            config.layer_types = held[3][first:last]
        yield
        decoder.layers, decoder.norm, config.num_hidden_layers = held[0], held[1], self.n_layer
        if held[2] is not None:
            decoder.embedding_multiplier = held[2]
        if held[3] is not None:
            config.layer_types = held[3]

    def run(self, first, last, x):
        """F_[first:last) over rows x [n, d] at positions 0, 1, ..."""
        if first == last:
            return x
        with self.only_layers(first, last):
            return self.decoder(inputs_embeds=x[None], use_cache=False).last_hidden_state[0]

    def after(self, first, last, before, rows):
        """The same for rows that follow `before`, of which nothing is returned."""
        return self.run(first, last, torch.cat([before, rows]))[len(before):]

    def embed(self, ids):
        x = self.decoder.embed_tokens(torch.tensor(ids))
        return x * getattr(self.decoder, "embedding_multiplier", 1.0)

    def logits(self, x):
        return self.causal.lm_head(self.decoder.norm(x)) / getattr(self.config, "logits_scaling", 1.0)

    def linear(self, name, x):
        return torch.nn.functional.linear(x, self.modules[name + ".weight"], self.modules[name + ".bias"])

    def norm(self, name, x):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.modules[name + ".weight"], self.modules[name + ".bias"], 1e-5)

    def gru(self, name, x, h):
        xr, xz, xn = self.linear(name + ".input", x).chunk(3, -1)
        hr, hz, hn = self.linear(name + ".hidden", h).chunk(3, -1)
        z = torch.sigmoid(xz + hz)
        return (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h

    def trajectory(self, ids, n_steps, target=()):
        """States by name, with the logits of the last readout row and of each token of the target."""
        m, n = self.modules, len(ids)
        x = self.run(0, self.start, torch.cat([self.embed(ids), m["memory.anchor"] + m["memory.group"], m["readout.anchor"]]
                                              + ([self.embed(list(target))] if len(target) else [])))
        prompt, memory, readout, answer = x.split([n, M, Q, len(target)])
        states = dict(H_x=prompt, M_0=memory, R_0=readout)
        for t in range(1, n_steps + 1):
            features = self.after(self.start, self.end, prompt, memory + m["memory.group"] + m["memory.step"][t - 1])
            time = self.linear("time.out", torch.nn.functional.silu(self.linear("time.in", torch.tensor([t / K_MAX, 1 / K_MAX]))))
            gamma, beta, rate = time.split([len(time) // 2, len(time) // 2, 1])
            modulated = (1 + 0.1 * torch.tanh(gamma)) * features + 0.1 * beta
            hat = modulated + self.linear("adapter.up", torch.nn.functional.silu(self.linear("adapter.down", self.norm("adapter.norm", modulated))))
            proposal = self.linear("readout.proj", self.norm("readout.proj.norm", features.mean(0) + m["readout.step"][t - 1])).view(Q, -1)
            if self.transition == "gru":
                memory = memory + 0.5 * (1 + 0.5 * torch.tanh(rate)) * (self.gru("memory.gru", hat, memory) - memory)
                states[f"Hhat_{t}"] = hat
            else:
                memory = features
            readout = self.gru("readout.gru", proposal, readout)
            states |= {f"H_{t}": features, f"M_{t}": memory, f"q_{t}": proposal, f"R_{t}": readout}
        out = self.after(self.start, self.n_layer, prompt, torch.cat([memory, readout, answer]))
        states["interface_out"] = out[:M + Q]
        return states, self.logits(out[M + Q - 1:])

    def greedy(self, ids, n_steps, eos):
        tokens, rows = [], []
        while len(tokens) < N_PREDICT and eos not in tokens:
            states, logits = self.trajectory(ids, n_steps, tokens)
            rows.append(logits[-1])
            tokens.append(int(logits[-1].argmax()))
        return states, tokens, torch.stack(rows)

    def loss(self, examples, n_steps):
        total, n = 0.0, 0
        for example in examples:
            target = torch.tensor(example["target_ids"])
            logits = self.trajectory(example["prompt_ids"], n_steps, example["target_ids"][:-1])[1]
            total = total + torch.nn.functional.cross_entropy(logits, target, reduction="sum")
            n += len(target)
        return total / n

    def gradients(self, examples, n_steps):
        trainable = self.trainable()
        for weight in trainable.values():
            weight.grad = None
        loss = self.loss(examples, n_steps)
        loss.backward()
        return loss.detach(), {name: torch.zeros_like(weight) if weight.grad is None else weight.grad for name, weight in trainable.items()}


def rate_factor(update, warmup, n_updates):
    return update / warmup if update <= warmup else 0.5 * (1 + math.cos(math.pi * (update - warmup) / (n_updates - warmup)))


def decays(name):
    return not name.endswith("bias") and "norm" not in name and not name.endswith(("anchor", "group", "step"))


def train(reference, examples, recipe):
    """AdamW with decoupled decay and clipping of the global norm, written out."""
    trainable = reference.trainable()
    moments = {name: (torch.zeros_like(weight), torch.zeros_like(weight)) for name, weight in trainable.items()}
    recipe |= dict(losses=[], grad_norms=[], rate_factor=[])
    for update in range(1, recipe["updates"] + 1):
        loss, gradients = reference.gradients(examples, recipe["K"])
        norm = torch.sqrt(sum((g.double() ** 2).sum() for g in gradients.values())).item()
        factor = rate_factor(update, recipe["warmup"], recipe["updates"])
        recipe["losses"].append(loss.item())
        recipe["grad_norms"].append(norm)
        recipe["rate_factor"].append(factor)
        for name, weight in trainable.items():
            g = gradients[name] * min(1.0, recipe["clip"] / norm)
            rate = factor * recipe["lora_rate" if "lora_" in name else "module_rate"]
            first, second = moments[name]
            first.mul_(0.9).add_(g, alpha=0.1)
            second.mul_(0.999).addcmul_(g, g, value=0.001)
            step = (first / (1 - 0.9 ** update)) / ((second / (1 - 0.999 ** update)).sqrt() + 1e-8)
            weight.data -= rate * (step + (recipe["weight_decay"] if decays(name) else 0.0) * weight.data)
    return {name: weight.detach().clone() for name, weight in trainable.items()}


def compute(case, words):
    reference = Reference(case)
    examples, tensors = words["examples"], {}
    words["layer_applications"] = {str(k): reference.n_layer + (k + 1) * (reference.end - reference.start) for k in STEPS}
    words["greedy"] = {}
    with torch.no_grad():
        prompt = examples[0]["prompt_ids"]
        with reference.peft.disable_adapter():
            tensors["base_logits"] = reference.causal(torch.tensor([prompt])).logits[0]
            if reference.config.rope_parameters.get("rope_type") == "longrope":  # the other factors, in a context longer than the original one
                tokens = [i * 7 % reference.config.vocab_size for i in range(reference.config.original_max_position_embeddings + 44)]
                tensors["long_logits"] = reference.causal(torch.tensor([tokens])).logits[0, -1]
        tensors["lora_logits"] = reference.causal(torch.tensor([prompt])).logits[0]
        for k in STEPS:
            for i in (0, 1):
                states, tokens, logits = reference.greedy(examples[i]["prompt_ids"], k, words["eos"])
                words["greedy"][f"K{k}.ex{i}"] = tokens
                tensors |= {f"K{k}.ex{i}.{name}": state for name, state in states.items()}
                tensors |= {f"K{k}.ex{i}.first_logits": logits[0], f"K{k}.ex{i}.greedy_logits": logits}
    for k in (1, 6):
        loss, gradients = reference.gradients(examples, k)
        tensors[f"grad.K{k}.loss"] = loss.view(1)
        tensors |= {f"grad.K{k}.{name}": g.clone() for name, g in gradients.items()}
    words["train"] = dict(K=2, updates=4, warmup=1, lora_rate=2e-5, module_rate=1e-4, weight_decay=0.01, clip=1.0,
                          schedule="update i of 1..T: i<=warm: i/warm; else 0.5*(1+cos(pi*(i-warm)/(T-warm)))",
                          no_decay="biases, norms, anchors, group, step rows")
    tensors |= {f"after.{name}": weight for name, weight in train(reference, examples, words["train"]).items()}
    return {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}


def check(case):
    words = json.loads((GOLDEN / case / "expected.json").read_text())
    held, greedy = load_file(GOLDEN / case / "expected.safetensors"), words["greedy"]
    made = compute(case, words)
    worst = {}
    for name in held.keys() | made.keys():
        kind = name.split(".")[0] if name[0] != "K" else "states"
        far = (held[name] - made[name]).abs().max().item() if name in held and name in made else math.inf
        worst[kind] = max(worst.get(kind, (0.0, "")), (far, name))
    for kind, (far, name) in sorted(worst.items()):
        print(f"{kind:12} {far:.2e} {name}")
    print("greedy answers", "agree" if greedy == words["greedy"] else "differ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.check:
        return check(args.case)
    make_inputs(args.case, args.seed)
    words = make_examples(args.case)
    tensors = compute(args.case, words)
    save_file(tensors, GOLDEN / args.case / "expected.safetensors")
    (GOLDEN / args.case / "expected.json").write_text(json.dumps(words, indent=1))


main()
