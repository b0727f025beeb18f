"""BF16 from a Hugging Face checkpoint to a trained sidecar, in the order of docs/devices.md, on the device of the suite
(PENELOPE_TEST_DEVICE, else the CPU): backbone, sidecar and caches all in BF16."""

import json
import os
import tempfile
import unittest
from pathlib import Path

from support import GOLDEN, ModelTest

DEVICE = os.environ.get("PENELOPE_TEST_DEVICE") or "CPU"
CASES = ("last", "qwen3", "qwen35")
ON = ("-dev", DEVICE, "-ctk", "bf16")


class Bf16(unittest.TestCase):
    ok = ModelTest.ok
    ok_json = ModelTest.ok_json

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="penelope-bf16-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def convert(self, case):
        source = GOLDEN / case
        base, sidecar = self.root / f"{case}.gguf", self.root / f"{case}-sidecar.gguf"
        self.ok("convert", source / "model", "-o", base, "--type", "BF16")
        self.ok("convert", source / "penelope", "--base", base, "--lora", source / "lora", "-o", sidecar, "--type", "BF16")
        return base, sidecar

    def test_matrices_of_backbone_and_sidecar_are_bf16(self):
        for path in self.convert("last"):
            self.assertRegex(self.ok("info", path).stdout, r"in \d+ tensors: \d+ F32, \d+ BF16\n")

    def test_quantize_writes_the_weights_of_convert(self):
        base, _ = self.convert("last")
        full, again = self.root / "f32.gguf", self.root / "again.gguf"
        self.ok("convert", GOLDEN / "last" / "model", "-o", full, "--type", "F32")
        self.ok("quantize", full, again, "BF16")
        data = [path.read_bytes()[-400_000:] for path in (base, again)]
        self.assertEqual(*data)

    def test_answers_benchmark_and_scores(self):
        data = self.root / "data"
        self.ok("data", "listops", "--out", data, "--train", 4, "--valid", 2, "--test", 4, "--depth", 1, "--test-depth", 1)
        for case in CASES:
            with self.subTest(case=case):
                base, sidecar = self.convert(case)
                model = ("-m", base, "--sidecar", sidecar, *ON)
                for k in (0, 3):
                    self.assertEqual(self.ok_json("run", *model, "-p", "3 + 4", "-K", k, "-n", 5)["K"], k)
                row = json.loads(self.ok("bench", *model, "--methods", "penelope:3", "--prompt", 12, "-r", 1, "-o", "json").stdout)[0]
                self.assertEqual((row["type"], row["device"]), ("BF16", DEVICE))
                scores = self.ok_json("eval", *model, "--data", data / "test.jsonl", "-K", "0-2", "-n", 4)
                self.assertEqual([one["K"] for one in scores["results"]], [0, 1, 2])

    def test_training(self):
        base, _ = self.convert("qwen3")
        data = self.root / "data"
        self.ok("data", "listops", "--out", data, "--train", 8, "--valid", 2, "--test", 2, "--depth", 1, "--test-depth", 1)
        run_folder = self.root / "run"
        self.ok("train", "-m", base, "--method", "penelope", "--data", data, "--out", run_folder, "--updates", 2, "--latent-steps", 2, "--batch-size", 2,
                "--lora-rank", 4, "-n", 4, "--eval-limit", 2, *ON, timeout=500)
        self.assertIn('kv-type = "bf16"', (run_folder / "config.toml").read_text().replace("'", '"'))
        written = self.root / "trained.gguf"
        self.ok("quantize", run_folder / "model.gguf", written, "BF16")
        self.ok("run", "-m", base, "--sidecar", written, "-p", "3 + 4", "-n", 3, *ON)


if __name__ == "__main__":
    unittest.main()
