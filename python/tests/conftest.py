"""What the tests share: the bundled models, questions, and a data folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import penelope

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "models/thread-0.6M-Q8_0.gguf"
SIDECAR = ROOT / "models/thread-0.6M-thread-penelope-Q8_0.gguf"
QUESTION = "Bt aC rz DD bH oM VD JJ WX Fr zJ IF uu Na tu io MT PW vi HP ZN jg dB XV CI Td gb ?Z"  # Z leads to J


@pytest.fixture(scope="session")
def model() -> penelope.Model:
    return penelope.Model(BASE, sidecar=SIDECAR)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    penelope.make_data("thread", folder / "thread", train=64, valid=16, test=100, seed=7)
    return folder / "thread"


@pytest.fixture(scope="session")
def questions(data: Path) -> list[str]:
    lines = (data / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]
