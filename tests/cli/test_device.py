"""penelope train on the device of the suite (PENELOPE_TEST_DEVICE, else the CPU): the losses of the CPU with the settings as
they come, and a run that is killed ends with the same bits."""

import json
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from support import BIN, clean_environment, run

DEVICE = os.environ.get("PENELOPE_TEST_DEVICE") or "CPU"
SHAPE = 'name = "tiny"\nlayers = 3\nwidth = 32\nheads = 2\nffn = 64\ncontext = 256\n'
UPDATES = 8
# Of a loss; with PENELOPE_TEST_F16 the device may multiply in 16 bits.
TOLERANCE = 2e-2 if os.environ.get("PENELOPE_TEST_F16", "0") not in ("", "0") else 1e-4


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.root = Path(cls.dir.name)
        (cls.root / "shape.toml").write_text(SHAPE)
        made = run("data", "listops", "--out", cls.root / "data", "--train", 40, "--valid", 6, "--test", 6, "--depth", "1-2",
                   "--test-depth", "1-2")
        assert made.returncode == 0, made.stderr
        cls.base = cls.root / "base" / "model.gguf"
        cls.train_ok("--init-random", cls.root / "shape.toml", "--full", "--method", "cot", "--updates", 2, "--device", "CPU", out="base")

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    @classmethod
    def command(cls, *args, out):
        return ["train", *args, "--data", cls.root / "data", "--out", cls.root / out, "-n", 6, "--eval-limit", 2]

    @classmethod
    def train_ok(cls, *args, out):
        done = run(*cls.command(*args, out=out), timeout=500)
        assert done.returncode == 0, done.stderr
        return done

    def settings(self, method, device):
        return ("-m", self.base, "--method", method, "--updates", UPDATES, "--latent-steps", 2, "--batch-size", 2, "--lora-rank", 4, "--device", device)

    def losses(self, out):
        return [json.loads(line)["loss"] for line in (self.root / out / "metrics.jsonl").read_text().splitlines()
                if "loss" in json.loads(line) and "grad_norm" in json.loads(line)]

    def test_losses_of_the_cpu_with_the_settings_as_they_come(self):
        for method in ("cot", "penelope", "coconut", "codi"):
            with self.subTest(method=method):
                self.train_ok(*self.settings(method, DEVICE), out=f"device/{method}")
                self.train_ok(*self.settings(method, "CPU"), out=f"cpu/{method}")
                found, expected = self.losses(f"device/{method}"), self.losses(f"cpu/{method}")
                self.assertEqual((len(found), len(expected)), (UPDATES, UPDATES))
                for a, b in zip(found, expected):
                    self.assertLess(abs(a - b), TOLERANCE)

    def test_killed_and_resumed_it_ends_with_the_same_bits(self):
        self.train_ok(*self.settings("penelope", DEVICE), "--save-every", 1, out="whole/run")
        command = self.command(*self.settings("penelope", DEVICE), "--save-every", 1, out="killed/run")
        process = subprocess.Popen([BIN, *map(str, command)], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        metrics = self.root / "killed" / "run" / "metrics.jsonl"
        deadline = time.monotonic() + 400
        while process.poll() is None and time.monotonic() < deadline:
            if metrics.exists() and len(metrics.read_text().splitlines()) >= 3:
                break
            time.sleep(0.02)
        process.kill()
        process.wait()
        resumed = run("train", "--resume", "--out", self.root / "killed" / "run", "--device", DEVICE, timeout=500)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual((self.root / "killed" / "run" / "model.gguf").read_bytes(), (self.root / "whole" / "run" / "model.gguf").read_bytes())


if __name__ == "__main__":
    unittest.main()
