"""Every architecture through every command: train by each method, run, bundle, describe, quantize, convert and export back."""

import json
import shutil
import struct
import tempfile
import unittest
from pathlib import Path

from support import GOLDEN, TinyModel, run

CASES = ("qwen2", "qwen3", "qwen35", "smollm3", "granite", "gemma3", "phi3")
QUESTION = "[MAX 1 2]"


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (entry["shape"], data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]) for name, entry in header.items()}


class ArchitecturesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        cls.base = {case: cls.path / f"{case}.gguf" for case in CASES}
        for case, base in cls.base.items():
            TinyModel.convert(GOLDEN / case / "model", base, "--type", "F32")
        cls.ok("data", "listops", "--out", cls.path / "data", "--train", 8, "--valid", 2, "--test", 2, "--depth", "1-2", "--test-depth", "1-2")

    @staticmethod
    def ok(*args):
        done = run(*args)
        if done.returncode != 0:
            raise AssertionError(done.stderr or done.stdout)
        return done.stdout

    def answer(self, *args):
        answer = json.loads(self.ok("run", *args, "-p", QUESTION, "-n", 6, "--kv-type", "f32", "--json"))
        return answer["tokens"], answer["method"], answer["layer_applications"]

    def test_each_method_trains_runs_and_goes_into_one_file(self):
        for case in CASES:
            for method in ("cot", "penelope", "coconut", "codi"):
                with self.subTest(case=case, method=method):
                    out = self.path / f"{case}-{method}"
                    self.ok("train", "-m", self.base[case], "--method", method, "--data", self.path / "data", "--out", out, "--updates", 2,
                            "--batch-size", 2, "--eval-every", 0, "--lr", "1e-2" if method == "cot" else "1e-2,1e-2",
                            *([] if method == "cot" else ["--latent-steps", 2]))
                    if method == "cot":
                        trained = self.answer("-m", self.base[case], "--lora", out / "model.gguf")
                        self.assertNotEqual(trained, self.answer("-m", self.base[case]))
                        continue
                    sidecar = out / "model.gguf"
                    apart = self.answer("-m", self.base[case], "--sidecar", sidecar, "-K", 2)
                    self.assertEqual(apart[1], method)
                    n_layer = json.loads(self.ok("info", self.base[case], "--json"))["backbone"]["layers"]
                    if method != "penelope":
                        self.assertEqual(apart[2], 4 * n_layer)  # prompt, two thoughts, the row that ends them
                    bundle = self.path / f"{case}-{method}.gguf"
                    self.ok("export", sidecar, "-m", self.base[case], "--as", "bundle", "-o", bundle)
                    self.assertEqual(self.answer("-m", bundle, "-K", 2), apart)
                    facts = self.ok("info", bundle)
                    self.assertIn(f"({case})", facts)
                    self.assertIn(method, facts)

    def test_the_state_after_a_thought_is_that_of_any_row(self):
        """Side by side and one by one: ragged prompts with thoughts in between."""
        base, out = self.base["qwen35"], self.path / "ragged"
        self.ok("train", "-m", base, "--method", "coconut", "--data", self.path / "data", "--out", out, "--updates", 1, "--batch-size", 2, "--latent-steps", 2,
                "--eval-every", 0)
        questions = ["[MAX 1 2]", "[MIN 3 [MAX 4 5 6] 7]", "[MED 1 2 3]"]
        batch = self.path / "batch.jsonl"
        batch.write_text("".join(json.dumps({"id": i, "question": q}) + "\n" for i, q in enumerate(questions)))
        flags = ("-m", base, "--sidecar", out / "model.gguf", "-K", 2, "-n", 6, "--kv-type", "f32", "--json")
        together = [json.loads(line)["tokens"] for line in self.ok("run", *flags, "--batch", batch).splitlines()]
        self.assertEqual(together, [json.loads(self.ok("run", *flags, "-p", q))["tokens"] for q in questions])

    def test_back_to_hugging_face(self):
        for case in CASES:
            with self.subTest(case=case):
                back = self.path / f"{case}-hf"
                self.ok("export", self.base[case], "--as", "hf", "-o", back)
                source, written = (read_safetensors(folder / "model.safetensors") for folder in (GOLDEN / case / "model", back))
                self.assertEqual(set(source), set(written))
                # What Qwen3.5 and Gemma 3 store as 1 + x and -exp(x) comes back within the last bits of F32; all else to the byte.
                changed = {n for n in source if source[n] != written[n]}
                self.assertTrue(all("norm" in n or "A_log" in n for n in changed) if case in ("qwen35", "gemma3") else not changed, changed)
                again = self.path / f"{case}-again.gguf"
                TinyModel.convert(back, again, "--type", "F32")
                self.assertEqual(self.answer("-m", again), self.answer("-m", self.base[case]))

    def test_lora_merged_and_beside(self):
        for case in CASES:
            with self.subTest(case=case):
                lora, merged = self.path / f"{case}-lora.gguf", self.path / f"{case}-merged.gguf"
                TinyModel.convert(GOLDEN / case / "lora", lora, "--base", self.base[case])
                self.ok("export", lora, "-m", self.base[case], "--as", "merged", "-o", merged)
                self.assertEqual(self.answer("-m", merged)[0], self.answer("-m", self.base[case], "--lora", lora)[0])
                self.ok("export", lora, "-m", self.base[case], "--as", "peft", "-o", self.path / f"{case}-peft")
                source, written = (read_safetensors(f / "adapter_model.safetensors") for f in (GOLDEN / case / "lora", self.path / f"{case}-peft"))
                self.assertEqual(source, written)

    def test_which_tensors_stay_whole(self):
        """As llama-quantize decides: vectors, norms and the convolution; 2-D weights follow the type."""
        whole = {"qwen2": {"attn_norm", "attn_q", "attn_k", "attn_v", "ffn_norm", "output_norm"},
                 "qwen3": {"attn_norm", "attn_q_norm", "attn_k_norm", "ffn_norm", "output_norm"},
                 "qwen35": {"attn_norm", "attn_q_norm", "attn_k_norm", "post_attention_norm", "output_norm", "ssm_a", "ssm_dt", "ssm_norm", "ssm_conv1d"},
                 "smollm3": {"attn_norm", "ffn_norm", "output_norm"}, "granite": {"attn_norm", "ffn_norm", "output_norm"},
                 "gemma3": {"attn_norm", "attn_q_norm", "attn_k_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "output_norm"},
                 "phi3": {"attn_norm", "ffn_norm", "output_norm", "rope_factors_long", "rope_factors_short"}}
        for case in CASES:
            for kind in ("Q8_0", "Q4_0", "F16"):
                with self.subTest(case=case, kind=kind):
                    out = self.path / f"{case}-{kind}.gguf"
                    self.ok("quantize", self.base[case], out, kind)
                    tensors = json.loads(self.ok("info", out, "--json", "--tensors"))["tensors"]
                    kept = {t["name"] for t in tensors if t["type"] == "F32"}
                    if case == "qwen2":  # biases, not weights
                        self.assertFalse({n for n in kept if n.endswith(("attn_q.weight", "attn_k.weight", "attn_v.weight"))})
                    self.assertEqual({n.split(".")[2 if n.startswith("blk") else 0] for n in kept}, whole[case])
                    self.assertEqual(len(self.answer("-m", out)[0]), 6)

    def bad(self, pattern, *args):
        done = run(*args)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        lines = done.stderr.splitlines()
        self.assertRegex(lines[0], "^error: .*" + pattern)
        self.assertLessEqual(len(lines), 2, done.stderr)
        return done.stderr

    def patched(self, case, before, after):
        data = self.base[case].read_bytes()
        self.assertIn(before, data)
        path = self.path / "patched.gguf"
        path.write_bytes(data.replace(before, after))
        return path

    def test_files_that_are_not_right(self):
        strange = self.patched("qwen35", b"qwen35", b"qwen99")
        for command in (("run", "-m", strange, "-p", "x"), ("bench", "-m", strange), ("quantize", strange, self.path / "x.gguf", "Q8_0"),
                        ("train", "-m", strange, "--method", "cot", "--data", self.path / "data", "--out", self.path / "x")):
            with self.subTest(command=command[0]):
                self.assertIn("architectures: llama, qwen2, qwen3, qwen35, ", self.bad("'qwen99'", *command))
        info = run("info", strange)
        self.assertIn("qwen99", info.stdout)
        self.assertIn("llama, qwen2, qwen3, qwen35", info.stdout + info.stderr)
        for name in ("ssm_a", "ssm_dt", "ssm_conv1d", "ssm_norm", "ssm_beta"):
            with self.subTest(missing=name):
                self.bad(f"blk.1.{name}", "run", "-m", self.patched("qwen35", f"blk.1.{name}".encode(), f"blk.1.{name[:-1]}_".encode()), "-p", "x")
        self.bad("attn_q_norm", "run", "-m", self.patched("qwen3", b"blk.2.attn_q_norm", b"blk.2.attn_q_nor_"), "-p", "x")
        self.bad("attn_k.bias", "run", "-m", self.patched("qwen2", b"blk.2.attn_k.bias", b"blk.2.attn_k.bia_"), "-p", "x")

        def key(name, value):
            return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<II", 4, value)
        for name, good, odd, pattern in (("ssm.conv_kernel", 4, 99, "convolution over 99"), ("ssm.conv_kernel", 4, 0, "conv_kernel"),
                                         ("ssm.state_size", 16, 15, "inner_size|15"), ("ssm.group_count", 2, 3, "key heads"),
                                         ("ssm.time_step_rank", 4, 3, "inner_size|value heads"), ("ssm.inner_size", 64, 65, "inner_size"),
                                         ("full_attention_interval", 4, 0, "interval"), ("ssm.group_count", 2, 0, "group_count"),
                                         ("ssm.state_size", 16, 1 << 30, "state_size")):
            with self.subTest(key=name, odd=odd):
                path = self.patched("qwen35", key("qwen35." + name, good), key("qwen35." + name, odd))
                self.bad(pattern, "run", "-m", path, "-p", "x")

        for field, value, pattern in (("model_type", "qwen99", "qwen99"), ("linear_num_value_heads", 3, "3 value heads"),
                                      ("linear_value_head_dim", 8, "linear_value_head_dim"), ("linear_conv_kernel_dim", 0, "linear_conv_kernel_dim"),
                                      ("layer_types", ["linear_attention"], "layer_types"), ("layer_types", ["mamba"] * 8, "mamba")):
            with self.subTest(field=field, value=value):
                folder = self.path / "odd"
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(GOLDEN / "qwen35" / "model", folder)
                config = json.loads((folder / "config.json").read_text())
                config[field] = value
                (folder / "config.json").write_text(json.dumps(config))
                self.bad(pattern, "convert", folder, "-o", self.path / "odd.gguf")
                self.assertFalse((self.path / "odd.gguf").exists())


if __name__ == "__main__":
    unittest.main()
