"""Every message that reached the desk in a window, with what became of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from agent_gym.agents.desk.context_reader import ContextReader
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import Rejection, Signal

HOURS_A_BUCKET = 4
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message; ``signal`` is None if it could not be read, ``code`` if it was not refused."""

    at: float
    strategy: str
    signal: Signal | None
    code: RejectCode | None


def arrivals(known: ContextReader, since: float, until: float) -> list[Arrival]:
    """Return what came in after ``since`` and up to ``until``, oldest first."""
    refused: defaultdict[str, list[Rejection]] = defaultdict(list)
    unread = []
    for at, rejection in known.known("rejection"):
        if known.signal(rejection.signal_id) is None:
            unread.append(Arrival(at, rejection.strategy, None, rejection.code))
        else:
            refused[rejection.signal_id].append(rejection)
    by_id: defaultdict[str, list[tuple[float, Signal]]] = defaultdict(list)
    for at, signal in known.known("signal"):
        by_id[signal.signal_id].append((at, signal))
    found = unread
    for name, times in by_id.items():
        codes = _dealt([rejection.code for rejection in refused[name]], len(times))
        found += [
            Arrival(at, signal.strategy, signal, code)
            for (at, signal), code in zip(times, codes, strict=True)
        ]
    return sorted((a for a in found if since < a.at <= until), key=lambda a: a.at)


def _dealt(codes: list[RejectCode], n: int) -> list[RejectCode | None]:
    """Return the code of each of ``n`` messages under one id: repeats are refused as repeats."""
    repeats = [code for code in codes if code is RejectCode.DUP_DUPLICATE_ID][: n - 1]
    first = [code for code in codes if code is not RejectCode.DUP_DUPLICATE_ID]
    dealt: list[RejectCode | None] = [*first[: n - len(repeats)]]
    dealt += [None] * (n - len(dealt) - len(repeats))
    return [*dealt, *repeats]


def traits(found: list[Arrival]) -> list[frozenset[str]]:
    """Return what can be said of each message before its fate: strategy, symbol, side, hour, size.

    Example:
        >>> traits([Arrival(3600.0 * 5, "carry", None, None)])
        [frozenset({'strategy=carry'})]
    """
    amounts = [a.signal.params.amount for a in found if a.signal is not None]
    cuts = np.quantile(amounts, [1.0 / 3.0, 2.0 / 3.0]) if amounts else np.zeros(2)
    return [_traits(arrival, cuts.tolist()) for arrival in found]


def _traits(arrival: Arrival, cuts: list[float]) -> frozenset[str]:
    said = {f"strategy={arrival.strategy}"} if arrival.strategy else set()
    signal = arrival.signal
    if signal is not None:
        hour = int(arrival.at % (24 * HOUR_S) // HOUR_S) // HOURS_A_BUCKET * HOURS_A_BUCKET
        size = "small" if signal.params.amount <= cuts[0] else "middle"
        size = "large" if signal.params.amount > cuts[1] else size
        said |= {
            f"symbol={signal.symbol}",
            f"side={signal.params.side}",
            f"source={signal.source}",
            f"hour={hour:02d}-{hour + HOURS_A_BUCKET:02d}",
            f"size={size}",
        }
    return frozenset(said)
