"""Every recipe, as a dry run: none may name an option, an interval or a file that is not there."""

import json
import tempfile
import unittest
from pathlib import Path

from support import TESTS, run

RECIPES = TESTS.parent / "examples" / "recipes"
NARROW = 'name = "narrow"\nlayers = {}\nwidth = 16\nheads = 2\nffn = 32\ncontext = 2048\n'
SIZES = ("--train", 12, "--valid", 2, "--test", 2)


class Recipes(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        self.addCleanup(work.cleanup)
        self.work = Path(work.name)

    def ok(self, *args):
        done = run(*args)
        self.assertEqual(done.returncode, 0, f"{args}: {done.stderr}")
        return done

    def plan(self, recipe, *args):
        done = self.ok("train", "--config", recipe, *args, "--data", self.work / "data", "--out", self.work / "none", "--dry-run", "--json")
        plan = json.loads(done.stdout)
        self.assertFalse((self.work / "none").exists())
        return plan

    def check_folder(self, folder, shape):
        task = folder.name.split("-")[0]
        self.ok("data", task, "--config", folder / "data.toml", "--out", self.work / "data", *SIZES)
        base = self.work / "base" / "model.gguf"
        self.ok("train", "--init-random", shape, "--full", "--method", "cot", "--updates", 1, "--batch-size", 1, "-n", 1, "--data", self.work / "data",
                "--out", base.parent)
        plans = {}
        for recipe in sorted(folder.glob("*.toml")):
            if recipe.stem.endswith("data") or recipe.stem == "shape":
                continue
            self.assertIn(f"--config examples/recipes/{folder.name}/{recipe.name} ", recipe.read_text())
            new = recipe.stem == ("cot-sft-first" if (folder / "cot-sft-first.toml").exists() else "cot-sft") and (folder / "shape.toml").exists()
            plans[recipe.stem] = self.plan(recipe, *(("--init-random", shape) if new else ("-m", base)))
        return plans

    def assert_equal_budgets(self, plans, methods):
        budgets = {method: sum(stage["updates"] for stage in plans[method]["stages"]) for method in methods}
        self.assertEqual(len(set(budgets.values())), 1, budgets)

    def test_the_settings_of_the_paper(self):
        shape = self.work / "shape.toml"
        shape.write_text(NARROW.format(16))
        for name, updates, coconut_depth in (("listops", 1500, 8), ("prosqa", 1500, 6), ("prontoqa", 3000, 6)):
            with self.subTest(name):
                plans = self.check_folder(RECIPES / name, shape)
                for method, plan in plans.items():
                    stages = plan["stages"]
                    if method == "cot-sft":
                        continue
                    self.assertEqual(sum(stage["updates"] for stage in stages), updates, method)
                    depth = {"cot": 0, "k0": 0, "coconut": coconut_depth}.get(method, 6)
                    self.assertEqual(stages[-1]["K"], depth, method)
                    self.assertEqual(stages[-1]["u"], 0 if method == "cot" else "answer", method)
                self.assertEqual(len(plans["penelope"]["stages"]), 7)
                self.assertGreater(plans["penelope"]["parameters"]["lora"], 0)
                self.assertEqual(plans["coconut"]["parameters"]["modules"], 2 * 16)
                self.assertEqual(len(plans["codi"]["stages"]), 1)
                self.assertEqual(plans["codi"]["parameters"]["modules"], 2 * 16 + 2 * 16 * 16 + 4 * 16)
            for made in ("data", "base"):
                (self.work / made).rename(self.work / f"{name}-{made}")

    def test_the_small_ones(self):
        folder = RECIPES / "listops-small"
        plans = self.check_folder(folder, folder / "shape.toml")
        self.assertEqual(set(plans), {"cot-sft", "cot", "penelope", "coconut", "codi", "k0", "overwrite", "early", "middle", "step-loss", "step-loss-k0"})
        self.assertGreater(plans["cot-sft"]["parameters"]["backbone"], 1000000)
        self.assert_equal_budgets(plans, set(plans) - {"cot-sft", "cot"})  # cot-sft is the common start, cot its continuation

    def test_those_on_the_small_backbone(self):
        plans = self.check_folder(RECIPES / "listops-order", RECIPES / "listops-small" / "shape.toml")
        self.assertEqual(set(plans), {"cot", "penelope", "coconut", "k0", "step-loss", "step-loss-k0"})
        self.assert_equal_budgets(plans, {"penelope", "coconut", "k0", "step-loss", "step-loss-k0"})

    def test_those_for_a_pretrained_model(self):
        shape = self.work / "shape.toml"
        shape.write_text(NARROW.format(30))
        plans = self.check_folder(RECIPES / "listops-smollm2", shape)
        self.assert_equal_budgets(plans, {"cot", "penelope", "coconut", "k0", "step-loss", "step-loss-k0"})
        for name in ("prosqa-smollm2", "prontoqa-smollm2"):
            with self.subTest(name):
                for made in ("data", "base"):
                    (self.work / made).rename(self.work / f"before-{name}-{made}")
                plans = self.check_folder(RECIPES / name, shape)
                self.assertEqual(set(plans), {"cot-sft", "penelope"})
                self.assertEqual([(stage["K"], stage["updates"]) for stage in plans["penelope"]["stages"]], [(6, 300)])

    def test_those_in_words(self):
        shape = self.work / "shape.toml"
        shape.write_text(NARROW.format(30))
        plans = self.check_folder(RECIPES / "thread-smollm2", shape)
        runs = ("", "-first", "-second", "-third")
        self.assertEqual(set(plans), {"cot-sft"} | {method + run for method in ("penelope", "k0") for run in runs})
        for run in runs:  # the control has the same runs without latent steps
            self.assert_equal_budgets(plans, {"penelope" + run, "k0" + run})
            self.assertEqual([stage["K"] for stage in plans["k0" + run]["stages"]], [0])
        self.assertEqual([stage["K"] for stage in plans["penelope"]["stages"]], [4])

    def test_the_thread(self):
        folder = RECIPES / "thread"
        plans = self.check_folder(folder, folder / "shape.toml")
        self.assertEqual(set(plans), {name + stage for name in ("cot-sft", "penelope", "all-weights", "k0", "no-step-loss", "coconut", "codi") for stage in ("", "-first")})
        for stage in ("", "-first"):
            self.assert_equal_budgets(plans, {name + stage for name in ("penelope", "all-weights", "k0", "no-step-loss", "coconut", "codi")})
        self.assertLess(plans["cot-sft-first"]["parameters"]["backbone"], 1000000)
        self.assertGreater(plans["all-weights"]["parameters"]["backbone"], 0)
        self.assertEqual([stage["K"] for stage in plans["penelope"]["stages"]], [8])
        self.assertEqual([stage["K"] for stage in plans["k0"]["stages"]], [0])

    def test_the_thread_with_forced_steps(self):
        folder = RECIPES / "thread-forced"
        plans = self.check_folder(folder, folder / "shape.toml")
        self.assertEqual(set(plans), {"cot-sft", "penelope", "k0"})
        self.assert_equal_budgets(plans, {"penelope", "k0"})
        self.assertEqual([stage["K"] for stage in plans["penelope"]["stages"]], [9])
        self.assertEqual([stage["K"] for stage in plans["k0"]["stages"]], [0])
        self.ok("data", "thread", "--config", folder / "data.toml", "--min-chains", 1, "--out", self.work / "mixed", *SIZES)
        chains = {line["question"].count(" ") for line in map(json.loads, (self.work / "mixed" / "train.jsonl").read_text().splitlines())}
        self.assertGreater(len(chains), 1)

    def test_every_folder_is_looked_at_here(self):
        self.assertEqual({path.name for path in RECIPES.iterdir() if path.is_dir()}, {"listops", "prosqa", "prontoqa", "listops-small", "listops-order", "listops-smollm2", "prosqa-smollm2", "prontoqa-smollm2", "thread", "thread-forced", "thread-smollm2"})


if __name__ == "__main__":
    unittest.main()
