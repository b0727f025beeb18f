"""docs/training.md: the five commands of its parts, one after the other, on a file of one's own; and the formats it shows."""

import json
import re
import shutil
import tempfile
import unittest
from pathlib import Path

from support import TESTS, run

GUIDE = TESTS.parent / "docs" / "training.md"
BASE = TESTS.parent / "models" / "weave-1M-Q8_0.gguf"


def block(language, number=0):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.S)[number]


class Guide(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        self.addCleanup(work.cleanup)
        self.work = Path(work.name)

    def ok(self, *args, **kwargs):
        done = run(*args, cwd=self.work, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr or done.stdout)
        return done

    def test_five_commands_from_a_file_to_a_chat(self):
        shutil.copy(BASE, self.work / "base.gguf")
        shape = json.loads(block("json"))
        rows = [{**shape, "question": f"Tom has {i} apples and buys {j}.", "steps": [f"{i} + {j} = {i + j}"], "answer": i + j} for i in range(6) for j in range(6)]
        (self.work / "riddles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        commands = block("sh", 1).strip().splitlines()
        self.assertEqual(len(commands), 5)
        few = {"PENELOPE_UPDATES": "2", "PENELOPE_EVAL_EVERY": "0", "PENELOPE_PREDICT": "8"}
        said = [self.ok(*command.split()[1:], stdin="Tom has 1 apples and buys 2.\n" if " chat " in command else "", env=few).stdout for command in commands]
        self.assertIn("36 examples", said[0])
        self.assertIn("Tom has 0 apples and buys 0.\n", said[0])
        self.assertIn("0 + 0 = 0\n### 0", said[0])
        self.assertIn("0 examples do not fit", said[0])
        parts = {name: [json.loads(line)["question"] for line in (self.work / "data" / f"{name}.jsonl").read_text().splitlines()] for name in ("train", "valid", "test")}
        self.assertEqual({name: len(part) for name, part in parts.items()}, {"train": 28, "valid": 4, "test": 4})
        self.assertEqual(len(set(sum(parts.values(), []))), 36)
        self.assertTrue(said[4].strip())
        # One written step, so one latent one.
        keys = json.loads(self.ok("info", self.work / "runs/latent/model.gguf", "--json").stdout)["metadata"]
        self.assertEqual((keys["penelope.task"], keys["penelope.k_default"]), ("generic", 1))

    def check(self, name, text, *args):
        (self.work / name).write_text(text)
        return json.loads(self.ok("data", "check", name, *args, "--json").stdout)

    def test_every_format_of_the_table(self):
        rows = re.findall(r"^\| (question, steps, answer|prompt, completion|messages) \| `(.*?)` \|", GUIDE.read_text(), re.M)
        self.assertEqual(len(rows), 3)
        targets = {"question, steps, answer": "count\n### 2", "prompt, completion": " house", "messages": "Hello"}
        for name, line in rows:
            for text in (line + "\n", f"[{line}]"):
                report = self.check("data.jsonl", text)
                self.assertEqual((report["format"], report["examples"], report["first"]["target"]), (name, 1, targets[name]))
        report = self.check("data.csv", block("csv"))
        self.assertEqual(report["steps"]["most"], 2)
        self.assertEqual(report["first"], {"prompt": "3 + 4 - 2?\n", "target": "3 + 4 = 7\n7 - 2 = 5\n### 5", "results": ["7", "5", "5"], "start": "3"})
        self.assertEqual(self.check("data.csv", "prompt,completion\na,b\n")["format"], "prompt, completion")

    def test_completions_are_trained_and_asked_as_they_are(self):
        line = '{"prompt": "Haus =", "completion": " house"}\n'
        data = self.work / "data"
        data.mkdir()
        (data / "train.jsonl").write_text(line)
        plan = json.loads(self.ok("train", "-m", BASE, "--method", "cot", "--data", data, "--out", "run", "--dry-run", "--json").stdout)
        self.assertTrue(plan["sample"]["prompt"].endswith("Haus ="))
        self.assertTrue(plan["sample"]["target"].startswith(" house"))

    def test_what_is_wrong_is_named(self):
        for name, text, said in (("x.jsonl", '{"question": "a", "answer": "b"}\n{"prompt": "a", "completion": "b"}\n', "line 2: format prompt, completion"),
                                 ("x.jsonl", '{"messages": [{"role": "user", "content": "a"}]}\n', "at least a question and its answer"),
                                 ("x.jsonl", '{"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "a"}]}\n', "must be the assistant's"),
                                 ("x.csv", 'question,answer\n"a,b\n', "unterminated quote"),
                                 ("x.csv", "question,answer\na,b,c\n", "line 2: has 3 cells"),
                                 ("x.csv", "question,answer\n", "no examples")):
            (self.work / name).write_text(text)
            done = run("data", "check", self.work / name)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn(said, done.stderr)
        for shares in ("80", "a,b,c", "0,50,50", "80,10,10,10"):
            self.assertNotEqual(run("data", "split", self.work / "x.csv", "--out", self.work / "d", "--split", shares).returncode, 0)
        self.assertEqual(run("data", "check").returncode, 2)


if __name__ == "__main__":
    unittest.main()
