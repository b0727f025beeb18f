"""penelope bench: the rows, their forms, and what it refuses."""

import csv
import io
import json
import signal
import subprocess
import unittest

from support import BIN, ModelTest, clean_environment

COLUMNS = ["test", "method", "K", "ms", "sd", "tokens_per_second", "layer_applications", "threads", "device", "model", "type"]


class BenchTest(ModelTest):
    def rows(self, *args):
        return json.loads(self.ok("bench", *args, "-r", 2, "-o", "json").stdout)

    def test_plain_rows(self):
        rows = self.rows("-m", self.model.base, "--prompt", 16, "--gen", 4)
        self.assertEqual([row["test"] for row in rows], ["pp16", "tg4"])
        for row in rows:
            self.assertEqual(list(row)[:len(COLUMNS)], COLUMNS)
            self.assertEqual((row["method"], row["K"], row["threads"], row["device"], row["type"]), ("plain", 0, 1, "CPU", "F32"))
            self.assertGreater(row["ms"], 0)
            self.assertEqual(len(row["samples_ms"]), 2)
        self.assertEqual(rows[0]["layer_applications"], 6)

    def test_methods(self):
        rows = self.rows("-m", self.model.base, "--sidecar", self.model.sidecar, "--methods", "penelope:3,cot:5", "--prompt", 12)
        self.assertEqual([(row["test"], row["method"], row["K"]) for row in rows],
                         [("latent", "penelope", 3), ("answer", "penelope", 3), ("answer", "cot", 0)])
        self.assertEqual(rows[0]["layer_applications"], self.model.expected["layer_applications"]["3"])

    def test_methods_no_file_brings(self):
        rows = self.rows("-m", self.model.base, "--methods", "penelope:2,coconut:2", "--interval", "4:6", "--prompt", 12, "--phases")
        latent = {(row["method"], row["K"]): row["layer_applications"] for row in rows if row["test"] == "latent"}
        self.assertEqual(latent, {("penelope", 2): 12, ("penelope", 0): 8, ("coconut", 2): 24, ("coconut", 0): 12})
        self.assertEqual([row["test"] for row in rows if row["method"] == "plain"], ["rows1", "rows2", "rows4", "rows8", "rows16"])

    def test_forecast(self):
        rows = self.rows("-m", self.model.base, "--methods", "penelope:2,coconut:4", "--interval", "4:6", "--prompt", 12, "--phases")
        costs = {int(row["test"][4:]): row["ms"] for row in rows if row["test"].startswith("rows")}
        forecast = {row["method"]: row for row in rows if row["test"] == "forecast"}
        # Two refinements of eight rows and a final pass of ten through two layers; five rows one by one through six.
        ten = costs[8] + (costs[16] - costs[8]) * 2 / 8
        self.assertAlmostEqual(forecast["penelope"]["ms"], 2 * (2 * costs[8] + ten), places=5)
        self.assertAlmostEqual(forecast["coconut"]["ms"], 6 * 5 * costs[1], places=5)
        self.assertEqual((forecast["penelope"]["layer_applications"], forecast["coconut"]["layer_applications"]), (6, 30))
        noted = self.ok("bench", "-m", self.model.base, "--prompt", 4, "--gen", 0, "-r", 1, "--phases", "-v").stderr
        self.assertRegex(noted, r"predicted time after the prompt: penelope K=6 .* coconut K=6 .* 8 rows cost less than 3.00 times one row")

    def test_forms(self):
        args = ("bench", "-m", self.model.base, "--prompt", 4, "--gen", 0, "-r", 1)
        self.assertRegex(self.ok(*args).stdout, r"^\| test +\| method .*\n\|-+\|")
        table = list(csv.DictReader(io.StringIO(self.ok(*args, "-o", "csv").stdout)))
        self.assertEqual(table[0]["test"], "pp4")
        self.assertEqual(self.ok_json(*args)["rows"][0]["test"], "pp4")

    def test_ctrl_c_in_json(self):
        process = subprocess.Popen([BIN, "bench", "-m", str(self.model.base), "-r", "1000", "--json", "-v"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=clean_environment())
        self.addCleanup(process.stderr.close)
        while b"loaded in" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        self.assertEqual(json.loads(process.stdout.read())["kind"], "cancelled")
        self.assertEqual(process.wait(timeout=30), 130)
        process.stdout.close()

    def test_wrong_requests(self):
        self.error(2, "exactly one of --model and --shape", "bench")
        for shape in ("llama-3.2-1b", "qwen2.5-0.5b", "qwen3-0.6b", "qwen3.5-0.8b", "gemma-3-270m", "smollm3-3b", "granite-3.3-2b", "phi-4-mini"):
            self.error(2, shape, "bench", "--shape", "nothing")
        self.error(2, "METHOD:COUNT", "bench", "-m", self.model.base, "--methods", "penelope")
        self.error(2, "S:E", "bench", "-m", self.model.base, "--methods", "penelope:1", "--interval", "4")
        self.error(2, "interval", "bench", "-m", self.model.base, "--methods", "penelope:1", "--interval", "4:9")
        self.error(2, "magic", "bench", "-m", self.model.base, "--methods", "magic:1")
        self.error(2, "nothing to measure", "bench", "-m", self.model.base, "--prompt", 0, "--gen", 0)
        for option in ("--prompt", "--gen"):
            self.error(2, f"{option}: '4294967297' must be between 0 and ", "bench", "-m", self.model.base, option, 4294967297)
        self.error(2, "512", "bench", "-m", self.model.base, "--prompt", 600)
        self.error(2, "coconut", "bench", "-m", self.model.base, "--sidecar", self.model.sidecar, "--methods", "coconut:1")


if __name__ == "__main__":
    unittest.main()
