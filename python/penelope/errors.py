"""Errors of the library as exceptions."""

from __future__ import annotations

import re


class PenelopeError(Exception):
    """What failed and why. Every error of the library is one.

    kind     "usage", "not_found", "format", "unsupported", "memory", "device", "io" or "cancelled"
    message  what failed: why
    hint     what to do about it; may be empty
    """

    def __init__(self, message: str, kind: str = "usage", hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.kind, self.hint)


class UsageError(PenelopeError, ValueError):
    """An argument is wrong (kind "usage")."""


class NotFoundError(PenelopeError, FileNotFoundError):
    """A file does not exist (kind "not_found")."""


# Flags of the program that have another name here. All others keep theirs: --batch-size is batch_size.
_KEYWORDS = {
    "-K": "latent_steps",
    "-c": "n_ctx",
    "-m": "model",
    "-n": "max_tokens",
    "-t": "threads",
    "--predict": "max_tokens",
    "--temp": "temperature",
}


def _with_keywords(text: str) -> str:
    """The library speaks of the program's flags; here they are keywords."""

    def keyword(match: re.Match[str]) -> str:
        flag = match.group(0)
        return _KEYWORDS.get(flag, flag.lstrip("-").replace("-", "_") if flag.startswith("--") else flag)

    return re.sub(r"(?<![\w-])(--[a-z][a-z0-9-]*[a-z0-9]|-[Kcmnt])(?![\w-])", keyword, text)


def make_error(kind: str, message: str, hint: str) -> PenelopeError:
    """The exception for an error of the library; called by the extension module."""
    classes = {"usage": UsageError, "not_found": NotFoundError}
    return classes.get(kind, PenelopeError)(_with_keywords(message), kind, _with_keywords(hint))
