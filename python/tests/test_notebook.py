"""The notebooks in examples/notebooks: code cells run in order and print what is stored beside them.

The cells are executed here, without Jupyter: its packages would take longer to install than all these tests to run.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest
from conftest import ROOT

pytest.importorskip("matplotlib").use("Agg")

NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))


def assert_alike(printed: str, stored: str) -> None:
    """The same words; percentages may differ by one, because processors round differently."""
    number = re.compile(r"\d+")
    assert number.sub("N", printed) == number.sub("N", stored)
    for a, b in zip(number.findall(printed), number.findall(stored), strict=True):
        assert abs(int(a) - int(b)) <= 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_print_what_is_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import pyplot

    shown: list[object] = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf().axes[0].has_data()))
    monkeypatch.chdir(path.parent)
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert cells
    names: dict[str, object] = {}
    for cell in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), str(path), "exec"), names)
        texts = ["".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream"]
        pictures = [output for output in cell["outputs"] if "image/png" in output.get("data", {})]
        assert_alike(printed.getvalue(), "".join(texts))
        assert len(shown) == len(pictures)
        assert all(shown)
        shown.clear()
    pyplot.close("all")
    assert path.stat().st_size < 200_000
