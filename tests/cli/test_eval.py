"""penelope eval: scores per K, predictions, comparison of two runs, and what it refuses."""

import json
import unittest

from support import ModelTest, run


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
        self.ok_json(*self.evaluate("-K", "0-2", "--batch", 1, "--predictions", single))
        texts = [(r["id"], r["K"], r["text"]) for r in map(json.loads, single.read_text().splitlines())]
        self.assertEqual(texts, [(r["id"], r["K"], r["text"]) for r in rows])

        again = run(*self.evaluate("-K", "0", "--predictions", file))
        self.assertEqual(again.returncode, 1)
        self.assertIn("predictions.jsonl", again.stderr)

        same = self.ok_json("eval", "--compare", file, "--compare", file, "-K", 1)
        self.assertEqual((same["n"], same["difference"], same["low"], same["high"]), (10, 0, 0, 0))
        self.assertEqual(run("eval", "--compare", file, "--compare", file).returncode, 1)  # which K?

    def test_a_table_for_people(self):
        result = run(*self.evaluate())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("| K |".replace(" ", ""), result.stdout.replace(" ", ""))
        self.assertIn("without reasoning:", result.stdout)

    def test_bad_input(self):
        empty = self.work / "empty.jsonl"
        empty.write_text("")
        broken = self.work / "broken.jsonl"
        broken.write_text('{"id": "a", "question": "Evaluate: [MAX 1 2]", "steps": [], "answer": "2"}\n{"id": \n')
        wrong = self.work / "wrong.jsonl"
        wrong.write_text('{"id": "a", "question": "Evaluate: [MAX 1 2]", "steps": [], "answer": "two"}\n')
        base = ("eval", "-m", self.model.base, "--sidecar", self.model.sidecar)
        for args, said in ((("--data", empty), "empty"), (("--data", broken), "line 2"), (("--data", wrong), "two"), (("--data", self.data, "-K", 9), "0 to 8"),
                           (("--data", self.data, "--task", "chess"), "chess"), (("--data", self.work / "none.jsonl"), "none.jsonl")):
            result = run(*base, *args)
            self.assertIn(result.returncode, (1, 2), said)
            self.assertIn(said, result.stderr)
            self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    unittest.main()
