"""penelope chat, driven through a pseudo-terminal and through pipes."""

import json
import os
import re
import signal
import stat
import subprocess
import time
import unittest

from support import BIN, ModelTest, Pty, clean_environment, run, without_escapes

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
        self.assertIn("error: --predict: '4294967297' must be between", self.ask(chat, "/set n 4294967297"))
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

    def test_history_across_sessions(self):
        file = self.work / "state" / "history"
        for text in ("first", "zweite Zeile\\\rdritte"):
            chat = self.chat("--history", file)
            if "\r" in text:
                chat.send(text.split("\r")[0] + "\r")
                chat.expect(PROMPT)
            self.ask(chat, text.split("\r")[-1])
            chat.send("\x04")
            self.assertEqual(chat.wait(), 0)
        self.assertEqual([json.loads(line) for line in file.read_text().splitlines()], ["first", "zweite Zeile\ndritte"])
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        file.write_text(file.read_text() + "damaged\n")
        chat = self.chat("--history", file)
        self.ask(chat, "\x1b[A\x1b[A")  # two arrows up: the first message of the first session
        path = self.work / "talk.jsonl"
        self.ask(chat, f"/save {path}")
        self.assertEqual(json.loads(path.read_text().splitlines()[0])["content"], "first")
        chat.send("\x04")
        chat.wait()
        lines = len(file.read_text().splitlines())
        quiet = self.chat("--history", "none")
        self.ask(quiet, "secret")
        quiet.send("\x04")
        quiet.wait()
        self.assertEqual(len(file.read_text().splitlines()), lines)

    def test_history_has_a_place_of_its_own(self):
        chat = self.chat(env={"XDG_STATE_HOME": str(self.work)})
        self.ask(chat, "hello")
        self.assertEqual((self.work / "penelope" / "history").read_text(), '"hello"\n')
        shut = self.work / "shut"
        shut.write_text("a file where a folder should be")
        chat = self.chat(env={"XDG_STATE_HOME": str(shut)})
        self.assertRegex(self.ask(chat, "hello"), "8 tokens")

    def test_ctrl_z_and_fg(self):
        shell = Pty("--norc", "--noprofile", "-i", program="/bin/bash", env={"PS1": "shell$ "})
        self.addCleanup(shell.close)
        shell.expect(r"shell\$ ")
        shell.send(f"{BIN} chat -m {self.model.base} --sidecar {self.model.sidecar} -n 8\r")
        shell.expect(PROMPT)
        shell.send("half a mess")
        shell.expect("mess")
        shell.send("\x1a")
        shell.expect(r"\x1b\[\?2004l.*Stopped.*shell\$ ")
        shell.send("stty -a\r")
        # The shell edits its own line, so what counts is what stty sees while it runs.
        self.assertRegex(shell.expect(r"speed.*shell\$ ").group(0), r"[^-]icanon.*[^-]echo ")
        shell.send("fg\r")
        shell.expect(PROMPT + "half a mess")
        self.assertRegex(self.ask(shell, "age"), "8 tokens")
        path = self.work / "talk.jsonl"
        self.ask(shell, f"/save {path}")
        self.assertEqual(json.loads(path.read_text().splitlines()[0])["content"], "half a message")
        shell.send("/exit\r")
        shell.expect(r"shell\$ ")

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

    def test_a_terminal_without_escape_sequences(self):
        terminal = Pty("chat", "-m", self.model.base, "--sidecar", self.model.sidecar, "-n", 2, env={"TERM": "dumb"})
        self.addCleanup(terminal.close)
        terminal.expect("> ")
        terminal.send("x\r")
        seen = terminal.expect(r"tokens/s.*> ").string
        terminal.send("/exit\r")
        self.assertEqual(terminal.wait(), 0)
        self.assertNotIn("\x1b", seen + terminal.seen)


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


