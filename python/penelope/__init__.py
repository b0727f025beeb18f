"""Penelope: language models that think in a few latent memory vectors.

    import penelope

    model = penelope.Model("base.gguf", sidecar="sidecar.gguf")
    print(model.generate("a question", latent_steps=8))

Model answers, traces and tokenizes. train() and evaluate() do what the commands of the same names do. Every error is a
PenelopeError with a kind and a hint.
"""

from ._penelope import ggml_version, set_log_level
from ._penelope import version as __version__
from .answer import Answer, TokenScore, Trace, TraceStep
from .devices import Device, devices
from .errors import NotFoundError, PenelopeError, UsageError
from .evaluation import Evaluation, Prediction, Score, evaluate, make_data
from .model import Model
from .session import Session, Stream
from .training import Setting, TrainResult, Update, Validation, settings, train

__all__ = [
    "Answer",
    "Device",
    "Evaluation",
    "Model",
    "NotFoundError",
    "PenelopeError",
    "Prediction",
    "Score",
    "Session",
    "Setting",
    "Stream",
    "TokenScore",
    "Trace",
    "TraceStep",
    "TrainResult",
    "Update",
    "UsageError",
    "Validation",
    "__version__",
    "devices",
    "evaluate",
    "ggml_version",
    "make_data",
    "set_log_level",
    "settings",
    "train",
]
