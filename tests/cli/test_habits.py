"""Small things people rely on: contradictions are refused, files are named for what they are, failures are JSON where that was asked for."""

import json
import resource
import subprocess
import unittest

from support import BIN, ModelTest, TESTS, clean_environment, run

MODELS = TESTS.parent / "models"
BASE = MODELS / "weave-1M-Q8_0.gguf"
SIDECAR = MODELS / "weave-1M-listops-penelope-Q8_0.gguf"
LORA = MODELS / "weave-1M-listops-cot-lora-F16.gguf"


class Habits(ModelTest):
    def test_contradictions(self):
        self.error(2, "--quiet and --verbose", "run", "-m", BASE, "-p", "x", "-q", "-v")
        same = self.work / "file"
        self.error(2, "--trace and --dump: name the same file", "run", "-m", BASE, "--sidecar", SIDECAR, "-p", "x", "--trace", same, "--dump", same)
        self.error(2, "--updates and --epochs", "train", "-m", BASE, "--method", "cot", "--data", self.work, "--out", self.work / "run", "--updates", 3, "--epochs", 1)

    def test_an_adapter_in_the_place_of_the_backbone(self):
        self.error(1, "is a LoRA, not a backbone.*\nhint: .*--lora", "run", "-m", LORA, "-p", "x")

    def test_failures_are_json_however_it_was_asked_for(self):
        config = self.work / "config.toml"
        config.write_text("json = true\n")
        missing = ("run", "-m", self.work / "none.gguf", "-p", "x")
        for args, env in ((("--json",), {}), ((), {"PENELOPE_JSON": "1"}), (("--config", config), {}), (("--no-such-flag",), {"PENELOPE_JSON": "yes"})):
            done = run(*missing, *args, env=env)
            self.assertIn(done.returncode, (1, 2))
            self.assertEqual(json.loads(done.stdout)["status"], "error", args)

    def test_files_compared_each_at_its_own_K(self):
        self.ok("data", "listops", "--out", self.work / "data", "--train", 0, "--valid", 0, "--test", 8, "--depth", "1-2")
        latent, visible = self.work / "latent.jsonl", self.work / "visible.jsonl"
        asked = ("eval", "-m", BASE, "--data", self.work / "data" / "test.jsonl", "--timed", 0)
        self.ok(*asked, "--sidecar", SIDECAR, "-K", "0-2", "--predictions", latent)
        self.ok(*asked, "--lora", LORA, "--predictions", visible)
        self.assertEqual(self.ok_json("eval", "--compare", f"{latent}@K=0", f"{latent}@K=2")["K"], [[0], [2]])
        self.assertIn("second (visible steps) minus first (K=1)", self.ok("eval", "--compare", f"{latent}@K=1", visible).stdout)
        self.error(2, "not a number of latent steps", "eval", "--compare", f"{latent}@K=x", visible)

    def test_scores_are_shown_though_the_file_cannot_be_written(self):
        self.ok("data", "listops", "--out", self.work / "data", "--train", 0, "--valid", 0, "--test", 2, "--depth", "1")
        command = [BIN, "eval", "-m", BASE, "--sidecar", SIDECAR, "--data", self.work / "data" / "test.jsonl", "--timed", 0, "--predictions", self.work / "p.jsonl"]
        done = subprocess.run([str(part) for part in command], env=clean_environment(), capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))  # as a full disk
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("without reasoning", done.stdout)
        self.assertFalse((self.work / "p.jsonl").exists())


if __name__ == "__main__":
    unittest.main()
