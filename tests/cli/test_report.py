"""penelope report: the page and its charts from run folders and results, and what it refuses."""

import json
import unittest
import xml.dom.minidom

from support import ModelTest


def metrics(n_updates):
    lines = []
    for update in range(1, n_updates + 1):
        lines.append({"update": update, "K": 1, "u": 1, "loss": 3.0 / update, "ms": 100.0, "target_tokens": 50, "peak_memory": 1 << 20})
        if update % 10 == 0:
            lines.append({"update": update, "K": 1, "valid_loss": 3.5 / update, "valid_exact": update / 100, "valid_n": 10, "best": True})
    lines.append({"update": n_updates, "exact_by_K": [0.1, 0.4, 0.3], "k_default": 1, "valid_n": 10})
    return "".join(json.dumps(line) + "\n" for line in lines)


class ReportTest(ModelTest):
    def make_run(self, name, text):
        (self.work / name).mkdir()
        (self.work / name / "metrics.jsonl").write_text(text)
        return self.work / name

    def test_runs_and_results_on_one_page(self):
        self.ok("data", "listops", "--out", self.work / "data", "--train", 10, "--valid", 10, "--test", 24)
        scores = self.work / "scores.json"
        done = self.ok("eval", "-m", self.model.base, "--sidecars", f"{self.model.sidecar},{self.model.sidecar}", "--data", self.work / "data" / "test.jsonl",
                       "--limit", 6, "-n", 4, "-K", "0-3", "--latency-samples", 2, "--predictions", self.work / "predictions.jsonl", "--json")
        scores.write_text(done.stdout)
        first, second = self.make_run("first", metrics(20)), self.make_run("second & last", metrics(300))
        out = self.work / "out"
        result = self.ok_json("report", first, second, f"Two seeds={scores}", self.work / "predictions.jsonl", "-o", out)
        page = (out / "report.md").read_text()
        self.assertEqual(result["page"], str(out / "report.md"))
        self.assertIn("| Two seeds | 2 |", page)
        self.assertIn("| predictions | 2 |", page)
        self.assertIn("| first | 20 |", page)
        self.assertIn("| second & last | 300 |", page)
        self.assertEqual({path.name for path in out.iterdir()},
                         {"report.md", "loss.svg", "valid-loss.svg", "valid-exact.svg", "valid-depth.svg", "depth.svg", "latency.svg",
                          "question-depth.svg"})
        for chart in result["charts"]:
            with open(chart) as file:
                document = xml.dom.minidom.parse(file)
            self.assertEqual(document.documentElement.tagName, "svg")
        self.assertIn("Task: listops, 6 questions.", page)
        (out / "valid-depth.svg").unlink()
        self.error(1, "report.md|loss.svg|depth.svg", "report", first, "-o", out)
        self.assertFalse((out / "valid-depth.svg").exists(), "a refused report writes nothing")
        other = self.work / "other.json"
        other.write_text(done.stdout.replace('"n":6', '"n":7'))
        self.error(1, "other questions", "report", scores, other, "-o", self.work / "mixed")
        untimed = self.ok("eval", "-m", self.model.base, "--sidecar", self.model.sidecar, "--data", self.work / "data" / "test.jsonl", "--limit", 6, "-n", 4,
                          "--latency-samples", 0, "--json")
        other.write_text(untimed.stdout)
        charts = self.ok_json("report", other, "-o", self.work / "untimed")["charts"]
        self.assertNotIn("latency.svg", {chart.rsplit("/", 1)[1] for chart in charts})
        self.assertEqual(self.ok("report", first, "-o", out, "--force").stdout, str(out / "report.md") + "\n")

    def test_refusals(self):
        out = self.work / "out"
        good = self.make_run("good", metrics(3))
        self.error(2, "RUN|missing", "report", "-o", out)
        self.error(2, "--out", "report", good)
        self.error(1, "nowhere", "report", self.work / "nowhere", "-o", out)
        self.error(1, "no update logged yet", "report", good, self.make_run("empty", ""), "-o", out)
        self.error(1, "line 2", "report", self.make_run("damaged", metrics(1).splitlines()[0] + "\n{oops\n" + metrics(1)), "-o", out)
        self.error(1, "metrics.jsonl", "report", self.model.path, "-o", out)
        other = self.work / "other.json"
        other.write_text('{"x": 1}\n')
        self.error(1, "other.json, line 1", "report", other, "-o", out)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
