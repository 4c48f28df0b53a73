"""What the audit takes for a pickle, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from agent_gym.evaluation.audit.saving import _is_pickle


@pytest.mark.parametrize("length", [0x0280, 0x0380, 0x0480, 0x0580])
def test_tensors_whose_header_is_as_long_as_a_protocol_are_no_pickle(
    tmp_path: Path, length: int
) -> None:
    for pad in range(2_000):
        content = save({"a" * (1 + pad): np.zeros(1)})
        if int.from_bytes(content[:8], "little") == length:
            break
    else:
        pytest.fail("no header of that length was found")
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    assert content[:2] == bytes([0x80, length >> 8])
    assert not _is_pickle(path)


@pytest.mark.parametrize("head", [b"\x80\x04\x95\x00", b"\x80\x02}q\x00", b"\x80\x03cbuiltins"])
def test_a_pickle_is_one_whatever_it_is_called(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(head)
    assert _is_pickle(path)
