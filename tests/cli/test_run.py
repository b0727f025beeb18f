"""penelope run: where prompts come from, what goes to which stream, the JSON contract, batches, traces, Ctrl-C."""

import json
import os
import signal
import struct
import subprocess
import time
import unittest

from support import BIN, ModelTest, Pty, clean_environment, run

QUESTION = "Every lempus is a impus. Tom is a lempus. Is Tom a impus or scrompus?"


class RunTest(ModelTest):
    def latent(self, *args):
        return ("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-ctk", "f32", *args)

    def test_json_meets_the_reference(self):
        example = self.model.expected["examples"][1]
        self.assertEqual(example["prompt"], QUESTION + "\n")
        for k in (0, 1, 3, 6):
            answer = self.ok_json(*self.latent("-p", QUESTION, "-K", k, "-n", 12))
            self.assertEqual(answer["status"], "ok")
            self.assertEqual(answer["tokens"], self.model.expected["greedy"][f"K{k}.ex1"])
            self.assertEqual(answer["layer_applications"], self.model.expected["layer_applications"][str(k)])
            self.assertEqual((answer["K"], answer["method"], answer["finish_reason"]), (k, "penelope", "length"))
            self.assertEqual(answer["prompt_tokens"], len(example["prompt_ids"]))
            self.assertEqual((answer["device"], answer["seed"]), ("CPU", 0))
            self.assertIsInstance(answer["text"], str)
            self.assertEqual(set(answer["timings"]), {"load_ms", "prompt_ms", "decode_ms", "tokens_per_second"})
            self.assertTrue(all(value >= 0 for value in answer["timings"].values()))

    def test_default_depth_is_the_sidecars(self):
        self.assertEqual(self.ok_json(*self.latent("-p", QUESTION, "-n", 1))["K"], 3)

    def test_watch_shows_every_step_and_changes_no_answer(self):
        plain = self.ok(*self.latent("-p", QUESTION, "-K", 3, "-n", 6))
        watched = self.ok(*self.latent("-p", QUESTION, "-K", 3, "-n", 6, "--watch"))
        self.assertEqual(watched.stdout, plain.stdout)
        steps = [line for line in watched.stderr.splitlines() if line.startswith("step ")]
        self.assertEqual([line.split(":")[0] for line in steps], ["step 0", "step 1", "step 2", "step 3"])
        self.assertEqual(steps[3].split("|")[0].count(">"), 2)
        self.assertRegex(steps[3], r"\| features .* \| memory .* \| readout ")
        self.assertNotIn("features", steps[0])
        self.error(2, "--watch: the method cot", *self.latent("-p", QUESTION, "--cot", "--ignore-mismatch", "--watch", "-n", 1))
        self.error(2, "--watch: ", *self.latent("-p", QUESTION, "-K", "0-2", "--watch", "-n", 1))

    def test_watch_writes_over_its_line_on_a_terminal(self):
        terminal = Pty(*self.latent("-p", QUESTION, "-K", 2, "-n", 2, "--watch"))
        self.addCleanup(terminal.close)
        terminal.expect(r"\r\x1b\[Kstep 0: .*\r\x1b\[Kstep 1: .*\r\x1b\[Kstep 2: ")
        self.assertEqual(terminal.wait(), 0)

    def test_auto_needs_a_threshold(self):
        self.error(2, "-K auto: the sidecar does not say", *self.latent("-p", QUESTION, "-K", "auto", "-n", 1))
        self.error(2, "-K auto: latent steps need a sidecar", "run", "-m", self.model.base, "-p", "x", "-K", "auto")

    def test_without_sidecar(self):
        answer = self.ok_json("run", "-m", self.model.base, "-p", "Tom is", "-n", 3)
        self.assertEqual((answer["method"], answer["K"], answer["layer_applications"]), ("plain", 0, 6))
        self.assertEqual(len(answer["tokens"]), 3)

    def test_cot_uses_no_latent_steps(self):
        answer = self.ok_json(*self.latent("-p", QUESTION, "--cot", "--ignore-mismatch", "-n", 3))
        self.assertEqual((answer["method"], answer["layer_applications"]), ("cot", 6))

    def test_raw_leaves_the_template_out(self):
        with_template = self.ok_json(*self.latent("-p", QUESTION, "-n", 1))
        raw = self.ok_json(*self.latent("-p", QUESTION + "\n", "--raw", "-n", 1))
        self.assertEqual(with_template["tokens"], raw["tokens"])
        self.assertEqual(with_template["prompt_tokens"], raw["prompt_tokens"])

    def test_sources_of_the_prompt_agree(self):
        path = self.work / "question.txt"
        path.write_text(QUESTION + "\n")
        outputs = {self.ok(*self.latent("-n", 12, *source), stdin=text).stdout
                   for source, text in (((["-p", QUESTION]), ""), (["-f", path], ""), ([], QUESTION + "\n"), ([], QUESTION))}
        self.assertEqual(len(outputs), 1)

    def test_streams(self):
        done = self.ok(*self.latent("-p", QUESTION, "-n", 12))
        answer = self.ok_json(*self.latent("-p", QUESTION, "-n", 12))
        self.assertEqual(done.stdout, answer["text"] + "\n")
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.ok(*self.latent("-p", QUESTION, "-n", 12, "-q")).stderr, "")
        verbose = self.ok(*self.latent("-p", QUESTION, "-n", 12, "-v"))
        self.assertEqual(verbose.stdout, done.stdout)
        self.assertRegex(verbose.stderr, r"prompt tokens \| penelope, K = 3 \| 14 layer applications \| .* tokens/s")

    def test_order_of_sources(self):
        config = self.work / "c.toml"
        config.write_text("seed = 3\nlatent_steps = 2\n")
        base = ("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-p", "x", "-n", 1)
        self.assertEqual(self.ok_json(*base)["seed"], 0)
        self.assertEqual(self.ok_json(*base, "--config", config)["seed"], 3)
        self.assertEqual(self.ok_json(*base, "--config", config)["K"], 2)
        self.assertEqual(self.ok_json(*base, "--config", config, env={"PENELOPE_SEED": "2"})["seed"], 2)
        self.assertEqual(self.ok_json(*base, "--config", config, "--seed", 1, env={"PENELOPE_SEED": "2"})["seed"], 1)
        self.assertEqual(self.ok_json(*base, env={"PENELOPE_CONFIG": str(config)})["seed"], 3)

    def test_spellings(self):
        base = ("run", "-m", self.model.base, "-p", "x", "-n", "1")
        self.assertEqual(self.ok_json(*base, "--top_k=3", "--min_p", "0", "-s7")["seed"], 7)
        self.assertEqual(self.ok("run", "-m", self.model.base, "-n", 1, "-p", "--json").stdout.count("status"), 0)

    def test_sampling_repeats_with_its_seed(self):
        base = ("run", "-m", self.model.base, "-p", "Tom is a", "-n", 24, "--temp", 1.5, "--top-k", 0, "--top-p", 1, "--min-p", 0)
        first = self.ok_json(*base, "--seed", 1)["tokens"]
        self.assertEqual(first, self.ok_json(*base, "--seed", 1)["tokens"])
        self.assertNotEqual(first, self.ok_json(*base, "--seed", 2)["tokens"])
        drawn, again = self.ok_json(*base), self.ok_json(*base)
        self.assertNotEqual((drawn["seed"], drawn["tokens"]), (again["seed"], again["tokens"]))
        self.assertNotEqual(drawn["tokens"], again["tokens"])
        self.assertEqual(self.ok_json(*base, "--seed", drawn["seed"])["tokens"], drawn["tokens"])

    def test_several_depths(self):
        lines = self.ok(*self.latent("-p", QUESTION, "-K", "0-1,6,3", "-n", 12, "--json")).stdout.splitlines()
        answers = [json.loads(line) for line in lines]
        self.assertEqual([a["K"] for a in answers], [0, 1, 3, 6])
        for answer in answers:
            self.assertEqual(answer["tokens"], self.model.expected["greedy"][f"K{answer['K']}.ex1"])
        self.assertRegex(self.ok(*self.latent("-p", QUESTION, "-K", "0-1", "-n", 2)).stdout, "(?s)^K=0: .*K=1: ")


