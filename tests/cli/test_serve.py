"""penelope serve, asked over HTTP: its answers are those of `penelope run`, its errors have OpenAI's form."""

import json
import re
import resource
import select
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from serving import Serve
from support import BIN, GOLDEN, TESTS, ModelTest, clean_environment, run

QUESTION = "abcdefghij klmnop qrstuv wxyz 0123456789"


class ServeTest(ModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.latent = Serve("-m", cls.model.base, "--sidecar", cls.model.sidecar, "-c", 256, "--ignore-mismatch")
        cls.addClassCleanup(cls.latent.close)

    def run_tokens(self, text, *args):
        return self.ok_json("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-c", 256, "-p", text,
                            *args)["tokens"]

    def test_facts(self):
        server = self.latent
        self.assertEqual(server.good("/health"), {"status": "ok"})
        model = server.good("/v1/models")["data"][0]
        self.assertEqual((model["object"], model["meta"]["method"]), ("model", "penelope"))
        props = server.good("/props")
        most = props["latent_steps"]["max"]
        self.assertEqual(props["reasoning_effort"]["none"], 0)
        self.assertEqual(props["reasoning_effort"]["high"], most)
        self.assertEqual(props["total_slots"], 4)
        self.assertIn("# TYPE penelope:tokens_predicted_total counter", server.good("/metrics"))

    def test_answers_are_those_of_run(self):
        for fields, flags in [({"latent_steps": 0}, ["-K", 0]), ({"latent_steps": 3}, ["-K", 3]), ({}, []),
                              ({"cot": True}, ["--cot", "--ignore-mismatch"]), ({"reasoning_effort": "minimal"}, ["-K", 1]),
                              ({"reasoning": {"latent_steps": 2}}, ["-K", 2]),
                              ({"temperature": 1.5, "seed": 7, "top_k": 0, "top_p": 1, "min_p": 0},
                               ["--temp", 1.5, "--seed", 7, "--top-k", 0, "--top-p", 1, "--min-p", 0])]:
            with self.subTest(fields):
                answer = self.latent.chat(QUESTION, max_tokens=12, **fields)
                choice = answer["choices"][0]
                expected = self.ok_json("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-c", 256, "-p", QUESTION,
                                        "-n", 12, *flags)
                self.assertEqual(choice["tokens"], expected["tokens"])
                self.assertEqual(choice["message"]["content"], expected["text"])
                self.assertEqual(choice["finish_reason"], expected["finish_reason"])
                self.assertEqual(answer["usage"]["latent_steps"], expected["K"])
                self.assertEqual(answer["usage"]["prompt_tokens"], expected["prompt_tokens"])
                self.assertEqual(answer["timings"]["layer_applications"], expected["layer_applications"])

    def test_whatever_else_runs(self):
        # Prompts, K, methods and lengths all differ; more of them than slots.
        asked = [(QUESTION[i:] + QUESTION[:i], k, n) for i, (k, n) in
                 enumerate([(0, 30), (1, 5), (3, 20), (None, 25), (2, 9), (None, 7), (4, 40), (1, 1), (0, 3), (3, 33)])]
        alone = [self.run_tokens(text, "-n", n, *(["--cot", "--ignore-mismatch"] if k is None else ["-K", k])) for text, k, n in asked]
        found = [None] * len(asked)

        def ask(i):
            text, k, n = asked[i]
            how = {"cot": True} if k is None else {"latent_steps": k}
            found[i] = self.latent.good("/v1/completions", {"prompt": text, "max_tokens": n, **how})["choices"][0]["tokens"]

        for _ in range(2):  # the second time on slots that hold other answers
            threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(asked))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(found, alone)

    def test_stream(self):
        body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 10, "latent_steps": 2, "n": 2}
        whole = self.latent.good("/v1/chat/completions", body)
        events = list(self.latent.stream("/v1/chat/completions", {**body, "stream_options": {"include_usage": True}}))
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(events[-2]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"])
        for index in (0, 1):
            mine = [c for e in events[:-2] for c in e["choices"] if c["index"] == index]
            self.assertEqual(mine[0]["delta"]["role"], "assistant")
            self.assertEqual("".join(c["delta"].get("content", "") for c in mine), whole["choices"][index]["message"]["content"])
            self.assertEqual([c["finish_reason"] for c in mine if c["finish_reason"]], ["length"])
        text = list(self.latent.stream("/v1/completions", {"prompt": QUESTION, "max_tokens": 10, "latent_steps": 2}))
        self.assertEqual("".join(c["text"] for e in text[:-1] for c in e["choices"]), whole["choices"][0]["message"]["content"])

    def test_stop_strings(self):
        whole = self.latent.chat(QUESTION, max_tokens=40, latent_steps=1)["choices"][0]["message"]["content"]
        stop = whole[len(whole) // 2:][:3]
        answer = self.latent.chat(QUESTION, max_tokens=40, latent_steps=1, stop=["never there", stop])["choices"][0]
        self.assertEqual(answer["message"]["content"], whole[:whole.index(stop)])
        self.assertEqual(answer["finish_reason"], "stop")
        events = list(self.latent.stream("/v1/completions", {"prompt": QUESTION, "max_tokens": 40, "latent_steps": 1, "stop": stop}))
        self.assertEqual("".join(c["text"] for e in events[:-1] for c in e["choices"]), whole[:whole.index(stop)])

    def test_logprobs(self):
        answer = self.latent.chat(QUESTION, max_tokens=3, logprobs=True, top_logprobs=4)["choices"][0]
        for token in answer["logprobs"]["content"]:
            self.assertEqual(len(token["top_logprobs"]), 4)
            self.assertEqual(token["logprob"], token["top_logprobs"][0]["logprob"])  # greedy
            self.assertLess(token["logprob"], 0)
        body = {"input": QUESTION, "max_output_tokens": 3, "top_logprobs": 4}
        part = self.latent.good("/v1/responses", body)["output"][-1]["content"][0]
        self.assertEqual(part["logprobs"], answer["logprobs"]["content"])
        events = list(self.latent.stream("/v1/responses", body))
        told = [e["logprobs"] for e in events if e["type"] == "response.output_text.delta"]
        self.assertEqual(sum(told, []), answer["logprobs"]["content"])
        included = self.latent.good("/v1/responses", {**body, "top_logprobs": None, "include": ["message.output_text.logprobs"]})
        self.assertEqual([t["top_logprobs"] for t in included["output"][-1]["content"][0]["logprobs"]], [[]] * 3)
        text = self.latent.good("/v1/completions", {"prompt": QUESTION, "max_tokens": 3, "logprobs": 2})["choices"][0]["logprobs"]
        self.assertEqual(text["token_logprobs"], [t["logprob"] for t in answer["logprobs"]["content"]])

    def test_trace(self):
        trace = self.latent.good("/v1/latent/trace", {"prompt": QUESTION, "latent_steps": 3})
        path = self.work / "trace.jsonl"
        self.ok("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-c", 256, "-p", QUESTION, "-K", 3, "-n", 1,
                "--trace", path)
        expected = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([s["t"] for s in trace["steps"]], [0, 1, 2, 3])
        for step, other in zip(trace["steps"], expected):
            for part in ("memory", "readout"):
                self.assertEqual([row[0]["token"] for row in step[part]["top"]], [row[0]["token"] for row in other[part]["top"]])
                for a, b in zip(step[part]["norm"], other[part]["norm"]):
                    self.assertAlmostEqual(a, b, delta=1e-2 * b)
        answer = self.latent.chat(QUESTION, max_tokens=4, latent_steps=3, latent_trace=True)
        self.assertEqual(len(answer["latent_trace"]), 4)
        self.assertEqual(answer["choices"][0]["message"]["reasoning_content"].count("\n"), 3)
        self.assertEqual(answer["choices"][0]["tokens"], self.run_tokens(QUESTION, "-n", 4, "-K", 3))
        events = list(self.latent.stream("/v1/chat/completions", {"messages": [{"role": "user", "content": QUESTION}],
                                                                  "max_tokens": 4, "latent_steps": 3, "latent_trace": True}))
        self.assertEqual([e["latent_step"]["t"] for e in events[:-1] if "latent_step" in e], [0, 1, 2, 3])
        # With attention: of each memory row over the tokens of the prompt, and nothing else changes.
        watched = self.latent.chat(QUESTION, max_tokens=4, latent_steps=3, latent_attention=True)
        self.assertEqual(watched["choices"][0]["tokens"], answer["choices"][0]["tokens"])
        self.assertNotIn("attention", watched["latent_trace"][0])
        for step, other in zip(watched["latent_trace"][1:], answer["latent_trace"][1:]):
            self.assertEqual(step["memory"], other["memory"])
            self.assertNotIn("attention", other)
            for layer in step["attention"]:
                for head in layer["heads"]:
                    self.assertEqual([len(row) for row in head], [watched["usage"]["prompt_tokens"]] * len(step["memory"]["norm"]))
                    self.assertTrue(all(0 < sum(row) < 1.01 for row in head))

    def test_a_shared_beginning_is_read_once(self):
        front = "0123456789 abcdefghijklmnopqrstuvwxyz " * 2
        first = self.latent.good("/v1/completions", {"prompt": front + "one", "max_tokens": 2, "latent_steps": 2})
        again = self.latent.good("/v1/completions", {"prompt": front + "two", "max_tokens": 2, "latent_steps": 3})
        kept = again["usage"]["prompt_tokens_details"]["cached_tokens"]
        # The last 8 to 11 rows are computed again, so that they meet the kernels they would meet in a fresh prompt.
        self.assertGreaterEqual(kept, first["usage"]["prompt_tokens"] - 11)
        self.assertLessEqual(kept, first["usage"]["prompt_tokens"] - 8)
        self.assertEqual(again["choices"][0]["tokens"], self.run_tokens(front + "two", "-n", 2, "-K", 3))

    def test_wrong_requests(self):
        user = [{"role": "user", "content": "a"}]
        for path, body, status, param in [
            ("/v1/chat/completions", "{", 400, None), ("/v1/chat/completions", "[]", 400, None),
            ("/v1/chat/completions", {}, 400, "messages"), ("/v1/chat/completions", {"messages": []}, 400, "messages"),
            ("/v1/chat/completions", {"messages": [{"role": "robot", "content": "x"}]}, 400, "messages[0].role"),
            ("/v1/chat/completions", {"messages": user, "latent_steps": 1000}, 400, "latent_steps"),
            ("/v1/chat/completions", {"messages": user, "latent_steps": 1.5}, 400, "latent_steps"),
            ("/v1/chat/completions", {"messages": user, "temperature": "hot"}, 400, "temperature"),
            ("/v1/chat/completions", {"messages": user, "temperature": -1}, 400, "temperature"),
            ("/v1/chat/completions", {"messages": user, "n": 1000}, 400, "n"),
            ("/v1/chat/completions", {"messages": user, "reasoning_effort": "wild"}, 400, "reasoning_effort"),
            ("/v1/chat/completions", {"messages": user, "tools": [{"type": "function"}]}, 400, "tools[0].function"),
            ("/v1/chat/completions", {"messages": user + [{"role": "assistant", "content": "b"}]}, 400, "messages"),
            ("/v1/completions", {}, 400, "prompt"), ("/v1/completions", {"prompt": ""}, 400, None),
            ("/v1/completions", {"prompt": "a" * 2000}, 400, None), ("/v1/nothing", {}, 404, None),
            ("/v1/completions", None, 404, None), ("/v1/completions", "x" * (2 << 20), 413, None),
        ]:
            with self.subTest(path=path, body=str(body)[:60]):
                found, _, answer = self.latent.ask(path, body)
                self.assertEqual((found, answer["error"]["param"]), (status, param), answer)
                self.assertTrue(answer["error"]["message"])
        status, _, answer = self.latent.ask("/v1/completions", {"prompt": "a" * 2000})
        self.assertRegex(answer["error"]["message"], "no room for an answer in a context of 256")

    def test_empty_strings_are_as_good_as_absent(self):
        # Libraries send them for what their users left open.
        user = [{"role": "user", "content": QUESTION}]
        for path, body, names in [
            ("/v1/completions", {"prompt": QUESTION, "max_tokens": 3}, ["suffix", "stop", "grammar", "reasoning_effort", "tools"]),
            ("/v1/chat/completions", {"messages": user, "max_tokens": 3}, ["stop", "reasoning_format", "reasoning_effort", "functions"]),
            ("/v1/responses", {"input": QUESTION, "max_output_tokens": 3}, ["previous_response_id", "conversation", "instructions"]),
            ("/v1/messages", {"messages": user, "max_tokens": 3}, ["system"]),
        ]:
            expected = self.latent.good(path, body)
            for name in names:
                with self.subTest(path=path, name=name):
                    found = self.latent.good(path, {**body, name: ""})
                    for part in ("choices", "output", "content", "warnings"):
                        ours, theirs = ([{k: v for k, v in one.items() if k != "id"} if isinstance(one, dict) else one
                                         for one in answer.get(part, [])] for answer in (found, expected))
                        self.assertEqual(ours, theirs)
                    self.assertEqual(found["usage"].get("latent_steps"), expected["usage"].get("latent_steps"))
        for path, body, name in [("/v1/completions", {"prompt": "a"}, "suffix"), ("/v1/responses", {"input": "a"}, "previous_response_id")]:
            status, _, answer = self.latent.ask(path, {**body, name: "x"})
            self.assertEqual((status, answer["error"]["param"]), (400, name))

    def test_strangers(self):
        body = {"prompt": "a", "max_tokens": 1}
        self.assertEqual(self.latent.ask("/v1/completions", body, headers={"Host": "evil.example"})[0], 403)
        self.assertEqual(self.latent.ask("/v1/completions", body, headers={"Origin": "http://evil.example"})[0], 403)
        self.assertEqual(self.latent.ask("/v1/completions", body, headers={"Content-Encoding": "gzip"})[0], 415)
        status, headers, _ = self.latent.ask("/v1/completions", body, headers={"Origin": self.latent.address})
        self.assertEqual(status, 200)
        self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_page(self):
        status, headers, page = self.latent.ask("/")
        self.assertEqual(status, 200)
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotIn("unsafe-inline", headers["Content-Security-Policy"])
        self.assertNotRegex(page, r"""(src|href)\s*=\s*["']?(https?:)?//""")

    def test_warnings(self):
        answer = self.latent.good("/v1/chat/completions", {"max_tokens": 1, "messages": [
            {"role": "system", "content": "s"}, {"role": "user", "content": QUESTION}]})
        self.assertRegex(answer["warnings"][0], "only the last message is used")


class LimitsTest(ModelTest):
    def endless(self, *args):
        server = Serve("-m", self.model.endless, "-c", 60000, *args)
        self.addCleanup(server.close)
        return server

    LONG = {"prompt": "a b c", "max_tokens": 50000, "ignore_eos": True}

    def test_a_client_that_goes_away_stops_its_work(self):
        server = self.endless("--slots", 2)
        events = server.stream("/v1/completions", self.LONG)
        next(events)
        self.assertEqual(server.metric("slots_busy"), 1)
        events.close()
        server.wait_metric("slots_busy", lambda n: n == 0)
        # The same without a stream, while it waits for its answer.
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps(self.LONG))
        server.wait_metric("slots_busy", lambda n: n == 1)
        connection.close()
        server.wait_metric("slots_busy", lambda n: n == 0)
        self.assertEqual(server.metric("answers_cancelled_total"), 2)

    def test_a_client_that_closes_its_sending_side_gets_its_answer(self):
        server = self.endless()
        for version in ("1.1", "1.0"):
            for stream in (False, True):
                with self.subTest(version=version, stream=stream):
                    body = json.dumps({**self.LONG, "max_tokens": 400, "stream": stream})
                    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as one:
                        one.sendall(f"POST /v1/completions HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n"
                                    f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
                        one.shutdown(socket.SHUT_WR)
                        text = b""
                        while piece := one.recv(65536):
                            text += piece
                    heads = re.findall(rb"HTTP/1\.\d (\d+)", text)
                    self.assertEqual((set(heads[:-1]) - {b"100"}, heads[-1:]), (set(), [b"200"]), text[:300])
                    self.assertTrue(version == "1.1" or len(heads) == 1, text[:300])  # 1.0 has no interim responses
                    self.assertIn(b'"completion_tokens":400', text)
        self.assertEqual(server.metric("answers_cancelled_total"), 0)

    def test_queue_and_time(self):
        server = self.endless("--slots", 1, "--queue", 1, "--timeout", 2)
        events = server.stream("/v1/completions", self.LONG)
        next(events)
        waiting = threading.Thread(target=server.ask, args=("/v1/completions", self.LONG))
        waiting.start()
        server.wait_metric("requests_waiting", lambda n: n == 1)
        status, headers, answer = server.ask("/v1/completions", self.LONG)
        self.assertEqual((status, headers["Retry-After"], answer["error"]["code"]), (503, "1", "queue_full"))
        last = list(events)[-1]
        self.assertEqual(last["error"]["code"], "timeout")
        waiting.join()

    def test_free_slots_are_no_queue(self):
        server = self.endless("--slots", 4, "--queue", 1)
        found = []
        threads = [threading.Thread(target=lambda: found.append(
            server.ask("/v1/completions", {"prompt": "a b c", "max_tokens": 40, "ignore_eos": True})[0])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [200] * 4)
        answer = server.good("/v1/completions", {"prompt": "a b c", "max_tokens": 4, "n": 5})
        self.assertEqual(len(answer["choices"]), 5)
        self.assertEqual(server.ask("/v1/completions", {"prompt": "a b c", "max_tokens": 4, "n": 6})[0], 503)

    def test_an_answer_waits_for_any_slot(self):
        # A small model has a worker for each thread, here with a slot each.
        server = self.endless("--slots", 2, "-t", 2)
        kept, left = (server.stream("/v1/completions", self.LONG) for _ in range(2))
        next(kept), next(left)
        found = []
        waiting = [threading.Thread(target=lambda: found.append(
            server.ask("/v1/completions", {"prompt": "a b c", "max_tokens": 4})[0])) for _ in range(2)]
        for thread in waiting:
            thread.start()
        server.wait_metric("requests_waiting", lambda n: n == 2)
        left.close()
        for thread in waiting:
            thread.join(60)
        self.assertEqual(found, [200, 200])
        self.assertEqual(server.metric("slots_busy"), 1)
        kept.close()

    def test_ctrl_c_lets_answers_finish(self):
        server = self.endless("-v")
        events = server.stream("/v1/completions", {**self.LONG, "max_tokens": 800})
        next(events)
        server.interrupt()
        server.wait_log("finishing running answers")
        status, _, answer = server.ask("/v1/completions", self.LONG)
        self.assertEqual((status, answer["error"]["code"]), (503, "shutting_down"))
        all_events = list(events)
        self.assertEqual(all_events[-1], "[DONE]")
        self.assertEqual(all_events[-2]["usage"]["completion_tokens"], 800)
        self.assertEqual(server.wait()[0], 0)

    def test_a_second_ctrl_c_stops_them(self):
        server = self.endless("-v")
        events = server.stream("/v1/completions", self.LONG)
        next(events)
        server.interrupt()
        server.wait_log("finishing running answers")
        server.interrupt()
        self.assertEqual(list(events)[-1]["error"]["code"], "shutting_down")
        self.assertEqual(server.wait()[0], 0)

    def test_slow_clients_and_too_many(self):
        server = self.endless("--request-timeout", 1, "--connections", 3)
        slow = socket.create_connection(("127.0.0.1", server.port))
        self.addCleanup(slow.close)
        start, dropped = time.monotonic(), False
        while not dropped and time.monotonic() - start < 30:
            try:
                slow.sendall(b"G")  # a byte now and then, never a whole request
                dropped = bool(select.select([slow], [], [], 0.2)[0]) and slow.recv(100) is not None
            except OSError:
                dropped = True
        self.assertTrue(dropped, "the connection is still there after 30 s")
        self.assertGreaterEqual(time.monotonic() - start, 0.9)  # not before the time a request may take
        # Connections are accepted in order: all three are counted before the one that asks.
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
        status, headers, _ = server.ask("/health")
        self.assertEqual((status, headers["Retry-After"]), (503, "1"))
        for one in held:
            one.close()
        server.wait_status("/health", 200)

    def test_control_tokens_are_text(self):
        server = self.endless()
        tokenizer = json.loads((GOLDEN / "last" / "model" / "tokenizer.json").read_text())
        control = [token["content"] for token in tokenizer["added_tokens"] if token["special"]]
        self.assertIn("<|end_of_text|>", control)
        count = lambda text: server.good("/v1/completions", {"prompt": text, "max_tokens": 1})["usage"]["prompt_tokens"]
        for token in control:
            # As many tokens as a text of the same letters between other marks, which the vocabulary does not merge either.
            self.assertEqual(count("a" + token + "b"), count("a" + token.replace("<", "(").replace(">", ")") + "b"), token)


class GrammarTest(ModelTest):
    """A grammar that is too much ends the answer it was given for, and no other."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Serve("-m", cls.model.base, "-c", 256)
        cls.addClassCleanup(cls.server.close)

    def test_too_many_beginnings(self):
        for field, value in (("grammar", 'a ::= "x"\nroot ::= ' + "|".join(["a"] * 21000)),
                             ("json_schema", {"enum": list(range(21000))})):
            with self.subTest(field):
                status, _, answer = self.server.ask("/v1/completions", {"prompt": "a", "max_tokens": 4, field: value})
                self.assertEqual((status, answer["error"]["param"]), (400, field), answer)
                self.assertEqual(len(self.server.good("/v1/completions", {"prompt": "a", "max_tokens": 4})["choices"]), 1)

    def test_too_many_states(self):
        # Every text of letters can be read in hundreds of ways, and each leads to states of its own.
        grammar = ("a ::= [ -~]*\nb ::= [ -~]* (" + "|".join(f'"{c}" [ -~]{{200}}' for c in "etaoinsrhldcumfpgwybvk") + ') "~"\n'
                   "root ::= b|" + "|".join(['a "~~"'] * 300))
        other = []
        waiting = threading.Thread(target=lambda: other.append(
            self.server.good("/v1/completions", {"prompt": "a", "max_tokens": 150, "ignore_eos": True})["choices"][0]))
        waiting.start()
        start = time.monotonic()
        status, _, answer = self.server.ask("/v1/completions", {"prompt": "a", "max_tokens": 200, "grammar": grammar,
                                                                "temperature": 2, "seed": 1, "top_k": 0, "top_p": 1, "min_p": 0})
        self.assertEqual(status, 400, answer)
        self.assertIn("too ambiguous", answer["error"]["message"])
        self.assertLess(time.monotonic() - start, 20)
        waiting.join()
        self.assertEqual(len(other[0]["tokens"]), 150)

    def test_every_api_keeps_to_it(self):
        grammar = 'root ::= "q" [0-3]{4}'
        schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
        latent = Serve("-m", self.model.base, "--sidecar", self.model.sidecar, "-c", 256)
        self.addCleanup(latent.close)
        user = [{"role": "user", "content": "a"}]
        for path, body, text in [
            ("/v1/messages", {"messages": user, "max_tokens": 60}, lambda a: a["content"][-1]["text"]),
            ("/v1/responses", {"input": "a", "max_output_tokens": 60}, lambda a: a["output"][-1]["content"][0]["text"]),
            ("/v1/chat/completions", {"messages": user, "max_tokens": 60}, lambda a: a["choices"][0]["message"]["content"]),
        ]:
            with self.subTest(path):
                self.assertRegex(text(latent.good(path, {**body, "grammar": grammar})), "^q[0-3]{4}$")
                form = {"type": "json_schema", "json_schema": {"schema": schema}}
                self.assertIn(json.loads(text(latent.good(path, {**body, "response_format": form})))["a"], (1, 2))
        for how in ({"output_config": {"format": {"type": "json_schema", "schema": schema}}},
                    {"output_format": {"type": "json_schema", "schema": schema}}):
            answer = latent.good("/v1/messages", {"messages": user, "max_tokens": 60, **how})
            self.assertIn(json.loads(answer["content"][-1]["text"])["a"], (1, 2))
        status, _, answer = latent.ask("/v1/messages", {"messages": user, "max_tokens": 6, "top_logprobs": 2})
        self.assertEqual((status, answer["error"]["type"]), (400, "invalid_request_error"))


class HttpTest(ModelTest):
    """What stands below the requests: bytes, lengths, headers, threads."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Serve("-m", cls.model.base, "-c", 64, "--cors-origin", "http://other.example")
        cls.addClassCleanup(cls.server.close)

    def exchange(self, data, server=None, timeout=10):
        """All that comes back until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", (server or self.server).port), timeout=timeout) as one:
            one.sendall(data)
            text = b""
            while piece := one.recv(65536):
                text += piece
        return text

    def test_ranges_are_ignored(self):
        whole = self.server.ask("/")[2]
        for ranges in ("bytes=0-9", "bytes=" + ",".join(["0-"] * 2000)):
            status, headers, page = self.server.ask("/", headers={"Range": ranges})
            self.assertEqual((status, page), (200, whole))
        status, _, answer = self.server.ask("/v1/completions", {"prompt": "a", "max_tokens": 2}, headers={"Range": "bytes=0-5"})
        self.assertEqual((status, answer["object"]), (200, "text_completion"))

    def test_forms_are_bodies(self):
        body = json.dumps({"prompt": "a", "max_tokens": 1, "user": "x" * 50000})
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"):
            status, _, answer = self.server.ask("/v1/completions", body, headers={"Content-Type": kind})
            self.assertEqual((status, answer["object"]), (200, "text_completion"), answer)

    def test_no_request_hides_in_another(self):
        hidden = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        for method in (b"GET /health", b"OPTIONS /v1/completions", b"HEAD /health"):
            for length in (b"Content-Length: %d" % len(hidden), b"Transfer-Encoding: chunked"):
                with self.subTest(method=method, length=length):
                    body = hidden if b"Content" in length else b"%x\r\n%s\r\n0\r\n\r\n" % (len(hidden), hidden)
                    text = self.exchange(method + b" HTTP/1.1\r\nHost: localhost\r\n" + length + b"\r\n\r\n" + body)
                    self.assertEqual(text.count(b"HTTP/1.1 "), 1, text)
                    self.assertRegex(text, rb"HTTP/1.1 20[04] ")
        asked = b'{"prompt": "a", "max_tokens": 1}'
        for lengths in (b"Content-Length: %d\r\nTransfer-Encoding: chunked" % len(asked),
                        b"Content-Length: %d\r\nContent-Length: 3" % len(asked)):
            text = self.exchange(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + lengths + b"\r\n\r\n" + asked)
            self.assertEqual((text.count(b"HTTP/1.1 "), text[:12]), (1, b"HTTP/1.1 400"), text)

    def test_pages_of_an_allowed_origin_may_send_what_their_library_sends(self):
        wanted = "authorization, content-type, x-stainless-os, anthropic-version"
        origin = {"Origin": "http://other.example", "Access-Control-Request-Method": "POST"}
        _, headers, _ = self.server.ask("/v1/completions", method="OPTIONS", headers={**origin, "Access-Control-Request-Headers": wanted})
        self.assertEqual(headers["Access-Control-Allow-Headers"], wanted)
        _, headers, _ = self.server.ask("/v1/completions", method="OPTIONS", headers={**origin, "Access-Control-Request-Headers": "x<y>"})
        self.assertIn("x-api-key", headers["Access-Control-Allow-Headers"])

    def test_half_a_request_does_not_hold_up_the_end(self):
        server = Serve("-m", self.model.base, "-c", 64, "--request-timeout", 600)
        self.addCleanup(server.close)
        for half in (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", b"GE"):
            one = socket.create_connection(("127.0.0.1", server.port))
            self.addCleanup(one.close)
            one.sendall(half)
            server.wait_read(one)
        start = time.monotonic()
        server.interrupt()
        self.assertEqual(server.wait()[0], 0)
        self.assertLess(time.monotonic() - start, 5)

    def test_a_machine_without_threads_refuses(self):
        server = Serve("-m", self.model.base, "-c", 64)
        self.addCleanup(server.close)
        server.ask("/health")
        with open(f"/proc/{server.process.pid}/status") as status:
            size = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmSize"))
        # Less than the stack of a thread; what one that ended left behind can be used once more.
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (size + (1 << 20), resource.RLIM_INFINITY))
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(12)]
        refused = 0
        for one in held:
            one.settimeout(1)
            try:
                refused += b"503" in one.recv(100)
            except TimeoutError:
                pass
        self.assertGreater(refused, 0)
        for one in held:
            one.close()
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        server.wait_status("/health", 200)

    def test_the_log_holds_no_raw_bytes(self):
        with Serve("-m", self.model.base, "-c", 64, "-v") as server:
            server.ask("/%1b%5b31mred%0a")
            server.interrupt()
            _, log = server.wait()
        self.assertIn("'/\\x1B[31mred\\n' 404", log)
        self.assertNotIn("\x1b", log)

    def test_the_name_of_a_model_is_quoted(self):
        strange = self.work / "strange.gguf"
        data = self.model.base.read_bytes()
        at = data.index(b"general.name") + len("general.name") + 4 + 8
        strange.write_bytes(data[:at] + b"\x1b" + data[at + 1:])
        process = subprocess.Popen([BIN, "serve", "-m", strange, "-c", "64", "--port", "0"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=clean_environment())
        try:
            self.assertRegex(process.stdout.readline(), r"^'\\x1B.*' at http://127\.0\.0\.1:\d+\n$")
        finally:
            process.kill()
            process.communicate()

    def test_address_of_a_loopback_in_brackets(self):
        try:
            with socket.socket(socket.AF_INET6) as six:
                six.bind(("::1", 0))
        except OSError:
            self.skipTest("there is no ::1")
        with Serve("-m", self.model.base, "-c", 64, "--host", "::1") as server:
            self.assertRegex(server.address, r"^http://\[::1\]:\d+$")


class KeyTest(ModelTest):
    def test_keys(self):
        keys = self.work / "keys"
        keys.write_text("# ours\nfirst\n\nsecond\n")
        with Serve("-m", self.model.base, "-c", 64, "--api-key", "third,fourth", "--api-key-file", keys) as server:
            body = {"prompt": "a", "max_tokens": 1}
            self.assertEqual(server.ask("/health")[0], 200)
            self.assertEqual(server.ask("/")[0], 200)
            for headers in ({}, {"Authorization": "Bearer fourt"}, {"Authorization": "Bearer third,fourth"}, {"x-api-key": ""}):
                status, _, answer = server.ask("/v1/completions", body, headers=headers)
                self.assertEqual((status, answer["error"]["code"]), (401, "invalid_api_key"))
            for key in ("first", "second", "third", "fourth"):
                self.assertEqual(server.ask("/v1/completions", body, headers={"Authorization": "Bearer " + key})[0], 200)
                self.assertEqual(server.ask("/v1/models", headers={"x-api-key": key})[0], 200)

    def test_keys_as_people_write_them(self):
        keys = self.work / "keys"
        keys.write_bytes(b"\xef\xbb\xbf first \t\r\n# a remark\r\n")
        with Serve("-m", self.model.base, "-c", 64, "--api-key", " second ,third", "--api-key-file", keys) as server:
            for key in ("first", "second", "third"):
                for scheme in ("Bearer ", "bearer ", "BEARER  "):
                    self.assertEqual(server.ask("/v1/models", headers={"Authorization": scheme + key})[0], 200)
        for value in ("", ",", " "):
            self.error(2, "--api-key: no API key found", "serve", "-m", self.model.base, "--api-key", value)
        self.error(2, "--api-key: API keys must not contain '%'", "serve", "-m", self.model.base, "--api-key", "a%41")
        keys.write_text("a%41\n")
        self.error(2, "API keys must not contain '%'", "serve", "-m", self.model.base, "--api-key-file", keys)

    def test_an_open_address_needs_a_key(self):
        for host in ("0.0.0.0", "::", "127.example.com", "127.0.0.1.example.com", "localhost.example.com", "126.0.0.1"):
            with self.subTest(host):
                self.error(2, "needs an API key", "serve", "-m", self.model.base, "--host", host)
        with Serve("-m", self.model.base, "-c", 64, "--host", "127.0.0.2") as server:
            self.assertTrue(server.address.startswith("http://127.0.0.2:"))
        self.error(2, "TLS needs both", "serve", "-m", self.model.base, "--cert", "x")
        empty = self.work / "keys"
        empty.write_text("# none\n")
        self.error(1, "no API key found", "serve", "-m", self.model.base, "--api-key-file", empty)

    def test_tls(self):
        cert, key = self.work / "cert.pem", self.work / "key.pem"
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                               "-keyout", key, "-out", cert], capture_output=True)
        if made.returncode != 0:
            self.skipTest("openssl is not there")
        with Serve("-m", self.model.base, "-c", 64, "--cert", cert, "--key", key) as server:
            self.assertTrue(server.address.startswith("https://"))
            context = ssl.create_default_context(cafile=str(cert))
            context.check_hostname = False
            with socket.create_connection(("127.0.0.1", server.port)) as plain, context.wrap_socket(plain) as wrapped:
                wrapped.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                text = b""
                while piece := wrapped.recv(4096):
                    text += piece
            self.assertIn(b'{"status":"ok"}', text)
            self.assertIn(b'{"status":"ok"}', self.in_two_pieces(context, server))

    @staticmethod
    def in_two_pieces(context, server):
        """The answer to a request whose one record of TLS comes in two segments."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        wrapped = context.wrap_bio(incoming, outgoing)
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                try:
                    wrapped.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    plain.sendall(outgoing.read())
                    incoming.write(plain.recv(65536))
            plain.sendall(outgoing.read())
            server.wait_read(plain)
            wrapped.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            record = outgoing.read()
            plain.sendall(record[:9])
            server.wait_read(plain)
            plain.sendall(record[9:])
            text = b""
            while piece := plain.recv(65536):
                incoming.write(piece)
                try:
                    while part := wrapped.read(65536):
                        text += part
                except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                    pass
        return text

    def test_taken_port(self):
        with Serve("-m", self.model.base, "-c", 64) as server:
            done = run("serve", "-m", self.model.base, "--port", server.port)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "cannot bind")


class BoxTest(unittest.TestCase):
    def test_the_model_in_the_box(self):
        with Serve() as server:
            props = server.good("/props")
            self.assertGreater(props["latent_steps"]["max"], 0)
            self.assertEqual(server.chat("ab bc cc ?a", max_tokens=8)["object"], "chat.completion")

    def test_answers_of_one_request_go_to_all_workers(self):
        with Serve("--slots", 4, "-t", 2) as server:
            body = {"prompt": "ab bc cd dd ef fg gg ?a", "max_tokens": 3, "n": 4, "latent_steps": 2}
            tokens = [choice["tokens"] for choice in server.good("/v1/completions", body)["choices"]]
            self.assertEqual(tokens, tokens[:1] * 4)

    def test_a_damaged_neighbour(self):
        with tempfile.TemporaryDirectory(prefix="penelope-cli-") as folder:
            program = Path(folder) / "bin" / "penelope"
            program.parent.mkdir()
            shutil.copy2(BIN, program)
            shutil.copytree(TESTS.parent / "models", Path(folder) / "models")
            for name, data in (("a.gguf", b"GGUF" + bytes(range(200))), ("zz.gguf", b""), ("aa.gguf", b"text")):
                (Path(folder) / "models" / name).write_bytes(data)
            with Serve(program=program) as server:
                self.assertGreater(server.good("/props")["latent_steps"]["max"], 0)

    def test_probabilities_do_not_depend_on_company(self):
        questions = ["ab bc cd dd ef fg gg hi ij jj ?" + start for start in "abcefhi"]
        bodies = [{"prompt": q, "max_tokens": 3, "logprobs": 2, "latent_steps": 1 + i} for i, q in enumerate(questions)]
        # A model this small has a worker for each thread: their slots are 2, 2 and 1.
        with Serve("--slots", 1, "-t", 1) as alone, Serve("--slots", 5, "-t", 3) as server:
            expected = [alone.good("/v1/completions", body)["choices"][0]["logprobs"] for body in bodies]
            found = [[] for _ in bodies]

            def ask(i):
                for k in range(12):
                    at = (i + k) % len(bodies)
                    found[i].append((at, server.good("/v1/completions", bodies[at])["choices"][0]["logprobs"]))

            threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(bodies))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for at, logprobs in sum(found, []):
            self.assertEqual(logprobs, expected[at])


class TemplateTest(ModelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.base, cls.sidecar = cls.model.make_instruct()

    def serve(self, *args):
        server = Serve("-m", *args, "-ctk", "f32")
        self.addCleanup(server.close)
        return server

    def test_conversations_follow_the_template_that_was_named(self):
        strange, _ = self.model.make_instruct("strange", "{{ 'odd' }}")
        for base, own, name in ((self.base, "model", "chatml"), (strange, "none", "chatml")):
            with self.subTest(own):
                self.assertEqual(self.serve(base).good("/props")["chat_template"], own)
                server = self.serve(base, "--chat-template", name)
                self.assertEqual(server.good("/props")["chat_template"], name)
                found = server.chat("Tom is", max_tokens=12)
                expected = self.ok_json("run", "-m", base, "-ctk", "f32", "-n", 12, "-p", "Tom is", "--chat-template", name)
                self.assertEqual((found["usage"]["prompt_tokens"], found["choices"][0]["tokens"]), (expected["prompt_tokens"], expected["tokens"]))
                server.chat("Tom is", max_tokens=1, chat_template_kwargs={"enable_thinking": False})
                status, _, answer = server.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}],
                                                                         "chat_template_kwargs": {"enable_thinking": True}})
                self.assertEqual((status, answer["error"]["param"]), (400, "chat_template_kwargs"))

    def test_variables_of_the_template(self):
        moody, _ = self.model.make_instruct("moody", "{% if messages[0].role == 'system' %}{{ raise_exception('no system messages') }}{% endif %}"
                                                     "{{ mood | default('') }}{{ messages[-1].content }}")
        server = self.serve(moody)
        count = lambda **more: server.chat("Tom is", max_tokens=1, **more)["usage"]["prompt_tokens"]
        self.assertEqual(count(chat_template_kwargs={"mood": "Tom is"}), 2 * count())
        for kwargs, messages, param in (({"tools": []}, [{"role": "user", "content": "a"}], "chat_template_kwargs"),
                                        ({}, [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}], "messages")):
            status, _, answer = server.ask("/v1/chat/completions", {"messages": messages, "chat_template_kwargs": kwargs})
            self.assertEqual((status, answer["error"]["param"]), (400, param))
        self.assertIn("no system messages", answer["error"]["message"])

    def test_none(self):
        status, _, answer = self.serve(self.base, "--chat-template", "none").ask(
            "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})
        self.assertEqual(status, 400)
        self.assertIn("/v1/completions", answer["error"]["message"])


class ImageTest(unittest.TestCase):
    def test_the_image_has_what_the_build_needs(self):
        root = TESTS.parent
        listed = re.search("for package in (.*?) \"", (root / "scripts" / "common.sh").read_text()).group(1).split()
        image = (root / "Dockerfile").read_text()
        self.assertGreater(len(listed), 5)
        self.assertEqual([package for package in listed if package not in image.split() and package != "doctest-dev"], [])


class RecurrentTest(ModelTest):
    """A model whose layers keep a state that moves on: a kept beginning is only worth what its state was put aside for."""

    def test_a_kept_beginning(self):
        base = self.work / "qwen35.gguf"
        self.ok("convert", GOLDEN / "qwen35" / "model", "-o", base, "--type", "F32")
        front = "abcdefghij klmnop qrstuv wxyz 0123456789 " * 2
        with Serve("-m", base, "-c", 256, "--slots", 2) as server:
            for end in ("one", "two", "two and three", "", "two and four"):
                with self.subTest(end):
                    answer = server.good("/v1/completions", {"prompt": front + end, "max_tokens": 8})["choices"][0]["tokens"]
                    self.assertEqual(answer, self.ok_json("run", "-m", base, "-c", 256, "-p", front + end, "-n", 8, "--raw")["tokens"])


if __name__ == "__main__":
    unittest.main()
