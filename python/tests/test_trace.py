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


def test_a_plain_model_has_no_trace() -> None:
    with pytest.raises(penelope.UsageError, match="no intermediate states"):
        penelope.Model(BASE).trace(QUESTION)
