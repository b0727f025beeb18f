"""Tool calls in the service: what the APIs answer, in one piece and as a stream, and which requests are refused."""

import json
import os
import tempfile
import unittest
from pathlib import Path

import scripted
from serving import Serve
from support import TESTS, TinyModel

WEATHER = {"type": "object", "properties": {"city": {"enum": ["Rom", "Bonn"]}, "days": {"type": "integer", "minimum": 1, "maximum": 3}},
           "required": ["city", "days"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "The weather of a place", "parameters": WEATHER}}
NOW = {"type": "function", "function": {"name": "now"}}
CALLED = {"city": "Bonn", "days": 1}  # the lowest token that the grammar takes, each time
USER = [{"role": "user", "content": "Q"}]
MODELS = TESTS.parent / "models"


def flat(tool):
    return {"type": "function", **tool["function"]}


def anthropic(tool):
    return {"name": tool["function"]["name"], "input_schema": tool["function"].get("parameters", {"type": "object"})}


def refusals():
    deep = {"type": "object"}
    for _ in range(12):
        deep = {"type": "object", "properties": {"a": deep}}
    yield {"tools": "x"}, "tools"
    yield {"tools": [{"type": "web_search"}]}, "tools[0].type"
    yield {"tools": [TOOL, {"type": "function"}]}, "tools[1].function"
    yield {"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"
    yield {"tools": [{"type": "function", "function": {"name": "a" * 129}}]}, "tools[0].function.name"
    yield {"tools": [{"type": "function", "function": {"name": "f", "parameters": [1]}}]}, "tools[0].function.parameters"
    yield {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]}, "tools[0].function.parameters"
    yield {"tools": [{"type": "function", "function": {"name": "f", "description": 3}}]}, "tools[0].function.description"
    yield {"tools": [TOOL, TOOL]}, "tools[1].name"
    yield {"tools": [{"type": "function", "function": {"name": f"f{i}"}} for i in range(129)]}, "tools"
    yield {"tools": [{"type": "function", "function": {"name": "f", "description": "x" * 300000}}]}, "tools"
    yield {"tools": [TOOL], "tool_choice": "sometimes"}, "tool_choice"
    yield {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"
    yield {"tool_choice": "required"}, "tool_choice"
    yield {"tools": [TOOL], "parallel_tool_calls": "yes"}, "parallel_tool_calls"
    bad = {"type": "function", "function": {"name": "f", "strict": True, "parameters": {"type": "object", "properties": {"a": {"type": "string", "format": "email"}}}}}
    yield {"tools": [bad]}, "tools"
    huge = {"type": "function", "function": {"name": "f", "strict": True, "parameters": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 10**7}}}}}
    yield {"tools": [huge], "tool_choice": "required"}, "tools"


