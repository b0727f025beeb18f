"""Inference on RPC servers of this machine: the answers of the CPU, and what happens when a server is not what it should be."""

import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from support import BIN, ModelTest, clean_environment, run

SERVER = Path(BIN).with_name("penelope-rpc-server")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server on the loopback, gone at the end of the test."""

    def __init__(self, test):
        self.endpoint = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen([str(SERVER), self.endpoint, "CPU", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=clean_environment())
        test.addCleanup(self.kill)
        host, port = self.endpoint.split(":")
        for _ in range(200):
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server does not listen")

    def kill(self):
        self.process.kill()
        self.process.wait()


def listen(test, answer):
    """A listener that gives every client this answer, or none, and its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    test.addCleanup(listener.close)
    kept = []

    def serve():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            kept.append(client)
            if answer:
                client.recv(1024)
                client.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return "127.0.0.1:%d" % listener.getsockname()[1]


def read_tensors(path):
    """The F32 tensors of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[8 + length + begin:8 + length + end])
    return tensors


class Rpc(ModelTest):
    def latent(self, *args):
        return ("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-p", "two words", "-K", 3, "-n", 6, *args)

    def test_servers_are_devices(self):
        first, second = Server(self), Server(self)
        listed = self.ok("--list-devices", "--rpc", f"{first.endpoint},{second.endpoint}").stdout
        self.assertRegex(listed, f"RPC0 .*{first.endpoint}")
        self.assertRegex(listed, f"RPC1 .*{second.endpoint}")

    def test_a_server_computes_what_the_cpu_does(self):
        servers = [Server(self), Server(self)]
        here = self.ok_json(*self.latent("--dump", self.work / "here.safetensors", "-dev", "CPU"))
        expected = read_tensors(self.work / "here.safetensors")
        for name in ("RPC0", "RPC1"):
            there = self.ok_json(*self.latent("--dump", self.work / f"{name}.safetensors", "-dev", name, "--rpc",
                                              ",".join(server.endpoint for server in servers)))
            self.assertEqual(there["tokens"], here["tokens"])
            self.assertEqual(there["device"], name)
            got = read_tensors(self.work / f"{name}.safetensors")
            self.assertEqual(got.keys(), expected.keys())
            for tensor, values in expected.items():
                for a, b in zip(values, got[tensor], strict=True):
                    self.assertTrue(abs(a - b) <= 2e-4 * max(1.0, abs(a)), (tensor, a, b))

    def test_a_token_does_not_send_the_graph_again(self):
        server = Server(self)

        def sent(*args):
            (row,) = json.loads(self.ok("bench", "-m", self.model.base, "--rpc", server.endpoint, "-dev", "RPC0", "-r", 1, "-o", "json",
                                        "--prompt", 0, *args).stdout)
            return row["sent_bytes"]

        # From the 33rd token on there is one graph for 32 tokens.
        per_token = (sent("--gen", 60) - sent("--gen", 40)) / 20
        self.assertGreater(per_token, 0)
        self.assertLess(per_token, 8192, "a graph of this model has 30 KB and more")

    def quick_error(self, pattern, *args, code=1):
        begin = time.monotonic()
        self.error(code, pattern, *self.latent("-dev", "RPC0", *args), timeout=60)
        self.assertLess(time.monotonic() - begin, 10)

    def test_what_cannot_serve_is_refused(self):
        self.quick_error("Connection refused", "--rpc", f"127.0.0.1:{free_port()}")
        self.quick_error("does not answer", "--rpc", listen(self, b""))
        self.quick_error("speaks version 5.1", "--rpc", listen(self, struct.pack("<QBBBB24x", 28, 5, 1, 0, 0)))
        self.quick_error("does not speak the protocol", "--rpc", listen(self, b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        for wrong in ("localhost", "localhost:", "localhost:x", ":1", "localhost:70000"):
            self.quick_error("is not HOST:PORT", "--rpc", wrong, code=2)

    def test_a_server_that_goes_away_is_an_error(self):
        for json_wanted in (False, True):
            server = Server(self)
            started = subprocess.Popen([BIN, "run", "-m", str(self.model.endless), "-p", "a", "-n", "60000", "-c", "65536", "--rpc", server.endpoint,
                                        "-dev", "RPC0", *(["--json"] if json_wanted else [])],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=clean_environment())
            time.sleep(2)
            self.assertIsNone(started.poll(), "it is still writing")
            server.kill()
            begin = time.monotonic()
            out, err = started.communicate(timeout=60)
            self.assertLess(time.monotonic() - begin, 10)
            self.assertEqual(started.returncode, 1, err)
            if json_wanted:
                self.assertEqual(json.loads(out)["status"], "error")
                self.assertIn(server.endpoint, json.loads(out)["message"])
            else:
                self.assertEqual([line for line in err.splitlines() if line.startswith("error: ")],
                                 [f"error: RPC server {server.endpoint}: the connection is lost"])

    def test_training_needs_operations_a_server_lacks(self):
        server = Server(self)
        data = self.work / "data"
        self.ok("data", "listops", "--out", data, "--train", 8, "--valid", 2, "--test", 2, "--depth", "1-2", "--test-depth", "1-2")
        done = self.ok_json("train", "-m", self.model.base, "--method", "cot", "--data", data, "--out", self.work / "run", "--dry-run",
                            "--rpc", server.endpoint, "-dev", "RPC0", "--skip-long")
        self.assertIsInstance(done["missing_operations"], list)


if __name__ == "__main__":
    if not SERVER.exists() or "RPC" not in run("--version").stdout:
        print("skipped: ggml was built without RPC")
        sys.exit(77)
    unittest.main()
