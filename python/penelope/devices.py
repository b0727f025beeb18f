"""The devices a model can run on."""

from __future__ import annotations

from dataclasses import dataclass

from . import _penelope


@dataclass(frozen=True)
class Device:
    name: str  # "CPU", "CUDA0", ...
    description: str
    memory_free: int  # bytes
    memory_total: int


def devices() -> list[Device]:
    """All devices of this build, the CPU included."""
    return [Device(**device) for device in _penelope.devices()]
