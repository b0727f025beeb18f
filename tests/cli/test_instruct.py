"""Instruct models in run, --batch and serve: chat templates, system messages, stop strings, penalties, answers held to a schema or grammar."""

import json
import os
import re
import signal
import subprocess
import unittest

from serving import Serve
from support import BIN, ModelTest, clean_environment, run


def rendered(text, system=None):
    head = f"<|im_start|>system\n{system}<|im_end|>\n" if system else ""
    return f"{head}<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


class InstructTest(ModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.base, cls.sidecar = cls.model.make_instruct()

    def answer(self, *args, base=None, **kwargs):
        return self.ok_json("run", "-m", base or self.base, "-ctk", "f32", "-n", 12, *args, **kwargs)

    def same(self, a, b):
        self.assertEqual((a["prompt_tokens"], a["tokens"]), (b["prompt_tokens"], b["tokens"]))


class TemplateTest(InstructTest):
    def test_the_models_own_is_the_default(self):
        chosen = self.answer("-p", "Tom is")
        self.same(chosen, self.answer("-p", rendered("Tom is"), "--raw"))
        self.same(chosen, self.answer("-p", "Tom is", "--chat-template", "auto"))
        self.same(chosen, self.answer("-p", "Tom is", "--chat-template", "chatml"))
        self.assertNotEqual(chosen["prompt_tokens"], self.answer("-p", "Tom is", "--raw")["prompt_tokens"])

    def test_none(self):
        self.same(self.answer("-p", "Tom is", "--chat-template", "none"), self.answer("-p", "Tom is", "--raw"))

    def test_system_message(self):
        self.same(self.answer("-p", "Tom is", "-sys", "Be brief."), self.answer("-p", rendered("Tom is", "Be brief."), "--raw"))
        self.error(2, "-sys: prompts go to this model without a chat template", "run", "-m", self.model.base, "-p", "x", "-sys", "y")
        self.error(2, "--raw and --system", "run", "-m", self.base, "-p", "x", "-sys", "y", "--raw")

    def test_batch(self):
        lines = '{"id": 1, "prompt": "Tom is"}\n{"id": 2, "question": "Max is"}\n'
        done = self.ok("run", "-m", self.base, "-ctk", "f32", "-n", 12, "-sys", "S", "--batch", "-", stdin=lines)
        for line, text in zip(map(json.loads, done.stdout.splitlines()), ("Tom is", "Max is")):
            self.same(line, self.answer("-p", rendered(text, "S"), "--raw"))

    def test_files_with_a_template_of_their_own_keep_it(self):
        latent = ("--sidecar", self.sidecar)
        self.same(self.answer("-p", "Tom is", *latent), self.answer("-p", "Tom is\n", *latent, "--raw"))
        self.same(self.answer("-p", "Tom is", *latent, "--chat-template", "none"), self.answer("-p", "Tom is\n", *latent, "--raw"))
        self.same(self.answer("-p", "Tom is", *latent, "--chat-template", "chatml"), self.answer("-p", rendered("Tom is"), *latent, "--raw"))

    def test_models_without_one_continue_text(self):
        self.same(self.answer("-p", "Tom is", base=self.model.base), self.answer("-p", "Tom is", "--raw", base=self.model.base))

    def test_said_once_on_stderr(self):
        for args, pattern in ((("-m", self.base), "instruct model: its file has a chat template, prompts go through it"), (("-m", self.base, "--raw"), "as they are"),
                              (("-m", self.model.base), "no chat template in the model's file"),
                              (("-m", self.base, "--sidecar", self.sidecar), "the template in the model's files")):
            done = self.ok("run", *args, "-p", "x", "-n", 1, "-v")
            self.assertEqual(len(re.findall(pattern, done.stderr)), 1, done.stderr)
            self.assertEqual(self.ok("run", *args, "-p", "x", "-n", 1).stderr, "")

    def test_contradictions_and_wrong_names(self):
        self.error(2, "--raw and --chat-template chatml", "run", "-m", self.base, "-p", "x", "--raw", "--chat-template", "chatml")
        self.error(2, "chat template 'nobody': no such file, and not a name we know", "run", "-m", self.base, "-p", "x", "--chat-template", "nobody")
        self.error(2, r"chat template llama3: the vocabulary of this model has no <\|start_header_id\|>", "run", "-m", self.base, "-p", "x",
                   "--chat-template", "llama3")

    def test_text_that_is_templated_already(self):
        done = self.ok("run", "-m", self.base, "-p", rendered("x"), "-n", 1)
        self.assertRegex(done.stderr, "^warning: prompt is already templated.*--raw")
        self.assertEqual(self.ok("run", "-m", self.base, "-p", rendered("x"), "-n", 1, "--raw").stderr, "")

    def test_a_template_of_any_form(self):
        odd, _ = self.model.make_instruct("odd", "{% for m in messages %}{{ m.role | upper }}: {{ m.content | trim }}\n{% endfor %}")
        self.same(self.answer("-p", " Tom is ", "-sys", "S", base=odd), self.answer("-p", "SYSTEM: S\nUSER: Tom is\n", "--raw", base=odd))
        file = self.model.path / "mine.jinja"
        file.write_text("Q: {{ messages[-1].content }}\nA:")
        self.same(self.answer("-p", "Tom is", "--chat-template", file), self.answer("-p", "Q: Tom is\nA:", "--raw"))
        file.write_text("{{ raise_exception('this one wants a picture') }}")
        self.error(1, "chat template: this one wants a picture", "run", "-m", self.base, "-p", "x", "--chat-template", file)

    def test_a_template_that_cannot_be_run(self):
        strange, _ = self.model.make_instruct("strange", "{{ 'odd' }}")
        done = self.ok("run", "-m", strange, "-p", "Tom is", "-n", 4)
        self.assertRegex(done.stderr, "^warning: chat template: it leaves the question out; the prompt is used as is")
        self.assertEqual(done.stdout, self.ok("run", "-m", strange, "-p", "Tom is", "-n", 4, "--raw").stdout)
        self.same(self.answer("-p", "Tom is", "--chat-template", "chatml", base=strange), self.answer("-p", "Tom is"))
        self.error(1, "chat template: it leaves the question out", "chat", "-m", strange, "-p", "x")


class SamplingTest(InstructTest):
    def test_stop(self):
        whole = self.answer("-p", "Tom is", "-n", 40)["text"]
        for stop in (whole[5:8], whole[12:13]):
            answer = self.answer("-p", "Tom is", "-n", 40, "--stop", "not in it at all", "--stop", stop)
            self.assertEqual(answer["text"], whole[:whole.index(stop)])
            self.assertEqual(answer["finish_reason"], "stop")
            self.assertEqual(self.ok("run", "-m", self.base, "-ctk", "f32", "-p", "Tom is", "-n", 40, "-r", stop).stdout, whole[:whole.index(stop)] + "\n")
            line = self.ok("run", "-m", self.base, "-ctk", "f32", "-n", 40, "--stop", stop, "--batch", "-", stdin='{"prompt": "Tom is"}').stdout
            self.assertEqual(json.loads(line)["text"], whole[:whole.index(stop)])
        self.error(2, "--stop: empty text", "run", "-m", self.base, "-p", "x", "--stop", "")

    def test_penalties(self):
        plain = self.answer("-p", "Tom is", "-n", 60)["tokens"]
        self.assertLess(len(set(plain)), len(plain))  # else there is nothing to see
        apart = self.answer("-p", "Tom is", "-n", 60, "--presence-penalty", 100, "--repeat-last-n", -1)["tokens"]
        self.assertEqual(len(set(apart)), len(apart))
        self.assertNotEqual(plain, self.answer("-p", "Tom is", "-n", 60, "--repeat-penalty", 3)["tokens"])
        self.assertNotEqual(plain, self.answer("-p", "Tom is", "-n", 60, "--frequency-penalty", 5)["tokens"])
        self.assertEqual(plain, self.answer("-p", "Tom is", "-n", 60, "--repeat-penalty", 3, "--repeat-last-n", 0)["tokens"])
        self.error(2, "--repeat-penalty: '0' must be between", "run", "-m", self.base, "-p", "x", "--repeat-penalty", 0)

    def test_serve_has_them_too(self):
        with Serve("-m", self.base, "-ctk", "f32", "-c", 256) as server:
            whole = self.answer("-p", "Tom is", "-n", 40)
            self.assertEqual(server.chat("Tom is", max_tokens=40)["choices"][0]["tokens"], whole["tokens"])
            for fields, flags in (({"presence_penalty": 2}, ["--presence-penalty", 2]), ({"repeat_penalty": 1.5}, ["--repeat-penalty", 1.5]),
                                  ({"frequency_penalty": 1, "repeat_last_n": -1}, ["--frequency-penalty", 1, "--repeat-last-n", -1])):
                answer = server.chat("Tom is", max_tokens=40, **fields)["choices"][0]["tokens"]
                self.assertEqual(answer, self.answer("-p", "Tom is", "-n", 40, *flags)["tokens"])
                self.assertNotEqual(answer, whole["tokens"])
            self.assertEqual(server.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "presence_penalty": "much"})[0], 400)


PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                                           "sex": {"enum": ["f", "m", None]}}, "required": ["name", "age", "sex"]}


class ConstraintTest(InstructTest):
    def check_person(self, text):
        person = json.loads(text)
        self.assertEqual(list(person), ["name", "age", "sex"])
        self.assertLessEqual(len(person["name"]), 8)
        self.assertTrue(0 <= person["age"] <= 150 and isinstance(person["age"], int))
        self.assertIn(person["sex"], ("f", "m", None))

    def test_json_schema(self):
        schema, path = json.dumps(PERSON), self.work / "person.json"
        path.write_text(schema)
        self.assertRaises(ValueError, json.loads, self.answer("-p", "Tom is", "-n", 200)["text"])  # the model would not by itself
        for args in (["--json-schema", schema], ["-j", schema, "--temp", 2, "--seed", 3], ["-jf", path, "--temp", 5, "--top-k", 0, "--min-p", 0, "--top-p", 1]):
            answer = self.answer("-p", "Tom is", "-n", 200, *args)
            self.check_person(answer["text"])
            self.assertEqual(answer["finish_reason"], "stop")
        done = self.ok("run", "-m", self.base, "-n", 200, "-j", schema, "--batch", "-", stdin='{"prompt": "a"}\n{"prompt": "b"}\n')
        for line in done.stdout.splitlines():
            self.check_person(json.loads(line)["text"])
        self.check_person(self.ok("run", "-m", self.base, "-n", 200, "-j", schema, "--sidecar", self.sidecar, "-K", 2, "-p", "x").stdout)

    def test_grammar(self):
        path = self.work / "g.gbnf"
        path.write_text('root ::= word (" " word){2}\nword ::= [a-z]{1,4} # short\n')
        self.assertRegex(self.answer("-p", "Tom is", "-n", 60, "--grammar-file", path)["text"], "^[a-z]{1,4} [a-z]{1,4} [a-z]{1,4}$")
        self.assertIn(self.ok("run", "-m", self.base, "-p", "Is it?", "-n", 9, "--grammar", 'root ::= "yes" | "no"').stdout, ("yes\n", "no\n"))
        self.assertIn(self.ok("chat", "-m", self.base, "-p", "Is it?", "-n", 9, "--grammar", 'root ::= "yes" | "no"').stdout, ("yes\n", "no\n"))

    def test_what_is_refused(self):
        ask = ("run", "-m", self.base, "-p", "x")
        self.error(2, "--json-schema: schema #: 'multipleOf' is not supported", *ask, "-j", '{"multipleOf": 2}')
        self.error(2, "--json-schema: line 1, column 2: ", *ask, "--json-schema", "{]")
        self.error(2, "--grammar: grammar, line 1, column 6: expected ::=", *ask, "--grammar", "root = a")
        self.error(2, "more than one schema or grammar", *ask, "--grammar", 'root ::= "a"', "-j", "{}")
        path = self.work / "s.json"
        path.write_text('{"not": {}}')
        self.error(1, "s.json: schema #: 'not' is not supported", *ask, "-jf", path)
        self.error(2, "hint: this is a file name; did you mean --json-schema-file", *ask, "-j", path)
        self.error(1, "none.json", *ask, "-jf", self.work / "none.json")

    def test_serve(self):
        with Serve("-m", self.base, "-c", 256) as server:
            form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
            self.check_person(server.chat("Tom is", max_tokens=200, response_format=form)["choices"][0]["message"]["content"])
            answer = server.good("/v1/responses", {"input": "Tom is", "max_output_tokens": 200,
                                                   "text": {"format": {"type": "json_schema", "name": "p", "schema": PERSON}}})
            self.check_person(answer["output"][-1]["content"][0]["text"])
            self.check_person(server.good("/v1/completions", {"prompt": "Tom is", "max_tokens": 200, "json_schema": PERSON})["choices"][0]["text"])
            text = server.chat("x", max_tokens=9, grammar='root ::= "yes" | "no"')["choices"][0]["message"]["content"]
            self.assertIn(text, ("yes", "no"))
            self.assertTrue(server.chat("x", max_tokens=4, response_format={"type": "json_object"})["choices"][0]["message"]["content"].startswith("{"))
            server.chat("x", max_tokens=2, response_format={"type": "text"})
            for wrong in ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}}, {"response_format": {"type": "xml"}},
                          {"response_format": {"type": "json_schema"}}, {"response_format": 3}, {"grammar": "root = x"}, {"grammar": 5},
                          {"json_schema": 7}, {"grammar": 'root ::= "x"', "json_schema": {}}):
                status, _, body = server.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], **wrong})
                self.assertEqual(status, 400, (wrong, body))
                self.assertTrue(body["error"]["message"])


