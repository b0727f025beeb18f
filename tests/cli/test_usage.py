"""What needs no model: help, versions, wrong usage, and where option values come from."""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import BIN, Pty, TESTS, run, without_escapes


class HelpTest(unittest.TestCase):
    def test_help_goes_to_stdout(self):
        for args in (["--help"], ["-h"], ["help"], ["run", "--help"], ["help", "run"], ["chat", "-h"]):
            done = run(*args)
            self.assertEqual((done.returncode, done.stderr), (0, ""), args)
            self.assertIn("usage: penelope", done.stdout)
            self.assertNotIn("\x1b", done.stdout)

    def test_usage_lines_name_every_method_and_task(self):
        usage = {command: run(command, "--help").stdout.split("\n\n")[1] for command in ("train", "data")}
        known = run("train", "--method", "nosuch").stderr + run("data", "nosuch").stderr
        for command, names in (("train", ("cot", "penelope", "coconut", "codi")),
                               ("data", ("listops", "prosqa", "prontoqa", "thread", "check", "split", "audit"))):
            for name in names:
                self.assertRegex(known, rf"\b{name}\b")
                self.assertRegex(usage[command], rf"\b{name}\b", command)

    def test_every_command_has_help_that_fits_the_screen(self):
        commands = [line.split()[0] for line in run("--help").stdout.split("Commands\n")[1].split("\n\n")[0].splitlines()
                    if line.startswith("  ") and not line.startswith("   ")]
        self.assertIn("run", commands)
        for command in commands:
            done = run(command, "--help")
            self.assertEqual(done.returncode, 0, command)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(line), 120, line)
                self.assertEqual(line, line.rstrip(), line)

    def test_written_option_list_is_current(self):
        page = TESTS.parent / "examples" / "penelope" / "README.md"
        self.assertEqual(run("help", "--markdown").stdout, page.read_text(),
                         "run: penelope help --markdown > examples/penelope/README.md")

    def test_manual_pages_and_completion_know_every_command_and_option(self):
        commands = run("help", "--commands").stdout.split()
        self.assertIn("run", commands)
        overview = run("help", "--man").stdout
        completion = run("help", "--completion").stdout
        for command in commands:
            self.assertIn(f"penelope\\-{command} (1)", overview)
            page = run("help", "--man", command).stdout
            self.assertRegex(page, r'^\.TH penelope\\-' + command)
            for option in re.findall(r"^ .*?(--[a-z][a-z-]*)", run(command, "--help").stdout, re.M):
                self.assertIn(option.replace("-", "\\-"), page)
                self.assertIn(option, completion)

    def test_bash_completes(self):
        script = run("help", "--completion").stdout + """
COMP_WORDS=(penelope run --top-) COMP_CWORD=2; _penelope; echo "${COMPREPLY[@]}"
COMP_WORDS=(penelope qua) COMP_CWORD=1; _penelope; echo "${COMPREPLY[@]}"
COMP_WORDS=(penelope export --as me) COMP_CWORD=3; _penelope; echo "${COMPREPLY[@]}"
"""
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.stdout.split("\n")[:3], ["--top-k --top-p", "quantize", "merged"], done.stderr)

    def test_version(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"penelope \d+\.\d+\.\d+")
        self.assertRegex(done.stdout, r"ggml \d+\.\d+.*CPU")

    def test_list_devices_has_the_cpu(self):
        done = run("--list-devices")
        self.assertEqual(done.returncode, 0)
        self.assertIn("CPU", done.stdout)


