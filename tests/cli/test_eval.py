"""penelope eval: scores per K, predictions, comparison of two runs, and what it refuses."""

import json
import resource
import signal
import subprocess
import time
import unittest

from support import BIN, ModelTest, Pty, clean_environment, run


class EvalTest(ModelTest):
    def setUp(self):
        super().setUp()
        self.ok("data", "listops", "--out", self.work / "data", "--seed", 3, "--train", 10, "--valid", 10, "--test", 120)
        self.data = self.work / "data" / "test.jsonl"

    def evaluate(self, *args):
        return ("eval", "-m", self.model.base, "--sidecar", self.model.sidecar, "--data", self.data, "--limit", 10, "-n", 4, *args)

    def test_scores_and_predictions(self):
        file = self.work / "predictions.jsonl"
        report = self.ok_json(*self.evaluate("-K", "0-2", "--predictions", file))
        self.assertEqual([row["K"] for row in report["results"]], [0, 1, 2])
        self.assertEqual([row["layer_applications"] for row in report["results"]], [8, 10, 12])
        self.assertEqual(report["task"], "listops")
        self.assertIn(report["best_K"], (0, 1, 2))
        self.assertNotIn("over_chance", report, "K=3, which the file names, was not scored")
        own = self.ok_json(*self.evaluate("--latency-samples", 0))
        self.assertAlmostEqual(own["over_chance"]["difference"], own["results"][0]["em"] - own["chance"][0]["em"])
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual(len(rows), 30)
        for k, row in enumerate(report["results"]):
            mine = [r for r in rows if r["K"] == k]
            self.assertEqual(row["n"], 10)
            self.assertAlmostEqual(row["em"], sum(r["correct"] for r in mine) / 10)
            self.assertAlmostEqual(row["parsed"], sum(r["parsed"] for r in mine) / 10)
        for row in rows:
            self.assertEqual(row["correct"], row["parsed"] and row["extracted"] == row["answer"])
        # One question at a time gives the same texts.
        single = self.work / "single.jsonl"
        self.ok_json(*self.evaluate("-K", "0-2", "--batch-size", 1, "--predictions", single))
        texts = [(r["id"], r["K"], r["text"]) for r in map(json.loads, single.read_text().splitlines())]
        self.assertEqual(texts, [(r["id"], r["K"], r["text"]) for r in rows])

        again = run(*self.evaluate("-K", "0", "--predictions", file))
        self.assertEqual(again.returncode, 1)
        self.assertIn("predictions.jsonl", again.stderr)

        # Latencies are of single questions: each K has its own, and as many as were asked for.
        self.assertEqual(sum(row["latency_ms"] is not None for row in rows), 3 * 10)
        few = self.ok_json(*self.evaluate("-K", "0-2", "--latency-samples", 2, "--predictions", self.work / "few.jsonl"))
        timed = [row for row in map(json.loads, (self.work / "few.jsonl").read_text().splitlines()) if row["latency_ms"] is not None]
        self.assertEqual(len(timed), 3 * 2)
        for result in few["results"]:
            mine = [row["latency_ms"] for row in timed if row["K"] == result["K"]]
            self.assertAlmostEqual(result["latency_ms"], sum(mine) / 2)
        self.assertIsNone(self.ok_json(*self.evaluate("--latency-samples", 0))["results"][0]["latency_ms"])

    def test_predictions_are_in_the_file_while_the_others_are_asked_and_stay_after_ctrl_c(self):
        file = self.work / "growing.jsonl"
        slow = ("eval", "-m", self.model.base, "--sidecar", self.model.sidecar, "--data", self.data, "-K", "0-6", "--batch-size", 1, "--latency-samples", 120, "--predictions", file)
        for extra in ((), ("--json",)):
            file.unlink(missing_ok=True)
            command = [BIN, *map(str, slow), *extra]
            process = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.wait_for(lambda: file.exists() and file.read_text().count("\n") >= 3 * 7, process)
            seen = file.read_text()
            self.assertTrue(seen.endswith("\n"), "whole lines at any moment")
            self.assertIsNone(process.poll(), "it is still at work")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, err)
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            n = len({row["id"] for row in rows})
            self.assertTrue(3 <= n <= 120)
            self.assertEqual(len(rows), 7 * n, "of every question answered, all K")
            if extra:
                self.assertRegex(err, r"^task listops: [^\n]*\n$")
                error = json.loads(out)
                self.assertEqual((error["status"], error["kind"], error["n_unanswered"]), ("error", "cancelled", 120 - n))
                self.assertEqual([row["n"] for row in error["partial"]["results"]], [n] * 7)
                said = error["message"]
            else:
                self.assertIn("| EM", out.replace("  ", " "))
                self.assertRegex(err, "answers saved in .*growing.jsonl")
                said = err
            self.assertIn(f"interrupted after {n} of 120 questions", said)
            self.assertEqual(self.ok_json("eval", "--compare", file, file, "-K", 2)["n"], n)
            self.assertEqual([path.name for path in self.work.iterdir() if path.name.startswith(".")], [])

    def wait_for(self, condition, process):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            time.sleep(0.002)

    def test_a_file_that_cannot_grow_costs_no_score(self):
        file = self.work / "p.jsonl"
        command = [BIN, *map(str, self.evaluate("-K", "0-2", "--batch-size", 1, "--latency-samples", 0, "--predictions", file))]
        done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)))  # as a full disk
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("sidecar.gguf |"), 3, "a row for each K")
        n = len(file.read_text().splitlines())
        self.assertTrue(0 < n < 30 and n % 3 == 0)
        self.assertIn(f"hint: {n} of 30 predictions were written", done.stderr)
        for line in file.read_text().splitlines():
            json.loads(line)

    def test_auto_stops_by_the_threshold_of_the_file(self):
        chosen = self.work / "chosen.gguf"
        # This model knows nothing, so that every threshold keeps its exactness: the one that stops first is chosen.
        choice = self.ok_json(*self.evaluate("--latency-samples", 0, "--calibrate-halting", chosen))
        self.assertEqual(choice["reference_K"], 3)
        self.assertGreater(choice["halt_cosine"], 0)
        self.assertLessEqual(choice["steps"], 8)
        report = self.ok_json("eval", "-m", self.model.base, "--sidecar", chosen, "--data", self.data, "--limit", 10, "-n", 4,
                              "-K", "auto", "--latency-samples", 2, "--predictions", self.work / "auto.jsonl")
        row = report["results"][0]
        self.assertEqual((row["K"], row["n"]), ("auto", 10))
        self.assertAlmostEqual(row["steps"], choice["steps"])
        self.assertAlmostEqual(row["em"], choice["em"])
        rows = [json.loads(line) for line in (self.work / "auto.jsonl").read_text().splitlines()]
        self.assertAlmostEqual(sum(r["steps"] for r in rows) / 10, row["steps"])
        self.assertEqual(run("eval", "--compare", self.work / "auto.jsonl", self.work / "auto.jsonl").returncode, 0)
        one = self.ok_json("run", "-m", self.model.base, "--sidecar", chosen, "-K", "auto", "-p", "x", "-n", 1)
        self.assertLessEqual(one["K"], 8)
        self.error(1, "chosen.gguf", *self.evaluate("--latency-samples", 0, "--calibrate-halting", chosen))
        self.error(2, "--calibrate-halting: ", *self.evaluate("-K", 2, "--calibrate-halting", self.work / "b.gguf"))

    def test_answers_from_the_memory_of_another_question(self):
        def texts(*args):
            file = self.work / f"{len(args)}.jsonl"
            self.ok(*self.evaluate("-K", "2", "--latency-samples", 0, "--batch-size", 2, "--predictions", file, *args))
            return [json.loads(line)["text"] for line in file.read_text().splitlines()]

        own, other = texts(), texts("--swap-latents")
        self.assertEqual(len(other), 10)
        self.assertNotEqual(own, other)
        alone = run(*self.evaluate("--batch-size", 1, "--swap-latents"))
        self.assertEqual(alone.returncode, 2)
        self.assertIn("single question", alone.stderr)

    def test_comparison_of_two_files(self):
        file, other = self.work / "a.jsonl", self.work / "b.jsonl"
        self.ok(*self.evaluate("-K", "0-2", "--predictions", file))
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        same = self.ok_json("eval", "--compare", file, file, "-K", 1)
        self.assertEqual((same["n"], same["difference"], same["low"], same["high"]), (10, 0, 0, 0))
        for row in rows:
            row["correct"] = row["K"] == 1 and not row["id"].endswith("3")
        other.write_text("".join(json.dumps(row) + "\n" for row in rows))
        n_right = sum(row["correct"] for row in map(json.loads, file.read_text().splitlines()) if row["K"] == 1)
        n_other = sum(row["correct"] for row in rows)
        better = self.ok_json("eval", "--compare", file, "--compare", other, "-K", 1)
        self.assertAlmostEqual(better["difference"], (n_other - n_right) / 10)
        self.assertTrue(better["low"] <= better["difference"] <= better["high"])
        self.assertEqual(better["K"], [[1], [1]])
        self.assertIn("second (K=1) minus first (K=1)", self.ok("eval", "--compare", file, other, "-K", 1).stdout)
        # The K of the file was not scored: to compare at the best of the others would be to choose on these questions.
        self.error(2, "the default K=3 was not evaluated", "eval", "--compare", file, other)

        self.error(2, "two prediction files", "eval", "--compare", file)
        self.error(2, "-K must be one number", "eval", "--compare", file, other, "-K", "0-2")
        self.error(2, "K=7", "eval", "--compare", file, other, "-K", 7)
        self.error(2, "unexpected argument", *self.evaluate(), other)
        other.write_text("".join(json.dumps(row) + "\n" for row in rows[3:]))
        self.error(2, "have different questions", "eval", "--compare", file, other, "-K", 1)
        other.write_text("".join(json.dumps(row | {"question": "Evaluate: [MIN 1 2]"}) + "\n" for row in rows))
        self.error(2, "have different questions", "eval", "--compare", file, other, "-K", 1)
        self.error(1, "is a directory", "eval", "--compare", file, self.work, "-K", 1)
        other.write_text(file.read_text() * 2)
        self.error(1, "duplicate id", "eval", "--compare", file, other, "-K", 1)
        other.write_text("")
        self.error(1, "empty", "eval", "--compare", file, other, "-K", 1)

    def test_mean_and_deviation_over_runs(self):
        lora = self.work / "lora.gguf"
        self.ok("export", self.model.sidecar, "--as", "lora", "-o", lora)
        common = ("--data", self.data, "--limit", 10, "-n", 4, "--latency-samples", 0)
        done = self.ok("eval", "-m", self.model.base, "--sidecars", f"{self.model.sidecar},{self.model.sidecar}", *common, "--json")
        runs = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(runs), 2)
        at_default = [row["em"] for row in runs[0]["results"] if row["K"] == runs[0]["default_K"]]
        self.assertEqual(runs[1]["all_runs"], {"runs": 2, "em_mean": at_default[0], "em_sd": 0.0})
        # A LoRA is a run as well, one that thinks visibly.
        mixed = self.ok("eval", "-m", self.model.base, "--sidecars", lora, "--sidecars", lora, *common)
        self.assertIn("2 runs, each at its own K", mixed.stdout)
        self.assertEqual(mixed.stdout.count("lora.gguf |"), 2)
        self.assertIn(" a token ", mixed.stdout)
        self.assertEqual([run["model"] for run in runs], [str(self.model.sidecar)] * 2)
        self.assertIn("not all of these K were evaluated", self.ok("eval", "-m", self.model.base, "--sidecars", f"{self.model.sidecar},{self.model.sidecar}",
                                                                *common, "-K", "0-1").stdout)
        base = ("eval", "-m", self.model.base, *common)
        self.error(2, "empty file name", *base, "--sidecars", f"{lora},,{lora}")
        self.error(2, "cannot be combined", *base, "--sidecars", lora, "--sidecar", self.model.sidecar)
        self.error(1, "none.gguf", *base, "--sidecars", f"{lora},none.gguf")

    def test_time_left_on_a_terminal(self):
        with Pty(*self.evaluate()) as terminal:
            terminal.expect(r"\d+ % of 10 questions, [^\r\n]* left")
            self.assertEqual(terminal.wait(), 0)

    def test_a_table_for_people(self):
        result = run(*self.evaluate())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("| K |".replace(" ", ""), result.stdout.replace(" ", ""))
        self.assertIn("baselines:", result.stdout)
        self.assertIn("answers were truncated", result.stdout)  # four tokens are too few

    def test_a_question_that_does_not_fit_is_named_before_the_others_are_asked(self):
        long = self.work / "long.jsonl"
        deep = "[MAX 1 " * 60 + "2" + "]" * 60
        long.write_text(self.data.read_text() + json.dumps({"id": "deep", "question": f"Evaluate: {deep}", "steps": [], "answer": "2"}) + "\n")
        self.error(2, "question 'deep'.*no room", "eval", "-m", self.model.base, "--sidecar", self.model.sidecar, "--data", long, "-c", 200)

    def test_bad_input(self):
        empty = self.work / "empty.jsonl"
        empty.write_text("")
        broken = self.work / "broken.jsonl"
        broken.write_text('{"id": "a", "question": "Evaluate: [MAX 1 2]", "steps": [], "answer": "2"}\n{"id": \n')
        wrong = self.work / "wrong.jsonl"
        wrong.write_text('{"id": "a", "question": "Evaluate: [MAX 1 2]", "steps": [], "answer": "two"}\n')
        twice = self.work / "twice.jsonl"
        twice.write_text('{"id": "a", "question": "Evaluate: [MAX 1 2]", "steps": [], "answer": "2"}\n{"id": "a", "question": "Evaluate: [MIN 1 2]", "steps": [], "answer": "1"}\n')
        base = ("eval", "-m", self.model.base, "--sidecar", self.model.sidecar)
        for args, said in ((("--data", empty), "empty"), (("--data", broken), "line 2"), (("--data", wrong, "--task", "listops"), "'two' is not a valid answer of task listops"),
                           (("--data", self.work / "none.jsonl"), "none.jsonl"), (("--data", twice), "duplicate id 'a'"), (("--data", wrong, "--match", "number"), "'two' has no number")):
            self.error(1, said, *base, *args)
        for args, said in ((("-K", 9), "0 to 8"), (("-K", "5-9"), "0 to 8"), (("--cot", "--ignore-mismatch", "-K", 3), "takes no latent steps")):
            self.error(2, said, *base, "--data", self.data, *args)
        self.error(2, "--match", *base, "--data", self.data, "--task", "listops", "--match", "number")
        self.error(2, "chess", *base, "--data", self.data, "--task", "chess")
        # Refused before the questions are asked: nothing was loaded, so a base that is none does not matter.
        self.error(1, "wrong.jsonl.*exists", "eval", "-m", empty, "--data", self.data, "--predictions", wrong)


if __name__ == "__main__":
    unittest.main()
