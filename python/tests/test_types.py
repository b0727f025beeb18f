"""The package passes mypy's strict checks, and so does code that uses it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

USER = '''
import penelope
from typing import assert_type

model = penelope.Model("a.gguf", sidecar="b.gguf", lora=("c.gguf", 0.5))
assert_type(model.generate("a"), penelope.Answer)
assert_type(model.generate("a", stream=True), penelope.Stream)
assert_type(model.generate(["a", "b"]), list[penelope.Answer])
assert_type(model.chat([{"role": "user", "content": "a"}], temperature=0.5), penelope.Answer)
model.generate("a", latent_step=3)
'''


def test_types(tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    package = Path(importlib.import_module("penelope").__file__ or "").parent
    user = tmp_path / "user.py"
    user.write_text(USER)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(package), str(user)]
    told = subprocess.run(command, cwd=package.parent, capture_output=True, text=True)
    errors = [line for line in told.stdout.splitlines() if ": error:" in line]
    assert errors and all("user.py:10" in error for error in errors), told.stdout + told.stderr
    assert 'Unexpected keyword argument "latent_step"' in errors[0]
