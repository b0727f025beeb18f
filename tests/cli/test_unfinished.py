"""convert, quantize and export stopped half-way, by a signal or by a full disk: no partial output, and they say so."""

import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import time
import unittest

from support import BIN, GOLDEN, ModelTest, clean_environment


def write_large_checkpoint(path):
    """The golden backbone, wider: 27 million weights in BF16, enough work to be stopped in the middle of it."""
    shutil.copytree(GOLDEN / "last" / "model", path)
    config = json.loads((path / "config.json").read_text())
    wide = {"hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64}
    config.update(wide)
    (path / "config.json").write_text(json.dumps(config))
    old = (path / "model.safetensors").read_bytes()
    size = struct.unpack_from("<Q", old)[0]
    header, at = {}, 0
    for name, entry in json.loads(old[8:8 + size]).items():
        if name == "__metadata__":
            continue
        rows = {"q_proj": 512, "k_proj": 512, "v_proj": 512, "o_proj": 512, "gate_proj": 2048, "up_proj": 2048, "down_proj": 512}
        part = next((part for part in rows if part in name), None)
        shape = [512] if len(entry["shape"]) == 1 else [rows.get(part, config["vocab_size"]), 2048 if part == "down_proj" else 512]
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + 2 * count]}
        at += 2 * count
    text = json.dumps(header).encode()
    block = bytes(byte for i in range(4096) for byte in (i * 37 % 256, 0x3C + i % 2))  # small positive numbers
    with open(path / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for start in range(0, at, len(block)):
            file.write(block[:min(len(block), at - start)])


class UnfinishedTest(ModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.checkpoint = cls.model.path / "wide"
        write_large_checkpoint(cls.checkpoint)
        cls.wide = cls.model.path / "wide.gguf"
        cls.model.convert(cls.checkpoint, cls.wide, "--type", "F32")
        cls.lora = cls.model.path / "lora.gguf"
        cls.model.convert(GOLDEN / "last" / "lora", cls.lora, "--base", cls.model.base)

    def commands(self, out):
        """The same work in each form; every output takes a megabyte at least."""
        base, sidecar = self.model.base, self.model.sidecar
        return {
            "convert": ("convert", GOLDEN / "last" / "model", "-o", out),
            "quantize": ("quantize", base, out, "F32"),
            "export merged": ("export", self.lora, "-m", base, "-o", out, "--as", "merged"),
            "export bundle": ("export", sidecar, "-m", base, "-o", out, "--as", "bundle"),
            "export hf": ("export", base, "-o", out, "--as", "hf"),
        }

    def stopped(self, signal_number, *args):
        """Starts the command, stops it as soon as it has an unfinished output, sends the signal and lets it go on."""
        process = subprocess.Popen([BIN, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=clean_environment())
        deadline = time.monotonic() + 60
        while not os.listdir(self.work) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        self.assertTrue(all(name.startswith(".penelope-") for name in os.listdir(self.work)), "was too fast to be stopped")
        process.send_signal(signal_number)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def test_signals(self):
        out = self.work / "out"
        for name, args in {
            "convert": ("convert", self.checkpoint, "-o", out, "--type", "Q4_K"),
            "quantize": ("quantize", self.wide, out, "Q4_K"),
            "export merged": ("export", self.lora_of_wide(), "-m", self.wide, "-o", out, "--as", "merged"),
            "export hf": ("export", self.wide, "-o", out, "--as", "hf"),
        }.items():
            for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
                with self.subTest(command=name, signal=number):
                    result, stdout, stderr = self.stopped(number, *args)
                    self.assertEqual((result, stdout), (code, ""), stderr)
                    self.assertEqual(stderr, "error: interrupted: nothing was written\n")
                    self.assertEqual(os.listdir(self.work), [])
        code, stdout, _ = self.stopped(signal.SIGTERM, "quantize", self.wide, out, "Q4_K", "--json")
        self.assertEqual((code, json.loads(stdout)["kind"]), (143, "cancelled"))

    def lora_of_wide(self):
        """A PEFT adapter of rank 1 for the wide backbone, as GGUF."""
        folder, out = self.model.path / "wide-lora", self.model.path / "wide-lora.gguf"
        if out.exists():
            return out
        folder.mkdir()
        (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["q_proj"]}))
        prefix = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
        header = {prefix + "A.weight": {"dtype": "F32", "shape": [1, 512], "data_offsets": [0, 2048]},
                  prefix + "B.weight": {"dtype": "F32", "shape": [512, 1], "data_offsets": [2048, 4096]}}
        text = json.dumps(header).encode()
        (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(4096))
        self.model.convert(folder, out, "--base", self.wide)
        return out

    def test_replacing_keeps_the_old_file(self):
        out = self.work / "out"
        out.write_text("precious")
        process = subprocess.Popen([BIN, "quantize", str(self.wide), str(out), "Q4_K", "--force"], stderr=subprocess.PIPE, text=True,
                                   env=clean_environment())
        while len(os.listdir(self.work)) < 2 and process.poll() is None:
            time.sleep(0.001)
        process.terminate()
        _, stderr = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 143, stderr)
        self.assertEqual((os.listdir(self.work), out.read_text()), (["out"], "precious"))

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        out = self.work / "out"
        for name, args in self.commands(out).items():
            with self.subTest(command=name):
                done = subprocess.run([BIN, *map(str, args)], capture_output=True, text=True, env=clean_environment(), preexec_fn=limit)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                self.assertRegex(done.stderr, r"^error: .*: cannot write .*: File too large\nhint: nothing was kept; .*\n$")
                self.assertEqual(os.listdir(self.work), [])

    def test_full_disk(self):
        """On a tmpfs of 512 KB, mounted in a namespace of its own where the system allows that."""
        script = 'mount -t tmpfs -o size=512k tmpfs "$1" && { folder=$1; shift; "$@"; code=$?; ls -A "$folder"; exit $code; }'
        inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(self.work)]
        if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            inside = ["unshare", "--mount", "sh", "-c", script, "sh", str(self.work)]
            if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
                self.skipTest("no right to mount a tmpfs")
        out = self.work / "out"
        for name, args in self.commands(out).items():
            with self.subTest(command=name):
                done = subprocess.run([*inside, BIN, *map(str, args)], capture_output=True, text=True, env=clean_environment())
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)  # ls has nothing to list
                self.assertRegex(done.stderr, r"^error: .*: needs .* but only .* free on the disk\nhint: nothing was written; .*\n$")


if __name__ == "__main__":
    unittest.main()
