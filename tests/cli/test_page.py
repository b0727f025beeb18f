"""The page of `penelope serve` in a real browser: ask, watch, stop, change K, compare, reload, server gone and back.

Skipped when Chromium and its driver are not there. PENELOPE_TEST_PICTURES names a folder for screenshots.
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

from serving import Serve
from support import ModelTest
from webdriver import KEYS, Browser, available

READY = "return typeof props !== 'undefined' && props !== null"
DONE = "return [...document.querySelectorAll('.way')].filter(w => w.dataset.done).length >= arguments[0]"
QUESTION = "Bt aC rz DD bH oM VD JJ WX Fr zJ IF uu Na tu io MT PW vi HP ZN jg dB XV CI Td gb ?Z"


class PageTest(ModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def picture(self, name):
        folder = os.environ.get("PENELOPE_TEST_PICTURES")
        if folder:
            self.browser.picture(str(Path(folder) / f"{name}.png"))

    def ask(self, text):
        self.browser.run("document.getElementById('text').value = ''")
        self.browser.type("#text", text + KEYS["enter"])

    def steps(self, n):
        self.browser.run("setSteps(arguments[0])", n)

    def columns(self):
        return self.browser.run("return [...document.querySelectorAll('.way')].map(w => w.querySelectorAll('.mind tr:first-child th').length)")

    def test_latent(self):
        browser = self.browser
        with Serve("--insist") as server:
            browser.open(server.address + "/")
            browser.wait(READY)
            self.picture("start")
            self.steps(2)
            self.ask(QUESTION)
            browser.wait(DONE, 1)
            self.assertEqual(self.columns(), [1 + 3])  # start, 1, 2
            rows = browser.run("return document.querySelectorAll('.mind tr').length")
            shape = server.good("/v1/latent/trace", {"prompt": QUESTION, "latent_steps": 0})["steps"][0]
            self.assertEqual(rows, 2 + len(shape["memory"]["norm"]) + len(shape["readout"]["norm"]))
            # What the steps say is what the trace says.
            trace = server.good("/v1/latent/trace", {"prompt": QUESTION, "latent_steps": 2})["steps"]
            self.assertEqual(browser.run("return [...document.querySelectorAll('td.says')].slice(1).map(c => c.textContent)"),
                             [step["features"]["top"][0][0]["text"] for step in trace[1:]])
            said = browser.run("return document.querySelector('.way .text').textContent")
            self.assertEqual(said, server.chat(QUESTION, latent_steps=2)["choices"][0]["message"]["content"])
            self.assertIn("layers in a row", browser.run("return document.querySelector('.figures').textContent"))

            # Another K by the keyboard, beside K = 0 and visible steps.
            browser.run("document.getElementById('text').focus()")
            browser.call("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": [
                {"type": "keyDown", "value": KEYS["alt"]}, {"type": "keyDown", "value": KEYS["up"]},
                {"type": "keyUp", "value": KEYS["up"]}, {"type": "keyUp", "value": KEYS["alt"]}]}]})
            self.assertEqual(browser.run("return document.getElementById('stepsOut').textContent"), "3")
            browser.click("#compare")
            self.ask(QUESTION)
            browser.wait(DONE, 4)
            self.assertEqual(self.columns()[1:], [1 + 4, 1 + 1, 0])
            titles = browser.run("return [...document.querySelectorAll('.way h2')].map(h => h.textContent)")
            self.assertEqual(titles[1:], ["K = 3", "K = 0", "visible steps"])
            self.picture("compare")
            browser.click("#theme")
            self.picture("compare-other-theme")
            browser.click("#theme")

            browser.click("#curl")
            copied = browser.wait("return document.body.dataset.copied")  # the clipboard answers when it likes
            self.assertIn("/v1/chat/completions", copied)
            self.assertIn('"latent_steps":3', copied)
            browser.click("#python")
            self.assertIn('extra_body={"latent_steps": 3}', browser.wait("return document.body.dataset.copied.includes('openai') && document.body.dataset.copied"))

            # The depth outlives a reload; a narrow window does not scroll sideways.
            browser.open(server.address + "/")
            browser.wait(READY)
            self.assertEqual(browser.run("return document.getElementById('stepsOut').textContent"), "3")
            browser.size(390, 800)
            self.ask(QUESTION)
            browser.wait(DONE, 1)
            self.assertLessEqual(browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
            self.picture("phone")
            browser.size(1200, 900)
            self.assertEqual([e["message"] for e in browser.log() if e["level"] == "SEVERE"], [])

    def test_stop_and_server_gone_and_back(self):
        browser = self.browser
        server = Serve("-m", self.model.endless, "--sidecar", self.endless_sidecar(), "-c", 30000)
        self.addCleanup(server.close)
        browser.open(server.address + "/")
        browser.wait(READY)
        browser.run("document.getElementById('limit').value = 20000; document.getElementById('compare').checked = false")
        self.ask("abc def")
        browser.wait("return document.querySelector('.way .text') && document.querySelector('.way .text').textContent.length > 5")
        browser.click("#send")
        browser.wait("return document.querySelector('.figures').textContent === 'stopped'")
        server.wait_metric("slots_busy", lambda n: n == 0)

        server.process.kill()
        server.process.wait()
        self.ask("abc def")
        browser.wait("return document.getElementById('facts').textContent.includes('gone')")
        back = Serve("-m", self.model.endless, "-c", 200, "--port", server.port)
        self.addCleanup(back.close)
        browser.wait("return !document.getElementById('facts').textContent.includes('gone')")
        browser.run("document.getElementById('limit').value = 5")
        self.ask("abc")
        browser.wait("return running === null")

    def endless_sidecar(self):
        # The golden case with a long context is the same model: its sidecar fits.
        return self.model.sidecar


if __name__ == "__main__":
    if not available():
        print("Chromium and chromedriver are not there")
        sys.exit(77)
    unittest.main()
