"""convert and quantize as a user meets them: reports, refusals, and nothing left behind."""

import json
import os
import unittest

from support import GOLDEN, ModelTest


class FilesTest(ModelTest):
    def test_convert_reports_what_it_wrote(self):
        out = self.work / "m.gguf"
        result = self.ok_json("convert", GOLDEN / "last" / "model", "-o", out, "--type", "q8_0")
        self.assertEqual((result["kind"], result["type"], result["path"]), ("model", "Q8_0", str(out)))
        self.assertGreater(result["parameters"], 100000)
        self.assertEqual(os.listdir(self.work), ["m.gguf"])

    def test_existing_files_need_force(self):
        out = self.work / "m.gguf"
        out.write_text("precious")
        self.error(1, "--force", "convert", GOLDEN / "last" / "model", "-o", out)
        self.assertEqual(out.read_text(), "precious")
        self.ok("convert", GOLDEN / "last" / "model", "-o", out, "--force")
        self.assertTrue(out.read_bytes().startswith(b"GGUF"))

    def test_wrong_requests(self):
        out = self.work / "m.gguf"
        self.error(1, "nowhere", "convert", "nowhere", "-o", out)
        self.error(2, "base", "convert", GOLDEN / "last" / "penelope", "-o", out)
        self.error(2, "q9", "convert", GOLDEN / "last" / "model", "-o", out, "--type", "q9")
        self.error(2, "-o, --out", "convert", GOLDEN / "last" / "model")
        self.error(2, "TYPE is missing", "quantize", self.model.base, out)
        self.error(2, "PATTERN=TYPE", "quantize", self.model.base, out, "q8_0", "--tensor-type", "attn_v")
        self.assertEqual(os.listdir(self.work), [])

    def test_quantize(self):
        out = self.work / "q.gguf"
        dry = self.ok_json("quantize", self.model.base, out, "q8_0", "--dry-run")
        self.assertFalse(dry["written"])
        self.assertFalse(out.exists())
        done = self.ok_json("quantize", self.model.base, out, "q8_0")
        self.assertEqual(done["bytes_out"], dry["bytes_out"])
        self.error(2, "--allow-requantize", "quantize", out, self.work / "r.gguf", "q4_0")
        answer = self.ok_json("run", "-m", out, "--sidecar", self.model.sidecar, "-p", "x", "-n", 2)
        self.assertEqual(answer["method"], "penelope")

    def test_export(self):
        question = ("-p", "Tom is a impus.", "-n", 4)
        expected = self.ok_json("run", "-m", self.model.base, "--sidecar", self.model.sidecar, *question)
        bundle = self.work / "bundle.gguf"
        self.ok_json("export", self.model.sidecar, "-m", self.model.base, "-o", bundle, "--as", "bundle")
        self.assertEqual(self.ok_json("run", "-m", bundle, *question)["tokens"], expected["tokens"])

        folder = self.work / "penelope"
        self.ok_json("export", self.model.sidecar, "-m", self.model.base, "-o", folder, "--as", "penelope")
        self.assertEqual((folder / "penelope.safetensors").read_bytes(), (GOLDEN / "last" / "penelope" / "penelope.safetensors").read_bytes())

        self.error(2, "-m BASE", "export", self.model.sidecar, "-o", self.work / "x", "--as", "peft")
        self.error(2, "not one of penelope, peft", "export", self.model.sidecar, "-o", self.work / "x", "--as", "onnx")

    def test_sidecars_take_q8_0_unless_told(self):
        out = self.work / "s.gguf"
        self.assertEqual(self.ok_json("quantize", self.model.sidecar, out)["type"], "Q8_0")
        types = {tensor["name"]: tensor["type"] for tensor in self.ok_json("info", out, "--tensors")["tensors"]}
        self.assertEqual(types["penelope.memory.gru.input.weight"], "Q8_0")
        self.assertEqual(types["penelope.time.out.weight"], "F32")

    def test_a_directory_gets_the_usual_name(self):
        model, lora = GOLDEN / "last" / "model", GOLDEN / "last" / "lora"
        self.ok("convert", model, "-o", self.work, "--type", "q8_0")
        self.ok("convert", lora, "-o", self.work, "--base", self.model.base)
        self.ok("convert", GOLDEN / "last" / "penelope", "-o", self.work, "--base", self.model.base)
        self.ok("quantize", self.model.sidecar, self.work)
        self.assertEqual(sorted(os.listdir(self.work)),
                         ["lora-27K-F32-LoRA.gguf", "model-287K-Q8_0.gguf", "model-penelope-golden-67K-F32.gguf",
                          "model-penelope-golden-94K-Q8_0.gguf"])

    def test_an_exported_file_gets_its_usual_name_in_a_directory(self):
        for kind, name in (("lora", "model-penelope-golden-27K-F32-LoRA.gguf"), ("bundle", "model-penelope-golden-bundle-381K-F32.gguf"),
                           ("merged", "model-merged-287K-F32.gguf")):
            result = self.ok_json("export", self.model.sidecar, "-m", self.model.base, "-o", self.work, "--as", kind)
            self.assertEqual(result["path"], str(self.work / name))
            self.assertEqual(self.ok_json("info", self.work / name)["path"], str(self.work / name))
        self.error(1, "--force", "export", self.model.sidecar, "-m", self.model.base, "-o", self.work, "--as", "bundle")
        typed = self.ok_json("export", self.model.sidecar, "-m", self.model.base, "-o", self.work, "--as", "merged", "--type", "q8_0")
        self.assertEqual(typed["path"], str(self.work / "model-merged-287K-Q8_0.gguf"))


if __name__ == "__main__":
    unittest.main()
