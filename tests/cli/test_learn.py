"""penelope learn: one command from a file to a scored model, on data so small that it takes seconds."""

import json
import random
import re
import signal
import subprocess
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

from support import BIN, TESTS, clean_environment, run

BASE = TESTS.parent / "models" / "weave-1M-Q8_0.gguf"
SHORT = ("--time", "2s", "-t", "1")  # the fewest updates that make sense


def sums(n):
    return [{"question": f"{a}+{b}+{c}?", "steps": [f"{a}+{b}={a + b}", f"{a + b}+{c}={a + b + c}"], "answer": a + b + c}
            for i, (a, b, c) in enumerate((i % 4, i // 4 % 4, i // 16 % 4) for i in range(n))]


class Learn(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        self.addCleanup(work.cleanup)
        self.work = Path(work.name)

    def write(self, name, rows):
        (self.work / name).parent.mkdir(exist_ok=True)
        (self.work / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return name

    def learn(self, *args, code=0):
        done = run("learn", *args, cwd=self.work, timeout=600)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def events(self, *args):
        return [json.loads(line) for line in self.learn(*args, "--json").stdout.splitlines()]

    def test_from_a_file_to_a_verdict_through_an_interruption(self):
        self.write("sums.jsonl", sums(64))
        command = ("sums.jsonl", "--from-scratch", "tiny", *SHORT)
        # Ctrl-C in the second stage.
        process = subprocess.Popen([BIN, "learn", *command, "--json"], cwd=self.work, env=clean_environment(), stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "update" and event["stage"] == "latent":
                process.send_signal(signal.SIGINT)
                break
        last = process.stdout.read().splitlines()[-1]
        process.stdout.close()
        self.assertEqual(process.wait(), 130)
        self.assertEqual(json.loads(last)["status"], "error")
        self.assertIn("the same command goes on", json.loads(last)["hint"])

        done = self.events(*command)
        stages = [event["stage"] for event in done if event["event"] == "stage"]
        self.assertEqual(stages, ["latent", "control"])  # the finished one is not trained again
        self.assertGreater([event for event in done if event["event"] == "update"][0]["update"], 1)  # from its checkpoint
        plan = next(event for event in done if event["event"] == "plan")
        self.assertGreater(plan["memory"], 0)
        updates = {stage["stage"]: stage["updates"] for stage in plan["stages"]}
        self.assertEqual(updates["latent"], updates["control"])
        result = done[-1]
        self.assertEqual((result["event"], result["status"]), ("result", "ok"))
        names = [row["name"] for row in result["scores"]]
        for name in ("most frequent answer", "written steps", "control, no steps", "latent K=0", "latent K=3", "latent, memory swapped"):
            self.assertIn(name, names)
        for row in result["scores"]:
            self.assertLessEqual(row["low"], row["em"])
            self.assertLessEqual(row["em"], row["high"])
        self.assertTrue(result["verdict"].endswith("."))

        run_folder = self.work / "runs" / "sums"
        parts = {name: [json.loads(line)["question"] for line in (run_folder / "data" / f"{name}.jsonl").read_text().splitlines()] for name in ("train", "valid", "test")}
        self.assertEqual(len(set(sum(parts.values(), []))), 64)
        self.assertTrue(parts["valid"] and parts["test"])
        page = (run_folder / "report.html").read_text()
        HTMLParser().feed(page)
        self.assertIn(result["verdict"].split(":")[0], page)
        self.assertNotIn("http://", page.replace("http://www.w3.org/2000/svg", ""))
        self.assertEqual(page.count('class="sample"'), len(parts["test"]))
        # The file runs alone, as the first command says.
        self.assertIn("chat -m runs/sums/model.gguf", result["commands"][0])
        asked = run("run", "-m", run_folder / "model.gguf", "-p", "1+2+3?", "-n", "16")
        self.assertEqual(asked.returncode, 0, asked.stderr)

        # Once more: everything is there.
        again = self.events(*command)
        self.assertFalse([event for event in again if event["event"] in ("stage", "update", "scoring")])
        self.assertEqual(again[-1]["scores"], result["scores"])
        # Other data, another time, other stages.
        for args, said in (((*command[:-4], "--time", "3s"), "--time was 2.00 s, now 3.00 s"), ((*command, "--no-control"), "--no-control was not given, now given")):
            self.assertIn(said, self.learn(*args, code=2).stderr)
        self.write("sums.jsonl", sums(63))
        self.assertIn("the data has other contents", self.learn(*command, code=2).stderr)

    def test_without_steps_answers_are_trained_and_it_says_why(self):
        rows = [{"question": f"name {i}?", "answer": "ab"[i % 2]} for i in range(40)]
        done = self.learn(self.write("names.jsonl", rows), "-m", BASE, *SHORT)
        self.assertIn("no latent steps are trained: no example has steps", done.stderr)
        self.assertIn("needs ", done.stderr)
        self.assertNotIn("latent K", done.stdout)
        self.assertIn("base, untouched", done.stdout)
        self.assertRegex(done.stdout, r"penelope chat .*\n")

    def test_plain_text_is_scored_by_perplexity(self):
        draw = random.Random(1)
        text = "".join(" ".join(draw.choice(("the", "ball", "is", "under", "a", "red", "box")) for _ in range(12)) + ".\n" for _ in range(260))
        (self.work / "story.txt").write_text(text)
        result = self.events("story.txt", "--from-scratch", "tiny", *SHORT)[-1]
        self.assertLess(result["perplexity"]["after"], result["perplexity"]["before"])
        self.assertIn("perplexity", result["verdict"])
        self.assertTrue((self.work / "runs/story/model.gguf").exists())

    def test_what_is_wrong_is_named(self):
        self.write("few.jsonl", sums(4))
        self.write("bad.jsonl", [*sums(12), {"question": "1+1?", "steps": ["2"], "step_results": ["2", "2", "2"], "answer": 2}])
        (self.work / "words.txt").write_text("too short")
        (self.work / "latin.txt").write_bytes(b"ok\n\xff\xfe\n")
        (self.work / "taken").mkdir()
        (self.work / "taken" / "mine").write_text("mine")
        for args, said, code in ((("few.jsonl", "-m", BASE), "has 4 different questions, needs at least 10", 2),
                                 (("bad.jsonl", "-m", BASE), "bad.jsonl line 13: has 3 results of 1 steps", 1),
                                 (("none.jsonl", "-m", BASE), "no such file", 1),
                                 (("words.txt", "-m", BASE), "give more text", 1),
                                 (("latin.txt", "-m", BASE), "latin.txt line 2: not valid UTF-8", 1),
                                 (("few.jsonl",), "--from-scratch tiny", 2),
                                 (("few.jsonl", "-m", BASE, "--from-scratch", "tiny"), "exclude each other", 2),
                                 (("few.jsonl", "-m", BASE, "--time", "soon"), "is not a time", 2),
                                 (("few.jsonl", "-m", BASE, "--time", "1h", "--protocol", "paper"), "fixes the number of updates", 2),
                                 (("few.jsonl", "--from-scratch", "huge"), "tiny", 2)):
            self.assertIn(said, self.learn(*args, "--out", "x", code=code).stderr)
            self.assertFalse((self.work / "x").exists(), args)
        self.write("sums.jsonl", sums(30))
        self.assertIn("has files of something else", self.learn("sums.jsonl", "-m", BASE, "--out", "taken", code=1).stderr)
        self.assertEqual((self.work / "taken" / "mine").read_text(), "mine")

    def test_a_directory_keeps_its_test_set_and_loses_leaks(self):
        rows = sums(40)
        self.write("set/train.jsonl", rows[:30])
        self.write("set/test.jsonl", rows[28:])
        done = self.learn("set", "--from-scratch", "tiny", "--no-latent", *SHORT)
        self.assertIn("2 training examples left out", done.stderr)
        asked = [json.loads(line)["question"] for line in (self.work / "runs/set/data/test.jsonl").read_text().splitlines()]
        self.assertEqual(asked, [row["question"] for row in rows[28:]])
        self.assertIn("--no-latent was given", done.stderr)


if __name__ == "__main__":
    unittest.main()
