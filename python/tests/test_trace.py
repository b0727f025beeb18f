"""The latent trajectory as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import BASE, QUESTION

import penelope


def test_every_step_of_the_thread_can_be_read(model: penelope.Model) -> None:
    trace = model.trace(QUESTION, latent_steps=8)
    n_memory, n_embd = trace.M.shape[1:]
    assert n_embd == model.n_embd
    assert trace.M.shape == (9, n_memory, n_embd)
    assert trace.H.shape == (8, n_memory, n_embd)
    assert trace.R.shape[0] == 9
    assert trace.M.dtype == np.float32
    assert trace.latent_steps == 8
    assert trace.path() == list("NaCIFrzJ")
    assert np.isfinite(trace.M).all()
    assert (trace.M[1:] != trace.M[:-1]).any(axis=(1, 2)).all()  # each step moves the memory
    first = trace.states["first_logits"].argmax()
    assert model.detokenize([int(first)]) == "J"


def test_the_trajectory_does_not_depend_on_where_it_ends(model: penelope.Model) -> None:
    short = model.trace(QUESTION, latent_steps=3)
    np.testing.assert_array_equal(short.M, model.trace(QUESTION, latent_steps=8).M[:4])


def test_no_steps_leave_the_boundary(model: penelope.Model) -> None:
    trace = model.trace(QUESTION, latent_steps=0)
    assert trace.M.shape[0] == trace.R.shape[0] == 1
    assert trace.H.shape == (0, *trace.M.shape[1:])
    assert trace.path() == []


def test_arrays_outlive_the_model() -> None:
    from conftest import SIDECAR

    trace = penelope.Model(BASE, sidecar=SIDECAR).trace(QUESTION)
    assert np.isfinite(trace.M.sum())


def test_logits_are_those_of_the_first_token(model: penelope.Model, questions: list[str]) -> None:
    logits = model.logits(QUESTION, latent_steps=8)
    assert logits.shape == (model.n_vocab,)
    assert logits.dtype == np.float32
    traced = model.trace(QUESTION, latent_steps=8).states["first_logits"].reshape(-1)
    np.testing.assert_allclose(logits, traced, rtol=1e-5, atol=1e-5)  # that graph keeps every state, and fuses less
    assert model.detokenize([int(logits.argmax())]) == "J"
    logprobs = logits - np.log(np.exp(logits.astype(np.float64)).sum())
    token, logprob = model.generate(QUESTION, latent_steps=8, logprobs=0).logprobs[0][0]
    assert abs(logprobs[token] - logprob) < 1e-4
    together = model.logits(questions[:11], latent_steps=3)
    assert together.shape == (11, model.n_vocab)
    alone = np.stack([model.logits(q, latent_steps=3) for q in questions[:11]])
    np.testing.assert_allclose(together, alone, atol=1e-3 * np.abs(alone).max())  # products of other sizes round otherwise
    assert (model.logits(QUESTION, latent_steps=0) != logits).any()
    plain = penelope.Model(BASE)
    assert plain.logits(QUESTION, raw=True).shape == (plain.n_vocab,)
    with pytest.raises(penelope.UsageError, match="list is empty"):
        model.logits([])
    with pytest.raises(penelope.UsageError, match="out of range"):
        model.logits(QUESTION, latent_steps=9)


def test_a_plain_model_has_no_trace() -> None:
    with pytest.raises(penelope.UsageError, match="no intermediate states"):
        penelope.Model(BASE).trace(QUESTION)
