"""A backbone whose layers are spread over devices: the results of one device, whatever the cut, and what cannot be spread."""

import json
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

from support import BIN, GOLDEN, ModelTest, clean_environment, run
from test_rpc import SERVER, Server, read_tensors

# The device suite, made beside the program.
INFERENCE = Path(BIN).parent.parent / "tests" / "device.inference"


class Split(ModelTest):
    def servers(self, n=2):
        started = [Server(self) for _ in range(n)]
        return started, ("--rpc", ",".join(server.endpoint for server in started))

    def golden(self, name):
        """Backbone and sidecar of a golden case as files."""
        base, sidecar = self.work / f"{name}.gguf", self.work / f"{name}-sidecar.gguf"
        self.model.convert(GOLDEN / name / "model", base)
        self.model.convert(GOLDEN / name / "penelope", sidecar, "--base", base, "--lora", GOLDEN / name / "lora")
        return base, sidecar

    def dumped(self, base, sidecar, *args):
        out = self.work / "states.safetensors"
        ran = self.ok_json("run", "-m", base, "--sidecar", sidecar, "-p", "two words", "-n", 6, "-K", 3, "-ctk", "f32", "--dump", out, "--force", *args)
        return ran, read_tensors(out)

    def test_states_and_answers_are_those_of_one_device(self):
        """Cuts before, inside and after the interval, and between both kinds of layers of a hybrid backbone."""
        _, rpc = self.servers()
        for name in ("middle", "qwen35"):
            base, sidecar = self.golden(name)
            n_layer = json.loads((GOLDEN / name / "model" / "config.json").read_text())["num_hidden_layers"]
            here, expected = self.dumped(base, sidecar, "-dev", "CPU")
            for first in range(1, n_layer):
                for split in (f"CPU={first},RPC0={n_layer - first}", f"RPC1={first},RPC0={n_layer - first}", f"rpc1={first},cpu={n_layer - first}"):
                    with self.subTest(name=name, split=split):
                        there, got = self.dumped(base, sidecar, "--split", split, *rpc)
                        self.assertEqual(there["tokens"], here["tokens"])
                        self.assertEqual(there["layer_applications"], here["layer_applications"])
                        self.assertEqual(there["device"], "+".join(part.split("=")[0] for part in split.upper().split(",")))
                        self.assertEqual(got.keys(), expected.keys())
                        for tensor, values in expected.items():
                            for a, b in zip(values, got[tensor], strict=True):
                                self.assertTrue(abs(a - b) <= 2e-4 * max(1.0, abs(a)), (tensor, a, b))

    @unittest.skipUnless(INFERENCE.exists(), "the device suite is not built")
    def test_the_reference_holds(self):
        """All that a device has to compute right: golden states, answers, Coconut, batches, sweeps, any length of prompt."""
        for split in ("CPU,RPC0", "RPC0,RPC1", "RPC0,CPU,RPC1"):
            started, _ = self.servers()
            done = subprocess.run([str(INFERENCE)], capture_output=True, text=True, timeout=300,
                                  env=clean_environment({"PENELOPE_TEST_DEVICE": "split:" + split,
                                                         "PENELOPE_TEST_RPC": ",".join(server.endpoint for server in started)}))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_command_that_answers(self):
        _, rpc = self.servers()
        files = ("-m", self.model.base, "--sidecar", self.model.sidecar)
        split = ("--split", "CPU,RPC0", *rpc)
        questions = self.work / "questions.jsonl"
        questions.write_text("".join(json.dumps({"id": str(i), "question": text, "steps": [], "answer": "x"}) + "\n"
                                     for i, text in enumerate(("Tom is", "Max is a", "one", "two words"))))
        for command in (("run", *files, "--batch", questions, "-n", 5), ("eval", *files, "--data", questions, "-K", "0-2", "-n", 5, "--json")):
            here, there = self.ok(*command, "-dev", "CPU").stdout, self.ok(*command, *split).stdout
            for line, other in zip(here.splitlines(), there.splitlines(), strict=True):
                a, b = json.loads(line), json.loads(other)
                for key in ("tokens", "text", "finish_reason", "layer_applications"):
                    self.assertEqual(a.get(key), b.get(key))
                times = re.compile("ms|sd|second")
                pick = lambda rows: [{key: value for key, value in row.items() if not times.search(key)} for row in rows or []]
                self.assertEqual(pick(a.get("results")), pick(b.get("results")))
        chat = ("chat", *files, "-n", 4, "--json")
        self.assertEqual([json.loads(line)["text"] for line in self.ok(*chat, "-dev", "CPU", stdin="Tom is\nMax is\n").stdout.splitlines()],
                         [json.loads(line)["text"] for line in self.ok(*chat, *split, stdin="Tom is\nMax is\n").stdout.splitlines()])
        watched = self.ok("run", *files, "-p", "Tom is", "-K", 2, "-n", 3, "--watch", *split)
        self.assertRegex(watched.stderr, "step|K|t ?=|1")

    def test_placement_is_shown(self):
        _, rpc = self.servers()
        said = self.ok("run", "-v", "-m", self.model.base, "-p", "a", "-n", 1, "--split", "CPU=1,RPC1=5", *rpc).stderr
        self.assertRegex(said, r"layer 0, embedding on CPU \(.*\), [0-9.]+ [KM]i?B")
        self.assertRegex(said, r"layers 1-5, head on RPC1 \(")
        self.assertEqual(len(self.ok_json("info", self.model.base, "--split", "memory", *rpc)["placement"]), 2)
        self.assertRegex(self.ok("info", self.model.base, "--split", "RPC0,CPU", *rpc).stdout, r"placement\n  layer.* on RPC0 .*\n  layer.* on CPU")

    def test_a_step_and_a_token_do_not_send_the_graph_again(self):
        _, rpc = self.servers(1)
        rows = json.loads(self.ok("bench", "-m", self.model.base, "--split", "CPU=5,RPC0=1", *rpc, "-r", 1, "-o", "json", "--prompt", 0, "--gen", 64).stdout)
        self.assertEqual((rows[0]["unit"], rows[0]["device"]), ("token", "CPU+RPC0"))
        self.assertGreater(rows[0]["unit_sent_bytes"], 0)
        self.assertLess(rows[0]["unit_sent_bytes"], 8192)
        # The interval lies on the server as a whole: a step costs the description of its nodes and no row.
        rows = json.loads(self.ok("bench", "-m", self.model.base, "--interval", "5:6", "--split", "CPU=5,RPC0=1", *rpc, "-r", 1, "-o", "json",
                                  "--methods", "penelope:4").stdout)
        step = next(row for row in rows if row["unit"] == "step")
        self.assertGreater(step["unit_sent_bytes"], 0)
        self.assertLess(abs(step["unit_received_bytes"]), 512)

    def test_what_cannot_be_spread_is_refused(self):
        _, rpc = self.servers()
        ask = ("run", "-m", self.model.base, "-p", "a")
        for code, pattern, args in (
            (2, r"gives out 3 layers, the model has 6", ("--split", "CPU=1,RPC0=2")),
            (2, r"gives out 9 layers, the model has 6", ("--split", "CPU=1,RPC0=8")),
            (2, r"'GPU9' is no device\nhint: known devices: .*RPC0", ("--split", "CPU=1,GPU9=3")),
            (2, r"CPU is named twice", ("--split", "CPU=1,CPU=3")),
            (2, r"some devices have a number of layers", ("--split", "CPU=1,RPC0")),
            (2, r"'x' is no number of layers", ("--split", "CPU=x,RPC0=3")),
            (2, r"'0' is no number of layers", ("--split", "CPU=0,RPC0=4")),
            (2, r"'-1' is no number of layers", ("--split", "CPU=-1,RPC0=5")),
            (2, r"'' is no device", ("--split", "CPU=2,,RPC0=2")),
            (2, r"exclude each other", ("--split", "CPU=1,RPC0=3", "-dev", "CPU")),
            (2, r"--split: empty list", ("--split", "")),
        ):
            self.error(code, pattern, *ask, *args, *rpc)
        self.error(2, r"there is no device but the CPU", *ask, "--split", "memory")
        self.error(2, r"unknown option of 'penelope train'\nhint: training runs on one device", "train", "-m", self.model.base, "--split", "CPU=1,RPC0=3")

    def test_a_lost_server_is_one_error(self):
        started, rpc = self.servers()
        running = subprocess.Popen([BIN, "run", "-m", str(self.model.endless), "-p", "a", "-n", "60000", "-c", "65536", *rpc,
                                    "--split", "CPU=1,RPC0=2,RPC1=3"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=clean_environment())
        time.sleep(2)
        self.assertIsNone(running.poll(), "it is still writing")
        started[1].kill()
        begin = time.monotonic()
        _, err = running.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(running.returncode, 1, err)
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, err)
        self.assertIn("the connection is lost", errors[0])


if __name__ == "__main__":
    if not SERVER.exists() or "RPC" not in run("--version").stdout:
        print("skipped: ggml was built without RPC")
        sys.exit(77)
    unittest.main()
