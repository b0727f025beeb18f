"""Directories and files made to break a reader: each is refused in a line that names the file, soon and in little memory."""

import json
import os
import shutil
import struct
import subprocess
import unittest

from support import BIN, GOLDEN, ModelTest, clean_environment

GIGABYTE = 1 << 30
DEEP = b'{"a":' * 10000 + b"1" + b"}" * 10000


class BadInputTest(ModelTest):
    def copy(self, kind):
        target = self.work / kind
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(GOLDEN / "last" / kind, target)
        return target

    def refused(self, pattern, folder, *args):
        """The conversion fails with one message, leaves nothing and takes less than 200 MB."""
        out = self.work / "out.gguf"
        process = subprocess.Popen([BIN, "convert", str(folder), "-o", str(out), *map(str, args)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=clean_environment())
        stdout, stderr = process.stdout.read(), process.stderr.read().decode()
        process.stdout.close()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual((process.returncode, stdout), (1, b""), stderr)
        self.assertRegex(stderr, r"^error: .*\n(hint: .*\n)?$")
        self.assertRegex(stderr, pattern)
        self.assertLess(usage.ru_maxrss, 200000)
        self.assertFalse(out.exists())

    def test_json_too_deep_or_too_long(self):
        base = ("--base", self.model.base)
        files = [("model", "config.json", ()), ("model", "tokenizer.json", ()), ("model", "tokenizer_config.json", ()),
                 ("model", "generation_config.json", ()), ("model", "model.safetensors.index.json", ()),
                 ("lora", "adapter_config.json", base), ("penelope", "penelope_config.json", base)]
        for kind, name, args in files:
            with self.subTest(file=name):
                folder = self.copy(kind)
                (folder / name).write_bytes(DEEP)
                self.refused(f"{name}.*nested deeper", folder, *args)
                with open(folder / name, "wb") as file:
                    file.write(b'{"a": "')
                    file.truncate(GIGABYTE)
                self.refused(f"{name}.*1.00 GiB of JSON", folder, *args)

    def test_safetensors_headers(self):
        def header(text, data=b""):
            return struct.pack("<Q", len(text)) + text + data

        def tensor(name, begin, end):
            return f'"{name}":{{"dtype":"U8","shape":[4],"data_offsets":[{begin},{end}]}}'

        cases = {
            "too large": struct.pack("<Q", GIGABYTE),
            "truncated inside": struct.pack("<Q", 1000) + b"{}",
            "too short": b"{}",
            "nested": header(b'{"a":' + b"[" * 10000 + b"]" * 10000 + b"}"),
            "twice": header(("{" + tensor("a", 0, 4) + "," + tensor("a", 0, 4) + "}").encode(), b"1234"),
            "overlaps": header(("{" + tensor("a", 0, 4) + "," + tensor("b", 2, 6) + "}").encode(), b"123456"),
            "outside": header(("{" + tensor("a", 4, 8) + "}").encode(), b"1234"),
            "unused bytes": header(("{" + tensor("a", 0, 4) + "}").encode(), b"12345"),
        }
        for kind, name, args in (("model", "model.safetensors", ()), ("lora", "adapter_model.safetensors", ("--base", self.model.base)),
                                 ("penelope", "penelope.safetensors", ("--base", self.model.base))):
            for pattern, content in cases.items():
                with self.subTest(file=name, case=pattern):
                    folder = self.copy(kind)
                    (folder / name).write_bytes(content)
                    self.refused(f"{name}.*{pattern}", folder, *args)
            with self.subTest(file=name, case="a header of 1 GB that is there"):
                folder = self.copy(kind)
                with open(folder / name, "wb") as file:
                    file.write(struct.pack("<Q", GIGABYTE) + b"{")
                    file.truncate(GIGABYTE + 8)
                self.refused(f"{name}.*too large", folder, *args)

    def test_model_card_of_a_gigabyte(self):
        folder = self.copy("model")
        with open(folder / "README.md", "wb") as file:
            file.write(b"---\nlicense: mit\n---\n")
            file.truncate(GIGABYTE)
        out = self.work / "out.gguf"
        self.ok("convert", folder, "-o", out)
        self.assertEqual(self.ok_json("info", out)["metadata"]["general.license"], "mit")

    def test_json_kept_in_a_sidecar(self):
        folder = self.copy("penelope")
        config = json.loads((folder / "penelope_config.json").read_text())
        config["eval_results"] = {"valid": {"n": 20, "exact": [0.25, 0.5]}}
        (folder / "penelope_config.json").write_text(json.dumps(config))
        sidecar = self.work / "s.gguf"
        self.ok("convert", folder, "-o", sidecar, "--base", self.model.base)
        self.assertIn("exact 0.25 0.5", self.ok("info", sidecar).stdout)
        good = sidecar.read_bytes()
        kept = b'{"valid":{"exact":[0.25,0.5],"n":20}}'
        self.assertIn(kept, good)
        sidecar.write_bytes(good.replace(kept, b"[" * len(kept)))
        self.error(1, "eval.results", "info", sidecar)
        self.error(1, "eval.results", "export", sidecar, "-o", self.work / "x", "--as", "penelope")
        self.assertFalse((self.work / "x").exists())


if __name__ == "__main__":
    unittest.main()
