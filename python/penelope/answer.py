"""What a model gives back: answers and latent traces."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Answer:
    """An answer. `str(answer)` is its text."""

    text: str
    tokens: list[int]  # as generated, the end token included
    finish_reason: str  # "stop", "length" or "cancelled"
    method: str  # "penelope", "coconut", "codi", "cot" or "plain"
    latent_steps: int  # K as used
    prompt_tokens: int
    layer_applications: int  # sequential, before the first token of the answer
    seed: int
    prompt_ms: float  # everything before the first token
    decode_ms: float
    reasoning: str = ""  # the visible chain of thought of models that write one before the answer
    logprobs: list[list[tuple[int, float]]] = field(default_factory=list, repr=False)
    """For each token itself and the best ones, as (token, log probability); only when asked for."""

    def __str__(self) -> str:
        return self.text

    @property
    def message(self) -> dict[str, str]:
        """The answer as a message to append to a conversation."""
        return {"role": "assistant", "content": self.text}


@dataclass(frozen=True)
class TokenScore:
    """A token that a hidden state is near to, through final norm and head."""

    text: str
    token: int
    logit: float


@dataclass(frozen=True)
class TraceStep:
    """What the states say after one latent step: for each row the five nearest tokens, best first."""

    step: int  # 0: the boundary
    alpha: float  # step size of the memory update; 0 at step 0
    memory: list[list[TokenScore]]
    readout: list[list[TokenScore]]
    features: list[list[TokenScore]]  # of H; empty at step 0


@dataclass(frozen=True)
class Trace:
    """The latent trajectory of one prompt.

    M  memory,   [K + 1, n_memory, n_embd], from step 0 on
    R  readout,  [K + 1, n_readout, n_embd], from step 0 on
    H  features, [K, n_memory, n_embd]: what steps 1 to K computed
    """

    M: npt.NDArray[np.float32] = field(repr=False)
    R: npt.NDArray[np.float32] = field(repr=False)
    H: npt.NDArray[np.float32] = field(repr=False)
    steps: list[TraceStep] = field(repr=False)
    states: dict[str, npt.NDArray[np.float32]] = field(repr=False)
    """Every intermediate state under its name in the equations: "H_x", "M_0", ..., "first_logits"."""

    @property
    def latent_steps(self) -> int:
        """K."""
        return len(self.steps) - 1

    def path(self) -> list[str]:
        """The token nearest to the first feature row of each step: the trajectory in words."""
        return [step.features[0][0].text for step in self.steps if step.features]
