"""penelope chat, driven through a pseudo-terminal and through pipes."""

import json
import os
import re
import time
import unittest

from support import ModelTest, Pty, run, without_escapes

PROMPT = r"\x1b\[\?2004h[^>]*>(?:\x1b\[0m)? "


class ChatTest(ModelTest):
    def chat(self, *args, env=None, base=None):
        terminal = Pty("chat", "-m", base or self.model.base, "--sidecar", self.model.sidecar, "-n", 8, *args, env=env)
        self.addCleanup(terminal.close)
        terminal.expect(PROMPT)
        return terminal

    def ask(self, terminal, text):
        """Sends a message and returns what was printed until the next prompt, echo and escapes removed."""
        terminal.send(text + "\r")
        terminal.expect(r"\x1b\[\?2004l")
        return without_escapes(terminal.expect(f"(.*?){PROMPT}").group(1)).replace("\r\n", "\n")

    def test_conversation(self):
        chat = self.chat()
        first = self.ask(chat, "Tom is a impus.")
        self.assertRegex(first, r"8 tokens, .* tokens/s \| length")
        self.assertRegex(first, r"penelope, K = 3")
        # With a sidecar every message stands alone.
        self.assertEqual(self.answer(first), self.answer(self.ask(chat, "Tom is a impus.")))
        chat.send("\x04")
        self.assertEqual(chat.wait(), 0)

    @staticmethod
    def answer(printed):
        return printed.split("\n")[0]

    def test_answers_are_those_of_run(self):
        chat = self.chat("-K", 1)
        expected = self.ok_json("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-n", 8, "-K", 1, "-p", "Tom is")
        self.assertIn(expected["text"], self.ask(chat, "Tom is"))

    def test_set(self):
        chat = self.chat()
        self.assertIn("K = 1", self.ask(chat, "/set K 1"))
        self.assertIn("penelope, K = 1 |", self.ask(chat, "x"))
        self.ask(chat, "/set n 2")
        self.assertIn("| 2 tokens", self.ask(chat, "x"))
        self.assertIn("error: --temp: 'hot'", self.ask(chat, "/set temp hot"))
        self.assertIn("not a setting", self.ask(chat, "/set colour blue"))
        self.assertRegex(self.ask(chat, "/set K 99"), r"error: -K 99: out of range.*0 to 8")
        self.assertIn("penelope, K = 1 |", self.ask(chat, "x"))
        self.ask(chat, "/set K 2")
        self.assertIn("penelope, K = 2 |", self.ask(chat, "x"))

    def test_watch_and_steps(self):
        chat = self.chat()
        quiet = self.ask(chat, "Tom is a impus.")
        self.assertNotIn("step 1", quiet)
        self.ask(chat, "/watch")
        self.ask(chat, "/steps 2")
        seen = self.ask(chat, "Tom is a impus.")
        self.assertIn("step 2: ", seen)
        self.assertNotIn("step 3: ", seen)
        self.assertRegex(seen, r"penelope, K = 2")
        self.assertIn("error: -K 9", self.ask(chat, "/steps 9"))
        self.assertIn("error:", self.ask(chat, "/steps 0-2"))
        self.ask(chat, "/watch")
        self.assertNotIn("step 1", self.ask(chat, "Tom is a impus."))

    def test_commands(self):
        chat = self.chat()
        self.assertIn("/save", self.ask(chat, "/help"))
        self.assertIn("no answer yet", self.ask(chat, "/regen"))
        first = self.ask(chat, "Tom")
        self.assertEqual(self.answer(first), self.answer(self.ask(chat, "/regen")))
        self.assertIn("2 messages", self.ask(chat, "/stats"))
        self.ask(chat, "/clear")
        self.assertIn("0 messages", self.ask(chat, "/stats"))
        self.assertIn("unknown command", self.ask(chat, "/bogus"))
        chat.send("/exit\r")
        self.assertEqual(chat.wait(), 0)

    def test_tab_completes_commands(self):
        chat = self.chat()
        chat.send("/he\t\r")
        chat.expect("/regen")
        chat.expect(PROMPT)

    def test_save(self):
        chat = self.chat()
        path = self.work / "talk.jsonl"
        self.ask(chat, "Tom is")
        self.ask(chat, f"/save {path}")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([line["role"] for line in lines], ["user", "assistant"])
        self.assertEqual(lines[0]["content"], "Tom is")
        self.assertEqual(lines[1]["K"], 3)
        spaced = self.work / "our talk.jsonl"
        self.ask(chat, f"/save  {spaced} ")
        self.assertEqual(spaced.read_text(), path.read_text())
        self.assertIn("exists", self.ask(chat, f"/save {path}"))
        self.assertNotIn("exists", self.ask(chat, f"/save --force {path}"))

    def test_paste_of_several_lines_is_one_message(self):
        chat = self.chat("-v")
        chat.send("\x1b[200~Tom is\rMax is\r\x1b[201~")
        time.sleep(0.2)
        pasted = self.ask(chat, "")
        self.assertEqual(pasted.count("prompt tokens"), 1)
        path = self.work / "talk.jsonl"
        self.ask(chat, f"/save {path}")
        self.assertEqual(json.loads(path.read_text().splitlines()[0])["content"], "Tom is\nMax is")

    def test_long_messages_in_other_ways(self):
        chat = self.chat()
        chat.send("Tom is\\\r")
        chat.expect(PROMPT)
        self.ask(chat, "Max is")
        for line in ('"""', "one", "", "two"):
            chat.send(line + "\r")
            chat.expect(PROMPT)
        self.ask(chat, '"""')
        path = self.work / "talk.jsonl"
        self.ask(chat, f"/save {path}")
        contents = [json.loads(line)["content"] for line in path.read_text().splitlines()][::2]
        self.assertEqual(contents, ["Tom is\nMax is", "one\n\ntwo"])

    def test_history_and_unicode(self):
        chat = self.chat()
        self.ask(chat, "héllo 中文")
        self.ask(chat, "\x1b[A")  # arrow up
        path = self.work / "talk.jsonl"
        self.ask(chat, f"/save {path}")
        contents = [json.loads(line)["content"] for line in path.read_text().splitlines()][::2]
        self.assertEqual(contents, ["héllo 中文"] * 2)

    def test_colour_ends_with_the_prompt(self):
        terminal = Pty("chat", "-m", self.model.base, "--sidecar", self.model.sidecar, "-n", 2)
        self.addCleanup(terminal.close)
        terminal.expect("leaves")
        terminal.expect(r"\x1b\[1;32m>\x1b\[0m ")

    def test_no_color(self):
        terminal = Pty("chat", "-m", self.model.base, "--sidecar", self.model.sidecar, "-n", 2, env={"NO_COLOR": "1"})
        self.addCleanup(terminal.close)
        terminal.expect("> ")
        terminal.send("x\r")
        seen = terminal.expect(r"tokens/s.*> ").string
        self.assertNotRegex(seen, r"\x1b\[[0-9;]*m")


