"""scripts/reproduce with a few updates on a few examples: the whole way, killed on it and gone on, and what it refuses."""

import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from support import BIN, TESTS, clean_environment

ROOT = TESTS.parent
METHODS = {"cot", "coconut", "codi", "penelope", "k0", "overwrite", "early", "middle", "step-loss", "step-loss-k0"}


class Reproduce(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        self.addCleanup(work.cleanup)
        self.out = Path(work.name) / "out"

    def command(self, *args):
        return [ROOT / "scripts" / "reproduce", ROOT / "examples" / "recipes" / "listops-small", self.out, "--seeds", "1,2",
                "--data", "--train 60 --valid 6 --test 12 --depth 1-2 --test-depth 1-2",
                "--train", "--updates 4 --batch-size 2 --eval-limit 2 --eval-every 2 -n 8", "--eval", "-n 8 --latency-samples 2", *args]

    def start(self, *args):
        return subprocess.Popen([str(word) for word in self.command(*args)], env=clean_environment({"PENELOPE_BIN": BIN}), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def finish(self, *args):
        process = self.start(*args)
        said, _ = process.communicate(timeout=300)
        return process.returncode, said

    def test_killed_on_the_way_it_goes_on_and_ends_with_the_table(self):
        process = self.start()
        deadline = time.monotonic() + 200
        while not (self.out / "runs" / "coconut-1" / "checkpoint" / "last.gguf").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        self.assertTrue((self.out / "done" / "train-cot-sft-0").exists())
        self.assertFalse((self.out / "done" / "score-penelope").exists())

        # A run that was begun and not finished is not gone on with under other settings.
        mark = self.out / "done" / "train-cot-sft-0"
        mark.rename(mark.with_name("aside"))
        code, said = self.finish("--train", "--updates 6 --batch-size 2 --eval-limit 2 --eval-every 2 -n 8")
        self.assertEqual(code, 1, said)
        self.assertIn("begun with other settings", said)
        mark.with_name("aside").rename(mark)

        code, said = self.finish()
        self.assertEqual(code, 0, said)
        self.assertNotIn("Training cot-sft", said)
        page = (self.out / "report" / "report.md").read_text()
        rows = dict(re.findall(r"^\| ([^|]+?) \| (\d+) \| [^|]* \| \d+\.\d\d", page[:page.index("## Training runs")], re.M))
        expected = {"Visible CoT", "Coconut", "CODI", "Penelope", "Penelope answering without latent steps", "Penelope trained without latent steps",
                    "Penelope, overwrite", "Penelope, early [0:4)", "Penelope, middle [1:5)", "Penelope, late [2:6)",
                    "Penelope with a loss on every step", "Penelope trained without latent steps, every answer asked for"}
        self.assertEqual({name for name, runs in rows.items() if runs == "2"}, expected, page)
        self.assertIn("95 % interval", page)
        for name in re.findall(r"\]\(([a-z-]+\.svg)\)", page):
            self.assertTrue((self.out / "report" / name).is_file(), name)
        self.assertEqual({path.name.rsplit("-", 1)[0] for path in (self.out / "runs").iterdir()}, METHODS | {"cot-sft"})

        # Nothing is left to do, and other settings do not mix with what is there.
        code, said = self.finish()
        self.assertEqual(code, 0, said)
        self.assertNotRegex(said, "Training|Scoring|Making")
        self.assertEqual((self.out / "report" / "report.md").read_text(), page)
        code, said = self.finish("--eval", "-n 4")
        self.assertEqual(code, 1, said)
        self.assertIn("other settings", said)

    def test_wrong_usage(self):
        for args in ([], ["x"], ["a", "b", "--unknown"], ["a", "b", "--seeds"]):
            done = subprocess.run([ROOT / "scripts" / "reproduce", *args], env=clean_environment({"PENELOPE_BIN": BIN}), capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn("RECIPES OUT", done.stderr)
        done = subprocess.run([ROOT / "scripts" / "reproduce", self.out, self.out], env=clean_environment({"PENELOPE_BIN": BIN}), capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("data.toml", done.stderr)
        for seeds in ("", "1,a", "1,,2"):
            code, said = self.finish("--seeds", seeds)
            self.assertEqual(code, 1, said)
            self.assertIn("no list of numbers", said)


if __name__ == "__main__":
    unittest.main()
