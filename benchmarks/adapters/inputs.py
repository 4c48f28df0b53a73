"""What every adapter needs: the shared bars, the rule's constants, and the clock and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FAST, SLOW, UNITS, FEE, CASH = 20, 50, 1, 0.001, 10_000.0
WINDOW = 32


def load(path: str) -> dict[str, np.ndarray]:
    """Return the columns by name; they are views of a file that is mapped, not read."""
    columns = np.load(path, mmap_mode="r")
    return dict(zip(("open", "high", "low", "close", "volume"), columns, strict=True))


def head(columns: dict[str, np.ndarray], n_bars: int) -> dict[str, np.ndarray]:
    """Return copies of the first bars."""
    return {name: np.array(column[:n_bars]) for name, column in columns.items()}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds a call took, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def random_actions(n_steps: int) -> list[int]:
    """Return coin-flip actions, drawn beforehand so that drawing is not measured."""
    return np.random.default_rng(n_steps).integers(0, 2, n_steps).tolist()


def memory_mb() -> dict[str, float]:
    """Return resident memory now and its peak so far, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines if line.startswith(("VmRSS", "VmHWM")))
    return {name: int(text.split()[0]) / 1024 for name, text in fields.items()}


def peak_extra_mb(work: Callable[[], Any]) -> float:
    """Return how far a call raised resident memory above what was held before it.

    ``ru_maxrss`` would start from the size of the parent at the time of the fork and could hide
    the growth, so the kernel's own mark is reset and read instead.
    """
    before = memory_mb()["VmRSS"]
    Path("/proc/self/clear_refs").write_text("5")
    work()
    return memory_mb()["VmHWM"] - before
