"""The models that come with the program: the files fit each other, and answer better than a guess, as the card says."""

import json
import os
import tempfile
import unittest
from pathlib import Path

from support import TESTS, run

MODELS = TESTS.parent / "models"
BASE = MODELS / "weave-1M-Q8_0.gguf"
SIDECAR = MODELS / "weave-1M-listops-penelope-Q8_0.gguf"
LORA = MODELS / "weave-1M-listops-cot-lora-F16.gguf"
THREAD = MODELS / "thread-0.6M-Q8_0.gguf"
THREAD_SIDECAR = MODELS / "thread-0.6M-thread-penelope-Q8_0.gguf"
THREAD_CONTROL = MODELS / "thread-0.6M-thread-control-Q8_0.gguf"
WORDS_SIDECAR = MODELS / "smollm2-135m-thread-penelope-Q8_0.gguf"


class Models(unittest.TestCase):
    def ok(self, *args):
        done = run(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_files_say_what_they_are(self):
        kinds = {path: json.loads(self.ok("info", path, "--json"))["kind"] for path in (BASE, SIDECAR, LORA, THREAD, THREAD_SIDECAR, THREAD_CONTROL, WORDS_SIDECAR)}
        self.assertEqual(list(kinds.values()), ["backbone", "sidecar", "lora", "backbone", "sidecar", "sidecar", "sidecar"])
        self.assertLess(sum(path.stat().st_size for path in MODELS.iterdir()), 24 << 20)

    def test_latent_answers_beat_the_guess_and_can_be_read(self):
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "data"
            self.ok("data", "listops", "--out", data, "--seed", 77, "--train", 0, "--valid", 0, "--test", 400, "--depth", "1-4", "--operators", "MAX,MIN,MED")
            result = json.loads(self.ok("eval", "-m", BASE, "--sidecar", SIDECAR, "--data", data / "test.jsonl", "--latency-samples", 0, "--json"))
        row = result["results"][0]
        self.assertEqual(row["K"], 2)
        self.assertGreater(row["em"], 0.8)
        self.assertGreater(row["parsed"], 0.98)
        self.assertGreater(result["over_chance"]["low"], 0.05)

    def test_a_latent_step_is_an_edge_of_the_thread(self):
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "data"
            self.ok("data", "thread", "--out", data, "--seed", 77, "--train", 0, "--valid", 0, "--test", 320)

            def exact(sidecar, *args):
                result = json.loads(self.ok("eval", "-m", THREAD, "--sidecar", sidecar, "--data", data / "test.jsonl", "--latency-samples", 0, "--batch-size", 32, "--json", *args))
                return [row["em"] for row in result["results"]]

            by_steps = exact(THREAD_SIDECAR, "-K", "0-7")
            control = exact(THREAD_CONTROL)
            swapped = exact(THREAD_SIDECAR, "-K", "7", "--swap-latents")
        for fewer, more in zip(by_steps, by_steps[1:]):
            self.assertGreater(more, fewer + 0.06)
        self.assertLess(by_steps[0], 0.25)
        self.assertGreater(by_steps[7], 0.96)
        self.assertLess(control[0], 0.45)
        self.assertLess(swapped[0], 0.2)

    def test_the_key_in_words(self):
        base = os.environ.get("PENELOPE_TEST_SMOLLM2", "")
        if not os.path.exists(base):
            self.assertNotEqual(os.environ.get("PENELOPE_TEST_REQUIRE_FILES"), "1", "SmolLM2 is not there")
            self.skipTest("no SmolLM2")
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "data"
            self.ok("data", "thread", "--surface", "words", "--chains", 2, "--depth", "3-4", "--out", data, "--seed", 77, "--train", 0, "--valid", 0, "--test", 40)
            result = json.loads(self.ok("eval", "-m", base, "--sidecar", WORDS_SIDECAR, "--data", data / "test.jsonl", "--latency-samples", 0, "-K", "0-4", "--json"))
        exact = [row["em"] for row in result["results"]]
        self.assertGreater(exact[4], 0.65)  # the guess has 0.5
        self.assertGreater(exact[4], exact[0] + 0.2)

    def test_the_thread_in_visible_steps(self):
        self.assertEqual(self.ok("run", "-m", THREAD, "-p", "Bt aC rz DD bH oM VD JJ WX Fr zJ IF uu Na tu io MT PW vi HP ZN jg dB XV CI Td gb ?I"),
                         "IF\nFr\nrz\nzJ\nJ\n")

    def test_visible_steps(self):
        text = self.ok("run", "-m", BASE, "--lora", LORA, "-p", "Evaluate: [MAX 3 [MIN 4 7] 2]")
        self.assertEqual(text, "[MIN 4 7] = 4\n[MAX 3 4 2] = 4\n### 4\n")


if __name__ == "__main__":
    unittest.main()
