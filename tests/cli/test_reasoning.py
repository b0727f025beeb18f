"""A model that thinks aloud: its thoughts apart from its answers, in chat and in the service, and out of the history."""

import json
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import scripted
from serving import Serve
from support import GOLDEN, Pty, TinyModel, run, without_escapes

# "<think>\n" in the prompt is followed by "ab", a blank, "</think>", two line ends the answer does not own, and "cd".
FOLLOWS = {"\n": "a", "a": "b", "b": " ", " ": "</think>", "</think>": "\t", "\t": "c", "c": "d", "d": "<|im_end|>"}
PROMPT = r"\x1b\[\?2004h[^>]*>(?:\x1b\[0m)? "


def n_tokens(text):
    return len(re.sub("|".join(map(re.escape, scripted.SPECIAL)), "#", text).encode())


def turns(*messages, tail="<think>\n"):
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in messages) + "<|im_start|>assistant\n" + tail


class ReasoningTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        cls.addClassCleanup(folder.cleanup)
        scripted.write_model(Path(folder.name) / "hf", FOLLOWS, scripted.template())
        cls.base = Path(folder.name) / "base.gguf"
        TinyModel.convert(Path(folder.name) / "hf", cls.base)

    def chat(self, text, *args):
        done = run("chat", "-m", self.base, *args, stdin=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_thoughts_go_to_stderr_and_answers_to_stdout(self):
        done = self.chat("hi\nho\n")
        self.assertEqual(done.stdout, "cd\ncd\n")
        self.assertEqual(done.stderr, "ab\n\nab\n\n")
        self.assertEqual(self.chat("hi\n", "-q").stderr, "")

    def test_thoughts_of_earlier_turns_are_dropped(self):
        first, second, third = map(json.loads, self.chat("hi\nho\nhu\n", "--json").stdout.splitlines())
        for answer in (first, second, third):
            self.assertEqual((answer["text"], answer["reasoning_content"], answer["finish_reason"]), ("cd", "ab", "stop"))
        self.assertEqual(first["prompt_tokens"], n_tokens(turns(("user", "hi"))))
        talk = [("user", "hi"), ("assistant", "cd"), ("user", "ho")]
        self.assertEqual(second["prompt_tokens"], n_tokens(turns(*talk)))
        self.assertEqual(third["prompt_tokens"], n_tokens(turns(*talk, ("assistant", "cd"), ("user", "hu"))))

    def test_off(self):
        first, second = map(json.loads, self.chat("hi\nho\n", "--json", "--reasoning", "off").stdout.splitlines())
        empty = "<think>\n\n</think>\n\n"
        self.assertEqual(first["prompt_tokens"], n_tokens(turns(("user", "hi"), tail=empty)))
        self.assertNotIn("reasoning_content", first)
        self.assertEqual(first["text"], "ab </think>\tcd")  # this model does not care; the marks are text then
        # The template reads a mark in an answer of the history as the end of a thought, whoever wrote it.
        self.assertEqual(second["prompt_tokens"], n_tokens(turns(("user", "hi"), ("assistant", "\tcd"), ("user", "ho"), tail=empty)))

    def test_terminal(self):
        terminal = Pty("chat", "-m", self.base)
        self.addCleanup(terminal.close)
        terminal.expect(PROMPT)
        terminal.send("hi\r")
        terminal.expect(r"\x1b\[\?2004l")
        shown = terminal.expect(f"(.*?){PROMPT}").group(1)
        self.assertIn("\x1b[2ma\x1b[0m\x1b[2mb\x1b[0m", shown)
        self.assertRegex(without_escapes(shown).replace("\r\n", "\n"), r"^\s*ab\n\ncd\n\d+ prompt tokens")
        terminal.send("/save " + str(self.base.parent / "said.jsonl") + "\r")
        terminal.expect("saved")
        said = [json.loads(line) for line in (self.base.parent / "said.jsonl").read_text().splitlines()]
        self.assertEqual((said[1]["content"], said[1]["reasoning_content"]), ("cd", "ab"))

    def test_run_and_batch(self):
        done = run("run", "-m", self.base, "-p", "hi")
        self.assertEqual((done.stdout, done.stderr), ("cd\n", "ab\n\n"))
        line = json.loads(run("run", "-m", self.base, "--batch", "-", stdin='{"prompt": "hi"}').stdout)
        self.assertEqual((line["text"], line["reasoning_content"]), ("cd", "ab"))

    def test_a_grammar_is_for_the_answer(self):
        answer = json.loads(run("run", "-m", self.base, "-p", "hi", "--json", "--grammar", 'root ::= "x"? "cd" [!?]').stdout)
        self.assertEqual((answer["reasoning_content"], answer["finish_reason"]), ("ab", "stop"))
        self.assertRegex(answer["text"], "^x?cd[!?]$")

    def test_a_model_that_does_not_think(self):
        plain = self.base.parent / "plain"
        scripted.write_model(plain, FOLLOWS, "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
                             "'<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
        base = self.base.parent / "plain.gguf"
        TinyModel.convert(plain, base)
        for command in ("chat", "serve"):
            done = run(command, "-m", base, "--reasoning", "on", stdin="hi\n")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr.splitlines()[0], "error: reasoning on: the chat template of this model does not think aloud")
        for wanted in ("off", "auto"):
            done = run("chat", "-m", base, "--reasoning", wanted, stdin="hi\n")
            self.assertEqual((done.returncode, done.stdout), (0, "ab </think>\tcd\n"))
        done = run("chat", "-m", base, "--reasoning", "loud", stdin="")
        self.assertEqual(done.returncode, 2)

    def test_service(self):
        server = Serve("-m", self.base, "--slots", 1)
        self.addCleanup(server.close)
        answer = server.chat("hi")
        message = answer["choices"][0]["message"]
        self.assertEqual((message["content"], message["reasoning_content"]), ("cd", "ab"))
        self.assertEqual(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 4)
        deltas = [e["choices"][0]["delta"] for e in server.stream("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]})
                  if e != "[DONE]" and e["choices"]]
        self.assertEqual("".join(d.get("reasoning_content", "") for d in deltas), "ab")
        self.assertEqual("".join(d.get("content", "") for d in deltas), "cd")
        # What clients send back; nothing but the new turn and the answer is read again.
        talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "cd", "reasoning_content": "ab"}, {"role": "user", "content": "ho"}]
        usage = server.good("/v1/chat/completions", {"messages": talk})["usage"]
        self.assertEqual(usage["prompt_tokens"], n_tokens(turns(("user", "hi"), ("assistant", "cd"), ("user", "ho"))))
        # Prompts are cut at multiples of four rows, where it changes no bit.
        n_stable = n_tokens("<|im_start|>user\nhi<|im_end|>\n")
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], n_stable - n_stable % 4)

        for off in ({"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_effort": "none"}):
            answer = server.chat("hi", **off)
            self.assertEqual(answer["usage"]["prompt_tokens"], n_tokens(turns(("user", "hi"), tail="<think>\n\n</think>\n\n")))
            self.assertNotIn("warnings", answer)
        raw = server.chat("hi", reasoning_format="none")["choices"][0]["message"]
        self.assertEqual((raw["content"], raw.get("reasoning_content")), ("ab </think>\tcd", None))
        self.assertEqual(server.ask("/v1/chat/completions", {"messages": talk, "reasoning_format": "loud"})[0], 400)

        body = {"max_tokens": 20, "messages": [{"role": "user", "content": "hi"}]}
        answer = server.good("/v1/messages", body)
        self.assertEqual([(part["type"], part.get("thinking") or part.get("text")) for part in answer["content"]], [("thinking", "ab"), ("text", "cd")])
        body["messages"] += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": "ho"}]
        self.assertEqual(server.good("/v1/messages", body)["usage"]["input_tokens"], usage["prompt_tokens"])
        blocks = [e["content_block"]["type"] for e in server.stream("/v1/messages", body) if e["type"] == "content_block_start"]
        self.assertEqual(blocks, ["thinking", "text"])
        quiet = server.good("/v1/messages", {**body, "thinking": {"type": "disabled"}})
        self.assertEqual([part["type"] for part in quiet["content"]], ["text"])

        answer = server.good("/v1/responses", {"input": "hi"})
        self.assertEqual([item["type"] for item in answer["output"]], ["reasoning", "message"])
        self.assertEqual(answer["output"][0]["content"][0]["text"], "ab")
        events = list(server.stream("/v1/responses", {"input": "hi"}))
        self.assertEqual("".join(e["delta"] for e in events if e["type"] == "response.reasoning_text.delta"), "ab")
        self.assertEqual("".join(e["delta"] for e in events if e["type"] == "response.output_text.delta"), "cd")
        self.assertEqual([(e["output_index"], e["item"]["type"]) for e in events if e["type"] == "response.output_item.done"],
                         [(0, "reasoning"), (1, "message")])
        self.assertEqual([e["sequence_number"] for e in events], list(range(len(events))))
        history = [{"type": "message", "role": "user", "content": "hi"}, *answer["output"], {"role": "user", "content": "ho"}]
        self.assertEqual(server.good("/v1/responses", {"input": history})["usage"]["input_tokens"], usage["prompt_tokens"])


    def test_effort_turns_thinking_on(self):
        """Where a template thinks only when it is asked to."""
        template = Path(os.environ["PENELOPE_TEST_VOCAB_DIR"]) / "templates" / "google-gemma-4-31B-it.jinja"
        server = Serve("-m", self.base, "--chat-template", template)
        self.addCleanup(server.close)
        n = [server.chat("hi", max_tokens=1, **fields)["usage"]["prompt_tokens"]
             for fields in ({}, {"reasoning_effort": "none"}, {"reasoning_effort": "low"}, {"chat_template_kwargs": {"enable_thinking": True}})]
        self.assertEqual(n, [n[0], n[0], n[3], n[3]])
        self.assertGreater(n[3], n[0])

    def test_a_template_that_reads_the_effort(self):
        path = self.base.parent / "effort.jinja"
        path.write_text("{{ messages[0].content }}{{ reasoning_effort or '' }}")
        server = Serve("-m", self.base, "--chat-template", path)
        self.addCleanup(server.close)
        n = [server.chat("hi", max_tokens=1, **fields)["usage"]["prompt_tokens"] for fields in ({}, {"reasoning_effort": "low"})]
        self.assertEqual(n[1] - n[0], len("low"))


