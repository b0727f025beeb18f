"""The page of `penelope serve` in a real browser: ask, watch, stop, change K, compare, reload, server gone and back.

Skipped when Chromium and its driver are not there. PENELOPE_TEST_PICTURES names a folder for screenshots.
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

import scripted
from serving import Serve
from support import ModelTest, TinyModel
from test_reasoning import FOLLOWS, n_tokens, turns
from webdriver import KEYS, Browser, available

READY = "return typeof props !== 'undefined' && props !== null"
DONE = "return [...document.querySelectorAll('.way')].filter(w => w.dataset.done).length >= arguments[0]"
QUESTION = "Bt aC rz DD bH oM VD JJ WX Fr zJ IF uu Na tu io MT PW vi HP ZN jg dB XV CI Td gb ?Z"


class BrowserTest(ModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self, server):
        self.browser.open(server.address + "/")
        self.browser.wait(READY)

    def picture(self, name):
        folder = os.environ.get("PENELOPE_TEST_PICTURES")
        if folder:
            self.browser.picture(str(Path(folder) / f"{name}.png"))

    def ask(self, text):
        self.browser.run("document.getElementById('text').value = ''")
        self.browser.type("#text", text + KEYS["enter"])


class PageTest(BrowserTest):
    def steps(self, n):
        self.browser.run("setSteps(arguments[0])", n)

    def columns(self):
        return self.browser.run("return [...document.querySelectorAll('.way')].map(w => w.querySelectorAll('.mind tr:first-child th').length)")

    def test_latent(self):
        browser = self.browser
        with Serve("--ignore-mismatch") as server:
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

    def test_demo(self):
        browser = self.browser
        with Serve() as server:
            self.open(server)
            browser.wait("return document.getElementById('demo').dataset.done")
            browser.run("pause(); showStep(0)")
            said = ""
            for _ in range(8):
                browser.click("#forward")
                said += browser.run("return document.querySelector('.node.held text').textContent")
            self.assertEqual(said, "NaCIFrzJ")
            self.assertEqual(browser.run("return demo.lanes.latent.text"), "J")
            self.assertEqual(browser.run("return [...document.querySelectorAll('.lane')].filter(l => !l.hidden).map(l => l.id)"),
                             ["lane-latent", "lane-zero"])  # a server has one model
            self.picture("demo")
            self.assertEqual([e["message"] for e in browser.log() if e["level"] == "SEVERE"], [])
        with Serve("-m", self.model.endless, "--sidecar", self.endless_sidecar(), "-c", 300) as server:
            self.open(server)
            self.assertTrue(browser.run("return document.getElementById('demo').hidden"))

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

    def test_the_settings_of_the_server_hold_until_others_are_chosen(self):
        browser = self.browser
        with Serve("-m", self.model.endless, "--sidecar", self.endless_sidecar(), "-c", 300, "--temp", 0.5, "-n", 7) as server:
            self.open(server)
            self.assertEqual(browser.run("return ['temp', 'limit'].map(id => document.getElementById(id).placeholder)"), ["0.5", "7"])
            browser.run("window.sent = []; const real = window.fetch; window.fetch = (where, how) => {"
                        "if (how && how.body) sent.push(JSON.parse(how.body)); return real(where, how); }")
            self.ask("abc")
            browser.wait(DONE, 1)
            self.assertEqual(server.metric("tokens_predicted_total"), 7)
            browser.run("document.getElementById('temp').value = '0.25'; document.getElementById('limit').value = '3'")
            self.ask("abc")
            browser.wait(DONE, 2)
            self.assertEqual(server.metric("tokens_predicted_total"), 10)
            first, second = browser.run("return sent")
            self.assertEqual((first.get("temperature"), first.get("max_tokens")), (None, None))
            self.assertEqual((second["temperature"], second["max_tokens"]), (0.25, 3))
            copied = browser.run("return [asPython(), asCurl()]")
            self.assertIn("temperature=0.25,\n    max_tokens=3,", copied[0])
            self.assertIn('"temperature":0.25,"max_tokens":3', copied[1])
            browser.run("document.getElementById('temp').value = document.getElementById('limit').value = ''")
            for text in browser.run("return [asPython(), asCurl()]"):
                self.assertNotRegex(text, "temperature|max_tokens")


class ThinkingTest(BrowserTest):
    """A model that writes <think>: "ab" is its thought, "cd" its answer."""

    SHOWN = "return [...document.querySelectorAll('.way')].map(w => [w.querySelector('.thoughts div').textContent, w.querySelector('.text').textContent])"

    def serve(self, *args):
        if scripted.template() is None and not os.environ.get("PENELOPE_TEST_REQUIRE_FILES"):
            self.skipTest("the chat templates of llama.cpp are not there: see PENELOPE_TEST_VOCAB_DIR")
        scripted.write_model(self.work / "hf", FOLLOWS, scripted.template())
        base = self.work / "base.gguf"
        TinyModel.convert(self.work / "hf", base)
        server = Serve("-m", base, "--slots", 1, *args)
        self.addCleanup(server.close)
        return server

    def test_thoughts_and_answer(self):
        browser, server = self.browser, self.serve()
        self.open(server)
        self.ask("hi")
        browser.wait(DONE, 1)
        self.assertEqual(browser.run(self.SHOWN), [["ab", "cd"]])
        thoughts = browser.run("const t = document.querySelector('.thoughts'); return [t.hidden, t.open]")
        self.assertEqual(thoughts, [False, False])  # there, and closed since the answer began
        self.picture("thoughts")
        # The next question comes after the first and its answer.
        before = server.metric("prompt_tokens_total")
        self.ask("ho")
        browser.wait(DONE, 2)
        self.assertEqual(browser.run(self.SHOWN), [["ab", "cd"]] * 2)
        self.assertEqual(server.metric("prompt_tokens_total") - before, n_tokens(turns(("user", "hi"), ("assistant", "cd"), ("user", "ho"))))
        self.assertEqual([e["message"] for e in browser.log() if e["level"] == "SEVERE"], [])

    def test_cut_off_while_thinking(self):
        browser, server = self.browser, self.serve("-n", 2)
        self.open(server)
        self.ask("hi")
        browser.wait(DONE, 1)
        self.assertEqual(browser.run(self.SHOWN), [["ab", ""]])
        self.assertEqual(browser.run("const t = document.querySelector('.thoughts'); return [t.hidden, t.open]"), [False, True])
        self.assertIn("length", browser.run("return document.querySelector('.figures').textContent"))
        self.assertEqual(browser.run("return messages"), [{"role": "user", "content": "hi"},
                                                          {"role": "assistant", "content": "", "reasoning_content": "ab"}])

    def test_a_model_that_does_not_think_shows_no_thoughts(self):
        with Serve("-m", self.model.make_instruct("quiet")[0], "-n", 3) as server:
            self.open(server)
            self.ask("hi")
            self.browser.wait(DONE, 1)
            self.assertTrue(self.browser.run("return document.querySelector('.thoughts').hidden"))


if __name__ == "__main__":
    if not available():
        print("Chromium and chromedriver are not there")
        sys.exit(77)
    unittest.main()
