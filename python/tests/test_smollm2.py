"""An instruct model: chat template, conversations that reuse the cache."""

from __future__ import annotations

import _thread
import os
import threading
import time
from pathlib import Path

import pytest

import penelope


@pytest.fixture(scope="module")
def smollm2() -> penelope.Model:
    path = os.environ.get("PENELOPE_TEST_SMOLLM2", "")
    if not Path(path).is_file() and not os.environ.get("PENELOPE_TEST_REQUIRE_FILES"):
        pytest.skip("SmolLM2 is not in the cache")
    return penelope.Model(path, n_ctx=512)


def test_chat_goes_through_the_template_of_the_model(smollm2: penelope.Model) -> None:
    messages = [{"role": "user", "content": "Name the capital of France."}]
    answer = smollm2.chat(messages, max_tokens=16)
    assert "Paris" in answer.text
    assert smollm2.generate("Name the capital of France.", max_tokens=16).text == answer.text
    messages += [answer.message, {"role": "user", "content": "And of Italy?"}]
    again = "".join(smollm2.chat(messages, max_tokens=16, stream=True))
    assert "Rome" in again
    alone = smollm2.session(n_ctx=512)
    assert alone.chat(messages, max_tokens=16).text == again


def test_wrong_messages_are_refused(smollm2: penelope.Model) -> None:
    with pytest.raises(penelope.PenelopeError, match="role"):
        smollm2.chat([{"role": "king", "content": "Hi"}])
    with pytest.raises(penelope.UsageError, match='has no "role"'):
        smollm2.chat([{"content": "Hi"}])
    with pytest.raises(TypeError, match="unexpected keyword argument 'raw'"):
        smollm2.chat([{"role": "user", "content": "Hi"}], raw=True)


def test_a_stream_can_be_left_early(smollm2: penelope.Model) -> None:
    with smollm2.generate("Tell me a long story about a weaver.", stream=True) as stream:
        begin = next(stream)
    assert stream.answer.finish_reason == "cancelled"
    assert stream.answer.text.startswith(begin)
    assert list(stream) == []
    assert "Paris" in smollm2.generate("Name the capital of France.", max_tokens=16).text


def test_ctrl_c_in_a_stream_and_in_a_prompt(smollm2: penelope.Model) -> None:
    threading.Timer(0.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in smollm2.generate("Tell me a long story about a weaver.", stream=True):
            pass
    smollm2.clear()
    threading.Timer(0.1, _thread.interrupt_main).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            smollm2.generate("word " * 400, max_tokens=1)  # nearly all of it is prompt
            smollm2.clear()
    assert time.monotonic() - start < 5
    assert "Paris" in smollm2.generate("Name the capital of France.", max_tokens=16).text
