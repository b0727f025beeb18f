"""Small things people rely on: contradictions are refused, files are named for what they are, failures are JSON where that was asked for."""

import json
import os
import resource
import subprocess
import threading
import unittest

from support import BIN, ModelTest, TESTS, clean_environment, run

MODELS = TESTS.parent / "models"
BASE = MODELS / "weave-1M-Q8_0.gguf"
SIDECAR = MODELS / "weave-1M-listops-penelope-Q8_0.gguf"
QUESTION = "Evaluate: [MAX 3 [MIN 4 7] 2]"
LORA = MODELS / "weave-1M-listops-cot-lora-F16.gguf"


class Habits(ModelTest):
    def test_contradictions(self):
        self.error(2, "--quiet and --verbose", "run", "-m", BASE, "-p", "x", "-q", "-v")
        same = self.work / "file"
        self.error(2, "--trace and --dump: same file name", "run", "-m", BASE, "--sidecar", SIDECAR, "-p", "x", "--trace", same, "--dump", same)
        self.error(2, "--updates and --epochs", "train", "-m", BASE, "--method", "cot", "--data", self.work, "--out", self.work / "run", "--updates", 3, "--epochs", 1)

    def test_an_adapter_in_the_place_of_the_backbone(self):
        self.error(2, "is a LoRA, not a backbone.*\nhint: .*--lora", "run", "-m", LORA, "-p", "x")

    def test_failures_are_json_however_it_was_asked_for(self):
        config = self.work / "config.toml"
        config.write_text("json = true\n")
        missing = ("run", "-m", self.work / "none.gguf", "-p", "x")
        for args, env in ((("--json",), {}), ((), {"PENELOPE_JSON": "1"}), (("--config", config), {}), (("--no-such-flag",), {"PENELOPE_JSON": "yes"}),
                          (("--config", config, "--no-such-flag"), {}), (("--top-k", "many"), {"PENELOPE_CONFIG": str(config)}), ((f"--config={config}", "-K", "x"), {})):
            done = run(*missing, *args, env=env)
            wrong = json.loads(done.stdout)
            self.assertEqual((wrong["status"], done.stderr), ("error", ""), args)
            self.assertEqual(done.returncode, 2 if wrong["kind"] == "usage" else 1)
        # The stronger source decides.
        self.assertEqual(run(*missing, "--config", config, "--no-such-flag", env={"PENELOPE_JSON": "false"}).stdout, "")
        config.write_text("json = true\nno-such-key = 1\n")
        self.assertIn("no-such-key", json.loads(run(*missing, "--config", config).stdout)["message"])

    def test_a_config_from_a_pipe(self):
        pipe = self.work / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=lambda: pipe.write_text("json = true\npredict = 2\n"), daemon=True)
        writer.start()
        done = self.ok("run", "--config", pipe, "-m", BASE, "-p", QUESTION)
        self.assertEqual(len(json.loads(done.stdout)["tokens"]), 2)
        read, write = os.pipe()
        os.write(write, b"predict = 3\njson = true\n")
        os.close(write)
        done = subprocess.run([BIN, "run", "-m", BASE, "-p", QUESTION, "--config", f"/dev/fd/{read}"], env=clean_environment(), capture_output=True, text=True, pass_fds=(read,))
        os.close(read)
        self.assertEqual(len(json.loads(done.stdout)["tokens"]), 3, done.stderr)

    def test_wrong_usage_is_2_also_where_only_the_files_can_tell(self):
        latent = ("-m", BASE, "--sidecar", SIDECAR)
        data = self.work / "data"
        self.ok("data", "listops", "--out", data, "--train", 2, "--valid", 2, "--test", 2, "--depth", "1-2")
        config = self.work / "deep.toml"
        config.write_text("latent-steps = 20\n")
        ask = ("run", *latent, "-p", QUESTION)
        train = ("train", "-m", BASE, "--method", "penelope", "--data", data, "--out", self.work / "run")
        for args, env in (((*ask, "-K", 20), {}), (ask, {"PENELOPE_LATENT_STEPS": "20"}), ((*ask, "--config", config), {}),
                          (("chat", *latent, "-K", 20), {}), (("eval", *latent, "--data", data / "test.jsonl", "-K", "0-20"), {}),
                          (("run", "-m", BASE, "-p", "x", "-K", 2), {}), (("run", "-m", BASE, "-p", "x", "--cot"), {}), ((*ask, "--cot"), {}),
                          ((*ask, "-c", 100000), {}), (("run", "-m", BASE, "-p", QUESTION * 200), {}), ((*ask, "--device", "abacus"), {}),
                          (("run", "-m", BASE, "-p", "x", "--trace", self.work / "t"), {}), (("run", "-m", SIDECAR, "-p", "x"), {}),
                          (("data", "foo", "--out", self.work / "d"), {}), (("data", "listops", "--depth", 0, "--out", self.work / "d"), {}),
                          (("data", "split", data / "train.jsonl", "--split", "half", "--out", self.work / "d"), {}),
                          ((*train, "--interval", "2:99"), {}), ((*train, "--latent-steps", 9, "--k-max", 3), {}), ((*train, "--init", BASE), {}),
                          (("train", "--resume", "--out", self.work / "nothing"), {}),
                          (("bench", "-m", BASE, "--prompt", 100000), {}), (("bench", "--shape", "llama-3.2-1b", "--type", "Q17"), {}),
                          (("quantize", BASE, self.work / "q.gguf", "Q17"), {}), (("quantize", BASE, self.work / "q.gguf", "Q4_0"), {}),
                          (("export", SIDECAR, "--as", "merged", "-o", self.work / "e.gguf"), {}), (("info", self.work), {})):
            done = run(*args, env=env)
            self.assertEqual((done.returncode, done.stdout), (2, ""), (args, done.stderr))
            self.assertRegex(done.stderr, r"^(task [^\n]+\n)?error: [^\n]+: [^\n]+\n(hint: [^\n]+\n)?$")
            self.assertEqual(json.loads(run(*args, "--json", env=env).stdout)["kind"], "usage", args)
        self.assertEqual(sorted(path.name for path in self.work.iterdir()), ["data", "deep.toml"])

    def test_bench_takes_what_a_short_context_has_room_for(self):
        rows = json.loads(self.ok("bench", "-m", BASE, "-r", 1, "-o", "json").stdout)
        context = json.loads(self.ok("info", BASE, "--json").stdout)["metadata"]["llama.context_length"]
        self.assertLessEqual(context, 512, "and a row for the first new token")
        self.assertEqual([row["test"] for row in rows], [f"pp{context - 1}", "tg64"])
        self.assertEqual(json.loads(self.ok("bench", "-m", BASE, "-r", 1, "--prompt", 4, "--gen", 0, "--json").stdout)["status"], "ok")

    def test_files_compared_each_at_its_own_K(self):
        self.ok("data", "listops", "--out", self.work / "data", "--train", 0, "--valid", 0, "--test", 8, "--depth", "1-2")
        latent, visible = self.work / "latent.jsonl", self.work / "visible.jsonl"
        asked = ("eval", "-m", BASE, "--data", self.work / "data" / "test.jsonl", "--latency-samples", 0)
        self.ok(*asked, "--sidecar", SIDECAR, "-K", "0-2", "--predictions", latent)
        self.ok(*asked, "--lora", LORA, "--predictions", visible)
        self.assertEqual(self.ok_json("eval", "--compare", f"{latent}@K=0", f"{latent}@K=2")["K"], [[0], [2]])
        self.assertIn("second (visible steps) minus first (K=1)", self.ok("eval", "--compare", f"{latent}@K=1", visible).stdout)
        self.error(2, "not a number of latent steps", "eval", "--compare", f"{latent}@K=x", visible)

    def test_scores_are_shown_though_the_file_cannot_be_written(self):
        self.ok("data", "listops", "--out", self.work / "data", "--train", 0, "--valid", 0, "--test", 2, "--depth", "1")
        command = [BIN, "eval", "-m", BASE, "--sidecar", SIDECAR, "--data", self.work / "data" / "test.jsonl", "--latency-samples", 0, "--predictions", self.work / "p.jsonl"]
        done = subprocess.run([str(part) for part in command], env=clean_environment(), capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))  # as a full disk
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("baselines", done.stdout)
        self.assertFalse((self.work / "p.jsonl").exists())


if __name__ == "__main__":
    unittest.main()
