"""Several threads, Ctrl-C, and processes."""

from __future__ import annotations

import _thread
import multiprocessing
import threading
import time
from pathlib import Path

import pytest
from conftest import BASE, QUESTION, SIDECAR

import penelope


def interrupt_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, _thread.interrupt_main)
    timer.start()
    return timer


def in_threads(work, n: int) -> None:  # type: ignore[no-untyped-def]
    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_sessions_of_one_model_side_by_side(model: penelope.Model, questions: list[str]) -> None:
    expected = [answer.text for answer in model.generate(questions[:12])]
    answers: dict[int, list[str]] = {}

    def work(i: int) -> None:
        session = model.session(threads=1)
        answers[i] = [session.generate(q).text for q in questions[:12]]

    in_threads(work, 4)
    assert all(answers[i] == expected for i in range(4))


def test_calls_on_one_session_take_turns(model: penelope.Model, questions: list[str]) -> None:
    expected = [answer.text for answer in model.generate(questions[:8])]
    answers: dict[int, str] = {}

    def work(i: int) -> None:
        answers[i] = "".join(model.generate(questions[i], stream=True)) if i % 2 else model.generate(questions[i]).text

    in_threads(work, 8)
    assert [answers[i] for i in range(8)] == expected


def test_other_threads_run_while_the_model_computes(model: penelope.Model, questions: list[str]) -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    model.generate(questions * 2)
    done.set()
    thread.join()
    assert ticks > 10


def test_ctrl_c_ends_a_batch_at_once(model: penelope.Model, questions: list[str]) -> None:
    timer = interrupt_after(0.3)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.generate(questions * 300)
    assert time.monotonic() - start < 5
    timer.join()
    assert model.generate(QUESTION).text == "J"


def test_ctrl_c_ends_an_evaluation_at_once(model: penelope.Model, data: Path) -> None:
    examples = [{"id": str(i), "question": QUESTION, "answer": "J"} for i in range(100000)]
    interrupt_after(1.0)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        penelope.evaluate(model, examples, latent_steps=range(9), task="thread")
    assert time.monotonic() - start < 10


def test_cancel_from_another_thread(model: penelope.Model, questions: list[str]) -> None:
    session = model.session()
    timer = threading.Timer(0.2, session.cancel)
    timer.start()
    with pytest.raises(penelope.PenelopeError) as error:
        session.generate(questions * 300)
    assert error.value.kind == "cancelled"
    timer.join()
    assert session.generate(QUESTION).text == "J"


def ask_in_a_fork(model: penelope.Model, queue: multiprocessing.Queue[str]) -> None:
    try:
        queue.put(model.generate(QUESTION).text)
    except penelope.PenelopeError as error:
        queue.put(error.hint)


def test_a_fork_is_told_to_load_its_own_model() -> None:
    model = penelope.Model(BASE, sidecar=SIDECAR)
    model.generate(QUESTION)
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str] = context.Queue()
    child = context.Process(target=ask_in_a_fork, args=(model, queue))
    child.start()
    assert "spawn" in queue.get(timeout=30)
    child.join(10)
    assert child.exitcode == 0
