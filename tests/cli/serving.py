"""A running `penelope serve` for tests: asks it over plain HTTP, on 127.0.0.1 and a free port."""

import http.client
import json
import re
import signal
import subprocess
import time

from support import BIN, clean_environment


class Serve:
    def __init__(self, *args, env=None, program=BIN):
        port = [] if "--port" in args else ["--port", "0"]
        self.process = subprocess.Popen([program, "serve", "--json", *port, *map(str, args)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=clean_environment(env))
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.stderr.read())
        self.facts = json.loads(line)
        self.address = self.facts["address"]
        self.port = int(self.address.rsplit(":", 1)[1])

    def connect(self, timeout=120):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, path, body=None, method=None, headers=None):
        """Status, headers and body; JSON is parsed."""
        connection = self.connect()
        try:
            data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
            connection.request(method or ("GET" if body is None else "POST"), path, data,
                               {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
            return answer.status, dict(answer.getheaders()), json.loads(text) if is_json else text
        finally:
            connection.close()

    def good(self, path, body=None, **kwargs):
        status, _, answer = self.ask(path, body, **kwargs)
        if status != 200:
            raise AssertionError(f"{path}: {status} {answer}")
        return answer

    def chat(self, text, **fields):
        return self.good("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **fields})

    def stream(self, path, body):
        """The events of a stream, as they come; "[DONE]" as a string."""
        connection = self.connect()
        try:
            connection.request("POST", path, json.dumps({**body, "stream": True}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise AssertionError(f"{answer.status} {answer.read()}")
            for line in answer:
                line = line.decode().rstrip("\n")
                if line.startswith("data: "):
                    yield line[6:] if line == "data: [DONE]" else json.loads(line[6:])
        finally:
            connection.close()

    def metric(self, name):
        for line in self.good("/metrics").splitlines():
            if line.startswith(f"penelope:{name} "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    def wait_metric(self, name, wanted, timeout=20):
        deadline = time.monotonic() + timeout
        while True:
            found = self.metric(name)
            if wanted(found):
                return found
            if time.monotonic() > deadline:
                raise AssertionError(f"{name} is still {found}")
            time.sleep(0.05)

    def wait_log(self, pattern):
        """Waits for a line on stderr; started with -v the server tells what it does."""
        seen = ""
        while line := self.process.stderr.readline():
            if re.search(pattern, line):
                return line
            seen += line
        raise AssertionError(f"the server ended without {pattern!r}; it said {seen[-500:]!r}")

    def wait_read(self, client, timeout=20):
        """Waits until the server has read all that was sent through a socket to it."""
        ends = [f":{port:04X}" for port in (self.port, client.getsockname()[1])]
        deadline = time.monotonic() + timeout
        while True:
            with open("/proc/net/tcp") as table:  # sl local remote state tx_queue:rx_queue ...
                rows = [line.split() for line in table]
            queues = [row[4] for row in rows if row[1].endswith(ends[0]) and row[2].endswith(ends[1])]
            if len(queues) == 1 and int(queues[0].split(":")[1], 16) == 0:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"unread at the server: {queues}")
            time.sleep(0.01)

    def wait_status(self, path, status, timeout=20):
        """Asks until the answer has this status."""
        deadline = time.monotonic() + timeout
        while (found := self.ask(path)[0]) != status:
            if time.monotonic() > deadline:
                raise AssertionError(f"{path} still has status {found}")
            time.sleep(0.02)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def wait(self, timeout=30):
        code = self.process.wait(timeout)
        return code, self.process.stderr.read()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
