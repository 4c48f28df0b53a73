"""Crafted files of tensors and arrays are refused from their headers alone."""

import json
import tracemalloc
import zipfile
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from agent_gym.agents.artifact import write_artifact
from agent_gym.agents.neural import NeuralPolicy
from agent_gym.agents.tensor_file import BadTensors, check_archive, checked_tensors
from agent_gym.core.errors import DataError

GOOD = save({"a": np.arange(6.0).reshape(2, 3), "b": np.zeros((0, 4), np.float32), "c": np.ones(3)})


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def tensor(shape, begin, end, dtype="F64", **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end], **more}


HUGE = 1 << 62
CRAFTED = {
    "empty": b"",
    "no header": b"\0" * 7,
    "header beyond the end": HUGE.to_bytes(8, "little") + b"{}",
    "header that is too large": file_of(b"{" + b" " * (2 << 20) + b"}"),
    "1e5 tensors": file_of({f"t{i}": tensor([0], 0, 0) for i in range(100_000)}),
    "5,000 short names": file_of({f"{i:x}": tensor([0], 0, 0, "U8") for i in range(5_000)}),
    "overlap": file_of({"a": tensor([2], 0, 16), "b": tensor([2], 8, 24)}, b"\0" * 24),
    "same place twice": file_of({"a": tensor([2], 0, 16), "b": tensor([2], 0, 16)}, b"\0" * 16),
    "gap": file_of({"a": tensor([1], 0, 8), "b": tensor([1], 16, 24)}, b"\0" * 24),
    "shape that overflows 64 bits": file_of({"a": tensor([1 << 33, 1 << 31], 0, 0)}),
    "shape larger than its bytes": file_of({"a": tensor([1 << 40], 0, 8)}, b"\0" * 8),
    "huge shape with a zero": file_of({"a": tensor([HUGE, HUGE], 0, 8)}, b"\0" * 8),
    "beyond the end": file_of({"a": tensor([1 << 40], 0, 8 << 40)}, b"\0" * 8),
    "left over bytes": file_of({"a": tensor([1], 0, 8)}, b"\0" * 9),
    "negative": file_of({"a": tensor([-1, -1], 0, 8)}, b"\0" * 8),
    "backwards": file_of({"a": tensor([1], 8, 0)}, b"\0" * 8),
    "a truth for a number": file_of({"a": tensor([True], 0, 8)}, b"\0" * 8),
    "a fraction": file_of({"a": tensor([1.0], 0, 8)}, b"\0" * 8),
    "another type": file_of({"a": tensor([1], 0, 8, "PICKLE")}, b"\0" * 8),
    "too many dimensions": file_of({"a": tensor([1] * 17, 0, 8)}, b"\0" * 8),
    "other fields": file_of({"a": tensor([1], 0, 8, code="x")}, b"\0" * 8),
    "no object": file_of([1]),
    "deep": file_of(b"[" * 100_000),
    "no text": file_of(b"\xff\xfe"),
    "a name twice": file_of(
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
        b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
        b"\0",
    ),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused_before_anything_is_made_of_it(name):
    content = CRAFTED[name]
    tracemalloc.start()
    try:
        with pytest.raises(BadTensors):
            checked_tensors(content)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_a_good_file_passes_as_it_is():
    assert checked_tensors(GOOD) is GOOD
    assert checked_tensors(save({})) == save({})
    assert checked_tensors(save({"x": np.ones(2)}, metadata={"k": "v"}))


def test_a_policy_with_crafted_weights_is_refused(tmp_path):
    write_artifact(
        tmp_path / "m",
        "neural/market",
        {"policy.json": b"{}", "policy.safetensors": CRAFTED["1e5 tensors"]},
    )
    with pytest.raises(DataError):
        NeuralPolicy.load(tmp_path / "m")


@settings(max_examples=300)
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255), st.booleans())
def test_whatever_passes_can_be_read_by_the_library(place, byte, cut):
    content = bytearray(GOOD[:place] if cut else GOOD)
    if not cut:
        content[place] = byte
    try:
        checked_tensors(bytes(content))
    except BadTensors:
        return
    load(bytes(content))  # raises if the library sees it otherwise


def archive(members, packed=zipfile.ZIP_STORED):
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", packed) as made:
        for name, content in members:
            made.writestr(name, content)
    return BytesIO(buffer.getvalue())


BOMBS = {
    "packed too well": lambda: archive([("a.npy", b"\0" * (8 << 20))], zipfile.ZIP_DEFLATED),
    "too many": lambda: archive([(f"a{i}.npy", b"") for i in range(5_000)]),
    "leads out": lambda: archive([("../a.npy", b"x")]),
    "from the root": lambda: archive([("/etc/a.npy", b"x")]),
    "a pickle": lambda: archive([("data.pkl", b"x")]),
    "no archive": lambda: BytesIO(b"PK\x03\x04 and so on"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_an_archive_that_is_no_archive_of_arrays_is_refused(name):
    with pytest.raises(BadTensors):
        check_archive(BOMBS[name]())


def test_an_archive_of_arrays_passes(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(1_000), y=np.ones((3, 4)))
    check_archive(tmp_path / "a.npz")
