"""Data of one's own: any answer, prefix and template, from training to chat, and files that know how their model is asked."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import BIN, ModelTest, TESTS, clean_environment, run

SHAPE = 'name = "tiny"\nlayers = 2\nwidth = 32\nheads = 2\nffn = 64\ncontext = 256\n'
MODELS = TESTS.parent / "models"
WEAVE = MODELS / "weave-1M-Q8_0.gguf"
SIDECAR = MODELS / "weave-1M-listops-penelope-Q8_0.gguf"
LORA = MODELS / "weave-1M-listops-cot-lora-F16.gguf"
QUESTION = "Evaluate: [MAX 3 [MIN 4 7] 2]"


def ok(*args, **kwargs):
    done = run(*args, **kwargs)
    assert done.returncode == 0, done.stderr or done.stdout
    return done


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class OwnData(unittest.TestCase):
    """A backbone of its own that answers everything with the same words, learned in a second."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = Path(folder.name)
        (cls.root / "shape.toml").write_text(SHAPE)
        cls.data = cls.root / "data"
        cls.data.mkdir()
        rows = [{"question": f"language {i}", "steps": ["I know"], "answer": "C#\nthe sharp one"} for i in range(8)]
        write_lines(cls.data / "train.jsonl", rows)
        write_lines(cls.data / "valid.jsonl", rows[:4])
        cls.result = json.loads(cls.train("full", "--init-random", cls.root / "shape.toml", "--full", "--method", "cot", "--updates", 60, "--lr", "1e-2").stdout)
        cls.base = cls.root / "full" / "model.gguf"

    @classmethod
    def train(cls, out, *args):
        return ok("train", *args, "--data", cls.data, "--out", cls.root / out, "--batch-size", 4, "--eval-every", 0, "-n", 32,
                  "--prompt-template", "Which {question}?", "--answer-prefix", "Answer: ", "--json")

    def em(self, answer, *args):
        data = write_lines(self.root / "test.jsonl", [{"question": f"language {i}", "steps": [], "answer": answer} for i in range(4)])
        return json.loads(ok("eval", *args, "--data", data, "--latency-samples", 0, "--json").stdout)

    def test_validation_reads_what_follows_the_files_own_prefix(self):
        self.assertEqual(self.result["exact_by_K"], [1.0])

    def test_scores_are_of_the_whole_answer(self):
        for answer, em in (("C#\nthe sharp one", 1.0), ("F#\nthe sharp one", 0.0), ("C#\nthe other one", 0.0), ("C#", 0.0)):
            report = self.em(answer, "-m", self.base)
            self.assertEqual((report["task"], report["results"][0]["em"]), ("generic", em), answer)
        self.assertEqual(report["chance"], [{"how": "majority baseline", "em": 1.0}])
        self.assertEqual(report["over_chance"]["difference"], -1.0)
        self.assertEqual(self.em("c#", "-m", self.base, "--match", "choice")["results"][0]["em"], 1.0)

    def test_a_trained_file_is_asked_as_it_was_trained(self):
        answer = "I know\nAnswer: C#\nthe sharp one\n"
        self.assertEqual(ok("run", "-m", self.base, "-p", "language 5", "-n", 40).stdout, answer)
        self.assertEqual(ok("chat", "-m", self.base, "-n", 40, stdin="language 5\n").stdout, answer)
        self.train("lora", "-m", self.base, "--method", "cot", "--updates", 2, "--lora-rank", 2)
        lora = self.root / "lora" / "model.gguf"
        keys = json.loads(ok("info", lora, "--json").stdout)["metadata"]
        self.assertEqual((keys["penelope.prompt_template"], keys["penelope.answer_prefix"]), ("Which {question}?", "Answer: "))
        self.assertEqual(self.em("C#\nthe sharp one", "-m", self.base, "--lora", lora)["results"][0]["em"], 1.0)
        line = json.loads(ok("run", "-m", self.base, "--lora", lora, "--batch", "-", "-n", 40, stdin='{"question": "language 5"}\n').stdout)
        self.assertEqual(line["text"], answer[:-1])
        # A latent stage goes on with the template of the file it starts from.
        plan = json.loads(ok("train", "-m", self.base, "--method", "penelope", "--init", lora, "--data", self.data, "--out", self.root / "no", "--dry-run", "--json").stdout)
        self.assertEqual(plan["sample"]["prompt"][-1], "?")

    def test_latent_steps_are_asked_for_what_the_written_ones_lead_to(self):
        latent = ("-m", self.base, "--method", "penelope", "--lora-rank", 2, "--updates", 60, "--latent-steps", 1, "--step-loss", 1, "--lr", "1e-2,1e-2")
        self.train("asked", *latent)
        rows = [json.loads(line) for line in (self.root / "asked" / "metrics.jsonl").read_text().splitlines()]
        losses = [row["step_loss"] for row in rows if "step_loss" in row]
        self.assertLess(losses[-1], 0.1 * losses[0])
        trace = self.root / "trace.jsonl"
        ok("run", "-m", self.base, "--sidecar", self.root / "asked" / "model.gguf", "-p", "language 5", "-K", 1, "--trace", trace)
        step = json.loads(trace.read_text().splitlines()[-1])
        self.assertEqual("".join(row[0]["text"] for row in step["features"]["top"][:5]), " know", step)
        checked = json.loads(ok("data", "check", self.data / "train.jsonl", "--json").stdout)
        self.assertEqual(checked["first"]["results"], [" know", " C#\nthe sharp one"])

        bare = self.root / "bare"
        bare.mkdir()
        write_lines(bare / "train.jsonl", [{"question": "Q", "answer": "A"}])
        done = run("train", *latent, "--data", bare, "--out", self.root / "no")
        self.assertEqual((done.returncode, "no example has steps" in done.stderr), (2, True), done.stderr)

    def test_own_true_or_false_questions_are_no_prontoqa(self):
        rows = [{"question": f"Town {i} is old. True or false: Town {i} is new.", "steps": ["old is not new"], "answer": ("False", "True")[i % 2]} for i in range(12)]
        folder = self.root / "truth"
        folder.mkdir()
        data = write_lines(folder / "all.jsonl", rows)
        checked = json.loads(ok("data", "check", data, "--json").stdout)
        self.assertEqual((checked["task"], checked["task_reason"]), ("generic", "the data is that of no built-in task"))
        self.assertIn("task       generic: the data is that of no built-in task\n", ok("data", "check", data).stdout)
        self.assertEqual(json.loads(ok("data", "check", data, "--task", "prontoqa", "--json").stdout)["task"], "prontoqa")
        ok("data", "split", data, "--out", folder / "parts")
        self.assertEqual(json.loads((folder / "parts" / "audit.json").read_text())["task"], "generic")
        plan = ("train", "-m", self.base, "--method", "penelope", "--data", folder / "parts", "--out", folder / "run", "--dry-run", "--json")
        done = ok(*plan)
        self.assertIn("task generic: the data is that of no built-in task\n", done.stderr)
        self.assertEqual(sum(stage["updates"] for stage in json.loads(done.stdout)["stages"]), 1500, "not PrOntoQA's 3000")
        done = ok(*plan, "--task", "prontoqa")
        self.assertIn("task prontoqa: given by --task\n", done.stderr)
        self.assertEqual(sum(stage["updates"] for stage in json.loads(done.stdout)["stages"]), 3000)
        done = ok("eval", "-m", self.base, "--data", data, "--latency-samples", 0, "--task", "prontoqa", "--json", "--predictions", folder / "p.jsonl")
        self.assertEqual(json.loads(done.stdout)["task"], "prontoqa")
        self.assertIn("task prontoqa: given by --task\n", done.stderr)
        report = json.loads(ok("report", folder / "p.jsonl", "--out", folder / "report", "--json").stdout)
        self.assertIn("Task: prontoqa", (folder / "report" / "report.md").read_text(), report)

    def test_a_built_in_task_is_recognized_and_said(self):
        folder = self.root / "built-in"
        for task in ("listops", "prosqa", "prontoqa", "thread"):
            ok("data", task, "--out", folder / task, "--train", 20, "--valid", 4, "--test", 4)
            checked = json.loads(ok("data", "check", folder / task / "train.jsonl", "--json").stdout)
            self.assertEqual(checked["task"], task)
            self.assertRegex(checked["task_reason"], "^every question .*; --task generic")
            self.assertEqual(json.loads(ok("data", "check", folder / task / "train.jsonl", "--task", "generic", "--json").stdout)["task"], "generic")
        audit = json.loads(ok("data", "audit", folder / "listops", "--task", "generic", "--json").stdout)
        self.assertEqual(audit["task"], "generic")
        done = run("data", "listops", "--task", "prosqa", "--out", folder / "no")
        self.assertEqual((done.returncode, "--task: only for check, split and audit" in done.stderr), (2, True), done.stderr)

    def test_one_learning_rate_is_for_all_parameters(self):
        lines = []
        for name, lr in (("one", "1e-2"), ("two", "1e-2,1e-2")):
            self.train(f"lr-{name}", "-m", self.base, "--method", "penelope", "--lora-rank", 2, "--updates", 1, "-K", 1, "--lr", lr)
            config = (self.root / f"lr-{name}" / "config.toml").read_text()
            lines.append([line for line in config.splitlines() if line.startswith("lr =")])
        self.assertEqual(lines[0], lines[1])
        self.assertEqual(len(lines[0]), 1)


