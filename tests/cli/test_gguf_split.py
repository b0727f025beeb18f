"""Models split over several files: every command takes the first part in place of the whole file."""

import json
import shutil
import unittest

from gguf_split import split
from support import ModelTest

PROMPT = ("--raw", "-p", "7 5 2", "-n", "4", "--json")


def answer(done):
    result = json.loads(done.stdout)
    return result["text"], result["tokens"]


class SplitFiles(ModelTest):
    def parts(self, **kwargs):
        return split(self.model.base, self.work / "base", 7, **kwargs)

    def test_answers_are_those_of_the_whole_file(self):
        whole = answer(self.ok("run", "-m", self.model.base, *PROMPT))
        latent = answer(self.ok("run", "-m", self.model.base, "--sidecar", self.model.sidecar, *PROMPT))
        first = self.parts()[0]
        self.assertEqual(answer(self.ok("run", "-m", first, *PROMPT)), whole)
        self.assertEqual(answer(self.ok("run", "-m", first, "--no-mmap", *PROMPT)), whole)
        self.assertEqual(answer(self.ok("run", "-m", first, "--sidecar", self.model.sidecar, *PROMPT)), latent)
        first = self.parts(no_tensor_first=True)[0]
        self.assertEqual(answer(self.ok("run", "-m", first, *PROMPT)), whole)

    def test_info_counts_the_parts(self):
        parts = self.parts()
        info = self.ok_json("info", parts[0])
        self.assertEqual(info["files"], len(parts))
        self.assertEqual(info["size"], sum(part.stat().st_size for part in parts))
        self.assertEqual(info["parameters"], self.ok_json("info", self.model.base)["parameters"])
        self.assertIn(f"and the other {len(parts) - 1} parts", self.ok("info", parts[0]).stdout)

    def test_files_made_of_parts_are_whole(self):
        first = self.parts()[0]
        made = {}
        for name, base in (("whole", self.model.base), ("parts", first)):
            quantized, bundle = self.work / f"{name}-q8.gguf", self.work / f"{name}-bundle.gguf"
            self.ok("quantize", base, quantized, "Q8_0")
            self.ok("export", self.model.sidecar, "-m", base, "-o", bundle, "--as", "bundle")
            made[name] = (quantized.read_bytes(), bundle.read_bytes())
        self.assertEqual(made["parts"], made["whole"])

    def test_training_and_evaluation(self):
        first = self.parts()[0]
        data = self.work / "data"
        self.ok("data", "listops", "--out", data, "--train", 8, "--valid", 4, "--test", 4)
        losses = {}
        for name, base in (("whole", self.model.base), ("parts", first)):
            self.ok("train", "-m", base, "--method", "cot", "--data", data, "--out", self.work / name, "--updates", 2)
            lines = (self.work / name / "metrics.jsonl").read_text().splitlines()
            losses[name] = [json.loads(line).get("loss") for line in lines]
        self.assertEqual(losses["parts"], losses["whole"])
        self.ok("eval", "-m", first, "--data", data / "test.jsonl", "--limit", 2, "-n", 4)

    def test_wrong_parts(self):
        parts = self.parts()
        self.error(1, rf"part 2 of {len(parts)}.*\nhint: give \S*base-00001-of", "run", "-m", parts[1], *PROMPT[:-1])
        shutil.copy(parts[1], parts[2])
        self.error(1, r"00003-of-.*expected part 3.*found part 2", "run", "-m", parts[0], *PROMPT[:-1])
        parts[2].unlink()
        self.error(1, r"00003-of-.*is missing", "info", parts[0])


if __name__ == "__main__":
    unittest.main()
