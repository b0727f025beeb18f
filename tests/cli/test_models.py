"""The model that comes with the program: its files fit each other, answer as the card says, and think better with latent steps."""

import json
import tempfile
import unittest
from pathlib import Path

from support import TESTS, run

MODELS = TESTS.parent / "models"
BASE = MODELS / "weave-1M-Q8_0.gguf"
SIDECAR = MODELS / "weave-1M-listops-penelope-Q8_0.gguf"
LORA = MODELS / "weave-1M-listops-cot-lora-F16.gguf"


class Models(unittest.TestCase):
    def ok(self, *args):
        done = run(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_files_say_what_they_are(self):
        kinds = {path: json.loads(self.ok("info", path, "--json"))["kind"] for path in (BASE, SIDECAR, LORA)}
        self.assertEqual(list(kinds.values()), ["backbone", "sidecar", "lora"])
        self.assertLess(sum(path.stat().st_size for path in MODELS.iterdir()), 20 << 20)

    def test_latent_steps_help_and_answers_can_be_read(self):
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "data"
            self.ok("data", "listops", "--out", data, "--seed", 77, "--train", 10, "--valid", 10, "--test", 240, "--depth", "1-3", "--test-depth", "1-3")
            result = json.loads(self.ok("eval", "-m", BASE, "--sidecar", SIDECAR, "--data", data / "test.jsonl", "-K", "0-4", "--timed", 2, "--json"))
        rows = {row["K"]: row for row in result["results"]}
        best = rows[result["default_K"]]
        self.assertGreater(best["em"], rows[0]["em"] + 0.1)
        self.assertGreater(best["parsed"], 0.98)

    def test_visible_steps(self):
        text = self.ok("run", "-m", BASE, "--lora", LORA, "-p", "Evaluate: [MAX 3 [MIN 4 7] 2]\n")
        self.assertEqual(text, "[MIN 4 7] = 4\n[MAX 3 4 2] = 4\n### 4\n")


if __name__ == "__main__":
    unittest.main()
