"""A session: one timeline with its cache on a shared model."""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, Unpack, overload

import numpy as np
import numpy.typing as npt

from . import _penelope
from .answer import Answer, TokenScore, Trace, TraceStep
from .errors import PenelopeError, UsageError
from .options import LatentSteps, Options, native_options, native_steps

Messages = Sequence[Mapping[str, str]]


class Stream(Iterator[str]):
    """An answer as it is written. Iterate over its pieces; `answer` is the whole.

    Leaving the loop early and calling close() (or the end of a `with` block) ends the answer where it is. The session
    is busy until the stream has ended.
    """

    def __init__(self, session: Session, native: _penelope.Session, seed: int) -> None:
        self._session = session
        self._native = native
        self._seed = seed
        self._answer: Answer | None = None
        self._open = True
        _open_streams.add(self)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> str:
        while self._open:
            try:
                piece = self._native.next()
            except BaseException:  # Ctrl-C
                self.close()
                raise
            if piece is None:
                self.close()
            elif piece:
                return piece
        raise StopIteration

    def close(self) -> None:
        """Ends the answer where it is. Does nothing if it has ended."""
        if not self._open:
            return
        self._open = False
        try:
            self._answer = Answer(**self._native.finish(), seed=self._seed)
        finally:
            self._session._streaming_thread = None
            self._session._lock.release()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(PenelopeError):  # nobody waits for it
            self.close()

    @property
    def answer(self) -> Answer:
        """The whole answer; waits for its end."""
        for _ in self:
            pass
        if self._answer is None:
            raise UsageError("stream: it failed and has no answer")
        return self._answer


_open_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


@atexit.register
def _close_streams() -> None:
    for stream in list(_open_streams):
        stream.close()