class HybridServiceTest(unittest.TestCase):
    def test_prompts_that_share_a_beginning(self):
        """What a slot keeps of one prompt must not change the answer to another, also where layers have one state only."""
        with tempfile.TemporaryDirectory(prefix="penelope-cli-") as folder:
            base = Path(folder) / "base.gguf"
            TinyModel.convert(GOLDEN / "qwen35" / "model", base)
            server = Serve("-m", base, "--slots", 1, "--kv-type", "f32")
            self.addCleanup(server.close)
            start = "Tom is a impus. Every impus is a wumpus. "
            for prompt in (start, start + "Is Tom a wumpus?", start + "Is Tom", start + "Is Tom a tree?", start):
                served = server.good("/v1/completions", {"prompt": prompt, "max_tokens": 12})["choices"][0]["tokens"]
                alone = json.loads(run("run", "-m", base, "-p", prompt, "-n", 12, "--kv-type", "f32", "--json").stdout)["tokens"]
                self.assertEqual(served, alone, prompt)

    def test_latent_steps_leave_a_conversation_what_was_read_of_it(self):
        """Qwen3.5's template drops thoughts from the history, so each turn goes back to where the prompt before it ended."""
        with tempfile.TemporaryDirectory(prefix="penelope-cli-") as name:
            folder, case = Path(name), GOLDEN / "qwen35"
            shutil.copytree(case / "model", folder / "model")
            for file in ("tokenizer.json", "tokenizer_config.json"):
                path = folder / "model" / file
                path.write_text(path.read_text().replace("<|endoftext|>", "<|im_end|>"))
            (folder / "model" / "chat_template.jinja").write_text(scripted.template())
            shutil.copytree(case / "penelope", folder / "penelope")
            config = json.loads((folder / "penelope" / "penelope_config.json").read_text())
            (folder / "penelope" / "penelope_config.json").write_text(json.dumps({**config, "prompt_template": "{chat}"}))
            base, sidecar = folder / "base.gguf", folder / "sidecar.gguf"
            TinyModel.convert(folder / "model", base)
            TinyModel.convert(folder / "penelope", sidecar, "--base", base, "--lora", case / "lora")
            said = ["Tom is a impus. Every impus is a wumpus.", "Is Tom a wumpus?", "And Sally?", "Why?"]
            talks = [[{"role": role, "content": text} for one in said[:n] for role, text in (("user", one), ("assistant", "True"))][:-1]
                     for n in range(1, len(said) + 1)]

            def kept(*args):
                with Serve("-m", base, "-c", 512, "--slots", 1, *args) as server:
                    usage = [server.good("/v1/chat/completions", {"messages": talk, "max_tokens": 4})["usage"] for talk in talks]
                return [(one["prompt_tokens"], one["prompt_tokens_details"]["cached_tokens"]) for one in usage]

            latent = kept("--sidecar", sidecar, "--ignore-mismatch")
            self.assertEqual(latent, kept())
            # All but the beginning of the answer, which has at most as many tokens as bytes.
            left = {before - n_kept for (before, _), (_, n_kept) in zip(latent, latent[1:])}
            self.assertEqual(len(left), 1)
            self.assertLess(left.pop(), len("<|im_start|>assistant\n<think>\n"))


if __name__ == "__main__":
    if scripted.template() is None:
        print("the chat templates of llama.cpp are not there: see PENELOPE_TEST_VOCAB_DIR")
        sys.exit(1 if os.environ.get("PENELOPE_TEST_REQUIRE_FILES") else 77)
    unittest.main()
