"""Every command that writes, with one of its system calls failing: the exit code says so, a line says why, no half file is left,
and what was there before is whole.

PENELOPE_TEST_FAULTS is the library that makes calls fail (tests/fault/fail_nth.c). A few places of each kind are tried;
with PENELOPE_TEST_ALL_FAULTS=1 every one: n = 1, 2, 3, ... until the n-th call does not come any more.
"""

import os
import random
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from support import GOLDEN, TinyModel, run
from test_report import metrics

LIBRARY = os.environ.get("PENELOPE_TEST_FAULTS", "")
ALL = os.environ.get("PENELOPE_TEST_ALL_FAULTS") == "1"
N_TRIED = 3  # of each kind and command, when not all
KINDS = ("write", "fsync", "rename", "mmap", "malloc")
LARGE = 1 << 16  # smaller requests for memory do not fail on any system we know

if not LIBRARY:
    print("skipped: PENELOPE_TEST_FAULTS is not set")
    sys.exit(77)


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="penelope-faults-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = Path(cls.folder.name)
        cls.model = TinyModel()
        cls.addClassCleanup(cls.model.cleanup)
        cls.mark = cls.root / "mark"
        made = run("data", "listops", "--out", cls.root / "data", "--train", 12, "--valid", 4, "--test", 4, "--depth", "1", "--test-depth", "1")
        assert made.returncode == 0, made.stderr

    def run_failing(self, kind, n, *args):
        """Runs with the n-th call of a kind failing. Returns the finished process, and whether there was such a call."""
        self.mark.unlink(missing_ok=True)
        env = {"LD_PRELOAD": LIBRARY, "FAIL_CALL": kind, "FAIL_NTH": str(n), "FAIL_SIZE": str(LARGE), "FAIL_MARK": str(self.mark)}
        done = run(*args, env=env)
        return done, self.mark.exists()

    def count(self, kind, prepare, args):
        """How many calls of a kind the command makes: the first power of two that is not reached, then halves."""
        def reached(n):
            prepare()
            return self.run_failing(kind, n, *args)[1]
        high = 1
        while reached(high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if reached(middle) else (low, middle)
        return low

    def places(self, kind, prepare, args):
        if ALL:
            n = 0
            while True:
                n += 1
                yield n
        else:
            n_calls = self.count(kind, prepare, args)
            yield from sorted(random.Random(kind).sample(range(1, n_calls + 1), min(N_TRIED, n_calls)))

    def check_message(self, done, where):
        """A failed command ends with 1 and says so; a fault it can do without leaves no trace."""
        if "GGML_ASSERT(ctx->mem_buffer != NULL)" in done.stderr:
            return  # the one place where ggml itself ends the process, for want of memory for its headers; files are whole all the same
        self.assertIn(done.returncode, (0, 1), f"{where}: {done.stderr}")
        if done.returncode == 1:
            self.assertRegex(done.stderr, r"(?m)^error: .*: ", where)

    def check_command(self, *args, kinds=KINDS):
        """A command whose last argument is the file or folder it makes: once where nothing is, once over an old one."""
        out = self.root / "out"
        target = out / args[-1]
        args = [*args[:-1], target]

        def prepare(old=None):
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            (out / "bystander").write_text("mine")
            if old:
                shutil.copytree(old, out, dirs_exist_ok=True)

        prepare()
        self.assertEqual(run(*args).returncode, 0)
        expected = contents(out)
        old = self.root / "old"
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir()
        for name, data in expected.items():
            (old / name).parent.mkdir(parents=True, exist_ok=True)
            (old / name).write_bytes(data if name == "bystander" else b"old")
        before = contents(old)

        for kind in kinds:
            for n in self.places(kind, prepare, args):
                prepare()
                done, failed = self.run_failing(kind, n, *args)
                if not failed:
                    self.assertEqual(done.returncode, 0, done.stderr)
                    break
                where = f"{args[0]}: {kind} number {n}"
                self.check_message(done, where)
                self.assertEqual(contents(out), expected if done.returncode == 0 else {"bystander": b"mine"}, where)

                prepare(old)
                done, _ = self.run_failing(kind, n, *args, "--force")
                self.check_message(done, where)
                found = contents(out)
                if done.returncode == 0:
                    self.assertEqual(found, expected, where)
                else:
                    self.assertEqual(found.keys(), before.keys(), where)
                    for name, data in found.items():
                        self.assertIn(data, (before[name], expected[name]), f"{where}: {name} is half of something")

    def test_convert(self):
        self.check_command("convert", GOLDEN / "last" / "model", "-o", "base.gguf")

    def test_convert_a_sidecar(self):
        self.check_command("convert", GOLDEN / "last" / "penelope", "--base", self.model.base, "--lora", GOLDEN / "last" / "lora", "-o", "s.gguf")

    def test_quantize(self):
        # The output is the second of three: given last, the type has to be a default.
        out = self.root / "quantized"
        for kind in KINDS:
            def prepare():
                shutil.rmtree(out, ignore_errors=True)
                out.mkdir()
            args = ("quantize", self.model.base, out / "q.gguf", "Q8_0")
            prepare()
            self.assertEqual(run(*args).returncode, 0)
            expected = contents(out)
            for n in self.places(kind, prepare, args):
                prepare()
                done, failed = self.run_failing(kind, n, *args)
                if not failed:
                    break
                self.check_message(done, f"quantize: {kind} number {n}")
                self.assertEqual(contents(out), expected if done.returncode == 0 else {}, f"{kind} number {n}")

    def test_export(self):
        for form in ("penelope", "lora", "bundle"):
            self.check_command("export", self.model.sidecar, "-m", self.model.base, "--as", form, "-o", form if form == "penelope" else f"{form}.gguf",
                               kinds=KINDS if ALL else ("write", "rename"))

    def test_report(self):
        run_folder = self.root / "run"
        run_folder.mkdir()
        (run_folder / "metrics.jsonl").write_text(metrics(20))
        self.check_command("report", run_folder, "-o", "report")

    def test_train_and_resume(self):
        out = self.root / "trained"
        args = ("train", "-m", self.model.base, "--method", "penelope", "--init", self.model.sidecar, "--data", self.root / "data", "--out", out,
                "--updates", 3, "--latent-steps", 1, "--batch-size", 2, "--save-every", 1, "--eval-every", 2, "--eval-limit", 2, "-n", 4, "-q")
        resume = ("train", "--resume", "--out", out, "-q")

        def prepare():
            shutil.rmtree(out, ignore_errors=True)

        prepare()
        done = run(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = (out / "model.gguf").read_bytes()
        for kind in KINDS:
            for n in self.places(kind, prepare, args):
                where = f"train: {kind} number {n}"
                prepare()
                done, failed = self.run_failing(kind, n, *args)
                if not failed:
                    break
                self.check_message(done, where)
                left = done.returncode == 1 and [name for name in (contents(out) if out.exists() else {}) if re.search(r"\.tmp$|\.new$", name)]
                self.assertFalse(left, where)
                # Whatever happened, the run can go on, also when going on fails at the same place, and ends with the same bits.
                if done.returncode != 0 and (out / "checkpoint" / "last.gguf").exists():
                    again, _ = self.run_failing(kind, n, *resume)
                    self.check_message(again, where + ", resumed")
                    done = run(*resume)
                elif done.returncode != 0:
                    done = run(*args, "--force")
                self.assertEqual(done.returncode, 0, f"{where}: {done.stderr}")
                self.assertEqual((out / "model.gguf").read_bytes(), expected, where)

    def test_a_run_that_is_replaced_is_whole_until_the_new_one_can_go_on(self):
        out = self.root / "replaced"
        args = ("train", "-m", self.model.base, "--method", "cot", "--data", self.root / "data", "--out", out, "--batch-size", 2, "--eval-limit", 2, "-n", 4, "-q")
        done = run(*args, "--updates", 2, "--name", "first", "--keep-checkpoints", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        before = contents(out)
        replace = (*args, "--updates", 3, "--name", "second", "--force")
        shutil.copytree(out, self.root / "first")

        def prepare():
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(self.root / "first", out)

        prepare()
        self.assertEqual(run(*replace).returncode, 0)
        expected = (out / "model.gguf").read_bytes()
        n_kept = 0
        for kind in ("write", "fsync", "rename"):
            # The first calls are those before the new run has a checkpoint.
            for n in range(1, 1000) if ALL else range(1, 7):
                prepare()
                done, failed = self.run_failing(kind, n, *replace)
                if not failed:
                    break
                where = f"train --force: {kind} number {n}"
                self.check_message(done, where)
                if contents(out) == before:
                    self.assertEqual(done.returncode, 1, where)
                    n_kept += 1
                    continue
                if done.returncode != 0:
                    done = run("train", "--resume", "--out", out, "-q")
                self.assertEqual(done.returncode, 0, f"{where}: {done.stderr}")
                self.assertEqual((out / "model.gguf").read_bytes(), expected, where)
        self.assertGreater(n_kept, 3)

    def test_a_checkpoint_that_the_disk_does_not_give_back_gives_way_to_the_one_before(self):
        out = self.root / "unreadable"
        done = run("train", "-m", self.model.base, "--method", "cot", "--data", self.root / "data", "--out", out, "--updates", 3, "--save-every", 1, "--batch-size", 2,
                   "--eval-limit", 2, "-n", 4, "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        resume = ("train", "--resume", "--out", out)
        done = [self.run_failing("read", n, *resume)[0] for n in range(1, self.count("read", lambda: None, resume) + 1)]
        self.assertEqual([one.returncode for one in done if one.returncode not in (0, 1)], [])
        self.assertRegex("".join(one.stderr for one in done), r"warning: .*last\.gguf: read failed after 0 bytes: .*; resuming from the previous checkpoint")

    def test_a_failed_fsync_is_never_a_success(self):
        """Those of directories too, which bring the names of files to the disk."""
        out = self.root / "synced"
        for args in (("convert", GOLDEN / "last" / "model", "-o", out / "base.gguf"),
                     ("export", self.model.sidecar, "-m", self.model.base, "--as", "penelope", "-o", out / "new"),
                     ("export", self.model.sidecar, "-m", self.model.base, "--as", "penelope", "-o", out)):
            def prepare():
                shutil.rmtree(out, ignore_errors=True)
                out.mkdir()
            n_calls = self.count("fsync", prepare, args)
            self.assertGreater(n_calls, 1)
            for n in range(1, n_calls + 1):
                prepare()
                done, _ = self.run_failing("fsync", n, *args)
                self.assertEqual(done.returncode, 1, f"{args}: fsync number {n}")
                self.assertEqual(contents(out), {}, f"{args}: fsync number {n}")

    def test_what_killed_processes_left_goes_with_the_next_output(self):
        out = self.root / "littered"
        for args in (("convert", GOLDEN / "last" / "model", "-o", out / "base.gguf"),
                     ("quantize", self.model.base, out / "q.gguf", "Q8_0"),
                     ("export", self.model.sidecar, "-m", self.model.base, "--as", "penelope", "-o", out / "new")):
            shutil.rmtree(out, ignore_errors=True)
            (out / ".penelope-1-0.tmp").mkdir(parents=True)
            (out / ".penelope-1-0.tmp" / "config.json").write_text("half")
            (out / ".penelope-1-1.tmp").write_text("half")
            done = run(*args)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([path.name for path in out.iterdir() if path.name.startswith(".")], [])


if __name__ == "__main__":
    unittest.main()
