"""What the tests of the program share: running it, driving it through a pseudo-terminal, a tiny model to run it on.

Standard library only. PENELOPE_BIN names the program, by default that of the preset release.
"""

import codecs
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import fcntl
import termios

TESTS = Path(__file__).resolve().parent.parent
BIN = os.environ.get("PENELOPE_BIN") or str(TESTS.parent / "build" / "release" / "bin" / "penelope")
GOLDEN = TESTS / "golden"
# A test run in the background of a shell inherits that Ctrl-C is ignored, and the program would keep to it.
signal.signal(signal.SIGINT, signal.default_int_handler)
STATE = tempfile.TemporaryDirectory(prefix="penelope-state-")


def clean_environment(extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PENELOPE_") and k not in ("NO_COLOR", "FORCE_COLOR")}
    env["TERM"] = "xterm"
    env["XDG_STATE_HOME"] = STATE.name  # the history of chats
    env["PENELOPE_THREADS"] = "1"  # the models are tiny, and waiting for a second core of a busy machine is slow
    env.update(extra or {})
    return env


def run(*args, stdin="", env=None, timeout=120, cwd=None):
    """Runs the program with `stdin` on its standard input; stdout and stderr are pipes."""
    return subprocess.run([BIN, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=timeout, cwd=cwd,
                          env=clean_environment(env))


class Pty:
    """The program on a pseudo-terminal, or another one."""

    def __init__(self, *args, env=None, columns=100, program=BIN):
        self.seen = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execve(program, [program, *map(str, args)], clean_environment(env))
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def _read(self, timeout):
        ready, _, _ = select.select([self.fd], [], [], timeout)
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the other end is closed
            return None
        if not data:
            return None
        self.seen += self.decoder.decode(data)
        return True

    def expect(self, pattern, timeout=60):
        """Waits until the output not yet consumed matches; consumes up to the end of the match and returns it."""
        deadline = time.monotonic() + timeout
        while True:
            match = re.search(pattern, self.seen, re.S)
            if match:
                self.seen = self.seen[match.end():]
                return match
            left = deadline - time.monotonic()
            if left <= 0 or self._read(left) is None:
                raise AssertionError(f"no {pattern!r} in ...{self.seen[-500:]!r}")

    def send(self, text):
        os.write(self.fd, text.encode())

    def interrupt(self):
        self.send("\x03")

    def wait(self, timeout=60):
        """Reads the rest of the output and returns the exit code, or minus the signal."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._read(0.1) is None:
                break
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        raise AssertionError(f"still running; it said ...{self.seen[-500:]!r}")

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        os.close(self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def without_escapes(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


class TinyModel:
    """The golden case `last` as GGUF files: base and sidecar, and the base once more with a context that takes long to fill."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        self.path = Path(self.folder.name)
        self.base = self.path / "base.gguf"
        self.sidecar = self.path / "sidecar.gguf"
        self.endless = self.path / "endless.gguf"
        case = GOLDEN / "last"
        self.expected = json.loads((case / "expected.json").read_text())
        self.convert(case / "model", self.base)
        self.convert(case / "penelope", self.sidecar, "--base", self.base, "--lora", case / "lora")

        long_case = self.path / "long"
        shutil.copytree(case / "model", long_case)
        config = json.loads((long_case / "config.json").read_text())
        config["max_position_embeddings"] = 65536
        (long_case / "config.json").write_text(json.dumps(config))
        self.convert(long_case, self.endless)

    CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")

    def make_instruct(self, name="instruct", template=CHATML):
        """A model with a chat template: the golden case qwen3, whose end of text is called <|im_end|>; and its sidecar."""
        case, folder = GOLDEN / "qwen3", self.path / name
        shutil.copytree(case / "model", folder)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            (folder / file).write_text((folder / file).read_text().replace("<|endoftext|>", "<|im_end|>"))
        (folder / "chat_template.jinja").write_text(template)
        base, sidecar = self.path / f"{name}.gguf", self.path / f"{name}-sidecar.gguf"
        self.convert(folder, base)
        self.convert(case / "penelope", sidecar, "--base", base, "--lora", case / "lora")
        return base, sidecar

    @staticmethod
    def convert(source, target, *args):
        done = run("convert", source, "-o", target, *args)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def cleanup(self):
        self.folder.cleanup()


class ModelTest(unittest.TestCase):
    """Tests on a tiny model, made once per class; `work` is an empty folder for each test."""

    @classmethod
    def setUpClass(cls):
        cls.model = TinyModel()
        cls.addClassCleanup(cls.model.cleanup)

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="penelope-cli-")
        self.addCleanup(work.cleanup)
        self.work = Path(work.name)

    def ok(self, *args, **kwargs):
        done = run(*args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr or done.stdout)
        return done

    def ok_json(self, *args, **kwargs):
        done = self.ok(*args, "--json", **kwargs)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        return json.loads(done.stdout)

    def error(self, code, pattern, *args, **kwargs):
        """The command ends with `code`, says nothing on stdout, and one `error:` line that matches on stderr, after which task it chose."""
        done = run(*args, **kwargs)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("task ")]
        self.assertRegex(lines[0], "^error: .*: ")
        self.assertRegex(done.stderr, pattern)
        self.assertLessEqual(len(lines), 2, done.stderr)
        if len(lines) == 2:
            self.assertTrue(lines[1].startswith("hint: "), done.stderr)
        return done
