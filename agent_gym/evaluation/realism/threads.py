"""Keep a learner on one thread: so few rows are slower on many, and shared cores worse."""

from __future__ import annotations

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which compiled libraries use a single thread."""
    limited: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limited
