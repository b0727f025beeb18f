"""penelope train from outside: runs, what they leave behind, stopping, killing and resuming, refusals."""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from support import BIN, clean_environment, Pty, run, TESTS, without_escapes

KILLS = int(os.environ.get("PENELOPE_TEST_KILLS", "2"))  # at least so many for each method
SHAPE = 'name = "tiny"\nlayers = 3\nwidth = 32\nheads = 2\nffn = 64\ncontext = 256\n'


FORCED = ("--latent-steps", 3, "--k-schedule", "uniform", "--step-loss", 0.5, "--teacher-forcing", 0.7, "--adaptive")


class Trained(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.root = Path(cls.dir.name)
        (cls.root / "shape.toml").write_text(SHAPE)
        made = run("data", "listops", "--out", cls.root / "data", "--train", 60, "--valid", 10, "--test", 10, "--depth", "1-2",
                   "--test-depth", "1-2")
        assert made.returncode == 0, made.stderr
        cls.base = cls.root / "base" / "model.gguf"
        cls.train_ok("--init-random", cls.root / "shape.toml", "--full", "--method", "cot", "--updates", 4, "--lr", "1e-3", out="base")
        cls.lora = cls.root / "cot" / "model.gguf"
        cls.train_ok("-m", cls.base, "--method", "cot", "--updates", 3, "--lora-rank", 4, "--name", "Visible steps", out="cot")

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    @classmethod
    def arguments(cls, *args, out):
        return ["train", *args, "--data", cls.root / "data", "--out", cls.root / out, "-n", 8, "--eval-limit", 4]

    @classmethod
    def train(cls, *args, out, **kwargs):
        return run(*cls.arguments(*args, out=out), **kwargs)

    @classmethod
    def train_ok(cls, *args, out):
        done = cls.train(*args, out=out)
        assert done.returncode == 0, done.stderr
        return done

    def latent(self, method, *args):
        return ("-m", self.base, "--method", method, "--init", self.lora, "--updates", 12, "--latent-steps", 2, "--batch-size", 2, *args)

    def metrics(self, out):
        return [json.loads(line) for line in (self.root / out / "metrics.jsonl").read_text().splitlines()]


class Runs(Trained):
    def test_the_run_folder_holds_what_explains_and_repeats_the_run(self):
        for method in ("penelope", "coconut"):
            done = self.train_ok(*self.latent(method, "--eval-every", 3, "--json"), out=method)
            result = json.loads(done.stdout)
            self.assertEqual(result["status"], "ok")
            self.assertEqual(len(result["exact_by_K"]), 3)
            self.assertEqual(result["exact_by_K"][result["k_default"]], max(result["exact_by_K"][1:]))
            folder = self.root / method
            for name in ("config.toml", "metrics.jsonl", "build.json", "model.gguf", "checkpoint/last.gguf", "checkpoint/best.gguf"):
                self.assertTrue((folder / name).is_file(), name)
            lines = self.metrics(method)
            updates = [line for line in lines if "loss" in line]
            self.assertEqual([line["update"] for line in updates], list(range(1, 13)))
            self.assertEqual([line["K"] for line in updates], [1] * 3 + [2] * 9)
            self.assertEqual([line["u"] for line in updates], [1] * 3 + [2] * 3 + ["answer"] * 6)
            scores = [line for line in lines if "valid_loss" in line]
            self.assertEqual([line["update"] for line in scores], [3, 6, 9, 12])
            self.assertEqual([line["best"] for line in scores][:2], [False, False], "best counts in the last stage only")
            self.assertTrue(scores[2]["best"])
            # The file is a sidecar that runs on the base.
            answer = run("run", "-m", self.base, "--sidecar", folder / "model.gguf", "-p", "Evaluate: [MAX 1 2]", "-n", 3, "--json")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertEqual(json.loads(answer.stdout)["K"], result["k_default"])
            # The same settings give the same file.
            again = run("train", "--config", folder / "config.toml", "--out", self.root / "again" / method)
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertEqual((self.root / "again" / method / "model.gguf").read_bytes(), (folder / "model.gguf").read_bytes())

    def test_codi_learns_beside_its_teacher(self):
        done = self.train_ok(*self.latent("codi", "--eval-every", 6, "--json"), out="codi")
        self.assertEqual(json.loads(done.stdout)["k_default"], 2, "it knows one depth alone")
        folder = self.root / "codi"
        updates = [line for line in self.metrics("codi") if "loss" in line]
        self.assertEqual({(line["K"], line["u"]) for line in updates}, {(2, "answer")})
        for line in updates:
            self.assertGreater(line["teacher_loss"], 0)
            self.assertGreater(line["distill_loss"], 0)
        model = folder / "model.gguf"
        info = json.loads(run("info", model, "--json").stdout)["sidecar"]
        self.assertEqual((info["method"], info["answer_prefix"]), ("codi", "The answer is: "))
        answer = run("run", "-m", self.base, "--sidecar", model, "-p", "Evaluate: [MAX 1 2]", "-n", 3, "--json")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual((json.loads(answer.stdout)["method"], json.loads(answer.stdout)["K"]), ("codi", 2))
        self.assertEqual(run("export", model, "--as", "penelope", "-m", self.base, "-o", folder / "out").returncode, 0)
        back = run("convert", folder / "out", "--base", self.base, "-o", folder / "back.gguf", "--type", "F32")
        self.assertEqual(back.returncode, 0, back.stderr)
        again = run("train", "--config", folder / "config.toml", "--out", self.root / "again" / "codi")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((self.root / "again" / "codi" / "model.gguf").read_bytes(), model.read_bytes())

    def test_a_lora_of_the_source_stage_runs_on_its_base(self):
        info = json.loads(run("info", self.lora, "--json").stdout)
        self.assertEqual((info["kind"], info["metadata"]["general.name"]), ("lora", "Visible steps"))
        answer = run("run", "-m", self.base, "--lora", self.lora, "-p", "Evaluate: [MAX 1 2]\n", "-n", 3)
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def test_all_weights_under_a_sidecar(self):
        self.train_ok("-m", self.base, "--method", "penelope", "--full", "--updates", 4, "--latent-steps", 2, "--batch-size", 2, out="whole")
        answer = run("run", "-m", self.root / "whole" / "backbone.gguf", "--sidecar", self.root / "whole" / "model.gguf", "-p", "x", "-n", 2)
        self.assertEqual(answer.returncode, 0, answer.stderr)

        # Both go on together: the modules from the sidecar, all weights from the backbone beside it.
        whole = self.root / "whole"
        self.train_ok("-m", whole / "backbone.gguf", "--init", whole / "model.gguf", "--method", "penelope", "--full", "--updates", 1, "--lr", "1e-30,1e-30",
                      "--latent-steps", 2, "--batch-size", 2, out="further")
        answers = [json.loads(run("run", "-m", folder / "backbone.gguf", "--sidecar", folder / "model.gguf", "-p", "x", "-n", 4, "-K", 2, "--json").stdout)["tokens"]
                   for folder in (whole, self.root / "further")]
        self.assertEqual(*answers)

    def test_a_loss_on_every_step_at_drawn_depths(self):
        flags = ("-m", self.base, "--method", "penelope", "--updates", 10, "--latent-steps", 3, "--batch-size", 2, "--k-schedule", "uniform", "--step-loss", 0.5, "--step-loss-anneal", 0.5)
        self.train_ok(*flags, out="steps")
        updates = [line for line in self.metrics("steps") if "loss" in line]
        self.assertEqual({line["K"] for line in updates} - {1, 2, 3}, set())
        self.assertGreater(len({line["K"] for line in updates}), 1)
        self.assertEqual({line["u"] for line in updates}, {"answer"})
        weights = [line.get("step_loss_weight", 0) for line in updates]
        self.assertEqual(weights[:5], [0.5] * 5)
        for update in range(6, 11):
            self.assertAlmostEqual(weights[update - 1], 0.5 * (10 - update) / 5)
        self.assertTrue(all(line["step_loss"] > 0 for line in updates[:9]))
        again = run("train", "--config", self.root / "steps" / "config.toml", "--out", self.root / "again" / "steps")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((self.root / "again" / "steps" / "model.gguf").read_bytes(), (self.root / "steps" / "model.gguf").read_bytes())

    def test_forced_steps_and_a_curriculum_that_steers_itself(self):
        flags = ("-m", self.base, "--method", "penelope", "--updates", 12, "--batch-size", 4, "--lr", "1e-3,1e-3", *FORCED)
        self.train_ok(*flags, out="forced")
        updates = [line for line in self.metrics("forced") if "loss" in line]
        n_gold = sorted({len(json.loads(line)["steps"]) for line in (self.root / "data" / "train.jsonl").read_text().splitlines()})
        for line in updates:
            self.assertEqual(len(line["steps_right"]), line["K"])
            self.assertEqual([depth for depth, _ in line["depths"]], n_gold)
            self.assertTrue(all(0 <= accuracy <= 1 for _, accuracy in line["depths"]))
        self.assertIn("teacher-forcing = 0.7", (self.root / "forced" / "config.toml").read_text())
        # Another course than without forcing, the same one again from the file.
        self.train_ok(*flags, "--teacher-forcing", 0, out="free")
        free = [line for line in self.metrics("free") if "loss" in line]
        self.assertNotEqual([line["step_loss"] for line in free], [line["step_loss"] for line in updates])
        again = run("train", "--config", self.root / "forced" / "config.toml", "--out", self.root / "again" / "forced")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((self.root / "again" / "forced" / "model.gguf").read_bytes(), (self.root / "forced" / "model.gguf").read_bytes())
        # Unless told otherwise there are as many latent steps as the longest chain has results, its start included.
        plan = self.train("-m", self.base, "--method", "penelope", "--step-loss", 0.5, "--k-schedule", "uniform", "--teacher-forcing", 0.7, "--dry-run", "--json", out="plan")
        self.assertEqual(json.loads(plan.stdout)["stages"][-1]["K"], n_gold[-1] + 1)
        # The control has no step to force, and takes the same flags.
        self.train_ok(*flags, "--latent-steps", 0, out="control")
        self.assertIn("teacher-forcing = 0.0", (self.root / "control" / "config.toml").read_text())
        done = self.train("-m", self.base, "--method", "penelope", "--teacher-forcing", 0.5, out="refused")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--teacher-forcing: needs --step-loss", done.stderr)

    def test_new_modules_start_from_a_fit_on_results(self):
        flags = ("-m", self.base, "--method", "penelope", "--updates", 3, "--batch-size", 4, "--interval", "0:3", "--memory", 1, "--eval-every", 0, *FORCED)
        self.train_ok(*flags, "--k-schedule", "deep", "--fit-modules", out="fitted")
        self.train_ok(*flags, "--k-schedule", "deep", out="unfitted")
        first = {out: self.metrics(out)[0] for out in ("fitted", "unfitted")}
        self.assertEqual(first["fitted"]["K"], first["unfitted"]["K"])
        self.assertNotEqual(first["fitted"]["loss"], first["unfitted"]["loss"])
        again = run("train", "--config", self.root / "fitted" / "config.toml", "--out", self.root / "again" / "fitted")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((self.root / "again" / "fitted" / "model.gguf").read_bytes(), (self.root / "fitted" / "model.gguf").read_bytes())
        # The control has no memory to fit, and takes the same flags.
        self.train_ok(*flags, "--fit-modules", "--latent-steps", 0, out="unfitted-control")
        self.assertIn("fit-modules = false", (self.root / "unfitted-control" / "config.toml").read_text())

    def test_results_alone_as_targets(self):
        flags = ("-m", self.base, "--method", "cot", "--updates", 2, "--batch-size", 4, "--eval-every", 0)
        self.train_ok(*flags, out="all-steps")
        self.train_ok(*flags, "--targets", "results", out="results")
        tokens = {out: sum(line["target_tokens"] for line in self.metrics(out) if "loss" in line) for out in ("all-steps", "results")}
        self.assertLess(tokens["results"], tokens["all-steps"])
        no_steps = self.root / "no-steps"
        no_steps.mkdir()
        (no_steps / "train.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
        done = run("train", *flags, "--targets", "results", "--data", no_steps, "--out", self.root / "refused")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--targets results: no example has steps", done.stderr)

    def test_lookup_heads_copy_before_anything_is_learned(self):
        rng = random.Random(5)
        copies = self.root / "copies"
        copies.mkdir()
        texts = ["".join(rng.sample("abcdefghijklmnopqrstuvwxyz", 16)) for _ in range(16)]
        (copies / "train.jsonl").write_text("".join(json.dumps({"question": text, "answer": text}) + "\n" for text in texts))
        losses = {}
        for heads in ("false", "true"):
            shape = self.root / f"lookup-{heads}.toml"
            shape.write_text('name = "copies"\nlayers = 2\nwidth = 128\nheads = 4\nffn = 64\ncontext = 128\ntied = false\nembedding-scale = 4\n'
                             f"lookup-heads = {heads}\n")
            out = self.root / f"lookup-{heads}"
            done = run("train", "--init-random", shape, "--full", "--method", "cot", "--updates", 1, "--batch-size", 16, "--data", copies, "--out", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            losses[heads] = json.loads((out / "metrics.jsonl").read_text().splitlines()[0])["loss"]
        self.assertLess(losses["true"], losses["false"] - 1)

    def test_stages_last_until_they_are_learned(self):
        flags = ("-m", self.base, "--method", "penelope", "--updates", 90, "--latent-steps", 2, "--batch-size", 1, "--eval-every", 0, "--advance-at")
        self.train_ok(*flags, 100, out="easy")  # any loss is small enough
        rows = [row for row in self.metrics("easy") if "loss" in row]
        self.assertEqual([row["u"] for row in rows], [1] * 20 + [2] * 20 + ["answer"] * 50)
        self.train_ok(*flags, 1e-9, out="hard")  # none is
        rows = [row for row in self.metrics("hard") if "loss" in row]
        self.assertEqual([row["u"] for row in rows], [1] * 68 + ["answer"] * 22)
        self.train_ok(*flags, 100, "--k-schedule", "uniform", out="grown")
        depths = [row["K"] for row in self.metrics("grown") if "loss" in row]
        self.assertEqual((set(depths[:20]), set(depths[20:])), ({1}, {1, 2}))

    def test_the_control_without_latent_steps(self):
        for method in ("penelope", "coconut"):
            args = [arg for arg in self.latent(method, "--eval-every", 6)]
            args[args.index("--latent-steps") + 1] = 0
            self.train_ok(*args, out=f"none/{method}")
            lines = self.metrics(f"none/{method}")
            updates = [line for line in lines if "loss" in line]
            self.assertEqual({line["K"] for line in updates}, {0})
            n_blocks = 6 if method == "penelope" else 8
            targets = [line["u"] for line in updates]
            self.assertEqual(targets[6:], ["answer"] * 6)
            self.assertEqual(targets[:6], [u for u in range(1, n_blocks + 1) for _ in range(12 * u // (2 * n_blocks) - 12 * (u - 1) // (2 * n_blocks))])
            self.assertEqual((lines[-1]["k_default"], len(lines[-1]["exact_by_K"])), (0, 1))
            # It can be repeated from its folder, and the file answers at K=0.
            again = run("train", "--config", self.root / "none" / method / "config.toml", "--out", self.root / "again" / "none" / method)
            self.assertEqual(again.returncode, 0, again.stderr)
            model = self.root / "none" / method / "model.gguf"
            self.assertEqual((self.root / "again" / "none" / method / "model.gguf").read_bytes(), model.read_bytes())
            answer = run("run", "-m", self.base, "--sidecar", model, "-p", "Evaluate: [MAX 1 2]", "-n", 3, "--json")
            self.assertEqual(json.loads(answer.stdout)["K"], 0)

    def test_low_memory_learns_the_same(self):
        self.train_ok(*self.latent("penelope"), out="normal")
        for flag in ("--recompute", "--low-memory"):
            self.train_ok(*self.latent("penelope", flag), out=flag)
            for a, b in zip(self.metrics("normal"), self.metrics(flag)):
                if "loss" in a:
                    self.assertAlmostEqual(a["loss"], b["loss"], places=4)

    def test_dry_run_says_what_would_be_trained_and_writes_nothing(self):
        done = self.train(*self.latent("penelope", "--dry-run", "--json"), out="dry")
        plan = json.loads(done.stdout)
        self.assertEqual([stage["updates"] for stage in plan["stages"]], [3, 3, 6])
        self.assertEqual(plan["examples"]["train"], 60)
        self.assertEqual(plan["missing_operations"], [])
        self.assertTrue(plan["sample"]["target"].endswith("<|end_of_text|>"))
        self.assertGreater(plan["memory"]["graph"], 0)
        self.assertFalse((self.root / "dry").exists())
        text = self.train(*self.latent("penelope", "--dry-run"), out="dry")
        self.assertIn("K=1 u=1: 3 updates", text.stdout)
        self.assertRegex(text.stdout, r"prompt of the first example\n(.|\n)*\ntarget\n")

    def test_a_look_at_a_new_backbone_touches_nothing_that_was_there(self):
        with tempfile.TemporaryDirectory() as temp, tempfile.TemporaryDirectory() as elsewhere:
            treasure = Path(elsewhere) / "treasure"
            treasure.write_text("kept")
            planted = Path(temp) / "penelope-1804289383.gguf"  # the first number of an unseeded rand()
            planted.symlink_to(treasure)
            new = ("--init-random", self.root / "shape.toml", "--full", "--method", "cot", "--dry-run")
            done = self.train(*new, out="dry", env={"TMPDIR": temp})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(treasure.read_text(), "kept")
            self.assertEqual([p.name for p in Path(temp).iterdir()], [planted.name])
            done = self.train(*new, out="dry", env={"TMPDIR": str(Path(temp) / "nowhere")})
            self.assertEqual(done.returncode, 1)
            self.assertIn("TMPDIR", done.stderr)

    def test_gradients_are_written_under_the_names_of_the_reference(self):
        path = self.root / "gradients.safetensors"
        done = self.train(*self.latent("penelope", "--dump-gradients", path), out="dump")
        self.assertEqual(done.returncode, 0, done.stderr)
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        self.assertIn("loss", header)
        self.assertEqual(header["model.layers.0.self_attn.q_proj.lora_A.weight"]["shape"], [4, 32])
        self.assertEqual(header["penelope.memory.anchor"]["shape"], [8, 32])


class Resuming(Trained):
    def expected(self, method):
        name = f"straight/{method}"
        if not (self.root / name).exists():
            self.train_ok(*self.latent(method, "--eval-every", 4, "--save-every", 1), out=name)
        return (self.root / name / "model.gguf").read_bytes()

    def kill_until_done(self, args, out, rng):
        """Starts the run, kills it at random moments and resumes it, until it is through. Returns how often it was killed."""
        folder = self.root / out
        metrics = folder / "metrics.jsonl"
        n_killed = 0
        while True:
            has_checkpoint = (folder / "checkpoint" / "last.gguf").exists()
            command = ["train", "--resume", "--out", folder] if has_checkpoint else [*args, "--force"]
            process = subprocess.Popen([BIN, *map(str, command)], env=clean_environment(), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            # Every update writes a checkpoint, so that kills fall into the writing of some.
            target = rng.randint(1, 4) + (metrics.read_text().count("\n") if has_checkpoint else 0)
            while process.poll() is None:
                if metrics.exists() and metrics.read_text().count("\n") >= target:
                    time.sleep(rng.random() * 0.02)
                    process.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.001)
            error = process.communicate()[1]
            if process.returncode == 0:
                return n_killed
            self.assertEqual(process.returncode, -signal.SIGKILL, error)
            n_killed += 1

    def test_killed_at_any_moment_it_ends_with_the_same_bits(self):
        rng = random.Random(1)
        for method in ("cot", "penelope", "coconut", "codi"):
            expected = self.expected(method)
            n_killed = 0
            while n_killed < KILLS:
                out = f"killed-{n_killed}/{method}"
                args = self.arguments(*self.latent(method, "--eval-every", 4, "--save-every", 1), out=out)
                n_killed += self.kill_until_done(args, out, rng)
                self.assertEqual((self.root / out / "model.gguf").read_bytes(), expected)
                updates = [line["update"] for line in self.metrics(out) if "loss" in line]
                self.assertEqual(updates, list(range(1, 13)), "each update stands in the metrics once")
                left = [path.name for path in (self.root / out).rglob("*") if path.suffix in (".tmp", ".new")]
                self.assertEqual(left, [], "what killed processes left is removed")
            print(f"{method}: killed {n_killed} times")

    def test_a_resumed_run_knows_its_stage(self):
        flags = ("-m", self.base, "--method", "penelope", "--updates", 48, "--latent-steps", 2, "--batch-size", 1, "--advance-at", 100, "--eval-every", 0)
        self.train_ok(*flags, out="straight/learned")
        args = self.arguments(*flags, "--save-every", 1, out="killed/learned")
        self.assertGreater(self.kill_until_done(args, "killed/learned", random.Random(2)), 3)
        self.assertEqual((self.root / "killed/learned/model.gguf").read_bytes(), (self.root / "straight/learned/model.gguf").read_bytes())

    def test_a_resumed_run_goes_on_with_its_forcing_and_its_accuracies(self):
        flags = ("-m", self.base, "--method", "penelope", "--updates", 24, "--batch-size", 2, "--eval-every", 0, "--fit-modules", *FORCED)
        self.train_ok(*flags, out="straight/forced")
        args = self.arguments(*flags, "--save-every", 1, out="killed/forced")
        self.assertGreater(self.kill_until_done(args, "killed/forced", random.Random(3)), 1)
        self.assertEqual((self.root / "killed/forced/model.gguf").read_bytes(), (self.root / "straight/forced/model.gguf").read_bytes())

    def test_an_interrupt_saves_and_exits_130(self):
        expected = self.expected("penelope")
        out = "interrupted/penelope"
        args = self.arguments(*self.latent("penelope", "--eval-every", 4, "--save-every", 0), out=out)
        process = subprocess.Popen([BIN, *map(str, args)], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "update 1/" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        error = process.stderr.read()
        self.assertEqual(process.wait(), 130, error)
        process.stderr.close()
        self.assertIn("--resume", error)
        self.assertLess(len(self.metrics(out)), 12)
        self.assertIn("is usable", error)
        answer = run("run", "-m", self.base, "--sidecar", self.root / out / "model.gguf", "-p", "Evaluate: [MAX 1 2]", "-n", 2)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.train_ok("--resume", out=out)
        self.assertEqual((self.root / out / "model.gguf").read_bytes(), expected)

    def test_two_processes_do_not_train_one_run(self):
        folder = self.root / "twice-at-once"
        args = self.arguments(*self.latent("penelope", "--updates", 100000, "--save-every", 1, "--eval-every", 0), out=folder)
        with subprocess.Popen([BIN, *map(str, args)], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                while "update 1/" not in process.stderr.readline():
                    pass
                second = run("train", "--resume", "--out", folder)
                self.assertIsNone(process.poll(), "the first one is still at work")
                self.assertIn("another process", second.stderr)
                self.assertEqual(second.returncode, 1)
            finally:
                process.send_signal(signal.SIGINT)
                process.communicate()
        self.assertEqual(process.returncode, 130)

    def test_a_full_disk_keeps_the_last_checkpoint(self):
        expected = self.expected("penelope")
        folder = self.root / "full" / "penelope"
        args = self.arguments(*self.latent("penelope", "--eval-every", 4, "--save-every", 1), out=folder)
        process = subprocess.Popen([BIN, *map(str, args)], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "update 1/" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate()
        kept = (folder / "checkpoint" / "last.gguf").read_bytes()
        names = sorted(path.name for path in (folder / "checkpoint").iterdir())

        def small_files():  # a write beyond the limit fails as one on a full disk does
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(kept) // 2, len(kept) // 2))
        done = subprocess.run([BIN, "train", "--resume", "--out", folder], env=clean_environment(), capture_output=True, text=True, preexec_fn=small_files)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("last.gguf", done.stderr)
        self.assertEqual((folder / "checkpoint" / "last.gguf").read_bytes(), kept)
        self.assertEqual(sorted(path.name for path in (folder / "checkpoint").iterdir()), names)
        self.train_ok("--resume", out=folder)
        self.assertEqual((folder / "model.gguf").read_bytes(), expected)

    def test_a_damaged_checkpoint_gives_way_to_the_one_before(self):
        expected = self.expected("penelope")
        folder = self.root / "damaged" / "penelope"
        args = self.arguments(*self.latent("penelope", "--eval-every", 4, "--save-every", 1), out=folder)
        process = subprocess.Popen([BIN, *map(str, args)], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "update 1/" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate()
        last = folder / "checkpoint" / "last.gguf"
        data = bytearray(last.read_bytes())
        data[len(data) // 2] ^= 1
        last.write_bytes(data)
        kept = (folder / "checkpoint" / "previous.gguf").read_bytes()
        done = run("train", "--resume", "--out", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"warning: .*last\.gguf: tensor .*: checksum mismatch.*resuming from the previous checkpoint")
        self.assertEqual((folder / "model.gguf").read_bytes(), expected)

        for name in ("last", "previous"):
            (folder / "checkpoint" / f"{name}.gguf").write_bytes(kept[:-100])
        done = run("train", "--resume", "--out", folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: ", done.stderr)

    def test_other_settings_are_refused(self):
        self.expected("penelope")
        done = self.train("--resume", "--clip", 0.5, out="straight/penelope")
        self.assertEqual(done.returncode, 2)
        self.assertIn("error: cannot resume: --clip was 1.0, now 0.5\n", done.stderr)
        for flag in ("--low-memory", "--recompute"):
            done = self.train("--resume", flag, out="straight/penelope")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{flag} was false, now true", done.stderr)

    def test_what_leaves_the_weights_alone_may_change(self):
        self.train_ok(*self.latent("penelope", "--updates", 8, "--eval-every", 0, "--save-every", 1), out="free/straight")
        folder = self.root / "free" / "changed"
        args = self.arguments(*self.latent("penelope", "--updates", 8, "--eval-every", 0, "--save-every", 1), out=folder)
        process = subprocess.Popen([BIN, *map(str, args)], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "update 1/" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate()
        done = run("train", "--resume", "--out", folder, "--eval-every", 1, "--eval-limit", 3, "-n", 5, "--save-every", 2, "--keep-checkpoints", 2, "--log-every", 1,
                   "--kv-type", "f16", "--name", "renamed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"warning: --eval-limit was 4, now 3, --predict was 8, now 5, --kv-type was f32, now f16: validation scores up to update \d "
                                      r"are not comparable with later ones")
        losses = [[line["loss"] for line in self.metrics(out) if "loss" in line] for out in ("free/straight", folder)]
        self.assertEqual(losses[1], losses[0])
        self.assertEqual([line["valid_n"] for line in self.metrics(folder) if "valid_loss" in line][-1], 3)
        self.assertEqual(sorted(file.name for file in (folder / "checkpoint").glob("update-*")), ["update-6.gguf", "update-8.gguf"])
        config = (folder / "config.toml").read_text()
        for line in ("eval-every = 1", "eval-limit = 3", "predict = 5", "save-every = 2", "keep-checkpoints = 2", 'kv-type = "f16"', 'name = "renamed"'):
            self.assertIn(line + "\n", config, "the next --resume needs no flags")
        again = run("train", "--resume", "--out", folder)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("warning", again.stderr)

    def test_a_file_that_changed_is_named(self):
        data = self.root / "changing"
        shutil.copytree(self.root / "data", data)
        args = ("-m", self.base, "--method", "cot", "--updates", 2, "--batch-size", 2, "-n", 2, "--eval-limit", 2)
        self.assertEqual(run("train", *args, "--data", data, "--out", self.root / "changed").returncode, 0)
        lines = (data / "train.jsonl").read_text().splitlines(keepends=True)
        (data / "train.jsonl").write_text("".join(lines[:-1]))
        done = run("train", "--resume", "--out", self.root / "changed")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"error: cannot resume: \S*changing/train\.jsonl has changed \(SHA-256 differs\)\n")
        self.assertNotIn("sha256", done.stderr)


    def test_settings_that_change_the_shapes_are_named_too(self):
        self.expected("penelope")
        for flag, value, was in (("--lora-rank", 5, "16"), ("--memory", 5, "8"), ("--interval", "0:2", "2:3")):
            done = self.train("--resume", flag, value, out="straight/penelope")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"error: cannot resume: {flag} was {was}, now {value}\n", done.stderr)

    def test_a_best_checkpoint_that_is_damaged_or_gone_does_not_keep_the_run_from_its_end(self):
        self.train_ok(*self.latent("penelope", "--updates", 4, "--eval-every", 1), out="no-best")
        best = self.root / "no-best" / "checkpoint" / "best.gguf"
        best.write_bytes(best.read_bytes()[:-100])
        for _ in range(2):
            done = self.train("--resume", out="no-best")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"warning: .*best\.gguf.*; the model gets the weights of the last update")
            best.unlink(missing_ok=True)

    def test_the_last_weights_are_told_as_such_where_the_best_ones_are_gone(self):
        flags = ("-m", self.base, "--method", "cot", "--updates", 4, "--batch-size", 2, "--lr", "0.1", "--warmup", 1, "--eval-every", 1, "--json")
        best = json.loads(self.train_ok(*flags, out="worse").stdout)["best"]
        self.assertLess(best["update"], 4, "the last weights are not the best ones")
        (self.root / "worse" / "checkpoint" / "best.gguf").unlink()
        done = self.train("--resume", "--json", out="worse")
        self.assertEqual(done.returncode, 0, done.stderr)
        last = json.loads(done.stdout)["best"]
        self.assertEqual(last["update"], 4)
        self.assertGreater(last["loss"], best["loss"])

    def test_a_run_that_is_interrupted_in_its_last_evaluation_keeps_its_last_weights(self):
        data = self.root / "many"
        made = run("data", "listops", "--out", data, "--train", 20, "--valid", 300, "--test", 10, "--depth", "1-2", "--test-depth", "1-2")
        self.assertEqual(made.returncode, 0, made.stderr)
        flags = ("train", "-m", self.base, "--method", "cot", "--data", data, "--updates", 5, "--batch-size", 2, "--lr", "0.03", "--warmup", 1, "--eval-every", 1,
                 "--eval-limit", 2, "-n", 64, "--name", "same")
        straight, stopped = self.root / "last" / "straight", self.root / "last" / "stopped"
        self.assertEqual(run(*flags, "--out", straight).returncode, 0)
        self.assertFalse([line["best"] for line in self.metrics(straight) if "best" in line][-1], "the last weights are not the best ones")
        process = subprocess.Popen([BIN, *map(str, flags), "--out", stopped], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not (stopped / "metrics.jsonl").exists() or (stopped / "metrics.jsonl").read_text().count("valid_loss") < 5:
            time.sleep(0.001)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        error = process.communicate()[1]
        self.assertEqual(process.returncode, 130, error)
        self.assertIn(b'"optimizer_steps":5,', (stopped / "checkpoint" / "last.gguf").read_bytes(), "those of the best weights were fewer")
        for out in (straight, stopped):
            done = run("train", "--resume", "--updates", 6, "--out", out)
            self.assertEqual(done.returncode, 0, done.stderr)
        losses = [[line["loss"] for line in self.metrics(out) if "loss" in line] for out in (straight, stopped)]
        self.assertEqual(losses[1], losses[0])

    def test_going_back_leaves_the_other_checkpoints_alone(self):
        page = (TESTS.parent / "docs" / "training.md").read_text()
        self.assertIn("ln -f checkpoint/update-4.gguf checkpoint/last.gguf", page)
        self.train_ok(*self.latent("penelope", "--updates", 6, "--save-every", 2, "--keep-checkpoints", 3), out="back/start")
        for flags in ("-f", "-sfr"):
            folder = self.root / "back" / flags
            shutil.copytree(self.root / "back" / "start", folder)
            checkpoints = folder / "checkpoint"
            os.link(checkpoints / "update-6.gguf", checkpoints / "same")  # as the run left it
            os.replace(checkpoints / "same", checkpoints / "last.gguf")
            kept = {update: (checkpoints / f"update-{update}.gguf").read_bytes() for update in (4, 6)}
            subprocess.run(["ln", flags, "checkpoint/update-4.gguf", "checkpoint/last.gguf"], cwd=folder, check=True)
            process = subprocess.Popen([BIN, "train", "--resume", "--log-every", "1", "--out", folder], env=clean_environment(), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            while "update 5/" not in process.stderr.readline():
                pass
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.assertEqual((checkpoints / "update-4.gguf").read_bytes(), kept[4])
            self.train_ok("--resume", out=folder)
            self.assertEqual((checkpoints / "update-4.gguf").read_bytes(), kept[4])
            self.assertEqual([path.name for path in checkpoints.iterdir() if path.is_symlink()], [])
            self.assertEqual([line["update"] for line in self.metrics(folder) if "loss" in line], list(range(1, 7)))

    def test_a_longer_run_under_all_weights_keeps_backbone_and_sidecar_together(self):
        self.train_ok("-m", self.base, "--method", "penelope", "--full", "--updates", 2, "--latent-steps", 2, "--batch-size", 2, "--lr", "1e-2,1e-2", out="pair")
        folder = self.root / "pair"
        (folder / "model.gguf").unlink()
        (folder / "model.gguf").mkdir()  # the second of the two cannot be written
        before = (folder / "backbone.gguf").read_bytes()
        done = self.train("--resume", "--updates", 4, out="pair")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual((folder / "backbone.gguf").read_bytes(), before)


class Large(Trained):
    def test_a_large_data_set_is_tokenized_once(self):
        data = self.root / "large"
        made = run("data", "listops", "--out", data, "--train", 4000, "--valid", 500, "--test", 1, "--depth", "1-2", "--test-depth", "1-2")
        self.assertEqual(made.returncode, 0, made.stderr)
        for more in ((), ("--max-length", 70, "--skip-long")):
            done = run("train", "-m", self.base, "--method", "cot", "--data", data, "--out", self.root / "no", "--dry-run", "-v", "--json", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("tokenized 9000 texts: prompt and target of every example\n", done.stderr)
            self.assertEqual(json.loads(done.stdout)["examples"]["skipped"] > 0, bool(more))


class Documented(Trained):
    def test_the_table_of_settings_is_on_the_page(self):
        page = (TESTS.parent / "docs" / "training.md").read_text()
        self.assertIn(run("help", "--settings").stdout, page, "put the output of penelope help --settings into docs/training.md")

    def test_every_field_of_the_metrics_is_on_the_page(self):
        page = (TESTS.parent / "docs" / "training.md").read_text()
        self.train_ok(*self.latent("penelope", "--updates", 4, "--step-loss", 1), out="fields")
        self.train_ok(*self.latent("codi", "--updates", 2), out="codi-fields")
        fields = {key for out in ("fields", "codi-fields") for line in self.metrics(out) for key in line}
        self.assertLessEqual({"loss", "valid_exact", "exact_by_K", "step_loss", "teacher_loss"}, fields)
        self.assertEqual([field for field in sorted(fields) if f"`{field}`" not in page], [])
        self.assertIn("metrics.jsonl", (TESTS.parent / "README.md").read_text())


class Longer(Trained):
    """--resume --updates N makes a run longer, whether it had come to its end or not."""

    def test_a_finished_run_goes_on(self):
        self.train_ok(*self.latent("penelope", "--updates", 8, "--save-every", 2, "--keep-checkpoints", 3), out="longer")
        folder = self.root / "longer"
        stages = [(line["K"], line["u"]) for line in self.metrics("longer") if "loss" in line]
        names = sorted(file.name for file in (folder / "checkpoint").iterdir())
        self.assertEqual(names, ["best.gguf", "last.gguf", "previous.gguf", "update-4.gguf", "update-6.gguf", "update-8.gguf"])
        done = self.train("--resume", "--updates", 14, "--json", out="longer")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["updates"], 14)
        updates = [line for line in self.metrics("longer") if "loss" in line]
        self.assertEqual([line["update"] for line in updates], list(range(1, 15)))
        self.assertEqual([(line["K"], line["u"]) for line in updates], stages + [stages[-1]] * 6, "the stages stay, the last one goes on")
        self.assertGreater(updates[8]["module_lr"], updates[7]["module_lr"], "the rate is that of a run of 14")
        self.assertGreater(updates[13]["module_lr"], 0, "the last update learns too")
        self.assertEqual(sum("k_default" in line for line in self.metrics("longer")), 1)
        self.assertIn("updates = 14\n", (folder / "config.toml").read_text())
        self.assertEqual(sorted(file.name for file in (folder / "checkpoint").glob("update-*")), ["update-10.gguf", "update-12.gguf", "update-14.gguf"])
        # Without the flag it is now a run of 14, and it cannot become shorter.
        self.assertEqual(self.train("--resume", out="longer").returncode, 0)
        shorter = self.train("--resume", "--updates", 8, out="longer")
        self.assertEqual(shorter.returncode, 2)
        self.assertIn("--updates 8 is less than the 14 of the run", shorter.stderr)

    def test_an_interrupted_run_ends_as_if_it_had_not_been(self):
        args = self.latent("penelope", "--updates", 6, "--save-every", 1, "--name", "longer")
        self.train_ok(*args, out="once")
        self.train_ok("--resume", "--updates", 30, out="once")
        self.train_ok(*args, out="twice")
        process = subprocess.Popen([BIN, "train", "--resume", "--updates", "30", "--log-every", "1", "--out", self.root / "twice"],
                                   env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "update 9/" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, 130)
        self.train_ok("--resume", out="twice")
        self.assertEqual((self.root / "twice" / "model.gguf").read_bytes(), (self.root / "once" / "model.gguf").read_bytes())
        drop = ("ms", "tokens_per_second", "peak_memory")
        clean = lambda out: [{k: v for k, v in line.items() if k not in drop} for line in self.metrics(out)]
        self.assertEqual(clean("twice"), clean("once"))

    def test_every_kept_checkpoint_can_take_the_place_of_a_damaged_one(self):
        self.train_ok(*self.latent("penelope", "--updates", 6, "--save-every", 2, "--keep-checkpoints", 3), out="kept")
        checkpoints = self.root / "kept" / "checkpoint"
        for name in ("last", "previous", "update-6", "update-4"):
            path = checkpoints / f"{name}.gguf"
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data[:-100])
        done = self.train("--resume", out="kept")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"warning: .*last\.gguf.*resuming from the previous checkpoint, .*update-2\.gguf, update 2")
        self.assertEqual([line["update"] for line in self.metrics("kept") if "loss" in line], list(range(1, 7)))

    def test_epochs_on_the_command_line_go_before_the_updates_of_the_run(self):
        self.train_ok("-m", self.base, "--method", "cot", "--updates", 2, "--batch-size", 2, out="by-epochs")
        n_train = len((self.root / "data" / "train.jsonl").read_text().splitlines())
        done = self.train("--resume", "--epochs", 1, "--json", out="by-epochs")
        self.assertEqual(json.loads(done.stdout)["updates"], -(-n_train // 2), done.stderr)


class Habits(Trained):
    def test_a_run_is_continued_from_any_directory(self):
        done = run("train", "-m", "base/model.gguf", "--method", "cot", "--data", "data", "--out", "here", "--updates", 2, "--batch-size", 2, "-n", 2, "--eval-limit", 2, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        config = (self.root / "here" / "config.toml").read_text()
        self.assertIn(f"model = '{self.base}'", config.replace('"', "'"))
        self.assertIn("dropout = 0.05\n", config)
        done = run("train", "--resume", "--out", self.root / "here", cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_model_is_called_as_the_folder_however_that_is_spelled(self):
        for out in ("spelled", "spelled/", "spelled/."):
            done = run("train", "-m", self.base, "--method", "cot", "--updates", 1, "--batch-size", 2, "-n", 2, "--eval-limit", 2, "--force", "--data", "data",
                       "--out", out, cwd=self.root)
            self.assertEqual(done.returncode, 0, done.stderr)
            info = json.loads(run("info", self.root / "spelled" / "model.gguf", "--json").stdout)
            self.assertEqual(info["metadata"]["general.name"], "spelled")

    def test_texts_of_any_kind_are_the_same_when_the_run_goes_on(self):
        for i, template in enumerate(("\n{question}\n", "'''{question}\n'''\n", "x = 0.12345678901234567890\n{question}\nrate = 0.10000000000000000555\n",
                                      '\"\"\"{question}\n\"\"\" it\'s', "{question}\\\r\n\t\u2028")):
            out = f"texts/{i}"
            self.train_ok("-m", self.base, "--method", "cot", "--updates", 1, "--batch-size", 1, "--task", "generic", "--prompt-template", template, out=out)
            done = run("train", "--resume", "--out", self.root / out)
            self.assertEqual(done.returncode, 0, (template, done.stderr))

    def test_a_run_that_was_to_spare_memory_goes_on_sparing_it(self):
        self.train_ok("-m", self.base, "--method", "cot", "--updates", 1, "--batch-size", 1, "--low-memory", out="sparing")
        self.assertIn("low-memory = true\n", (self.root / "sparing" / "config.toml").read_text())
        self.assertEqual(run("train", "--resume", "--updates", 2, "--out", self.root / "sparing").returncode, 0)

    def test_the_live_line_fits_a_narrow_terminal(self):
        with Pty(*self.arguments("-m", self.base, "--method", "cot", "--updates", 30, "--batch-size", 2, "--log-every", 1000, "--eval-every", 0, out="narrow"), columns=50) as terminal:
            seen = terminal.expect("update 5/.*update 20/").group(0)
            lines = [without_escapes(line) for line in re.split(r"[\r\n]", seen)][1:-1]
            self.assertTrue(lines)
            self.assertLess(max(len(line) for line in lines), 50)
            self.assertEqual(terminal.wait(), 0)

    def test_the_live_line_shows_losses_exact_match_and_what_is_left(self):
        with Pty(*self.arguments("-m", self.base, "--method", "cot", "--updates", 30, "--batch-size", 2, "--eval-every", 5, out="live"), columns=80) as terminal:
            seen = terminal.expect("update 8/.*update 20/").group(0)
            lines = [line for line in re.split(r"[\r\n]", without_escapes(seen)) if line.startswith("update 1")]
            self.assertRegex("\n".join(lines), r"update 1\d/30 \| loss \d+\.\d+ \| exact match \d+\.\d % \| .* left")
            self.assertNotIn("\nupdate 10/30 ", seen)  # written over, not scrolled away
            self.assertEqual(terminal.wait(), 0)


class Refusals(Trained):
    def refused(self, *args, out="refused", code=1):
        done = self.train(*args, out=out)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("error: ", done.stderr)
        return done.stderr

    def test_wrong_values(self):
        self.assertIn("merged", self.refused("-m", self.base, "--method", "penelope", "--full", "--init", self.lora, code=2))
        self.assertIn("--k-schedule", self.refused("-m", self.base, "--method", "penelope", "--k-schedule", "sometimes", code=2))
        self.assertIn("--interval", self.refused(*self.latent("penelope", "--interval", "1-3"), code=2))
        self.assertIn("interval", self.refused(*self.latent("penelope", "--interval", "2:9"), code=2))
        self.assertIn("--latent-steps", self.refused(*self.latent("penelope", "--k-max", 1), code=2))
        self.assertIn("--full", self.refused("--init-random", self.root / "shape.toml", "--method", "cot", code=2))
        self.assertIn("--method", self.refused("-m", self.base, code=2))
        none = run("train", "--resume", "--out", self.root / "nothing")
        self.assertEqual(none.returncode, 2)
        self.assertIn("no run to resume", none.stderr)
        self.assertIn("neither a LoRA nor a sidecar", self.refused("-m", self.base, "--method", "cot", "--init", self.base, code=2))

    def test_a_refused_run_leaves_the_one_it_would_replace_and_no_folder(self):
        self.refused(*self.latent("penelope", "--interval", "2:9"), out="never", code=2)
        self.assertFalse((self.root / "never").exists())
        kept = self.lora.read_bytes()
        self.refused("-m", self.base, "--method", "cot", "--max-length", 60, "--force", out="cot", code=2)
        self.assertEqual(self.lora.read_bytes(), kept)

    def test_a_new_backbone_that_is_refused_leaves_the_run_it_would_replace(self):
        shutil.copytree(self.root / "base", self.root / "standing")
        before = {path: path.read_bytes() for path in (self.root / "standing").rglob("*") if path.is_file()}
        self.refused("--init-random", self.root / "shape.toml", "--full", "--method", "cot", "--max-length", 60, "--force", out="standing", code=2)
        self.assertEqual({path: path.read_bytes() for path in (self.root / "standing").rglob("*") if path.is_file()}, before)

    def test_a_path_that_config_toml_cannot_name_is_refused_at_the_start(self):
        data = os.path.join(os.fsencode(self.root), b"lat\xeen")
        shutil.copytree(os.fsencode(self.root / "data"), data)
        args = [BIN, "train", "-m", self.base, "--method", "cot", "--out", self.root / "unnamed", "--updates", "1", "--data", data]
        done = subprocess.run(args, env=clean_environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"error: --data .*lat\\xEEn': path is not valid UTF-8\nhint: rename it")
        self.assertFalse((self.root / "unnamed").exists())

    def test_examples_that_do_not_fit_are_refused_or_left_out_on_request(self):
        self.assertIn("--skip-long", self.refused("-m", self.base, "--method", "cot", "--max-length", 60, code=2))
        done = self.train(*self.latent("penelope", "--max-length", 70, "--skip-long", "--dry-run", "--json"), out="short")
        self.assertGreater(json.loads(done.stdout)["examples"]["skipped"], 0)

    def test_a_malformed_line_is_named(self):
        bad = self.root / "bad"
        bad.mkdir(exist_ok=True)
        lines = (self.root / "data" / "train.jsonl").read_text().splitlines()
        (bad / "train.jsonl").write_text("\n".join(lines[:2] + ["{oops"] + lines[2:]) + "\n")
        done = run("train", "-m", self.base, "--method", "cot", "--data", bad, "--out", self.root / "refused")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"train\.jsonl.*3")

    def test_a_rate_that_diverges_stops_the_run_and_keeps_the_last_state(self):
        done = self.train("-m", self.base, "--method", "cot", "--full", "--updates", 40, "--batch-size", 2, "--lr", "1e30", "--clip", 0, out="diverged")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"update \d+: the (loss|gradient) is not finite")
        self.assertTrue((self.root / "diverged" / "checkpoint" / "last.gguf").is_file())

    def test_a_run_that_diverges_keeps_the_checkpoint_before_the_last(self):
        done = self.train("-m", self.base, "--method", "cot", "--full", "--updates", 40, "--batch-size", 2, "--lr", "1e30", "--clip", 0, "--save-every", 1, out="diverged-twice")
        self.assertEqual(done.returncode, 1, done.stderr)
        state = re.compile(rb'{"update":(\d+),"validated"')
        last, previous = [int(state.search((self.root / "diverged-twice" / "checkpoint" / f"{name}.gguf").read_bytes())[1]) for name in ("last", "previous")]
        self.assertEqual(previous, last - 1)


if __name__ == "__main__":
    unittest.main()