class BatchTest(ModelTest):
    def batch(self, lines, *args, code=0):
        path = self.work / "batch.jsonl"
        path.write_text("\n".join(json.dumps(line) for line in lines))
        done = run("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-ctk", "f32", "-n", 6, "--batch", path, *args)
        self.assertEqual(done.returncode, code, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()], done

    def test_answers_come_in_order_and_match_single_runs(self):
        questions = ["Tom is a impus.", QUESTION, "x", "Evaluate: [MAX 3 [MIN 4 7] 2]"] * 3
        lines = [{"id": f"q{i}", "question": text} for i, text in enumerate(questions)]
        answers, _ = self.batch(lines)
        self.assertEqual([a["id"] for a in answers], [line["id"] for line in lines])
        for answer, text in list(zip(answers, questions))[:4]:
            single = self.ok_json("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-ctk", "f32", "-n", 6, "-p", text)
            self.assertEqual(answer["tokens"], single["tokens"])
            self.assertEqual(answer["layer_applications"], single["layer_applications"])

    def test_ids_keep_their_type(self):
        answers, _ = self.batch([{"id": 7, "prompt": "a"}, {"prompt": "b"}, {"id": None, "question": "c"}])
        self.assertEqual([a["id"] for a in answers], [7, 1, 2])

    def test_one_question_that_does_not_fit(self):
        answers, done = self.batch([{"id": 1, "prompt": "a"}, {"id": 2, "prompt": "a " * 2000}, {"id": 3, "prompt": "c"}], code=1)
        self.assertEqual([a["status"] for a in answers], ["ok", "error", "ok"])
        self.assertEqual(answers[1]["id"], 2)
        self.assertRegex(answers[1]["message"], r"\d+.*512")
        self.assertIn("1 of 3 questions failed", done.stderr)

    def test_several_depths(self):
        answers, _ = self.batch([{"id": 1, "prompt": "a"}, {"id": 2, "prompt": "b"}], "-K", "0,2")
        self.assertEqual([(a["id"], a["K"]) for a in answers], [(1, 0), (1, 2), (2, 0), (2, 2)])

    def test_bad_files(self):
        path = self.work / "bad.jsonl"
        for text, pattern in (('{"id": 1, "prompt": "a"}\n{"id": 2}\n', 'line 2: missing "prompt" or "question"'), ("{]\n", "line 1, column 2: "), ("", "no prompts"),
                              ('{"id": 1, "prompt": 5}\n', "line 1"), ("[1]\n", 'line 1: missing "prompt" or "question"')):
            path.write_text(text)
            self.error(1, pattern, "run", "-m", self.model.base, "--batch", path)
        self.error(1, "missing.jsonl", "run", "-m", self.model.base, "--batch", self.work / "missing.jsonl")

    def test_stdin(self):
        done = self.ok("run", "-m", self.model.base, "-n", 2, "--batch", "-", stdin='{"id": 1, "prompt": "a"}\n\n')
        self.assertEqual(json.loads(done.stdout)["id"], 1)

    def test_lines_of_stdin_that_are_wrong_keep_their_id(self):
        lines = '{"id": "first", "prompt": "a"}\n{"id": "second", "prompt": 5}\n{"id": 7}\n{"prompt": "b"}\nnonsense\n{"id": null}\n'
        done = run("run", "-m", self.model.base, "-n", 2, "--batch", "-", stdin=lines)
        self.assertEqual(done.returncode, 1)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(a["id"], a["status"]) for a in answers],
                         [("first", "ok"), ("second", "error"), (7, "error"), (3, "ok"), (4, "error"), (5, "error")])


