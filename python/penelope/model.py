"""A loaded model."""

from __future__ import annotations

import os
from collections.abc import Sequence

from . import _penelope
from .session import Session

Path = str | os.PathLike[str]
Lora = Path | tuple[Path, float]


def _loras(lora: Lora | Sequence[Lora] | None) -> list[tuple[str, float]]:
    if lora is None:
        return []
    if isinstance(lora, (str, os.PathLike)) or (
        isinstance(lora, tuple) and len(lora) == 2 and isinstance(lora[1], (int, float))
    ):
        lora = [lora]
    one_by_one = [item if isinstance(item, tuple) else (item, 1.0) for item in lora]
    return [(os.fspath(path), float(scale)) for path, scale in one_by_one]


class Model(Session):
    """A model in memory: backbone, adapters, tokenizer, and with a sidecar its latent method.

        model = Model("models/thread-0.6M-Q8_0.gguf", sidecar="models/thread-0.6M-thread-penelope-Q8_0.gguf")
        print(model.generate("ZN Na aC ?Z", latent_steps=2))

    path             backbone GGUF, or a bundle
    sidecar          Penelope, Coconut or CODI sidecar GGUF
    lora             LoRA GGUF; (file, scale); or a list of these
    device           "auto" or a name of devices(), "CPU" or "CUDA0"
    threads          0: the physical cores this process may use
    n_ctx            context size in tokens; 0: the smaller of 4096 and what the model was trained for
    kv_type          type of the KV cache: "f16", "f32", "bf16" or "q8_0"
    batch_size       prompts of a list that are answered side by side
    use_mmap         use the weights from the file's map; else they are read into memory
    ignore_mismatch  only warn when the sidecar was trained on other weights

    The weights are read-only and shared. A model is a session, too, for use by one thread at a time: calls from
    several threads wait for each other. session() gives further ones on the same weights.
    """

    def __init__(
        self,
        path: Path,
        sidecar: Path | None = None,
        lora: Lora | Sequence[Lora] | None = None,
        *,
        device: str = "auto",
        threads: int = 0,
        n_ctx: int = 0,
        kv_type: str = "f16",
        batch_size: int = 8,
        use_mmap: bool = True,
        ignore_mismatch: bool = False,
    ) -> None:
        loaded = _penelope.load(
            os.fspath(path), os.fspath(sidecar) if sidecar is not None else "", _loras(lora), device, use_mmap,
            ignore_mismatch,
        )  # fmt: skip
        super().__init__(loaded, n_ctx, threads, kv_type, batch_size)
        info = loaded.info()
        self.name: str = info["name"]
        self.type: str = info["type"]  # of most weights: "Q8_0"
        self.device: str = info["device"]  # that holds the weights
        self.method: str = info["method"]  # "penelope", "coconut", "codi"; "plain" without a sidecar
        self.n_layers: int = info["n_layers"]
        self.n_embd: int = info["n_embd"]
        self.n_vocab: int = info["n_vocab"]
        self.n_ctx_train: int = info["n_ctx_train"]
        self.k_default: int = info["k_default"]  # latent steps unless asked otherwise; 0 without a sidecar
        self.k_max: int = info["k_max"]  # most latent steps; 0 without a sidecar

    def session(
        self, *, n_ctx: int = 0, threads: int = 0, kv_type: str = "f16", batch_size: int = 8
    ) -> Session:
        """Another session on the same weights, for another thread or another conversation."""
        return Session(self._model, n_ctx, threads, kv_type, batch_size)

    def tokenize(self, text: str, *, add_bos: bool = True, special: bool = False) -> list[int]:
        """Tokens of a text.

        add_bos  put BOS in front if the vocabulary asks for one
        special  read control tokens written out in the text as such; else they are ordinary text
        """
        return self._model.tokenize(text, add_bos, special)

    def detokenize(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """Text of tokens. special: write control tokens out; else they are left away."""
        return self._model.detokenize([int(token) for token in tokens], special)

    def __repr__(self) -> str:
        steps = f", K={self.k_default} of {self.k_max}" if self.k_max else ""
        return f"<penelope.Model {self.name!r}: {self.type} on {self.device}, {self.method}{steps}>"
