"""A polite request to end (SIGTERM) is heard as Ctrl-C is; what is short is finished first."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | None
_ENDS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def politely_ended() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGTERM too."""
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.default_int_handler) for number in _ENDS}
    try:
        yield
    finally:
        _restore(before)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Finish something short whatever is asked; who asks must ask again."""
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDS}
    try:
        yield
    finally:
        _restore(before)


def _restore(before: Mapping[signal.Signals, Handler]) -> None:
    for number, handler in before.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
