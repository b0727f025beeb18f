"""Some thousand mutated requests, in the preset asan to a server under the sanitizers; `scripts/fuzz-serve` sends many more."""

import subprocess
import sys
import unittest

from support import BIN, TESTS


class FuzzTest(unittest.TestCase):
    def test_mutated_requests(self):
        done = subprocess.run([sys.executable, TESTS.parent / "scripts" / "fuzz-serve", "-n", "4000", "--seed", "7", "--program", BIN],
                              capture_output=True, text=True, timeout=500)
        self.assertEqual(done.returncode, 0, done.stderr or done.stdout)


if __name__ == "__main__":
    unittest.main()
