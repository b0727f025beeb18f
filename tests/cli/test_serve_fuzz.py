"""Some thousand mutated requests, in the preset asan to a server under the sanitizers; `scripts/fuzz-serve` sends many more."""

import subprocess
import sys
import unittest

from support import BIN, TESTS


class FuzzTest(unittest.TestCase):
    def send(self, *options):
        done = subprocess.run([sys.executable, TESTS.parent / "scripts" / "fuzz-serve", "--program", BIN, *options],
                              capture_output=True, text=True, timeout=500)
        self.assertEqual(done.returncode, 0, done.stderr or done.stdout)

    def test_mutated_requests(self):
        self.send("-n", "4000", "--seed", "7")

    def test_without_a_sidecar(self):
        self.send("-n", "1000", "--seed", "8", "--plain")


if __name__ == "__main__":
    unittest.main()
