"""The official Python clients of OpenAI and Anthropic against `penelope serve`, unchanged.

They come from PyPI into a virtual environment in the cache (scripts/test makes it); skipped when it is not there.
"""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

CACHE = Path(os.environ.get("PENELOPE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penelope.cpp")

try:
    import anthropic
    import openai
except ImportError:
    python = CACHE / "clients" / "bin" / "python"
    if __name__ == "__main__" and python.exists() and "PENELOPE_IN_CLIENTS" not in os.environ:
        os.environ["PENELOPE_IN_CLIENTS"] = "1"
        os.execv(python, [str(python), *sys.argv])
    print("the clients are not installed")
    sys.exit(77)

import scripted
from serving import Serve
from support import ModelTest, TinyModel

QUESTION = "abcdefghij klmnop qrstuv wxyz 0123456789"


class ClientTest(ModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Serve("-m", cls.model.base, "--sidecar", cls.model.sidecar, "-c", 256, "--api-key", "secret")
        cls.addClassCleanup(cls.server.close)
        cls.openai = openai.OpenAI(base_url=cls.server.address + "/v1", api_key="secret", max_retries=0, timeout=120)
        cls.anthropic = anthropic.Anthropic(base_url=cls.server.address, api_key="secret", max_retries=0, timeout=120)

    def setUp(self):
        super().setUp()
        self.text = self.ok_json("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-c", 256, "-p", QUESTION, "-n", 8,
                                 "-K", 2)["text"]
        self.messages = [{"role": "user", "content": QUESTION}]

    def test_chat(self):
        answer = self.openai.chat.completions.create(model="any", messages=self.messages, max_tokens=8, logprobs=True, top_logprobs=2,
                                                     extra_body={"latent_steps": 2, "latent_trace": True})
        self.assertEqual(answer.choices[0].message.content, self.text)
        self.assertEqual(len(answer.choices[0].logprobs.content), 8)
        self.assertEqual(answer.usage.completion_tokens, 8)
        self.assertEqual(answer.choices[0].message.reasoning_content.count("\n"), 2)
        stream = self.openai.chat.completions.create(model="any", messages=self.messages, max_tokens=8, stream=True,
                                                     stream_options={"include_usage": True}, extra_body={"latent_steps": 2})
        events = list(stream)
        self.assertEqual("".join(e.choices[0].delta.content or "" for e in events if e.choices), self.text)
        self.assertEqual(events[-1].usage.completion_tokens, 8)

    def test_effort_and_models(self):
        self.assertEqual(len(self.openai.models.list().data), 1)
        answer = self.openai.chat.completions.create(model="any", messages=self.messages, max_tokens=1, reasoning_effort="minimal")
        self.assertEqual(answer.usage.latent_steps, 1)

    def test_completions(self):
        answer = self.openai.completions.create(model="any", prompt=QUESTION, max_tokens=8, extra_body={"latent_steps": 2})
        self.assertEqual(answer.choices[0].text, self.text)
        stream = self.openai.completions.create(model="any", prompt=QUESTION, max_tokens=8, stream=True, extra_body={"latent_steps": 2})
        self.assertEqual("".join(e.choices[0].text for e in stream if e.choices), self.text)

    def test_responses(self):
        answer = self.openai.responses.create(model="any", input=QUESTION, max_output_tokens=8, extra_body={"latent_steps": 2})
        self.assertEqual((answer.output_text, answer.status), (self.text, "incomplete"))
        self.assertEqual(answer.usage.output_tokens, 8)
        with self.openai.responses.stream(model="any", input=self.messages, max_output_tokens=8, extra_body={"latent_steps": 2}) as stream:
            pieces = [e.delta for e in stream if e.type == "response.output_text.delta"]
        self.assertEqual("".join(pieces), self.text)

    def test_messages(self):
        answer = self.anthropic.messages.create(model="any", messages=self.messages, max_tokens=8, extra_body={"latent_steps": 2})
        self.assertEqual((answer.content[0].text, answer.stop_reason), (self.text, "max_tokens"))
        self.assertEqual(answer.usage.output_tokens, 8)
        with self.anthropic.messages.stream(model="any", messages=self.messages, max_tokens=8,
                                            extra_body={"latent_steps": 2, "latent_trace": True}) as stream:
            self.assertEqual("".join(stream.text_stream), self.text)
            last = stream.get_final_message()
        self.assertEqual([block.type for block in last.content], ["thinking", "text"])
        stop = self.text[3:5]
        answer = self.anthropic.messages.create(model="any", messages=self.messages, max_tokens=8, stop_sequences=[stop],
                                                extra_body={"latent_steps": 2})
        self.assertEqual((answer.stop_reason, answer.stop_sequence), ("stop_sequence", stop))
        self.assertGreater(self.anthropic.messages.count_tokens(model="any", messages=self.messages).input_tokens, 10)

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.chat.completions.create(model="any", messages=self.messages, extra_body={"latent_steps": 1000})
        self.assertEqual(caught.exception.param, "latent_steps")
        with self.assertRaises(openai.AuthenticationError):
            openai.OpenAI(base_url=self.server.address + "/v1", api_key="wrong", max_retries=0).models.list()
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.anthropic.messages.create(model="any", messages=[{"role": "user", "content": "a" * 3000}], max_tokens=1)
        self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        with self.assertRaises(anthropic.AuthenticationError):
            anthropic.Anthropic(base_url=self.server.address, api_key="wrong", max_retries=0).messages.create(
                model="any", messages=self.messages, max_tokens=1)


@unittest.skipUnless(scripted.template(), "the templates of llama.cpp are not there")
class ToolLoopTest(unittest.TestCase):
    """The model calls a function because it must; the clients' own types and helpers carry the call and its result."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        cls.addClassCleanup(folder.cleanup)
        scripted.write_model(Path(folder.name) / "hf", {'"': '"'}, scripted.template(), 8192)  # strings are empty
        TinyModel.convert(Path(folder.name) / "hf", Path(folder.name) / "base.gguf")
        template = Path(os.environ["PENELOPE_TEST_VOCAB_DIR"]) / "templates" / "Qwen-Qwen2.5-7B-Instruct.jinja"
        cls.server = Serve("-m", Path(folder.name) / "base.gguf", "-c", 8192, "-n", 200, "--chat-template", template)
        cls.addClassCleanup(cls.server.close)
        cls.openai = openai.OpenAI(base_url=cls.server.address + "/v1", api_key="none", max_retries=0, timeout=120)
        cls.anthropic = anthropic.Anthropic(base_url=cls.server.address, api_key="none", max_retries=0, timeout=120)
        cls.schema = {"type": "object", "properties": {"city": {"enum": ["Rom"]}}, "required": ["city"], "additionalProperties": False}
        cls.function = {"name": "weather", "description": "The weather of a place", "parameters": cls.schema, "strict": True}

    def test_chat(self):
        tools = [{"type": "function", "function": self.function}]
        messages = [{"role": "user", "content": "Q"}]
        message = self.openai.chat.completions.create(model="any", messages=messages, tools=tools, tool_choice="required").choices[0].message
        [call] = message.tool_calls
        self.assertEqual((call.function.name, json.loads(call.function.arguments)), ("weather", {"city": "Rom"}))
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        self.openai.chat.completions.create(model="any", messages=messages, tools=tools, max_tokens=2)
        with self.openai.chat.completions.stream(model="any", messages=messages, tools=tools, tool_choice="required") as stream:
            kinds = [event.type for event in stream]
            last = stream.get_final_completion().choices[0]
        self.assertIn("tool_calls.function.arguments.delta", kinds)
        self.assertEqual((last.finish_reason, last.message.tool_calls[0].function.parsed_arguments), ("tool_calls", {"city": "Rom"}))

    def test_responses(self):
        tools = [{"type": "function", **self.function}]
        talk = [{"role": "user", "content": "Q"}]
        answer = self.openai.responses.create(model="any", input=talk, tools=tools, tool_choice="required")
        [call] = answer.output
        self.assertEqual((call.type, call.name, json.loads(call.arguments)), ("function_call", "weather", {"city": "Rom"}))
        talk += [*answer.output, {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        self.openai.responses.create(model="any", input=talk, tools=tools, max_output_tokens=2)
        with self.openai.responses.stream(model="any", input=talk, tools=tools, tool_choice="required") as stream:
            pieces = [event.delta for event in stream if event.type == "response.function_call_arguments.delta"]
            last = stream.get_final_response()
        self.assertEqual(json.loads("".join(pieces)), {"city": "Rom"})
        self.assertEqual(last.output[0].arguments, "".join(pieces))

    def test_messages(self):
        tools = [{"name": "weather", "description": "The weather of a place", "input_schema": self.schema}]
        messages = [{"role": "user", "content": "Q"}]
        answer = self.anthropic.messages.create(model="any", max_tokens=200, messages=messages, tools=tools, tool_choice={"type": "any"})
        [block] = answer.content
        self.assertEqual((answer.stop_reason, block.name, block.input), ("tool_use", "weather", {"city": "Rom"}))
        messages += [{"role": "assistant", "content": answer.content},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": block.id, "content": "sunny"}]}]
        with self.anthropic.messages.stream(model="any", max_tokens=200, messages=messages, tools=tools, tool_choice={"type": "any"}) as stream:
            last = stream.get_final_message()
        self.assertEqual(last.content[0].input, {"city": "Rom"})

    @unittest.skipUnless(hasattr(anthropic, "beta_tool"), "this client has no loop of its own")
    def test_tool_runner(self):
        asked = []

        @anthropic.beta_tool
        def weather(city: str) -> str:
            """The weather of a place.

            Args:
                city: its name
            """
            asked.append(city)
            return "sunny"

        runner = self.anthropic.beta.messages.tool_runner(model="any", max_tokens=300, max_iterations=2, tools=[weather], tool_choice={"type": "any"},
                                                          messages=[{"role": "user", "content": "Q"}])
        self.assertEqual([message.stop_reason for message in runner], ["tool_use", "tool_use"])
        self.assertEqual(asked[0], "")


if __name__ == "__main__":
    unittest.main()
