"""docs/python.md: every ```python block runs, in the order of the page, and prints the ```text block after it."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import pytest
from conftest import ROOT

PAGE = ROOT / "docs/python.md"


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smollm2 = os.environ.get("PENELOPE_TEST_SMOLLM2", "")
    has_smollm2 = Path(smollm2).is_file() or "PENELOPE_TEST_REQUIRE_FILES" in os.environ
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"smollm2": smollm2}
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```\n", PAGE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) >= 8
    assert len(blocks) == PAGE.read_text(encoding="utf-8").count("```python\n")
    for code, shown in blocks:
        if "smollm2" in code and not has_smollm2:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert printed.getvalue() == shown, code
