"""penelope data: makes data, refuses to replace it, finds repeats."""

import json
import tempfile
import unittest
from pathlib import Path

from support import run


class DataTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        self.addCleanup(work.cleanup)
        self.out = Path(work.name) / "data"

    def make(self, *args):
        return run("data", "listops", "--out", self.out, "--train", 12, "--valid", 4, "--test", 4, *args)

    def test_makes_files_that_repeat_with_the_seed(self):
        done = self.make("--seed", 3)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual({path.name for path in self.out.iterdir()}, {"train.jsonl", "valid.jsonl", "test.jsonl", "audit.json"})
        lines = [json.loads(line) for line in (self.out / "train.jsonl").read_text().splitlines()]
        self.assertEqual(len(lines), 12)
        self.assertLessEqual({"id", "question", "steps", "answer"}, set(lines[0]))

        self.assertNotEqual(self.make("--seed", 3).returncode, 0)
        before = (self.out / "train.jsonl").read_bytes()
        self.assertEqual(self.make("--seed", 3, "--force").returncode, 0)
        self.assertEqual((self.out / "train.jsonl").read_bytes(), before)
        self.assertEqual(self.make("--seed", 4, "--force").returncode, 0)
        self.assertNotEqual((self.out / "train.jsonl").read_bytes(), before)

    def test_depths(self):
        self.assertEqual(self.make("--depth", "2-3", "--json").returncode, 0)
        counts = json.loads((self.out / "audit.json").read_text())["files"][0]["counts"]["depth"]
        self.assertEqual(set(counts), {"2", "3"})

    def test_branches_and_steps(self):
        self.assertEqual(self.make("--depth", "4", "--branch", "1", "--max-steps", "2").returncode, 0)
        for line in (self.out / "train.jsonl").read_text().splitlines():
            example = json.loads(line)
            self.assertEqual(len(example["steps"]), 2)
            self.assertGreaterEqual(example["question"].count("["), 7)
        self.assertNotEqual(self.make("--force", "--branch", "1.5").returncode, 0)
        self.assertEqual(run("data", "prosqa", "--out", self.out / "new", "--max-steps", "2").returncode, 2)

    def test_audit_finds_a_repeated_question(self):
        self.assertEqual(self.make().returncode, 0)
        done = run("data", "audit", self.out)
        self.assertEqual(done.returncode, 0)
        self.assertIn("no duplicate ids or questions", done.stdout)
        train = self.out / "train.jsonl"
        first = json.loads(train.read_text().splitlines()[0])
        first["id"] = "another"
        with (self.out / "valid.jsonl").open("a") as valid:
            valid.write(json.dumps(first) + "\n")
        done = run("data", "audit", train, self.out / "valid.jsonl")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^error: ")
        done = run("data", "audit", self.out, "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["status"]), (1, "error"))

    def test_wrong_usage(self):
        self.assertEqual(run("data", "audit").returncode, 2)
        self.assertEqual(run("data", "listops").returncode, 2)
        done = run("data", "sudoku", "--out", self.out)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("listops", done.stderr)
        self.assertEqual(run("data", "listops", "extra", "--out", self.out).returncode, 2)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    unittest.main()
