"""Answers: whole, streamed, in batches, from tokens."""

from __future__ import annotations

import math

import pytest
from conftest import QUESTION

import penelope


def test_latent_steps_decide_the_answer(model: penelope.Model) -> None:
    answer = model.generate(QUESTION, latent_steps=8)
    assert answer.text == "J" == str(answer)
    assert answer.finish_reason == "stop"
    assert answer.method == "penelope"
    assert answer.latent_steps == 8
    assert answer.layer_applications == model.n_layers + 9 * 2  # L + (K + 1) r, interval of two layers
    assert model.detokenize(answer.tokens) == "J"
    assert answer.message == {"role": "assistant", "content": "J"}
    assert model.generate(QUESTION, latent_steps=0).text != "J"
    assert model.generate(QUESTION).latent_steps == model.k_default == 8


def test_a_stream_is_the_answer_in_pieces(model: penelope.Model) -> None:
    stream = model.generate(QUESTION, stream=True)
    assert "".join(stream) == "J"
    assert stream.answer.text == "J"
    assert list(stream) == []


def test_a_stream_that_is_closed_frees_the_session(model: penelope.Model) -> None:
    with model.generate(QUESTION, stream=True):
        pass
    assert model.generate(QUESTION).text == "J"
    model.generate(QUESTION, stream=True)  # nobody looks at it
    assert model.generate(QUESTION).text == "J"


def test_an_open_stream_is_named_instead_of_waited_for(model: penelope.Model) -> None:
    stream = model.generate(QUESTION, stream=True)
    with pytest.raises(penelope.UsageError, match="a stream of this thread is still open") as error:
        model.generate(QUESTION)
    assert "close()" in error.value.hint
    with pytest.raises(penelope.UsageError, match="still open"):
        model.generate(QUESTION, stream=True)
    assert model.session().generate(QUESTION).text == "J"
    stream.close()
    assert model.generate(QUESTION).text == "J"


def test_a_list_of_prompts_gets_the_answers_of_each(model: penelope.Model, questions: list[str]) -> None:
    some = questions[:19]  # more than two batches, the last one not full
    together = model.generate(some, latent_steps=8)
    assert [answer.text for answer in together] == [model.generate(q, latent_steps=8).text for q in some]
    assert model.generate([]) == []


def test_tokens_are_taken_as_they_are(model: penelope.Model) -> None:
    tokens = model.tokenize(QUESTION + "\n")
    assert model.generate(tokens).text == "J"
    assert model.generate(QUESTION + "\n", raw=True).text == "J"


def test_text_and_tokens(model: penelope.Model) -> None:
    text = "naïve 日本 <|end_of_text|>"
    tokens = model.tokenize(text)
    assert model.detokenize(tokens) == text
    assert model.tokenize(text, add_bos=False) == tokens[1:]
    special = model.tokenize("<|end_of_text|>", add_bos=False, special=True)
    assert len(special) == 1
    assert model.detokenize(special) == ""
    assert model.detokenize(special, special=True) == "<|end_of_text|>"


def test_length_stop_and_logprobs(model: penelope.Model) -> None:
    cut = model.generate(QUESTION, max_tokens=1)
    assert cut.finish_reason == "length"
    assert len(cut.tokens) == 1
    assert model.generate(QUESTION, stop="J").text == ""
    answer = model.generate(QUESTION, logprobs=3)
    assert len(answer.logprobs) == len(answer.tokens)
    for token, best in zip(answer.tokens, answer.logprobs, strict=True):
        assert len(best) == 4
        assert best[0] == (token, best[1][1])  # greedy: the best one
        assert sum(math.exp(logprob) for _, logprob in best[1:]) <= 1.0001


def test_a_seed_gives_the_same_answer_again(model: penelope.Model) -> None:
    options = {"temperature": 2.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "latent_steps": 0, "max_tokens": 12}
    first = model.generate(QUESTION, seed=5, **options)
    assert model.generate(QUESTION, seed=5, **options).tokens == first.tokens
    unseeded = model.generate(QUESTION, **options)
    assert model.generate(QUESTION, seed=unseeded.seed, **options).tokens == unseeded.tokens
    assert len({tuple(model.generate(QUESTION, seed=s, **options).tokens) for s in range(8)}) > 1


def test_a_model_without_a_chat_template_takes_one_question(model: penelope.Model) -> None:
    assert model.chat([{"role": "user", "content": QUESTION}], latent_steps=8).text == "J"
    with pytest.raises(penelope.UsageError, match="one question at a time"):
        model.chat([{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "J"}])
