"""Training, with the settings of `penelope train`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path as _Path
from typing import Any

from . import _penelope
from .errors import UsageError

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Update:
    """One update of the optimizer."""

    update: int
    n_updates: int
    latent_steps: int
    loss: float  # mean cross-entropy over the target tokens
    step_loss: float | None
    lr: tuple[float, float]  # LoRA or backbone, modules
    grad_norm: float  # before clipping
    tokens_per_second: float
    ms: float
    ms_left: float
    epochs: float


@dataclass(frozen=True)
class Validation:
    """One validation during training."""

    update: int
    latent_steps: int
    loss: float
    exact_match: float  # fraction
    n_examples: int
    is_best: bool


@dataclass(frozen=True)
class TrainResult:
    """A finished run. `model_path` is the sidecar, LoRA or backbone it made."""

    model_path: str
    updates: int
    best_update: int
    best_loss: float
    best_exact_match: float
    exact_match_by_k: list[float]  # on validation, for K = 0, 1, ...; empty without validation data
    k_default: int  # the smallest best K


@dataclass(frozen=True)
class Setting:
    """A setting of train(): keyword, default, limits and what it does."""

    name: str
    default: str
    limits: str
    help: str


Progress = Callable[[Update | Validation], object]


def settings() -> list[Setting]:
    """All settings train() takes as keywords."""
    return [
        Setting(row["name"].replace("-", "_"), row["default"], row["limits"], row["help"])
        for row in _penelope.settings()
    ]


def _text(name: str, value: Any) -> str:
    """A value as on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float, os.PathLike)) or hasattr(value, "item"):
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if isinstance(value, Sequence) and len(value) == 2:
        return (":" if name == "interval" else ",").join(str(part) for part in value)
    raise TypeError(f"{name}: expected a number, a text or a pair, found {value!r}")


def _of_run(out: str, given: dict[str, Any]) -> dict[str, Any]:
    """The settings a run was started with, for those that are not given."""
    path = _Path(out) / "config.toml"
    if not path.exists():
        if "data" in given:
            return {}
        raise UsageError(f"{out}: no run to resume", hint="check out, or start a run without resume")
    stored = tomllib.loads(path.read_text(encoding="utf-8"))
    if "epochs" in given:
        stored.pop("updates", None)  # they follow from the epochs
    return stored


def train(
    *,
    out: Path,
    model: Path | None = None,
    method: str | None = None,
    data: Path | None = None,
    progress: Progress | None = None,
    resume: bool = False,
    force: bool = False,
    device: str = "auto",
    threads: int = 0,
    **settings: Any,
) -> TrainResult:
    """Trains a model and returns what came out.

        train(model="base.gguf", method="penelope", data="my-data", out="runs/latent", updates=500, lr=1e-3)

    model     backbone GGUF; not with init_random
    method    "penelope", "coconut", "codi" or "cot"
    data      folder with train.jsonl and valid.jsonl
    out       run folder: config.toml, metrics.jsonl, checkpoint/ and model.gguf
    progress  called with an Update after each update and a Validation after each validation
    resume    go on with the run in `out`; settings that are not given are those it was started with
    force     replace the run in `out`
    settings  everything `penelope train` has a flag for: settings() lists them. None takes the default

    Ctrl-C, and any exception `progress` raises, end the run after the update that is being computed; a checkpoint is
    saved first, and resume=True goes on from it.
    """
    run_folder = os.fspath(out)
    given = {
        name.replace("_", "-"): _text(name, value)
        for name, value in {**settings, "method": method, "data": data, "model": model}.items()
        if value is not None
    }
    if "updates" in given and "epochs" in given:
        raise UsageError("updates and epochs: exclude each other", hint="give only one")
    if resume:
        given = {name: _text(name, value) for name, value in _of_run(run_folder, given).items()} | given
    base = given.pop("model", "")
    for name, value in (("model", base or given.get("init-random")), ("method", given.get("method")), ("data", given.get("data"))):
        if not value:
            raise UsageError(f"{name}: is missing", hint="train(model=..., method=..., data=..., out=...)")

    def on_update(report: dict[str, Any]) -> None:
        if progress is not None:
            progress(Update(**report))

    def on_validation(report: dict[str, Any]) -> None:
        if progress is not None:
            progress(Validation(**report))

    return TrainResult(
        **_penelope.train(
            base, given["data"], run_folder, list(given.items()), resume, force, device, threads, on_update, on_validation
        )
    )
