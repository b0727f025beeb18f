"""The page with the model inside, build/web/penelope.html, opened from disk in Chromium.

Answers are those of tests/web/answers.js under node; then what people do with the page: play, another K, another puzzle,
another arrow, the keyboard, a phone. PENELOPE_TEST_PICTURES names a folder for screenshots.
usage: test_page.py PENELOPE_HTML ANSWERS_OF_NODE.jsonl QUESTIONS.jsonl
"""

import json
import os
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from webdriver import Browser  # noqa: E402

PAGE, ANSWERS, QUESTIONS = (Path(arg).resolve() for arg in sys.argv[1:4])
EXAMPLE = "Bt aC rz DD bH oM VD JJ WX Fr zJ IF uu Na tu io MT PW vi HP ZN jg dB XV CI Td gb ?Z"
DONE = "return document.getElementById('demo').dataset.done"
ALL = """
const questions = arguments[0], done = arguments[1], texts = [];
(async () => {
  for (const question of questions) {
    let text = "";
    for await (const event of backend.ask({ latent_steps: 8, messages: [{ content: question }] })) {
      text += ((event.choices || [{}])[0].delta || {}).content || "";
    }
    texts.push(text);
  }
  return texts;
})().then(done, error => done("failed: " + error.message));
"""


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(1280, 1000)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.size(1280, 1000)
        self.browser.open(PAGE.as_uri())
        self.browser.run("localStorage.clear()")  # the depth of the test before
        self.browser.open("about:blank")
        self.browser.open(PAGE.as_uri())
        self.browser.wait(DONE, timeout=120)

    def tearDown(self):
        self.assertEqual([e["message"] for e in self.browser.log() if e["level"] == "SEVERE"], [])

    def picture(self, name):
        folder = os.environ.get("PENELOPE_TEST_PICTURES")
        if folder:
            time.sleep(0.8)  # transitions
            self.browser.picture(str(Path(folder) / f"web-{name}.png"))

    def lane(self, name):
        return self.browser.run("const l = demo.lanes[arguments[0]]; return [l.text, l.cost]", name)

    def asked_again(self, action, *args):
        before = self.browser.run(DONE)
        self.browser.run(action, *args)
        self.browser.wait("return document.getElementById('demo').dataset.done !== arguments[0]", before)

    def held(self):
        return self.browser.run("return [...document.querySelectorAll('.node.held text')].map(t => t.textContent).join('')")

    def test_answers(self):
        questions = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
        known = {}
        for line in ANSWERS.read_text().splitlines():
            one = json.loads(line)
            known[one["way"], one["id"]] = one["text"]
        started = time.monotonic()
        texts = []
        for at in range(0, len(questions), 50):
            part = self.browser.call("POST", "/execute/async", {"script": ALL, "args": [[q["question"] for q in questions[at:at + 50]]]})
            self.assertIsInstance(part, list, part)
            texts += part
        print(f"Chromium: {(time.monotonic() - started) * 1000 / len(questions):.1f} ms a question")
        self.assertEqual(texts, [known["latent", q["id"]] for q in questions])

    def test_the_puzzle_is_walked_step_by_step(self):
        browser = self.browser
        self.assertEqual(browser.run("return demo.puzzle.text"), EXAMPLE)
        browser.run("pause(); showStep(0)")
        self.assertEqual(self.held(), "Z")
        for t, letter in enumerate("NaCIFrzJ", 1):
            browser.click("#forward")
            self.assertEqual(self.held(), letter)
            caption = browser.run("return document.getElementById('caption').textContent")
            self.assertIn(f"Latent step {t} of 8", caption)
            self.assertIn(f"holds {letter}.", caption)
            # The arrow it walked along is the thickest.
            thick = browser.run("return [...demo.graph.edges].reduce((best, one) => parseFloat(one[1].glow.style.strokeWidth) > best[1] ? "
                                "[one[0], parseFloat(one[1].glow.style.strokeWidth)] : best, ['', 0])")
            self.assertEqual(thick[0], "ZNaCIFrzJ"[t - 1])
            if t == 5:
                self.picture("middle")
        browser.click("#forward")
        self.assertIn("right", browser.run("return document.querySelector('#lane-latent').className"))
        self.assertEqual(browser.run("return document.querySelector('.node.right text').textContent"), "J")
        self.assertEqual(self.lane("latent"), ["J", 21])
        self.assertEqual(self.lane("zero")[1], 5)
        self.assertEqual(self.lane("control")[1], 5)
        text, cost = self.lane("visible")
        self.assertTrue(text.strip().endswith("J"), text)
        self.assertGreater(cost, 21)
        self.assertTrue(browser.run("return document.querySelector('footer').offsetHeight === 0"))

    def test_play_pauses_at_the_answer_and_depth_decides(self):
        browser = self.browser
        browser.run("pause(); showStep(0)")
        browser.click("#play")
        browser.wait("return demo.at >= 2")
        browser.click("#play")
        at = browser.run("return demo.at")
        time.sleep(1.5)
        self.assertEqual(browser.run("return demo.at"), at)
        self.asked_again("const s = document.getElementById('demoSteps'); s.value = 3; s.dispatchEvent(new Event('input'))")
        browser.run("pause(); showStep(99)")
        self.assertNotEqual(self.lane("latent")[0], "J")
        self.assertEqual(self.lane("latent")[1], 11)
        self.assertIn("3 steps are too few", browser.run("return document.getElementById('caption').textContent"))
        self.picture("too-few")

    def test_puzzles_are_changed(self):
        browser = self.browser
        # The arrow of N is dragged from a to g: the thread goes on there.
        place = browser.run("const box = demo.graph.svg.getBoundingClientRect(), h = demo.graph.edges.get('N').group.querySelector('.handle'), "
                            "to = demo.graph.at.get('g'); return [box.left + +h.getAttribute('cx'), box.top + +h.getAttribute('cy'), box.left + to.x, box.top + to.y].map(Math.round)")
        before = browser.run(DONE)
        browser.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "m", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "x": place[0], "y": place[1]}, {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": (place[0] + place[2]) // 2, "y": (place[1] + place[3]) // 2},
            {"type": "pointerMove", "x": place[2], "y": place[3]}, {"type": "pointerUp", "button": 0}]}]})
        browser.wait("return document.getElementById('demo').dataset.done !== arguments[0]", before)
        self.assertEqual(browser.run("return demo.puzzle.text"), EXAMPLE.replace("Na", "Ng"))
        self.assertEqual(browser.run("return demo.puzzle.answer"), "D")
        self.assertEqual(self.lane("latent")[0], "D")
        self.picture("changed")
        # A circle is refused, and said to be.
        browser.run("demo.graph.on.arrow('g', 'N')")
        self.assertIn("circle", browser.run("return document.getElementById('caption').textContent"))
        # Another start by the keyboard.
        self.asked_again("demo.graph.svg.focus(); const key = k => demo.graph.svg.dispatchEvent(new KeyboardEvent('keydown', {key: k, bubbles: true}));"
                         "key('ArrowRight'); key('Enter')")
        self.assertEqual(browser.run("return demo.puzzle.start"), "N")
        # Puzzles of the generator are of the task, and the address names them.
        for _ in range(3):
            self.asked_again("document.getElementById('newPuzzle').click()")
            self.assertTrue(browser.run("const p = Puzzle.parse(demo.puzzle.text); return p && p.pairs.length === 27 && p.chains().length === 3"))
        text = browser.run("return demo.puzzle.text")
        browser.open("about:blank")
        browser.open(PAGE.as_uri() + "#q=" + text.replace(" ", "+").replace("?", "%3F") + "&K=5")
        browser.wait(DONE, timeout=120)
        self.assertEqual(browser.run("return [demo.puzzle.text, demo.steps.length]"), [text, 6])

    def test_phone_themes_and_chat(self):
        browser = self.browser
        browser.size(390, 844)
        browser.run("pause(); showStep(4)")
        browser.wait("return demo.graph.down")
        self.assertLessEqual(browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
        self.picture("phone")
        browser.run("document.querySelector('main').scrollTop = 900")
        self.picture("phone-below")
        browser.size(1280, 1000)
        browser.click("#theme")
        self.picture("other-theme")
        browser.click("#theme")
        browser.click("#chat")
        browser.type("#text", "\ue007")
        browser.wait("return document.querySelector('.way') && document.querySelector('.way').dataset.done")
        self.assertEqual(browser.run("return document.querySelector('.way .text').textContent"), "J")
        self.assertEqual(browser.run("return [...document.querySelectorAll('td.says')].map(c => c.textContent).join('')"), "NaCIFrzJ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