class ChatInterruptTest(ModelTest):
    def chat(self):
        terminal = Pty("chat", "-m", self.model.endless, "--raw", "-c", 60000)
        self.addCleanup(terminal.close)
        terminal.expect(PROMPT)
        return terminal

    def test_first_press_returns_to_the_prompt(self):
        chat = self.chat()
        for _ in range(2):
            chat.send("Tom is a\r")
            chat.expect(r"2004l.")
            chat.interrupt()
            chat.expect("cancelled.*" + PROMPT)
        chat.send("\x04")
        self.assertEqual(chat.wait(), 0)

    def test_second_press_leaves(self):
        chat = self.chat()
        chat.send("Tom is a\r")
        chat.expect(r"2004l.")
        chat.interrupt()
        chat.expect(PROMPT)
        chat.interrupt()
        self.assertEqual(chat.wait(), 130)

    def test_two_presses_at_the_prompt_leave(self):
        chat = self.chat()
        chat.interrupt()
        chat.expect("Ctrl-C again.*" + PROMPT)
        chat.interrupt()
        self.assertEqual(chat.wait(), 130)

    def test_press_discards_a_line(self):
        chat = self.chat()
        for _ in range(3):
            chat.send("half a message")
            chat.expect("message")
            chat.interrupt()
            chat.expect(PROMPT)
        chat.send("/exit\r")
        self.assertEqual(chat.wait(), 0)


class ChatPipeTest(ModelTest):
    def args(self, *more):
        return ("chat", "-m", self.model.base, "--sidecar", self.model.sidecar, "-n", 4, *more)

    def test_end_of_input_ends_with_0(self):
        self.assertEqual(self.ok(*self.args()).stdout, "")
        done = self.ok(*self.args(), stdin="Tom is\nMax is")
        self.assertEqual(done.stderr, "")
        single = [self.ok("run", *self.args("-p", text)[1:]).stdout for text in ("Tom is", "Max is")]
        self.assertEqual(done.stdout, "".join(single))

    def test_json(self):
        done = self.ok(*self.args("--json"), stdin="Tom is\n/set K 1\nMax is\n")
        self.assertEqual([json.loads(line)["K"] for line in done.stdout.splitlines()], [3, 1])

    def test_failed_turn_shows_in_the_exit_code(self):
        done = run(*self.args(), stdin="Tom is\n" + "x " * 1000 + "\nMax is\n")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "512")
        self.assertEqual(len(done.stdout.splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
