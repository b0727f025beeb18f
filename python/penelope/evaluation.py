"""Evaluation on questions, and the generated data of the tasks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from . import _penelope
from .errors import UsageError
from .model import Model
from .options import native_steps

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Score:
    """The score at one K."""

    latent_steps: int | Literal["auto"]
    exact_match: float  # fraction
    parsed: float  # fraction of answers that could be read
    n: int
    output_tokens: float  # mean
    latency_ms: float | None  # mean; None: not measured
    layer_applications: int


@dataclass(frozen=True)
class Prediction:
    """The answer to one question at one K."""

    id: str
    latent_steps: int | Literal["auto"]
    question: str
    text: str  # as the model wrote it
    answer: str  # the right one
    correct: bool


@dataclass(frozen=True)
class Evaluation:
    """Scores by K, the chance level, and the answers they come from."""

    task: str
    method: str
    scores: list[Score]
    chance: float  # exact match of the baseline a model has to beat
    best_k: int | None  # the smallest K with the best score
    predictions: list[Prediction] = field(repr=False)

    def exact_match(self, latent_steps: int | Literal["auto"] | None = None) -> float:
        """Exact match at this K; None: at the only one there is."""
        found = [s for s in self.scores if latent_steps is None or s.latent_steps == latent_steps]
        if len(found) != 1:
            known = ", ".join(str(s.latent_steps) for s in self.scores)
            raise UsageError(f"latent_steps: {latent_steps} is not one of those evaluated", hint=f"evaluated: {known}")
        return found[0].exact_match


def evaluate(
    model: Model | Path,
    data: Path | Iterable[Mapping[str, Any]],
    *,
    latent_steps: int | Literal["auto"] | Iterable[int] | None = None,
    limit: int | None = None,
    method: str | None = None,
    task: str | None = None,
    match: Literal["exact", "number", "choice"] | None = None,
    max_tokens: int | None = None,
    batch_size: int = 8,
    latency_samples: int = 0,
    n_ctx: int = 0,
    threads: int = 0,
    progress: Callable[[float], object] | None = None,
) -> Evaluation:
    """Exact match of a model on questions, at one K or several in one pass.

        evaluate(model, "data/test.jsonl", latent_steps=range(9)).scores

    model            a Model, or the file of one
    data             file of questions; or objects like {"question": "...", "answer": "..."}
    latent_steps     K, several K, or "auto"; None: the sidecar's default
    limit            only the first questions
    method           "cot": visible steps with the sidecar's LoRA alone
    task, match      how answers are read and compared; None: by model file and questions
    max_tokens       of an answer; None: 32, with visible steps 256
    latency_samples  questions run once more, one at a time, to measure latency
    progress         called with the fraction done
    """
    request = _penelope.EvaluationRequest()
    if isinstance(data, (str, os.PathLike)):
        request.path = os.fspath(data)
    else:
        request.text = "".join(json.dumps(dict(example)) + "\n" for example in data)
    if isinstance(latent_steps, Iterable) and not isinstance(latent_steps, str):
        request.latent_steps = sorted({native_steps(k) for k in latent_steps})
    elif latent_steps is not None:
        request.latent_steps = [native_steps(latent_steps)]
    for name, value, least in (("limit", limit, 1), ("max_tokens", max_tokens, 1), ("batch_size", batch_size, 1)):
        if value is not None and value < least:
            raise UsageError(f"{name}: {value} given, expected {least} or more")
    request.limit = limit or 0
    request.method = method or ""
    request.task = task or ""
    request.match = match or ""
    request.max_tokens = max_tokens if max_tokens is not None else -1
    request.batch_size = batch_size
    request.latency_samples = latency_samples
    request.n_ctx = n_ctx
    request.n_threads = threads
    loaded = model if isinstance(model, Model) else Model(model)
    scores, predictions = _penelope.evaluate(loaded._model, request, progress)
    return _read(json.loads(scores), [json.loads(line) for line in predictions.splitlines()])


def _read(scores: dict[str, Any], predictions: Sequence[dict[str, Any]]) -> Evaluation:
    return Evaluation(
        task=scores["task"],
        method=scores["method"],
        scores=[
            Score(
                row["K"], row["em"], row["parsed"], row["n"], row["output_tokens"], row["latency_ms"],
                row["layer_applications"],
            )  # fmt: skip
            for row in scores["results"]
        ],
        chance=scores["chance"][0]["em"],
        best_k=scores.get("best_K"),
        predictions=[
            Prediction(row["id"], row["K"], row["question"], row["text"], row["answer"], row["correct"])
            for row in predictions
        ],
    )


def make_data(
    task: str,
    out: Path,
    *,
    train: int | None = None,
    valid: int | None = None,
    test: int | None = None,
    seed: int = 0,
    depth: tuple[int, int] | None = None,
    test_depth: tuple[int, int] | None = None,
    force: bool = False,
) -> None:
    """Writes train.jsonl, valid.jsonl, test.jsonl and audit.json of a task, as `penelope data` does.

    task         "thread", "listops", "prosqa" or "prontoqa"
    train, ...   numbers of questions; None: as in the paper; 0: no file
    depth        fewest and most steps of a question; test_depth: the same for the test questions
    """
    _penelope.make_data(task, os.fspath(out), train, valid, test, seed, depth, test_depth, force)
