"""Reading and writing a rule's state by its address, from compiled code.

A rule's state is one buffer of eight-byte slots: parameters, running sums and ring buffers as
float64, counters and cursors as int64. Compiled code gets its address as a plain integer, because
boxing an array costs more than a whole rule, and an array that is handed to an inlined part costs
an atomic count per bar. Nothing is bounds-checked here: the slot numbers of a rule and the length
of its buffer stand side by side in the rule's module, and only that module writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from agent_gym.core.types import FloatArray


def _reader(kind: Any) -> Any:
    def read(typingctx: Any, address: Any, slot: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            machine = context.get_value_type(kind)
            base = builder.inttoptr(args[0], machine.as_pointer())
            return builder.load(builder.gep(base, [args[1]], source_etype=machine), typ=machine)

        return kind(types.int64, types.int64), generate

    return intrinsic(read)


def _writer(kind: Any) -> Any:
    def write(typingctx: Any, address: Any, slot: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            machine = context.get_value_type(kind)
            base = builder.inttoptr(args[0], machine.as_pointer())
            builder.store(args[2], builder.gep(base, [args[1]], source_etype=machine))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, kind), generate

    return intrinsic(write)


number: Callable[[int, int], float] = _reader(types.float64)
count: Callable[[int, int], int] = _reader(types.int64)
set_number: Callable[[int, int, float], None] = _writer(types.float64)
set_count: Callable[[int, int, int], None] = _writer(types.int64)


def template(length: int, numbers: Mapping[int, float], counts: Mapping[int, int]) -> FloatArray:
    """Return the state a rule starts every episode with: zeros, and the given slots."""
    state = np.zeros(length, dtype=np.float64)
    for slot, value in numbers.items():
        state[slot] = value
    whole = state.view(np.int64)
    for slot, value in counts.items():
        whole[slot] = value
    state.setflags(write=False)
    return state