class PromptFormat(ModelTest):
    def test_a_lora_without_a_template_says_so_once(self):
        lora = self.work / "lora.gguf"
        self.ok("convert", TESTS / "golden" / "last" / "lora", "--base", self.model.base, "-o", lora)
        done = self.ok("run", "-m", self.model.base, "--lora", lora, "-p", "x", "-n", 1)
        self.assertEqual(done.stderr.count("LoRA has no prompt template"), 1)
        done = self.ok("run", "-m", WEAVE, "--lora", LORA, "-p", "x", "-n", 1)
        self.assertNotIn("no prompt template", done.stderr)

    def test_an_exported_lora_keeps_the_template(self):
        self.ok("export", self.model.sidecar, "--as", "lora", "-o", self.work / "lora.gguf")
        keys = self.ok_json("info", self.work / "lora.gguf")["metadata"]
        self.assertIn("{question}", keys["penelope.prompt_template"])


class Shipped(ModelTest):
    def test_visible_steps_only_where_the_file_says_so(self):
        asked = ("run", "-m", WEAVE, "--sidecar", SIDECAR, "-p", QUESTION, "--cot")
        self.error(2, "--cot: this sidecar's LoRA was not trained on CoT", *asked)
        self.error(2, "was not trained on CoT", "eval", "-m", WEAVE, "--sidecar", SIDECAR, "--cot", "--data",
                   write_lines(self.work / "q.jsonl", [{"question": QUESTION, "steps": [], "answer": "4"}]))
        self.ok(*asked, "--ignore-mismatch")
        for flag in ("--trace", "--dump"):
            self.error(2, f"{flag} and --cot: exclude each other", *asked, flag, self.work / "file")

    def test_changed_weights_are_refused(self):
        merged, small = self.work / "merged.gguf", self.work / "small.gguf"
        self.ok("export", LORA, "-m", WEAVE, "--as", "merged", "-o", merged)
        # The merged model has the prompt template of the LoRA.
        self.assertEqual(self.ok("run", "-m", merged, "-p", QUESTION).stdout, self.ok("run", "-m", WEAVE, "--lora", LORA, "-p", QUESTION).stdout)
        self.ok("quantize", WEAVE, small, "Q4_0", "--allow-requantize")
        self.ok("run", "-m", small, "--sidecar", SIDECAR, "-p", QUESTION)
        self.error(1, "weights of this base are not those", "run", "-m", merged, "--sidecar", SIDECAR, "-p", QUESTION)
        self.ok("quantize", merged, self.work / "merged-small.gguf", "Q4_0", "--allow-requantize")
        self.error(1, "weights of this base are not those", "run", "-m", self.work / "merged-small.gguf", "--sidecar", SIDECAR, "-p", QUESTION)
        done = self.ok("run", "-m", merged, "--sidecar", SIDECAR, "-p", QUESTION, "--ignore-mismatch")
        self.assertIn("weights of this base are not those", done.stderr)

    def test_weights_quantized_by_importance_are_the_same(self):
        text = self.work / "text.txt"
        text.write_text("Evaluate: [MAX 3 [MIN 4 7] 2]\n### 4\n" * 40)
        for kind in ("Q4_0", "Q4_1", "Q5_0"):
            small = self.work / f"{kind}.gguf"
            self.ok("quantize", WEAVE, small, kind, "--allow-requantize", "--imatrix", text)
            self.assertEqual(self.ok_json("info", small)["metadata"]["quantize.imatrix.file"], "text.txt")
            self.ok("run", "-m", small, "--sidecar", SIDECAR, "-p", QUESTION)
        text.write_text(" \n")
        self.error(2, "--imatrix: .*text.txt is empty", "quantize", WEAVE, self.work / "no.gguf", "Q4_0", "--allow-requantize", "--imatrix", text)

    def test_a_closed_stdout_takes_no_file(self):
        trace = self.work / "t.jsonl"
        command = f'"{BIN}" run -m "{WEAVE}" --sidecar "{SIDECAR}" -p "{QUESTION}" --trace "{trace}" >&-'
        done = subprocess.run(["sh", "-c", command], env=clean_environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)
        self.assertFalse(trace.exists())

    def test_each_line_of_a_batch_has_its_own_time(self):
        rows = [{"question": QUESTION}, {"question": "Evaluate: [MAX 1 2]"}]
        done = self.ok("run", "-m", WEAVE, "--sidecar", SIDECAR, "--batch", write_lines(self.work / "q.jsonl", rows))
        long, short = map(json.loads, done.stdout.splitlines())
        self.assertAlmostEqual(long["timings"]["prompt_ms"] / short["timings"]["prompt_ms"], long["prompt_tokens"] / short["prompt_tokens"], places=2)


if __name__ == "__main__":
    unittest.main()