class SeedTest(InstructTest):
    ASK = {"messages": [{"role": "user", "content": "Tom is"}], "max_tokens": 24, "temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0}

    def ask(self, server, **fields):
        answer = server.good("/v1/chat/completions", {**self.ASK, **fields})
        return answer["seed"], answer["choices"][0]["message"]["content"]

    def test_requests_without_a_seed_draw_one(self):
        with Serve("-m", self.base, "-c", 256) as server:
            first, second = self.ask(server), self.ask(server)
            self.assertNotEqual(first[0], second[0])
            self.assertNotEqual(first[1], second[1])
            self.assertEqual(self.ask(server, seed=first[0]), first)

    def test_the_seed_of_the_command_line(self):
        with Serve("-m", self.base, "-c", 256, "--seed", 7) as server:
            self.assertEqual(self.ask(server), self.ask(server, seed=7))
            self.assertEqual(self.ask(server)[0], 7)


class StreamedBatchTest(InstructTest):
    def start(self, *args):
        process = subprocess.Popen([BIN, "run", "-m", str(self.base), "-n", "4", "--batch", "-", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, bufsize=1, env=clean_environment())
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ask(self, process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def test_answers_come_before_the_next_line(self):
        process = self.start()
        for i in range(3):
            self.assertEqual(self.ask(process, json.dumps({"id": f"q{i}", "prompt": f"Tom {i}"}))["id"], f"q{i}")
        process.stdin.write('{"prompt": "the last line has no end"}')
        process.stdin.close()
        self.assertEqual(json.loads(process.stdout.readline())["id"], 3)
        self.assertEqual(process.wait(timeout=60), 0)

    def test_a_wrong_line_is_an_answer_too(self):
        process = self.start()
        wrong = self.ask(process, '{"id": 1}')
        self.assertEqual((wrong["id"], wrong["status"]), (1, "error"))
        self.assertRegex(wrong["message"], "^standard input, line 1: missing")
        self.assertEqual(self.ask(process, '{"id": "a", "prompt": "Tom"}')["status"], "ok")
        self.assertEqual(self.ask(process, '{"id": "b", "prompt": ""}')["status"], "error")
        process.stdin.close()
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn("2 of 3 questions failed", process.stderr.read())

    def test_ctrl_c_while_waiting(self):
        process = self.start()
        self.ask(process, '{"prompt": "Tom"}')
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 130)
        self.assertIn("interrupted", process.stderr.read())

    def test_no_lines(self):
        self.error(1, "standard input: no prompts found", "run", "-m", self.base, "--batch", "-")


class SmolLM2Test(ModelTest):
    """What a person gets from a real model."""

    @classmethod
    def setUpClass(cls):
        cls.smollm2 = os.environ.get("PENELOPE_TEST_SMOLLM2", "")
        if not os.path.exists(cls.smollm2):
            if os.environ.get("PENELOPE_TEST_REQUIRE_FILES") == "1":
                raise AssertionError(f"PENELOPE_TEST_SMOLLM2: {cls.smollm2} is not there")
            raise unittest.SkipTest("SmolLM2 is not there")

    def test_a_question_gets_an_answer(self):
        # Asked with "What is", the first token is a close call that 8-bit activations decide one way or the other by the processor.
        done = self.ok("run", "-m", self.smollm2, "-p", "Name the capital of France.", "-n", 24)
        self.assertIn("Paris", done.stdout)
        schema = '{"type":"object","properties":{"country":{"type":"string","maxLength":20},"capital":{"enum":["London","Paris","Rome"]}},"required":["country","capital"]}'
        answer = json.loads(self.ok("run", "-m", self.smollm2, "-p", "What is the capital of France?", "-j", schema, "-n", 48).stdout)
        self.assertEqual(answer["capital"], "Paris")


if __name__ == "__main__":
    unittest.main()