@unittest.skipUnless(scripted.template(), "the templates of llama.cpp are not there")
class ToolsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        cls.addClassCleanup(folder.cleanup)
        scripted.write_model(Path(folder.name) / "hf", {}, scripted.template(), 8192)
        cls.base = Path(folder.name) / "base.gguf"
        TinyModel.convert(Path(folder.name) / "hf", cls.base)
        cls.server = cls.serve("Qwen-Qwen2.5-7B-Instruct")

    @classmethod
    def serve(cls, template):
        path = Path(os.environ["PENELOPE_TEST_VOCAB_DIR"]) / "templates" / (template + ".jinja")
        server = Serve("-m", cls.base, "-c", 8192, "--chat-template", path)
        cls.addClassCleanup(server.close)
        return server

    def call(self, server, **fields):
        return server.good("/v1/chat/completions", {"messages": USER, "tools": [TOOL, NOW], "tool_choice": "required", **fields})["choices"][0]

    def test_every_format(self):
        for template in ("Qwen3.5-4B", "meta-llama-Llama-3.2-3B-Instruct", "ibm-granite-granite-3.3-2B-Instruct",
                         "mistralai-Mistral-Nemo-Instruct-2407", "google-gemma-4-31B-it", "google-gemma-2-2b-it"):
            with self.subTest(template):
                server = self.serve(template)
                named = {"type": "function", "function": {"name": "weather"}}
                choice = self.call(server, tool_choice=named, chat_template_kwargs={"enable_thinking": False})
                self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("tool_calls", None))
                [call] = choice["message"]["tool_calls"]
                self.assertEqual((call["type"], call["function"]["name"]), ("function", "weather"))
                self.assertEqual(json.loads(call["function"]["arguments"]), CALLED)
                # The next turn of the loop.
                talk = [*USER, choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "sunny <|im_end|>"}]
                server.good("/v1/chat/completions", {"messages": talk, "tools": [TOOL], "max_tokens": 3,
                                                     "chat_template_kwargs": {"enable_thinking": False}})
                server.close()

    def test_streams_are_what_answers_are(self):
        choice = self.call(self.server)
        [call] = choice["message"]["tool_calls"]
        self.assertEqual(call["function"]["name"], "now")
        chunks = list(self.server.stream("/v1/chat/completions", {"messages": USER, "tools": [TOOL], "tool_choice": "required"}))
        deltas = [c["choices"][0]["delta"] for c in chunks if c != "[DONE]" and c["choices"]]
        calls = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
        self.assertEqual((calls[0]["function"]["name"], calls[0]["function"]["arguments"]), ("weather", ""))
        self.assertEqual(len(calls[0]["id"]), 9)
        self.assertTrue(all(c["index"] == 0 for c in calls))
        self.assertGreater(len(calls), 5)
        self.assertEqual(json.loads("".join(c["function"]["arguments"] for c in calls)), CALLED)
        self.assertEqual("".join(d.get("content") or "" for d in deltas), "")
        self.assertEqual([c["choices"][0]["finish_reason"] for c in chunks if c != "[DONE]" and c["choices"]][-1], "tool_calls")

    def test_responses(self):
        body = {"input": "Q", "tools": [flat(TOOL)], "tool_choice": {"type": "function", "name": "weather"}}
        answer = self.server.good("/v1/responses", body)
        [item] = answer["output"]
        self.assertEqual((item["type"], item["name"], json.loads(item["arguments"]), item["status"]), ("function_call", "weather", CALLED, "completed"))
        events = list(self.server.stream("/v1/responses", body))
        pieces = [e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"]
        self.assertEqual(json.loads("".join(pieces)), CALLED)
        self.assertEqual(events[-1]["response"]["output"], [e["item"] for e in events if e["type"] == "response.output_item.done"])
        self.assertEqual([e["sequence_number"] for e in events], list(range(len(events))))
        talk = [{"role": "user", "content": "Q"}, item, {"type": "function_call_output", "call_id": item["call_id"], "output": "sunny"}]
        self.server.good("/v1/responses", {"input": talk, "tools": [flat(TOOL)], "max_output_tokens": 2})
        self.refused("/v1/responses", {"input": [{"type": "function_call", "name": "f"}], "max_output_tokens": 2}, "input[0].call_id")

    def test_messages(self):
        body = {"messages": USER, "max_tokens": 200, "tools": [anthropic(TOOL)], "tool_choice": {"type": "any"}}
        answer = self.server.good("/v1/messages", body)
        [block] = answer["content"]
        self.assertEqual((block["type"], block["name"], block["input"], answer["stop_reason"]), ("tool_use", "weather", CALLED, "tool_use"))
        events = list(self.server.stream("/v1/messages", body))
        pieces = [e["delta"]["partial_json"] for e in events if e["type"] == "content_block_delta"]
        self.assertEqual(json.loads("".join(pieces)), CALLED)
        talk = [*USER, {"role": "assistant", "content": answer["content"]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": block["id"], "content": [{"type": "text", "text": "sunny"}]}]}]
        self.server.good("/v1/messages", {"messages": talk, "max_tokens": 2, "tools": [anthropic(TOOL)]})
        more = self.server.good("/v1/messages/count_tokens", {"messages": talk, "tools": [anthropic(TOOL)]})["input_tokens"]
        self.assertGreater(more, self.server.good("/v1/messages/count_tokens", {"messages": talk})["input_tokens"] + 50)
        cut = self.server.good("/v1/messages", {**body, "max_tokens": 60})  # in the middle of the call
        self.assertEqual((cut["content"], cut["stop_reason"]), ([], "max_tokens"))
        self.refused("/v1/messages", {**body, "tool_choice": "any"}, None)
        self.refused("/v1/messages", {**body, "tool_choice": {"type": "tool", "name": "other"}}, None)

    def refused(self, path, body, field):
        status, _, answer = self.server.ask(path, body)
        self.assertEqual(status, 400, answer)
        if field is not None:
            self.assertEqual(answer["error"]["param"], field, answer)
            self.assertIn(field.split(".")[-1].split("[")[0], answer["error"]["message"])

    def test_choice(self):
        none = self.server.chat("Q", tools=[TOOL], tool_choice="none", max_tokens=2)
        self.assertEqual(none["usage"]["prompt_tokens"], self.server.chat("Q", max_tokens=2)["usage"]["prompt_tokens"])
        auto = self.server.chat("Q", tools=[TOOL], max_tokens=2)
        self.assertGreater(auto["usage"]["prompt_tokens"], none["usage"]["prompt_tokens"] + 50)
        self.assertNotIn("tool_calls", auto["choices"][0]["message"])
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "weather"}}]}}
        self.assertEqual(self.call(self.server, tool_choice=allowed)["message"]["tool_calls"][0]["function"]["name"], "weather")
        # A response format is for the text of an answer that calls nothing.
        both = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}}}
        answer = self.server.chat("Q", tools=[TOOL], response_format=both, max_tokens=200)["choices"][0]["message"]
        self.assertTrue(answer.get("tool_calls") or json.loads(answer["content"]) == {"a": 1}, answer)
        loose = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string", "format": "email"}}}}}
        self.assertIn("not held to", self.server.chat("Q", tools=[loose], max_tokens=1)["warnings"][0])

    def test_refused_requests(self):
        for fields, field in refusals():
            with self.subTest(field=field, fields=str(fields)[:100]):
                self.refused("/v1/chat/completions", {"messages": USER, **fields}, field)
        call = {"role": "assistant", "tool_calls": [{"id": "1", "function": {}}]}
        self.refused("/v1/chat/completions", {"messages": [*USER, call]}, "messages[1].tool_calls[0].function.name")
        self.refused("/v1/completions", {"prompt": "a", "tools": [TOOL]}, "tools")

    def test_a_sidecar_calls_nothing(self):
        with Serve("-m", MODELS / "thread-0.6M-Q8_0.gguf", "--sidecar", MODELS / "thread-0.6M-thread-penelope-Q8_0.gguf") as server:
            answer = server.chat("Evaluate", tools=[TOOL], max_tokens=1)
            self.assertEqual(answer["warnings"], ["tools: this model has a sidecar, tools are not used"])
            status, _, answer = server.ask("/v1/chat/completions", {"messages": USER, "tools": [TOOL], "tool_choice": "required"})
            self.assertEqual((status, answer["error"]["param"]), (400, "tool_choice"))


if __name__ == "__main__":
    unittest.main()