class Session:
    """One timeline on a model: the KV cache of the last prompt, which the next one reuses where it begins alike.

    Calls on one session from several threads wait for each other. For calls side by side give each thread a session
    of its own, from Model.session().
    """

    def __init__(self, model: _penelope.Model, n_ctx: int, threads: int, kv_type: str, batch_size: int) -> None:
        if batch_size < 1:
            raise UsageError(f"batch_size: {batch_size} given, expected 1 or more")
        if n_ctx < 0 or threads < 0:
            raise UsageError("n_ctx and threads: must not be negative", hint="0 takes the default")
        self._model = model
        self._arguments = (n_ctx, threads, kv_type)
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._native = _penelope.Session(model, n_ctx, threads, kv_type, 1)
        self._batch: _penelope.Session | None = None
        self._cancelled = False
        self._streaming_thread: int | None = None  # that has opened the stream which runs

    @property
    def n_ctx(self) -> int:
        """Context size in tokens."""
        return self._native.n_ctx

    @property
    def threads(self) -> int:
        return self._native.n_threads

    @overload
    def generate(
        self, prompt: str, *, stream: Literal[False] = False, raw: bool = False, **options: Unpack[Options]
    ) -> Answer: ...
    @overload
    def generate(
        self, prompt: str | Sequence[int], *, stream: Literal[True], raw: bool = False, **options: Unpack[Options]
    ) -> Stream: ...
    @overload
    def generate(
        self, prompt: Sequence[int], *, stream: Literal[False] = False, raw: bool = False, **options: Unpack[Options]
    ) -> Answer: ...
    @overload
    def generate(
        self, prompt: list[str], *, stream: Literal[False] = False, raw: bool = False, **options: Unpack[Options]
    ) -> list[Answer]: ...

    def generate(
        self,
        prompt: str | Sequence[int] | list[str],
        *,
        latent_steps: LatentSteps = None,
        stream: bool = False,
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
        raw: bool = False,
        logprobs: int | None = None,
    ) -> Answer | Stream | list[Answer]:
        """Answers a prompt, or each prompt of a list side by side.

        prompt        text; or tokens, which are taken as they are; or a list of texts
        latent_steps  K; None: the sidecar's default; "auto": until the readout has settled
        stream        return a Stream of text pieces instead of the whole Answer
        max_tokens    new tokens at most; None: until the context is full
        temperature   0: greedy, and top_k, top_p, min_p and seed do not matter
        seed          None: another one each time; Answer.seed tells which
        stop          the answer ends before the first of these texts
        method        None: the model's own; "cot": visible steps with the sidecar's LoRA alone
        raw           the prompt as it is: neither prompt template nor chat template
        logprobs      keep the log probability of each token and of this many best ones
        """
        options = native_options(
            latent_steps, max_tokens, temperature, top_k, top_p, min_p, repeat_penalty, presence_penalty,
            frequency_penalty, seed, stop, method, logprobs,
        )  # fmt: skip
        if isinstance(prompt, str):
            encoded = self._model.encode_prompt(prompt, raw)
            options.reasoning = encoded.reasoning
            return self._run(encoded.tokens, options, stream)
        if not isinstance(prompt, Sequence):
            raise TypeError(f"prompt: expected text, tokens or a list of texts, found {type(prompt).__name__}")
        prompts = list(prompt)
        if prompts and all(isinstance(token, (int, np.integer)) for token in prompts):
            return self._run([int(token) for token in prompts], options, stream)  # type: ignore[call-overload]
        if not all(isinstance(text, str) for text in prompts):
            raise TypeError("prompt: a list holds either texts or tokens")
        if stream:
            raise UsageError("stream: a list of prompts is not streamed", hint="ask one prompt at a time, or stream=False")
        self._cancelled = False
        return self._run_batch([self._model.encode_prompt(str(text), raw) for text in prompts], options)

    @overload
    def chat(self, messages: Messages, *, stream: Literal[False] = False, **options: Unpack[Options]) -> Answer: ...
    @overload
    def chat(self, messages: Messages, *, stream: Literal[True], **options: Unpack[Options]) -> Stream: ...

    def chat(self, messages: Messages, *, stream: bool = False, **options: Unpack[Options]) -> Answer | Stream:
        """Answers a conversation: messages like {"role": "user", "content": "..."} through the model's chat template.

        The options are those of generate(). A model without a chat template whose files bring a prompt template takes
        one message of the role user.
        """
        if isinstance(messages, (str, Mapping)):
            raise TypeError('messages: expected a list like [{"role": "user", "content": "..."}]')
        pairs: list[tuple[str, str]] = []
        for message in messages:
            if not isinstance(message, Mapping) or "role" not in message or "content" not in message:
                raise UsageError(f'messages: {message!r} has no "role" or no "content"')
            pairs.append((message["role"], message["content"]))
        unknown = options.keys() - Options.__annotations__.keys()
        if unknown:
            raise TypeError(f"chat() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        chosen = native_options(**options)
        encoded = self._model.encode_chat(pairs)
        chosen.reasoning = encoded.reasoning
        chosen.n_stable_prefix = encoded.n_stable_prefix
        return self._run(encoded.tokens, chosen, stream)

    def logits(
        self,
        prompt: str | list[str],
        *,
        latent_steps: LatentSteps = None,
        method: str | None = None,
        raw: bool = False,
    ) -> npt.NDArray[np.float32]:
        """Logits of the first token of the answer, [n_vocab]; for a list of prompts [n, n_vocab].

        For the token after any text, not only an answer, give the text with raw=True.
        """
        options = native_options(latent_steps, method=method)
        if isinstance(prompt, str):
            tokens = self._model.encode_prompt(prompt, raw).tokens
            with self._turn():
                row: npt.NDArray[np.float32] = self._native.logits([tokens], options)[0]
            return row
        self._cancelled = False
        encoded = [self._model.encode_prompt(text, raw) for text in prompt]
        if not encoded:
            raise UsageError("prompt: the list is empty")
        with self._turn():
            rows = [
                batch.logits([one.tokens for one in group], options) for batch, group in self._groups(encoded)
            ]
        return np.concatenate(rows)

    def trace(self, prompt: str, *, latent_steps: int | None = None, raw: bool = False) -> Trace:
        """The latent trajectory of a prompt: M, R and H of every step as arrays. Needs a Penelope sidecar."""
        tokens = self._model.encode_prompt(prompt, raw).tokens
        with self._turn():
            states, steps = self._native.trace(tokens, native_steps(latent_steps))
        n_steps = len(steps) - 1

        def stacked(name: str, first: int) -> npt.NDArray[np.float32]:
            rows = [states[f"{name}_{t}"] for t in range(first, n_steps + 1)]
            shape = states["M_0"].shape
            return np.stack(rows) if rows else np.empty((0, *shape), np.float32)

        def scores(rows: list[list[tuple[str, int, float]]]) -> list[list[TokenScore]]:
            return [[TokenScore(*score) for score in row] for row in rows]

        return Trace(
            M=stacked("M", 0),
            R=stacked("R", 0),
            H=stacked("H", 1),
            steps=[
                TraceStep(
                    step["step"], step["alpha"], scores(step["memory_top"]), scores(step["readout_top"]),
                    scores(step["features_top"]),
                )  # fmt: skip
                for step in steps
            ],
            states=states,
        )

    def clear(self) -> None:
        """Forgets the cached timeline."""
        with self._turn():
            self._native.clear()

    def cancel(self) -> None:
        """Ends the call that runs, from another thread.

        An answer then has the finish_reason "cancelled"; a list of prompts, a trace and logits raise a PenelopeError of
        the kind "cancelled".
        """
        self._cancelled = True
        self._native.cancel()
        if self._batch is not None:
            self._batch.cancel()

    def _check_turn(self) -> None:
        """A thread that waited for a stream of its own would wait forever."""
        if self._streaming_thread == threading.get_ident():
            raise UsageError(
                "session: a stream of this thread is still open",
                hint="read it to its end or close() it first; Model.session() gives another session",
            )

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Waits until the session is free."""
        self._check_turn()
        with self._lock:
            yield

    def _run(self, tokens: list[int], options: _penelope.GenerateOptions, stream: bool) -> Answer | Stream:
        seed = options.sampling.seed
        if not stream:
            with self._turn():
                return Answer(**self._native.generate(tokens, options), seed=seed)
        self._check_turn()
        self._lock.acquire()
        try:
            self._native.start(tokens, options)
            self._streaming_thread = threading.get_ident()
            return Stream(self, self._native, seed)
        except BaseException:
            self._lock.release()
            raise

    def _groups(
        self, prompts: list[_penelope.EncodedPrompt]
    ) -> Iterator[tuple[_penelope.Session, list[_penelope.EncodedPrompt]]]:
        """The prompts in groups that are computed side by side, and the session for them. Needs the lock."""
        if self._batch is None and prompts:
            self._batch = _penelope.Session(self._model, *self._arguments, self._batch_size)
        for start in range(0, len(prompts), self._batch_size):
            if self._cancelled:
                raise PenelopeError(f"cancelled after {start} of {len(prompts)} prompts", "cancelled")
            assert self._batch is not None
            yield self._batch, prompts[start : start + self._batch_size]

    def _run_batch(
        self, prompts: list[_penelope.EncodedPrompt], options: _penelope.GenerateOptions
    ) -> list[Answer]:
        answers: list[Answer] = []
        with self._turn():
            for batch, group in self._groups(prompts):
                options.reasoning = group[0].reasoning
                made = batch.generate_batch([prompt.tokens for prompt in group], options)
                answers += [Answer(**answer, seed=options.sampling.seed) for answer in made]
        if any(answer.finish_reason == "cancelled" for answer in answers):
            raise PenelopeError("generate: cancelled", "cancelled")
        return answers
