"""Reaching memory by address from a kernel: pointers without reference counts, and prefetching."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator]
def pointer(typing_context: Any, address: Any) -> Any:
    """Turn an int64 address into an untyped pointer, to be viewed with ``carray``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Any, address: Any) -> Any:
    """Ask the processor to fetch the cache line at an address that will be read soon."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        line = builder.inttoptr(args[0], cgutils.voidptr_t)
        builder.call(call, [line, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate
