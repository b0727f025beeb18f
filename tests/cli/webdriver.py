"""A browser for tests: Debian's Chromium, driven through chromedriver's HTTP interface. Standard library only."""

import base64
import http.client
import json
import shutil
import subprocess
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"enter": "\ue007", "escape": "\ue00c", "alt": "\ue00a", "up": "\ue013", "down": "\ue015"}


def available():
    return shutil.which("chromedriver") is not None and shutil.which("chromium") is not None


class Browser:
    def __init__(self, width=1200, height=900, dark=False):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.session = None
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.port = int(line.rsplit(" ", 1)[1].rstrip(".\n"))
                break
        else:
            raise AssertionError("chromedriver does not start")
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 f"--window-size={width},{height}"] + (["--force-dark-mode"] if dark else [])
        options = {"goog:chromeOptions": {"args": flags, "binary": shutil.which("chromium")},
                   "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": options}})["sessionId"]

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            prefix = f"/session/{self.session}" if self.session else ""
            connection.request(method, prefix + path, json.dumps(body) if body is not None else None)
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{path}: {value['error']}: {value['message'][:500]}")
        return value

    def open(self, address):
        self.call("POST", "/url", {"url": address})

    def run(self, script, *args):
        """The value of a JavaScript function's body."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def wait(self, script, *args, timeout=60):
        deadline = time.monotonic() + timeout
        while True:
            value = self.run(script, *args)
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"never true: {script}; the page: {self.run('return document.body.innerText')[-800:]!r}")
            time.sleep(0.05)

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def size(self, width, height):
        self.call("POST", "/window/rect", {"width": width, "height": height})

    def log(self):
        return self.call("POST", "/se/log", {"type": "browser"})

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(20)
            self.driver.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
