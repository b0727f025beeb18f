"""penelope train on two ranks of this machine: the same losses as on one, the same bits every time, and one end for all."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from support import BIN, clean_environment, run

SHAPE = 'name = "tiny"\nlayers = 3\nwidth = 32\nheads = 2\nffn = 64\ncontext = 256\n'
UPDATES = 50
# Ranks talk over the loopback alone, may be more than there are cores, and may belong to root, as in a container.
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def start_ranks(n, *args):
    return subprocess.Popen([*MPIRUN, "-np", str(n), BIN, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=clean_environment(ENVIRONMENT))


def run_ranks(n, *args, timeout=240):
    started = start_ranks(n, *args)
    try:
        out, err = started.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        started.kill()
        raise
    return subprocess.CompletedProcess(args, started.returncode, out, err)


def errors_in(text):
    return [line for line in text.splitlines() if line.startswith("error: ")]


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.root = Path(cls.dir.name)
        (cls.root / "shape.toml").write_text(SHAPE)
        made = run("data", "listops", "--out", cls.root / "data", "--train", 60, "--valid", 10, "--test", 10, "--depth", "1-2",
                   "--test-depth", "1-2")
        assert made.returncode == 0, made.stderr
        base = run(*cls.arguments("base", "--init-random", cls.root / "shape.toml", "--full", "--method", "cot", "--updates", 4,
                                  "--lr", "1e-3"))
        assert base.returncode == 0, base.stderr
        cls.base = cls.root / "base" / "model.gguf"

    @classmethod
    def arguments(cls, out, *args):
        return ["train", *args, "--data", cls.root / "data", "--out", cls.root / out, "-n", 8, "--eval-limit", 10, "-t", 1]

    def method(self, out, method, *args):
        return self.arguments(out, "-m", self.base, "--method", method, "--updates", UPDATES, "--lr", "1e-3,1e-3", "--eval-every", 10,
                              *(() if method == "cot" else ("--latent-steps", 2)), *args)

    def metrics(self, out):
        return [json.loads(line) for line in (self.root / out / "metrics.jsonl").read_text().splitlines()]

    def assertSameCourse(self, first, second, tolerance):
        """Two runs with the same updates, their losses and scores no further apart than this."""
        for a, b in zip(self.metrics(first), self.metrics(second), strict=True):
            self.assertEqual(a["update"], b["update"])
            for key in ("loss", "valid_loss"):
                self.assertEqual(key in a, key in b)
                if key in a:
                    self.assertLessEqual(abs(a[key] - b[key]), tolerance, (key, a["update"]))
            for key in ("target_tokens", "tokens", "valid_n"):
                self.assertEqual(a.get(key), b.get(key))

    def ranks_ok(self, n, *args):
        done = run_ranks(n, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_ranks_learn_what_one_does(self):
        """Dropout included: an example loses the same elements on whichever rank it is."""
        for method in ("cot", "penelope", "coconut", "codi"):
            one = run(*self.method(f"{method}-1", method, "--dropout", 0.05))
            self.assertEqual(one.returncode, 0, one.stderr)
            for n in (2, 3):
                with self.subTest(method=method, ranks=n):
                    done = self.ranks_ok(n, *self.method(f"{method}-{n}", method, "--dropout", 0.05))
                    self.assertSameCourse(f"{method}-1", f"{method}-{n}", 1e-4)
                    self.assertEqual(len(done.stdout.splitlines()), 1, "one rank speaks")
                    updates = [line for line in self.metrics(f"{method}-{n}") if "loss" in line]
                    self.assertEqual([line["ranks"] for line in updates], [n] * UPDATES)
                    # Half of every buffer goes out to be added up and half comes back: 4 bytes a parameter for two ranks.
                    self.assertGreater(min(line["bytes_sent"] for line in updates), 0)
                    self.assertLess(updates[-1]["loss"], updates[0]["loss"])

    def test_ranks_force_the_same_steps_and_count_the_same_answers(self):
        flags = ("--dropout", 0, "--k-schedule", "uniform", "--step-loss", 0.5, "--teacher-forcing", 0.7, "--adaptive", "--fit-modules", "--updates", 12)
        one = run(*self.method("forced-1", "penelope", *flags))
        self.assertEqual(one.returncode, 0, one.stderr)
        self.ranks_ok(2, *self.method("forced-2", "penelope", *flags))
        self.assertSameCourse("forced-1", "forced-2", 1e-4)
        for a, b in zip(self.metrics("forced-1"), self.metrics("forced-2")):
            self.assertEqual(a.get("depths"), b.get("depths"))
            self.assertEqual(a.get("steps_right"), b.get("steps_right"))

    def test_dropout_is_not_left_out(self):
        for out, rate in (("dropout-0", 0), ("dropout-5", 0.05)):
            self.ranks_ok(2, *self.method(out, "cot", "--dropout", rate, "--updates", 3))
        first = [line["loss"] for line in self.metrics("dropout-0") if "loss" in line]
        second = [line["loss"] for line in self.metrics("dropout-5") if "loss" in line]
        self.assertGreater(abs(first[-1] - second[-1]), 1e-4)

    def test_three_ranks_repeat_themselves_to_the_bit(self):
        for method in ("penelope", "codi"):
            for out in ("again-1", "again-2"):
                self.ranks_ok(3, *self.method(f"{method}-{out}", method, "--name", "again", "--dropout", 0.05, "--updates", 20))
            first, second = self.root / f"{method}-again-1", self.root / f"{method}-again-2"
            self.assertEqual((first / "model.gguf").read_bytes(), (second / "model.gguf").read_bytes())
            self.assertSameCourse(first.name, second.name, 0)

    def test_a_new_backbone_is_the_same_on_every_rank(self):
        self.ranks_ok(2, *self.arguments("new", "--init-random", self.root / "shape.toml", "--full", "--method", "cot", "--updates", 4,
                                         "--lr", "1e-3"))
        self.assertSameCourse("base", "new", 1e-4)

    def test_a_run_goes_on_with_another_number_of_ranks_and_says_so(self):
        self.ranks_ok(2, *self.method("whole", "cot", "--dropout", 0))
        stopped = start_ranks(2, *self.method("cut", "cot", "--dropout", 0, "--log-every", 1))
        self.wait_for_update(stopped, "cut")
        self.kill_rank(stopped, signal.SIGTERM)
        out, err = stopped.communicate(timeout=60)
        self.assertEqual(stopped.returncode, 130, err)
        self.assertEqual(len(errors_in(err)), 1, err)
        self.assertIn("checkpoint saved", err)
        # The same number goes on where it was; another one says that it differs.
        shutil.copytree(self.root / "cut", self.root / "cut-alone")
        self.ranks_ok(2, "train", "--resume", "--out", self.root / "cut", "-t", 1)
        self.assertSameCourse("whole", "cut", 0)
        one = run("train", "--resume", "--out", self.root / "cut-alone", "-t", 1)
        self.assertEqual(one.returncode, 0, one.stderr)
        self.assertIn("ranks instead of", one.stderr)
        self.assertSameCourse("whole", "cut-alone", 1e-4)

    def test_bad_data_on_one_rank_ends_all_with_one_message(self):
        """Every machine has files of its own; here the last rank gets other ones through its environment."""
        def start(*lines):
            bad = self.root / "bad"
            shutil.rmtree(bad, ignore_errors=True)
            shutil.copytree(self.root / "data", bad)
            train = (bad / "train.jsonl").read_text().splitlines()
            (bad / "train.jsonl").write_text("\n".join([*train[:5], *lines, *train[5:]]) + "\n")
            choose = self.root / "choose"
            choose.write_text(f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && data={bad} || data={self.root / "data"}\nexec {BIN} "$@" --data "$data"\n')
            choose.chmod(0o755)
            args = [arg for arg in map(str, self.method("bad-run", "cot", "--force")) if arg not in ("--data", str(self.root / "data"))]
            begin = time.monotonic()
            done = subprocess.run([*MPIRUN, "-np", "2", str(choose), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                                  env=clean_environment(ENVIRONMENT))
            self.assertLess(time.monotonic() - begin, 30)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(len(errors_in(done.stderr)), 1, done.stderr)
            return errors_in(done.stderr)[0]

        self.assertRegex(start('{"question": "no answer"}'), r"rank 1: .*train\.jsonl")
        self.assertRegex(start('{"id": "x", "question": "another", "steps": ["a"], "answer": "b"}'), r"settings differ from those of rank 0: .*train\.jsonl has changed")

    def test_ctrl_c_ends_all_ranks_and_the_run_goes_on_with_another_number(self):
        # Validations, so that a fast machine is not through before mpirun has passed the signal on.
        long = ("--save-every", 2, "--updates", 120, "--eval-every", 1, "--dropout", 0.05)
        started = start_ranks(2, *self.method("stopped", "penelope", *long, "--log-every", 1))
        self.wait_for_update(started, "stopped", 5)
        started.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, err = started.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertNotEqual(started.returncode, 0)
        self.assertLessEqual(len(errors_in(err)), 1, err)
        before = len([line for line in self.metrics("stopped") if "loss" in line])
        self.assertLess(before, 120)
        self.ranks_ok(3, "train", "--resume", "--out", self.root / "stopped", "-t", 1)
        whole = run(*self.method("not-stopped", "penelope", *long))
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertSameCourse("not-stopped", "stopped", 1e-4)

    def test_what_all_ranks_get_wrong_is_said_once(self):
        for code, pattern, args in (
            (2, "--batch-size 1 is smaller than the number of ranks, 2", self.method("none", "cot", "--batch-size", 1)),
            (1, "already contains a run", self.method("base", "cot")),
            (1, "missing.gguf", self.arguments("none", "-m", self.root / "missing.gguf", "--method", "cot")),
        ):
            done = run_ranks(2, *args)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(len(errors_in(done.stderr)), 1, done.stderr)
            self.assertRegex(errors_in(done.stderr)[0], pattern)

    def test_a_disk_that_is_full_for_the_writer_ends_all(self):
        target = self.root / "full"
        (target / "checkpoint").mkdir(parents=True)
        (target / "metrics.jsonl").symlink_to("/dev/full")
        done = run_ranks(2, *self.method("full", "cot"), timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(errors_in(done.stderr)), 1, done.stderr)
        self.assertIn("is the disk full?", done.stderr)

    def test_ctrl_c_in_a_validation_and_a_checkpoint_that_cannot_be_written_end_all(self):
        # One validation, longer than the rest of the test.
        started = start_ranks(2, *self.arguments("both", "-m", self.base, "--method", "cot", "--updates", 2, "--eval-every", 1, "--save-every", 0),
                              "-n", 200, "--eval-limit", 0, "--data", self.large_data())
        self.wait_for_update(started, "both", 1)
        ranks = self.ranks_of(started)
        resource.prlimit(min(ranks), resource.RLIMIT_FSIZE, (1000, 1000))
        for rank in ranks:
            os.kill(rank, signal.SIGINT)
        try:
            _, err = started.communicate(timeout=30)
        finally:
            started.kill()
        self.assertEqual(started.returncode, 1, err)
        self.assertEqual(len(errors_in(err)), 1, err)
        self.assertIn("last.gguf", errors_in(err)[0])
        self.assertNotIn("valid_loss", (self.root / "both" / "metrics.jsonl").read_text())

    def test_a_killed_rank_ends_all_and_the_run_can_go_on(self):
        started = start_ranks(2, *self.method("killed", "cot", "--save-every", 2, "--updates", 2000, "--log-every", 1))
        self.wait_for_update(started, "killed", 5)
        self.kill_rank(started, signal.SIGKILL)
        begin = time.monotonic()
        _, err = started.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertNotEqual(started.returncode, 0)
        self.assertEqual(len(errors_in(err)), 0, "the launcher says it: " + err)
        self.assertRegex(err, r"(?i)signal 9|killed")
        self.ranks_ok(2, "train", "--resume", "--dry-run", "--out", self.root / "killed", "-t", 1)

    def wait_for_update(self, started, out, update=3):
        path = self.root / out / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not path.exists() or path.read_text().count("\n") < update:
            self.assertIsNone(started.poll(), "ended too early")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def large_data(self):
        made = run("data", "listops", "--out", self.root / "large", "--train", 60, "--valid", 2000, "--test", 10, "--depth", "1-2", "--test-depth", "1-2")
        self.assertEqual(made.returncode, 0, made.stderr)
        return self.root / "large"

    @staticmethod
    def ranks_of(started):
        """Their process ids, the first rank's first."""
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        return sorted(int(pid) for pid in children if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "penelope")

    def kill_rank(self, started, number):
        """Sends a signal to the last rank."""
        os.kill(self.ranks_of(started)[-1], number)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


if __name__ == "__main__":
    if "MPI: none" in run("--version").stdout:
        skip("the program was built without MPI")
    if not shutil.which("mpirun"):
        skip("there is no mpirun")
    unittest.main()
