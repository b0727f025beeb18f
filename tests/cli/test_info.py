"""penelope info: a screenful for people, one object for programs."""

import unittest

from support import ModelTest, run


class InfoTest(ModelTest):
    def test_sidecar_and_backbone(self):
        text = self.ok("info", self.model.sidecar).stdout
        for word in ("sidecar", "interval", "[4, 6)", "K = 3"):
            self.assertIn(word, text)
        report = self.ok_json("info", self.model.sidecar, "--tensors")
        self.assertEqual(report["status"], "ok")
        self.assertEqual(report["parameters"]["total"], report["parameters"]["lora"] + report["parameters"]["penelope"])
        self.assertIn("penelope.memory.anchor", [tensor["name"] for tensor in report["tensors"]])
        base = self.ok_json("info", self.model.base)
        self.assertEqual((base["architecture"], base["kind"], base["type"]), ("llama", "backbone", "F32"))
        self.assertGreater(base["memory"]["weights"], 0)
        self.assertGreater(base["memory"]["per_token"], 0)

    def test_bad_files(self):
        empty = self.work / "empty.gguf"
        empty.write_bytes(b"")
        for path in (empty, self.work / "none.gguf", __file__):
            result = run("info", path)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertRegex(result.stderr, r"^error: .*\n(hint: .*\n)?$")


if __name__ == "__main__":
    unittest.main()
