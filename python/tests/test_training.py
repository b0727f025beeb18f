"""Training and evaluation: the same numbers as the program, callbacks, stopping and resuming."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import BASE, QUESTION, SIDECAR

import penelope

SMALL = {"updates": 4, "batch_size": 4, "latent_steps": 2, "eval_every": 2, "eval_limit": 8, "save_every": 1, "threads": 1}


def program(*arguments: object) -> str:
    binary = os.environ.get("PENELOPE_BIN")
    if not binary:
        pytest.skip("PENELOPE_BIN does not name the program")
    return subprocess.run([binary, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def losses(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line.get("event", "update") == "update" and "loss" in line]


def test_a_run_is_the_run_of_the_program(data: Path, tmp_path: Path) -> None:
    reports: list[penelope.Update | penelope.Validation] = []
    result = penelope.train(
        model=BASE, method="penelope", data=data, out=tmp_path / "a", name="one", progress=reports.append, **SMALL
    )
    updates = [r for r in reports if isinstance(r, penelope.Update)]
    validations = [r for r in reports if isinstance(r, penelope.Validation)]
    assert [u.update for u in updates] == [1, 2, 3, 4]
    assert [v.update for v in validations][:2] == [2, 4]
    assert all(u.loss > 0 and u.n_updates == 4 for u in updates)
    assert result.updates == 4
    assert Path(result.model_path) == tmp_path / "a" / "model.gguf"
    assert len(result.exact_match_by_k) == 3  # K = 0, 1, 2
    trained = penelope.Model(BASE, sidecar=result.model_path)
    assert trained.generate(QUESTION, max_tokens=2).method == "penelope"

    program("train", "-m", BASE, "--method", "penelope", "--data", data, "--out", tmp_path / "b", "--name", "one",
            "--updates", 4, "--batch-size", 4, "-K", 2, "--eval-every", 2, "--eval-limit", 8, "--save-every", 1, "-t", 1,
            "-q")  # fmt: skip
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    assert (tmp_path / "a/model.gguf").read_bytes() == (tmp_path / "b/model.gguf").read_bytes()


def test_a_callback_can_stop_a_run_and_it_goes_on(data: Path, tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    def progress(report: penelope.Update | penelope.Validation) -> None:
        if isinstance(report, penelope.Update) and report.update == 2:
            raise EnoughError

    with pytest.raises(EnoughError):
        penelope.train(model=BASE, method="penelope", data=data, out=tmp_path / "run", progress=progress, **SMALL)
    seen: list[int] = []
    penelope.train(
        out=tmp_path / "run",
        resume=True,
        threads=1,
        progress=lambda r: seen.append(r.update) if isinstance(r, penelope.Update) else None,
    )
    assert seen == [3, 4]
    whole = penelope.train(model=BASE, method="penelope", data=data, out=tmp_path / "whole", name="run", **SMALL)
    assert (tmp_path / "run/model.gguf").read_bytes() == Path(whole.model_path).read_bytes()


def test_wrong_settings(data: Path, tmp_path: Path) -> None:
    def train(**settings: object) -> None:
        penelope.train(**{"model": BASE, "method": "penelope", "data": data, "out": tmp_path / "x", **settings})  # type: ignore[arg-type]

    for settings, message, hint in [
        ({"step_los": 1}, "step_los: unknown setting", "did you mean step_loss?"),
        ({"batch_size": "many"}, "batch_size: 'many' is not a whole number", "batch_size N: batch size; 0: 4"),
        ({"dropout": 7}, "dropout: '7' must be between 0 and 0.99", "dropout P: LoRA dropout"),
        ({"method": "magic"}, "method: 'magic' is not one of cot, penelope", ""),
        ({"method": None}, "method: is missing", "train(model=..."),
        ({"updates": 3, "epochs": 1}, "updates and epochs: exclude each other", "give only one"),
        ({"data": tmp_path / "nowhere"}, "nowhere", ""),
        ({"resume": True, "data": None}, "no run to resume", "check out"),
    ]:
        with pytest.raises(penelope.PenelopeError) as error:
            train(**settings)
        assert message in error.value.message
        assert hint in error.value.hint
        assert not (tmp_path / "x").exists()
    with pytest.raises(TypeError, match="lr: expected"):
        train(lr={"a": 1})
    names = [setting.name for setting in penelope.settings()]
    assert "batch_size" in names
    assert "step_loss" in names


def test_evaluation_has_the_scores_of_the_program(model: penelope.Model, data: Path) -> None:
    shares: list[float] = []
    result = penelope.evaluate(model, data / "test.jsonl", latent_steps=range(9), progress=shares.append)
    assert result.task == "thread"
    assert [score.latent_steps for score in result.scores] == list(range(9))
    assert result.exact_match(8) > 0.9 > 0.3 > result.exact_match(0)
    assert 0.2 < result.chance < 0.5
    assert len(result.predictions) == 900
    assert shares == sorted(shares)
    told = json.loads(program("eval", "-m", BASE, "--sidecar", SIDECAR, "--data", data / "test.jsonl", "-K", "0-8",
                              "--latency-samples", 0, "--json"))  # fmt: skip
    assert [row["em"] for row in told["results"]] == [score.exact_match for score in result.scores]
    assert told["best_K"] == result.best_k


def test_evaluation_of_examples_in_memory(model: penelope.Model) -> None:
    examples = [{"id": "a", "question": QUESTION, "answer": "J"}, {"id": "b", "question": QUESTION, "answer": "N"}]
    result = penelope.evaluate(model, examples, latent_steps=8)
    assert result.exact_match() == 0.5
    assert [p.correct for p in result.predictions] == [True, False]
    with pytest.raises(penelope.UsageError, match="latent_steps: 3 is not one of those evaluated"):
        result.exact_match(3)
    with pytest.raises(penelope.PenelopeError, match="question"):
        penelope.evaluate(model, [{"text": "no question"}])
    with pytest.raises(penelope.NotFoundError):
        penelope.evaluate(model, "nowhere.jsonl")
    with pytest.raises(penelope.UsageError, match="no generator"):
        penelope.make_data("riddles", "never")
