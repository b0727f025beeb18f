"""Wrong input: an exception with kind and hint, in the words of Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from conftest import BASE, QUESTION, ROOT, SIDECAR

import penelope


def test_files() -> None:
    with pytest.raises(penelope.NotFoundError, match="nope.gguf") as missing:
        penelope.Model("nope.gguf")
    assert isinstance(missing.value, FileNotFoundError)
    assert missing.value.kind == "not_found"
    assert missing.value.hint == "check the path"
    assert str(missing.value).endswith("\nhint: check the path")
    with pytest.raises(penelope.PenelopeError, match="is not a Penelope sidecar") as wrong:
        penelope.Model(BASE, sidecar=BASE)
    assert wrong.value.kind == "format"
    with pytest.raises(penelope.PenelopeError, match="block_count is 6, the sidecar needs 3") as other:
        penelope.Model(ROOT / "models/weave-1M-Q8_0.gguf", sidecar=SIDECAR)
    assert other.value.kind == "format"


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "text.gguf"
    path.write_text("GGUF, but not really")
    with pytest.raises(penelope.PenelopeError, match="text.gguf") as error:
        penelope.Model(path)
    assert error.value.kind in ("format", "unsupported")


def test_numbers_out_of_range(model: penelope.Model) -> None:
    with pytest.raises(ValueError, match="latent_steps 99: out of range, penelope takes 0 to 8") as steps:
        model.generate(QUESTION, latent_steps=99)
    assert steps.value.hint == "use latent_steps 8 or less"  # type: ignore[attr-defined]
    for options, message in [
        ({"latent_steps": -1}, "latent_steps: -1 given"),
        ({"max_tokens": -1}, "max_tokens: -1 given"),
        ({"temperature": -0.5}, "temperature"),
        ({"top_p": 7.0}, "top.p"),
        ({"seed": -1}, "seed: -1 given"),
        ({"method": "magic"}, "magic"),
    ]:
        with pytest.raises(penelope.UsageError, match=message):
            model.generate(QUESTION, **options)  # type: ignore[call-overload]
    with pytest.raises(penelope.UsageError, match="n_ctx 100000: the model was trained for 256 tokens"):
        penelope.Model(BASE, n_ctx=100000)
    with pytest.raises(penelope.UsageError, match="must not be negative"):
        penelope.Model(BASE, threads=-1)
    with pytest.raises(penelope.UsageError, match="kv_type: 'f8'"):
        penelope.Model(BASE, kv_type="f8")


def test_a_stream_raises_where_it_is_read(model: penelope.Model) -> None:
    stream = model.generate(QUESTION, latent_steps=99, stream=True)
    with pytest.raises(penelope.UsageError, match="latent_steps 99: out of range"):
        next(stream)
    assert model.generate(QUESTION).text == "J"


def test_prompts(model: penelope.Model) -> None:
    with pytest.raises(penelope.UsageError, match="empty"):
        model.generate("")
    with pytest.raises(penelope.UsageError, match="leave no room for an answer in a context of 256"):
        model.generate("ab " * 200)
    for prompt in (5, None, ["ab", 3], {"a": 1}):
        with pytest.raises(TypeError):
            model.generate(prompt)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="latent_steps"):
        model.generate(QUESTION, latent_steps="many")  # type: ignore[call-overload]
    with pytest.raises(penelope.UsageError, match="not streamed"):
        model.generate([QUESTION], stream=True)  # type: ignore[call-overload]
    with pytest.raises(penelope.UsageError, match="outside the vocabulary"):
        model.detokenize([10**6])
    assert model.generate(QUESTION).text == "J"  # none of this has hurt the session


def test_devices() -> None:
    assert "CPU" in [device.name for device in penelope.devices()]
    with pytest.raises(penelope.PenelopeError, match="device GPU7: not found") as error:
        penelope.Model(BASE, device="GPU7")
    assert error.value.kind == "device"
    with pytest.raises(penelope.UsageError, match="log level"):
        penelope.set_log_level("loud")


def test_errors_survive_a_process_border() -> None:
    error = penelope.UsageError("what: why", "usage", "do this")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.kind) == (penelope.UsageError, "what: why\nhint: do this", "usage")


def test_flags_of_the_program_become_keywords() -> None:
    from penelope.errors import make_error

    error = make_error("usage", "-c 9: too small, raise -n or --skip-long", "state-of-the-art stays, -v too; --temp 0")
    assert error.message == "n_ctx 9: too small, raise max_tokens or skip_long"
    assert error.hint == "state-of-the-art stays, -v too; temperature 0"
