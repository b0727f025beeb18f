"""What README.md, CONTRIBUTING.md and docs/*.md show: commands run, the answers beside them hold, links lead somewhere.

Every line of a ```sh block is run by bash in a folder that looks like the repository, in the order of the page. my-data is a
generated data set. Marks:
    # -> TEXT               the command's output contains TEXT
    a ```text block         after a ```sh block: what its last command prints, stderr first. What --watch decodes from memory
                            and readout is not compared: no training asks for it, and processors round differently
    <!-- not run: WHY -->   before a block: not run, because it needs a GPU, another machine, the network or hours. Its flags
                            are still looked up in the help of the command
    $(ggml/fetch smollm2)   is the fetched file; without it lines that use it are left out
Trainings are cut to two updates, data sets and evaluations to a few questions.
"""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import BIN, TESTS, clean_environment, run

ROOT = TESTS.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
SMOLLM2 = os.environ.get("PENELOPE_TEST_SMOLLM2", "")
SHORT = {"PENELOPE_UPDATES": "2", "PENELOPE_EVAL_EVERY": "0", "PENELOPE_TRAIN": "24", "PENELOPE_VALID": "8", "PENELOPE_TEST": "8",
         "PENELOPE_LIMIT": "8", "PENELOPE_REPETITIONS": "1", "PENELOPE_PREDICT": "48",
         "PENELOPE_TIME": "2s"}

PROLOGUE = r"""
penelope() {
  case $1 in
    chat) printf 'Name the capital of France.\n' | "$PROGRAM" "$@" ;;
    serve)
      "$PROGRAM" "$@" --port 0 > serve.out & local server=$!
      while kill -0 $server 2> /dev/null && ! grep -q http serve.out; do sleep 0.05; done
      kill -TERM $server; wait $server ;;
    *) "$PROGRAM" "$@" < /dev/null ;;
  esac
}
"""


class Block:
    def __init__(self, page, reason, text, shown):
        self.page, self.reason, self.shown = page.relative_to(ROOT), reason, shown
        self.commands = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip() and not line.startswith("#")]


def blocks():
    for page in PAGES:
        pattern = r"(?:<!-- not run: ([^\n]*?) -->\n)?```sh\n(.*?)```\n(?:\n```text\n(.*?)```\n)?"
        for reason, text, shown in re.findall(pattern, page.read_text(), re.S):
            yield Block(page, reason, text, shown)


def without_side_states(text):
    return [re.sub(r" \| memory .*", "", line) for line in text.splitlines()]


def expected(command):
    shown = re.search(r"# -> ([^:;,]+)", command)
    return shown.group(1).strip() if shown else None


class Documented(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="penelope-docs-")
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        for name in ("models", "examples", "scripts"):
            (self.work / name).symlink_to(ROOT / name)

    def use(self, smollm2):
        """ggml/fetch smollm2 gives this file."""
        fetch = self.work / "ggml" / "fetch"
        fetch.parent.mkdir(exist_ok=True)
        fetch.write_text(f"#!/bin/sh\n[ \"$1\" = smollm2 ] && echo {smollm2}\n")
        fetch.chmod(0o755)

    def run_all(self, commands):
        """Runs the lines in one shell; yields each with its exit code, stdout and stderr."""
        script = PROLOGUE
        if any("my-data" in command for command in commands):
            script += "penelope data listops --out my-data > my-data.log 2>&1 || exit 1\n"
        for i, command in enumerate(commands):
            script += f"{{\n{command}\n}} > {i}.out 2> {i}.err\necho $? > {i}.code\n"
        env = clean_environment({**SHORT, "PROGRAM": BIN})
        subprocess.run(["bash"], input=script, text=True, cwd=self.work, env=env, timeout=900, check=True)
        for i, command in enumerate(commands):
            read = lambda kind: (self.work / f"{i}.{kind}").read_text(errors="replace")
            yield command, int(read("code")), read("out"), read("err")

    def check(self, commands, shown=None):
        for command, code, out, err in self.run_all(commands):
            with self.subTest(command):
                self.assertEqual(code, 0, err)
                if expected(command):
                    self.assertIn(expected(command), out)
                if shown and shown.get(command):
                    self.assertEqual(without_side_states(err + out), without_side_states(shown[command]))

    def available(self, commands):
        if os.path.exists(SMOLLM2):
            self.use(SMOLLM2)
            return commands
        self.assertNotEqual(os.environ.get("PENELOPE_TEST_REQUIRE_FILES"), "1", f"PENELOPE_TEST_SMOLLM2: {SMOLLM2} is not there")
        return [command for command in commands if "smollm2" not in command.lower()]

    def test_commands_run_and_answers_hold(self):
        for page in PAGES:
            own = [block for block in blocks() if not block.reason and block.page == page.relative_to(ROOT)]
            commands = [c for block in own for c in block.commands]
            if commands:
                with self.subTest(str(page.relative_to(ROOT))):
                    self.setUp()
                    self.check(self.available(commands), {block.commands[-1]: block.shown for block in own})

    @unittest.skipUnless(os.path.exists(SMOLLM2), "SmolLM2 is not there")
    def test_answers_of_smollm2_hold_on_other_quantizations(self):
        """A shown answer must not hang on the rounding of one file."""
        asked = [c for block in blocks() if not block.reason for c in block.commands if "SMOLLM2" in c and (expected(c) or c.startswith("SMOLLM2="))]
        self.assertGreater(len(asked), 2)
        for kind in ("Q4_0", "Q4_K_M", "Q8_0"):
            with self.subTest(kind):
                self.setUp()
                file = self.work / f"SmolLM2-135M-Instruct.{kind}.gguf"
                done = run("quantize", SMOLLM2, file, kind, "--allow-requantize")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.use(file)
                self.check(asked)

    def test_flags_of_commands_that_are_not_run_exist(self):
        for block in blocks():
            for command in block.commands if block.reason else []:
                named = re.search(r"\bpenelope (run|chat|serve|train|eval|bench|convert|quantize|export|info|data|report)\b([^#]*)", command)
                if not named:
                    continue
                known = run(named.group(1), "--help").stdout
                for flag in re.findall(r"(?<=\s)--?[a-zA-Z][\w-]*", named.group(2)):
                    with self.subTest(page=str(block.page), command=command):
                        self.assertRegex(known, rf"(?<![\w-]){re.escape(flag)}(?![\w-])")

    def test_links_lead_somewhere(self):
        for page in [*PAGES, ROOT / "models" / "README.md"]:
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
                if "://" not in target:
                    with self.subTest(page=str(page.relative_to(ROOT)), target=target):
                        self.assertTrue((page.parent / target).exists())

    def test_there_is_something_to_run(self):
        shown = [c for block in blocks() if not block.reason for c in block.commands]
        self.assertGreater(len(shown), 15)
        self.assertGreater(sum(1 for c in shown if expected(c)), 5)


if __name__ == "__main__":
    unittest.main()