class ErrorTest(ModelTest):
    def test_wrong_requests(self):
        base = ("run", "-m", self.model.base)
        latent = (*base, "--sidecar", self.model.sidecar)
        self.error(2, "9.*8(.|\n)*use -K 8 or less", *latent, "-p", "x", "-K", 9)
        self.error(2, "latent steps need a sidecar", *base, "-p", "x", "-K", 1)
        self.error(2, "empty", *base, "-p", "")
        self.error(2, r"error: .*\d+.*512(.|\n)*shorten the prompt", *base, "-p", "x " * 1000)
        self.error(2, r"tokens and 10 latent rows .* context of 8(.|\n)*raise -c to at least \d+", *latent, "-p", "x", "-c", 8)
        self.error(2, r"600.*512", *base, "-p", "x", "-c", 600)
        self.error(2, "--cot: needs a sidecar", *base, "-p", "x", "--cot")
        self.error(2, "nowhere", *base, "-p", "x", "--device", "nowhere")
        self.error(1, "base.gguf", "run", "-m", self.model.base, "--sidecar", self.model.base, "-p", "x")
        self.error(2, "sidecar", "run", "-m", self.model.sidecar, "-p", "x")

    def test_damaged_file(self):
        path = self.work / "cut.gguf"
        path.write_bytes(self.model.base.read_bytes()[:5000])
        self.error(1, "cut.gguf", "run", "-m", path, "-p", "x")
        path.write_text("not a model")
        self.error(1, "cut.gguf", "run", "-m", path, "-p", "x")

    def test_a_file_that_cannot_be_read_to_its_end(self):
        for option in ("-f", "--batch", "--grammar-file"):
            self.error(1, "/proc/self/mem: Input/output error", "run", "-m", self.model.base, option, "/proc/self/mem",
                       *(["-p", "x"] if "grammar" in option else []))
        with open("/proc/self/mem", "rb") as unreadable:
            done = subprocess.run([BIN, "run", "-m", self.model.base, "-n", "2"], stdin=unreadable, capture_output=True, text=True,
                                  env=clean_environment())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "error: standard input: Input/output error\n"))

    def test_full_output(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN, "run", "-m", self.model.base, "-p", "x", "-n", "3"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, env=clean_environment())
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class InspectTest(ModelTest):
    def test_trace(self):
        path = self.work / "trace.jsonl"
        args = ("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-p", QUESTION, "-K", 2, "-n", 1, "--trace", path)
        self.ok(*args)
        steps = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([step["t"] for step in steps], [0, 1, 2])
        for step in steps:
            self.assertEqual((len(step["memory"]["norm"]), len(step["readout"]["norm"])), (8, 2))
            self.assertEqual({len(top) for top in step["memory"]["top"] + step["readout"]["top"]}, {5})
            logits = [score["logit"] for score in step["memory"]["top"][0]]
            self.assertEqual(logits, sorted(logits, reverse=True))
        self.assertEqual(len(steps[1]["memory"]["cosine"]), 8)
        self.assertTrue(0.5 <= steps[1]["alpha"] <= 1.5)
        self.error_on_existing(path, args)

    def error_on_existing(self, path, args):
        before = path.read_bytes()
        done = run(*args)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--force", done.stderr)
        self.assertEqual(path.read_bytes(), before)
        self.ok(*args, "--force")

    def test_dump(self):
        path = self.work / "dump.safetensors"
        args = ("run", "-m", self.model.base, "--sidecar", self.model.sidecar, "-p", QUESTION, "-K", 2, "-n", 1, "--dump", path)
        self.ok(*args)
        data = path.read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + size])
        names = {"H_x", "M_0", "R_0", "H_1", "M_1", "R_1", "H_2", "M_2", "R_2", "interface_out", "first_logits"}
        self.assertLessEqual(names, set(header))
        self.assertEqual(header["M_2"]["shape"], [8, 64])
        self.assertEqual(header["M_2"]["dtype"], "F32")
        self.error_on_existing(path, args)

    def test_needs_a_sidecar_and_leaves_nothing(self):
        path = self.work / "trace.jsonl"
        for option in ("--trace", "--dump"):
            self.error(2, f"{option}: needs a sidecar", "run", "-m", self.model.base, "-p", "x", "-n", 1, option, path)
            self.assertEqual(list(self.work.iterdir()), [])


