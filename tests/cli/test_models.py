"""The models that come with the program: the files fit each other, and answer better than a guess, as the card says."""

import json
import tempfile
import unittest
from pathlib import Path

from support import TESTS, run

MODELS = TESTS.parent / "models"
BASE = MODELS / "weave-1M-Q8_0.gguf"
SIDECAR = MODELS / "weave-1M-listops-penelope-Q8_0.gguf"
LORA = MODELS / "weave-1M-listops-cot-lora-F16.gguf"
PRETRAINED = MODELS / "smollm2-135M-listops-penelope-Q8_0.gguf"


class Models(unittest.TestCase):
    def ok(self, *args):
        done = run(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_files_say_what_they_are(self):
        kinds = {path: json.loads(self.ok("info", path, "--json"))["kind"] for path in (BASE, SIDECAR, LORA, PRETRAINED)}
        self.assertEqual(list(kinds.values()), ["backbone", "sidecar", "lora", "sidecar"])
        self.assertLess(sum(path.stat().st_size for path in MODELS.iterdir()), 20 << 20)

    def test_latent_answers_beat_the_guess_and_can_be_read(self):
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "data"
            self.ok("data", "listops", "--out", data, "--seed", 77, "--train", 0, "--valid", 0, "--test", 400, "--depth", "1-4", "--operators", "MAX,MIN,MED")
            result = json.loads(self.ok("eval", "-m", BASE, "--sidecar", SIDECAR, "--data", data / "test.jsonl", "--timed", 0, "--json"))
        row = result["results"][0]
        self.assertEqual(row["K"], 2)
        self.assertGreater(row["em"], 0.8)
        self.assertGreater(row["parsed"], 0.98)
        self.assertGreater(result["over_guess"]["low"], 0.05)

    def test_visible_steps(self):
        text = self.ok("run", "-m", BASE, "--lora", LORA, "-p", "Evaluate: [MAX 3 [MIN 4 7] 2]")
        self.assertEqual(text, "[MIN 4 7] = 4\n[MAX 3 4 2] = 4\n### 4\n")


if __name__ == "__main__":
    unittest.main()