class ConversationTest(ModelTest):
    """Through a chat template: what the model sees, how answers are drawn, what happens when the context is full."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.base, cls.sidecar = cls.model.make_instruct()

    def test_a_full_context_is_not_the_end(self):
        messages = [f"Tom is a impus number {i}." for i in range(12)]
        talk = self.work / "talk.jsonl"
        done = self.ok("chat", "-m", self.base, "-c", 200, "-n", 12, "--json", "-sys", "Brief.", stdin="\n".join(messages + [f"/save {talk}", "/stats"]))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["status"] for line in lines], ["ok"] * 13)
        self.assertTrue(all(line["prompt_tokens"] < 200 for line in lines[:-1]))
        self.assertEqual(done.stderr.count("dropping the oldest turns"), 1, done.stderr)
        self.assertGreater(lines[-1]["turns_dropped"], 0)
        self.assertEqual(len(talk.read_text().splitlines()), 1 + 24)  # what was said is all there
        # Where turns have left, the model sees the system message, the newest turns and the question, in at most half the context.
        counts = [line["prompt_tokens"] for line in lines[:-1]]
        fall = next(i for i in range(1, 12) if counts[i] < counts[i - 1])
        said = [json.loads(line) for line in talk.read_text().splitlines()]
        seen = []
        for first in range(1, fall + 1):
            text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in (said[0], *said[1 + 2 * first:2 + 2 * fall]))
            seen.append(self.ok_json("run", "-m", self.base, "--raw", "-p", text + "<|im_start|>assistant\n", "-n", 1)["prompt_tokens"])
        self.assertEqual(counts[fall], max(n for n in seen if n <= 100))
        self.assertEqual(self.ok("chat", "-m", self.base, "-c", 200, "-n", 12, stdin="Hi\n/clear\nHo\n").stderr, "")

    def test_one_message_that_does_not_fit_takes_nothing_with_it(self):
        done = run("chat", "-m", self.base, "-c", 200, "-n", 8, "--json", stdin="Tom\n" + "x " * 400 + "\nMax\n/stats\n")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["status"] for line in lines], ["ok", "error", "ok", "ok"])
        self.assertEqual((lines[3]["messages"], lines[3]["turns_dropped"]), (4, 0))
        self.assertEqual(done.returncode, 1)

    def test_one_shot(self):
        args = ("-m", self.base, "-n", 8, "--temp", 0)
        done = self.ok("chat", *args, "-p", "Tom is", stdin="never read\n")
        self.assertEqual(done.stdout, self.ok("run", *args, "-p", "Tom is").stdout)
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.ok_json("chat", *args, "-p", "Tom is")["text"] + "\n", done.stdout)
        self.error(2, "--prompt: empty message", "chat", *args, "-p", " ")
        self.error(2, "prompt", "chat", *args, "-c", 64, "-p", "x " * 100)
        failed = run("chat", *args, "-c", 64, "-p", "x " * 100, "--json")
        self.assertEqual((failed.returncode, json.loads(failed.stdout)["status"]), (2, "error"))

    def test_sampling_by_default(self):
        def answers(*args):
            return [json.loads(line)["tokens"] for line in self.ok("chat", "-m", self.base, "-n", 24, "--json", *args, stdin="Tom is\n").stdout.splitlines()]

        self.assertEqual(answers("--seed", 5), answers("--seed", 5, "--temp", 0.7))
        self.assertNotEqual(answers("--seed", 5), answers("--temp", 0))
        self.assertEqual(answers("--sidecar", self.sidecar), answers("--sidecar", self.sidecar, "--temp", 0))
        self.assertEqual(answers("--raw"), answers("--raw", "--temp", 0))

    def test_a_seed_is_drawn_where_none_is_given(self):
        chat = ("chat", "-m", self.base, "-n", 24, "--top-k", 0, "--top-p", 1, "--min-p", 0)
        first, second = (self.ok_json(*chat, "-p", "Tom is") for _ in range(2))
        self.assertNotEqual(first["seed"], second["seed"])
        self.assertNotEqual(first["tokens"], second["tokens"])
        self.assertEqual(self.ok_json(*chat, "-p", "Tom is", "--seed", first["seed"])["tokens"], first["tokens"])
        seed = re.search(r"\| seed (\d+)$", self.ok(*chat, "-p", "Tom is", "-v").stderr, re.M).group(1)
        self.assertNotEqual(seed, "0")
        # Greedy answers need none, until the temperature is raised.
        self.assertEqual(self.ok_json(*chat, "-p", "Tom is", "--temp", 0)["seed"], 0)
        lines = self.ok(*chat, "--temp", 0, "--json", stdin="Tom\n/set temp 1\nTom\nTom\n/set seed 3\nTom\n").stdout.splitlines()
        seeds = [json.loads(line)["seed"] for line in lines]
        self.assertEqual((seeds[0], seeds[1], seeds[3]), (0, seeds[2], 3))
        self.assertNotEqual(seeds[1], 0)

    def test_stop_and_system(self):
        whole = self.ok("chat", "-m", self.base, "-n", 30, "--temp", 0, "-sys", "S", "-p", "Tom is").stdout[:-1]
        self.assertEqual(self.ok("chat", "-m", self.base, "-n", 30, "--temp", 0, "-sys", "S", "-p", "Tom is", "--stop", whole[6:9]).stdout,
                         whole[:whole.index(whole[6:9])] + "\n")
        self.error(2, "-sys: ", "chat", "-m", self.base, "--sidecar", self.sidecar, "-sys", "S", "-p", "x")

    def test_words_wrap_at_the_edge(self):
        grammar = 'root ::= "The quick brown fox jumps over the lazy dog and runs away into the dark wood.\\n```\\nint this_line_of_code_is_long = a_function_of(1, 2);\\n```\\nEnd of it"'
        text = grammar[10:-1].replace("\\n", "\n")
        terminal = Pty("chat", "-m", self.base, "-p", "x", "-q", "--grammar", grammar, columns=24)
        self.addCleanup(terminal.close)
        time.sleep(0.2)
        terminal.wait()
        shown = terminal.seen.replace("\r\n", "\n")
        prose, code, end = shown.split("```")
        self.assertTrue(all(len(line) <= 24 for line in prose.split("\n")), shown)
        self.assertEqual(prose.split("\n")[:2], ["The quick brown fox", "jumps over the lazy dog"])
        self.assertEqual(shown.replace("\n", " ").split(), text.split())
        self.assertIn("\nint this_line_of_code_is_long = a_function_of(1, 2);\n", code)
        self.assertEqual(end, "\nEnd of it\n")
        self.assertEqual(self.ok("chat", "-m", self.base, "-p", "x", "--grammar", grammar).stdout, text + "\n")  # a pipe gets it as it is


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

    def test_help_and_errors_in_json(self):
        done = run(*self.args("--json"), stdin="/help\n/nonsense\n/set K 99\n/regen\nTom is\n/stats\n/save /nowhere/at/all\n")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["status"] for line in lines], ["ok", "error", "error", "error", "ok", "ok", "error"])
        self.assertIn({"command": "/clear", "meaning": "clear the conversation"}, lines[0]["help"])
        self.assertEqual((lines[1]["kind"], lines[1]["message"]), ("usage", "/nonsense: unknown command"))
        self.assertEqual(lines[5]["messages"], 2)
        self.assertEqual((done.stderr, done.returncode), ("", 1))

    def test_ctrl_c_stops_the_whole_pipe(self):
        process = subprocess.Popen([BIN, "chat", "-m", str(self.model.endless), "--raw", "-c", "60000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=clean_environment())
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdin.write(b"Tom is a\nMax is a\n")
        process.stdin.flush()
        self.assertTrue(os.read(process.stdout.fileno(), 1))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 130)

    def test_a_failed_regen_leaves_the_answer(self):
        # Half of the answers begin with a letter after which there are too many ways to go on.
        grammar = 'x ::= "x"\nroot ::= "a" | "b" [\\x01] (' + "|".join(["x"] * 21000) + ")"
        done = run(*self.args("--json", "--grammar", grammar, "--temp", 5, "--top-k", 0, "--top-p", 1, "--min-p", 0, "--seed", 0),
                   stdin="Tom is\n" + "/regen\n" * 24 + "/stats\n")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual({line["status"] for line in lines[1:-1]}, {"ok", "error"}, done.stdout)
        self.assertEqual({line["message"] for line in lines if line["status"] == "error"},
                         {"grammar: too ambiguous"})
        self.assertEqual(lines[-1]["messages"], 2)

    def test_failed_turn_shows_in_the_exit_code(self):
        done = run(*self.args(), stdin="Tom is\n" + "x " * 1000 + "\nMax is\n")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "512")
        self.assertEqual(len(done.stdout.splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