class InterruptTest(ModelTest):
    def start(self, *args):
        process = subprocess.Popen([BIN, "run", "-m", str(self.model.endless), "-p", "Tom is a", "-c", "60000", *args],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_first_press_stops_the_answer(self):
        process = self.start()
        self.assertTrue(os.read(process.stdout.fileno(), 1))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertTrue(out.endswith(b"\n"))
        self.assertIn(b"interrupted", err)

    def test_json(self):
        for wait in (0, 0.1, 1):  # at once, somewhere on the way, while it writes
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with self.subTest(wait=wait, signal=number):
                    process = self.start("--json", "-v")
                    while b"loaded in" not in process.stderr.readline():
                        pass
                    time.sleep(wait)
                    process.send_signal(number)
                    out, _ = process.communicate(timeout=30)
                    self.assertEqual(process.returncode, 128 + number)
                    self.assertEqual((json.loads(out)["status"], json.loads(out)["kind"]), ("error", "cancelled"))

    def test_between_two_groups_of_a_batch(self):
        """Much of this run is spent between groups: writing answers and tokenizing the next questions."""
        batch = self.work / "batch.jsonl"
        n = 20000
        batch.write_text("".join(json.dumps({"id": i, "question": f"Tom is a {i}"}) + "\n" for i in range(n)))
        for i in range(12):
            with self.subTest(i):
                process = subprocess.Popen([BIN, "run", "-m", self.model.base, "--batch", batch, "-n", "1"], stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, env=clean_environment())
                self.addCleanup(process.kill)
                first = process.stdout.readline()
                time.sleep(0.0031 * i)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 130)
                self.assertIn(b"interrupted", err)
                self.assertLess((first + out).count(b"\n"), n)

    def test_json_while_it_waits_for_the_prompt(self):
        process = subprocess.Popen([BIN, "run", "-m", self.model.base, "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=clean_environment())
        self.addCleanup(process.stdin.close)
        with open(f"/proc/{process.pid}/status") as status:
            while int(next(line for line in status if line.startswith("SigCgt")).split()[1], 16) & 2 == 0:
                time.sleep(0.01)
                status.seek(0)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(json.loads(process.stdout.read())["kind"], "cancelled")
        self.assertEqual(process.wait(timeout=30), 130)
        process.stdout.close()

    def test_signals_the_caller_ignores_are_ignored(self):
        for number in (signal.SIGHUP, signal.SIGINT):
            with self.subTest(number):
                before = signal.signal(number, signal.SIG_IGN)
                try:
                    process = self.start("-n", "400")
                finally:
                    signal.signal(number, before)
                self.assertTrue(os.read(process.stdout.fileno(), 1))
                process.send_signal(number)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, 0)

    def test_on_a_terminal(self):
        with Pty("run", "-m", self.model.endless, "-p", "Tom is a", "-c", 60000) as terminal:
            terminal.expect(r"loaded in .*\n.")
            terminal.interrupt()
            self.assertEqual(terminal.wait(), 130)

    def test_closed_pipe_ends_the_run(self):
        process = self.start()
        os.read(process.stdout.fileno(), 1)
        process.stdout.close()
        process.wait(timeout=30)
        self.assertNotEqual(process.returncode, 0)


if __name__ == "__main__":
    unittest.main()