class WrongUsageTest(unittest.TestCase):
    def wrong(self, pattern, *args, **kwargs):
        done = run(*args, **kwargs)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, pattern)
        self.assertTrue(done.stderr.startswith("error: "), done.stderr)
        return done

    def test_unknown_flag_is_named_and_the_nearest_suggested(self):
        self.wrong(r"--tepm: unknown option[^\n]*\nhint: did you mean --temp\?", "run", "--tepm", "1")
        self.wrong(r"--side-car: .*\nhint: did you mean --sidecar\?", "run", "--side-car=x")
        self.wrong(r"-x: unknown option", "run", "-x")

    def test_flags_of_other_programs(self):
        self.wrong(r"-ngl: unknown option.*\nhint: --device", "run", "-m", "x", "-ngl", "99")

    def test_unknown_command(self):
        self.wrong(r"'chta': unknown command\nhint: did you mean 'chat'\?", "chta")
        self.wrong(r"'chta': unknown command", "help", "chta")
        self.wrong("no command")
        self.wrong("-m: unknown option\nhint: the command comes first", "-m", "x", "run")

    def test_bad_value_shows_the_help_of_that_option_only(self):
        done = self.wrong(r"--top-k: 'many' is not a whole number\nhint: --top-k K", "run", "--top_k", "many")
        self.assertEqual(len(done.stderr.splitlines()), 2)
        self.wrong(r"--top-p: '1.5' must be between 0 and 1", "run", "--top-p", "1.5")
        self.wrong(r"--temp: '-1' must be >= 0", "run", "--temp", "-1")
        self.wrong(r"--temp: 'nan' ", "run", "--temp", "nan")
        self.wrong(r"--kv-type: 'q4_0' is not one of f16, bf16, f32, q8_0", "run", "-ctk", "q4_0")
        self.wrong(r"--latent-steps: '6-0'", "run", "-K", "6-0")
        self.wrong(r"--predict: '99999999999999999999' is not a whole number", "run", "-n", "99999999999999999999")

    def test_numbers_that_are_none_or_too_large(self):
        for value in ("inf", "nan"):
            self.wrong(f"--epochs: '{value}' is not a finite number", "train", "--epochs", value)
            self.wrong(f"--temp: '{value}' is not a finite number", "run", "--temp", value)
            self.wrong(f"--lora: '{value}' is not a scale", "run", "-m", "x", "-p", "x", "--lora", "f.gguf:" + value)
            self.wrong(f"--lr: '1e-4,{value}' is not two numbers", "train", "-m", "x", "--method", "penelope", "--data", "x", "--out", "x",
                       "--lr", "1e-4," + value)
        self.wrong("--epochs: '1e300' must be between", "train", "--epochs", "1e300")
        for command, option in (("train", "--max-length"), ("train", "--predict"), ("run", "--predict"), ("chat", "--predict"),
                                ("bench", "--prompt"), ("bench", "--gen")):
            self.wrong(f"{option}: '4294967297' must be between", command, option, "4294967297")

    def test_missing_things(self):
        self.wrong(r"--predict: needs a value", "run", "-n")
        self.wrong(r"run: --model is missing\nhint: -m, --model", "run", "-p", "x")
        self.wrong(r"chat: --model is missing", "chat")
        self.wrong(r"convert: DIR is missing", "convert", "-o", "x.gguf")
        self.wrong(r"'b': unexpected argument", "run", "-p", "a", "b")
        self.wrong(r"data 'foo': unknown task or command\nhint: tasks: listops, (?!.*generic)", "data", "foo")
        self.wrong(r"data 'generic': generic has no generator", "data", "generic")

    def test_rpc_server(self):
        server = Path(BIN).with_name("penelope-rpc-server")
        if not server.exists():
            self.skipTest("it was not built")
        for args, code in ((["--help"], 0), (["-h"], 0), (["--bogus"], 2), ([], 2), (["--help", "x"], 2)):
            done = subprocess.run([server, *args], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, code, args)
            self.assertIn("usage: ", done.stdout if code == 0 else done.stderr)

    def test_sources_of_the_prompt_exclude_each_other(self):
        self.wrong(r"--prompt, --file and --batch: exclude each other", "run", "-m", "x", "-p", "a", "-f", "b")

    def test_json_errors(self):
        done = run("run", "--json", "--tepm", "1")
        self.assertEqual((done.returncode, done.stderr), (2, ""))
        error = json.loads(done.stdout)
        self.assertEqual((error["status"], error["kind"]), ("error", "usage"))
        self.assertIn("--tepm", error["message"])
        self.assertIn("--temp", error["hint"])

        done = run("run", "--json", "-m", "/nonexistent/base.gguf", "-p", "x")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        error = json.loads(done.stdout)
        self.assertEqual((error["status"], error["kind"]), ("error", "not_found"))
        self.assertIn("/nonexistent/base.gguf", error["message"])


class ConfigFileTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.path = Path(work.name) / "c.toml"

    def wrong(self, text, pattern, command="run"):
        self.path.write_text(text)
        done = run(command, "--config", self.path, "-m", "x", "-p", "y")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, pattern)

    def test_mistakes_are_named_with_their_line(self):
        self.wrong("top-k = 3\ntopp = 0.5\n", r"line 2: unknown key 'topp'\nhint: did you mean 'top-p'\?")
        self.wrong("\n\ntemp = 'hot'\n", r"--temp: 'hot' is not a number \(from .*c.toml, line 3\)")
        self.wrong("temp = \n", r"c.toml, line 1: ")
        self.wrong("[run]\ntemp = 1\n", r"line 1: 'run': tables")
        self.wrong("temp = [1, 2]\n", r"--temp: expected one value, found a list")

    def test_a_file_may_include_another(self):
        folder = self.path.parent / "below"
        folder.mkdir()
        (folder / "other.toml").write_text("top-k = 3\ntemp = 'hot'\n")
        self.wrong('include = "below/other.toml"\ntop-k = 4\n', r"--temp: 'hot' is not a number \(from .*below/other.toml, line 2\)")
        # The file's own key goes before the included one.
        self.wrong('temp = 1\ninclude = "below/other.toml"\ntop-k = "few"\n', r"--top-k: 'few' is not a whole number \(from .*c.toml, line 3\)")
        self.wrong('include = "c.toml"\n', "include depth exceeds 8")
        self.wrong('include = "none.toml"\n', "none.toml: config file not found")

    def test_a_file_that_cannot_be_read(self):
        for command in ("run", "train", "serve"):
            done = run(command, "--config", "/proc/self/mem", "-m", "x")
            self.assertEqual((done.returncode, done.stderr), (1, "error: /proc/self/mem: cannot be read: Input/output error\n"))

    def test_missing_file(self):
        done = run("run", "--config", "/nonexistent.toml", "-m", "x", "-p", "y")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent.toml: config file not found", done.stderr)

    def test_environment_is_checked_like_flags(self):
        done = run("run", "-m", "x", "-p", "y", env={"PENELOPE_TOP_K": "few"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("'few' is not a whole number (from PENELOPE_TOP_K)", done.stderr)


class ColorTest(unittest.TestCase):
    def error_on_terminal(self, *args, env=None):
        with Pty("run", "-m", "/nonexistent.gguf", "-p", "x", *args, env=env) as terminal:
            self.assertEqual(terminal.wait(), 1)
            self.assertIn("error: ", without_escapes(terminal.seen))
            return terminal.seen

    def test_colour_on_a_terminal_only(self):
        self.assertIn("\x1b[", self.error_on_terminal())
        self.assertNotIn("\x1b[", run("run", "-m", "/nonexistent.gguf", "-p", "x").stderr)

    def test_no_color(self):
        self.assertNotIn("\x1b[", self.error_on_terminal(env={"NO_COLOR": "1"}))
        self.assertNotIn("\x1b[", self.error_on_terminal(env={"TERM": "dumb"}))
        self.assertNotIn("\x1b[", self.error_on_terminal("--color", "off"))
        self.assertIn("\x1b[", self.error_on_terminal(env={"NO_COLOR": ""}))

    def test_color_on(self):
        self.assertIn("\x1b[", run("run", "--color", "on", "-m", "/nonexistent.gguf", "-p", "x").stderr)


if __name__ == "__main__":
    unittest.main()
