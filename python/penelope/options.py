"""The options of an answer, as the library takes them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Literal, TypedDict

import numpy as np

from . import _penelope
from .errors import UsageError

LatentSteps = int | Literal["auto"] | None


class Options(TypedDict, total=False):
    """Keywords of generate() and chat(); generate() says what they mean."""

    latent_steps: LatentSteps
    max_tokens: int | None
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    seed: int | None
    stop: str | Iterable[str] | None
    method: str | None
    logprobs: int | None


def native_steps(latent_steps: LatentSteps) -> int:
    """K as the library takes it."""
    if latent_steps is None:
        return -1
    if latent_steps == "auto":
        return int(_penelope.AUTO_STEPS)
    if isinstance(latent_steps, bool) or not isinstance(latent_steps, (int, np.integer)):
        raise TypeError(f'latent_steps: expected a whole number, "auto" or None, found {latent_steps!r}')
    if latent_steps < 0:
        raise UsageError(f"latent_steps: {latent_steps} given, expected 0 or more", hint="None takes the sidecar's default")
    return int(latent_steps)


def native_options(
    latent_steps: LatentSteps = None,
    max_tokens: int | None = None,
    temperature: float = 0.0,
    top_k: int = 40,
    top_p: float = 0.95,
    min_p: float = 0.05,
    repeat_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
    seed: int | None = None,
    stop: str | Iterable[str] | None = None,
    method: str | None = None,
    logprobs: int | None = None,
) -> _penelope.GenerateOptions:
    """Checks what the library cannot see and fills in the seed."""
    if max_tokens is not None and max_tokens < 0:
        raise UsageError(f"max_tokens: {max_tokens} given, expected 0 or more", hint="None generates until the context is full")
    if seed is not None and seed < 0:
        raise UsageError(f"seed: {seed} given, expected 0 or more")
    if logprobs is not None and logprobs < 0:
        raise UsageError(f"logprobs: {logprobs} given, expected 0 or more")
    options = _penelope.GenerateOptions()
    options.latent_steps = native_steps(latent_steps)
    options.max_tokens = -1 if max_tokens is None else max_tokens
    options.method = method or ""
    options.stop = [stop] if isinstance(stop, str) else list(stop or ())
    options.logprobs = -1 if logprobs is None else logprobs
    sampling = options.sampling
    sampling.temperature = temperature
    sampling.top_k = top_k
    sampling.top_p = top_p
    sampling.min_p = min_p
    sampling.repeat_penalty = repeat_penalty
    sampling.presence_penalty = presence_penalty
    sampling.frequency_penalty = frequency_penalty
    sampling.seed = (secrets.randbits(32) if temperature > 0 else 0) if seed is None else seed
    return options
