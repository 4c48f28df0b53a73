"""The one way in which a kernel is compiled: the same source gives the same bits everywhere.

``inlined`` marks a part that dissolves into its caller, ``door`` an entry point with a fixed
signature that is compiled at import and kept in numba's cache. Numba's own cache looks at the file
of the entry point only and would serve stale code after an edit of an inlined part in another file,
so the cache stamp here covers the sources of every kernel file that the door names.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core.errors import NumbaError

P = ParamSpec("P")
R = TypeVar("R")
log = logging.getLogger(__name__)
_STRICT: dict[str, Any] = {"error_model": "numpy", "fastmath": False}


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a part that is inlined wherever it is called; give it scalars, never arrays."""
    compiled: Callable[P, R] = numba.njit(forceinline=True, **_STRICT)(function)
    return compiled


def door(
    *signatures: str, parts: tuple[ModuleType, ...] = (), parallel: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile an entry point for the given signatures, from the cache if no source has changed.

    Args:
        signatures: Numba signatures, such as ``"float64(float64[::1])"``.
        parts: Modules that hold the inlined parts this door is made of.
        parallel: Compile with numba's parallel back end (for prange).
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        dispatcher: Any = numba.njit(nogil=True, parallel=parallel, **_STRICT)(function)
        _cache_by_source(dispatcher, (sys.modules[function.__module__], *parts))
        for signature in signatures:
            dispatcher.compile(signature)
        dispatcher.disable_compile()
        compiled: Callable[P, R] = dispatcher
        return compiled

    return wrap


def direct(entry: Callable[P, R]) -> Callable[P, R]:
    """Return the machine code behind a door that has one signature, without the type look-up.

    A call costs about 100 ns less. The arguments are converted to the types of the signature and
    not checked otherwise. The caller keeps the door alive, which keeps the code alive.
    """
    dispatcher: Any = entry
    (compiled,) = dispatcher.overloads.values()
    code: Callable[P, R] = compiled.entry_point
    return code


def _cache_by_source(dispatcher: Any, modules: tuple[ModuleType, ...]) -> None:
    try:
        dispatcher.enable_caching()
    except (RuntimeError, NumbaError):  # no writable place for a cache: compile anew each time
        log.info("compiling %s", dispatcher.__name__)
        return
    digest = blake2b(digest_size=16)
    for module in modules:
        if module.__file__ is not None:
            digest.update(Path(module.__file__).read_bytes())
    kept = dispatcher._cache._cache_file
    kept._source_stamp = digest.hexdigest()
    if not kept._load_index():
        log.info("compiling %s", dispatcher.__name__)
