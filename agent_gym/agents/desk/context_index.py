"""What the context can answer at once: ids, near twins, rates and results by strategy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from agent_gym.agents.desk.context_ring import Times
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import Outcome, Rejection, Signal

REMEMBERED_IDS = 250_000
Twin: TypeAlias = tuple[str, str, str]
# After these a signal stays counted: it reached the agents, or the rejection speaks of a message
# that is not the signal which carries the id.
_KEEPS_COUNT = frozenset(
    code
    for code in RejectCode
    if code.family in {"agent", "exec"}
    or code
    in {
        RejectCode.SCHEMA_MISSING_FIELD,
        RejectCode.SCHEMA_BAD_TYPE,
        RejectCode.SCHEMA_OUT_OF_RANGE,
        RejectCode.SCHEMA_VERSION_UNSUPPORTED,
        RejectCode.DUP_DUPLICATE_ID,
    }
)


class Result(NamedTuple):
    """A closed trade of a strategy, as it became known."""

    known_at: float
    won: bool


class ContextIndex:
    """Look-ups over the records of a context; each costs a dictionary and a halving.

    A signal is counted for rates and twins when it is stored, and no longer once the filter's
    rejection of it is stored: what the desk refused must not block the next try.
    """

    def __init__(self) -> None:
        self.first_known: dict[str, float] = {}
        self.clear()

    def clear(self) -> None:
        """Forget all but the ids."""
        self.signals: dict[str, Signal] = {}
        self.arrivals: defaultdict[str, Times] = defaultdict(Times)
        self.refusals: defaultdict[str, Times] = defaultdict(Times)
        self.passed: defaultdict[str, Times] = defaultdict(Times)
        self.twins: defaultdict[Twin, Times] = defaultdict(Times)
        self.results: defaultdict[str, list[Result]] = defaultdict(list)
        self._counted: dict[str, float] = {}

    def add_signal(self, signal: Signal, known_at: float, *, is_repeat: bool) -> None:
        """Take in a signal; a repeated id is an arrival and nothing more."""
        self.arrivals[signal.strategy].add(known_at)
        name = signal.signal_id
        if is_repeat:
            return
        self.remember(name, known_at)
        self.signals[name] = signal
        self._counted[name] = known_at
        self.passed[signal.strategy].add(known_at)
        self.twins[twin_of(signal)].add(signal.timestamp)

    def remember(self, signal_id: str, known_at: float) -> None:
        """Keep an id as seen; the oldest are forgotten beyond a quarter of a million."""
        ids = self.first_known
        if signal_id in ids:
            ids[signal_id] = min(known_at, ids[signal_id])
            return
        ids[signal_id] = known_at
        if len(ids) > REMEMBERED_IDS:
            del ids[next(iter(ids))]

    def add_rejection(self, rejection: Rejection, known_at: float) -> None:
        """Take in a rejection; one of the filter's takes the signal out of rates and twins."""
        name = rejection.signal_id
        signal = self.signals.get(name)
        strategy = rejection.strategy or (signal.strategy if signal else "")
        self.refusals[strategy].add(known_at)
        if signal is None or rejection.code in _KEEPS_COUNT:
            return
        counted = self._counted.pop(name, None)
        if counted is not None:
            self.passed[signal.strategy].remove(counted)
            self.twins[twin_of(signal)].remove(signal.timestamp)

    def add_outcome(self, outcome: Outcome, known_at: float) -> None:
        """Take in what came of a signal, if it was traded and either won or lost."""
        signal = self.signals.get(outcome.signal_id)
        if signal is None or outcome.counterfactual or outcome.label not in {"win", "loss"}:
            return
        results = self.results[signal.strategy]
        results.append(Result(known_at, outcome.label == "win"))
        if len(results) > 1 and results[-2].known_at > known_at:
            results.sort(key=_when)

    def rebuild(
        self,
        signals: Iterable[tuple[float, Signal]],
        rejections: Iterable[tuple[float, Rejection]],
        outcomes: Iterable[tuple[float, Outcome]],
    ) -> None:
        """Make the look-ups anew from what a context still holds."""
        self.clear()
        for known_at, signal in signals:
            name = signal.signal_id
            is_repeat = name in self.signals or self.first_known.get(name, known_at) < known_at
            self.add_signal(signal, known_at, is_repeat=is_repeat)
        for known_at, rejection in rejections:
            self.add_rejection(rejection, known_at)
        for known_at, outcome in outcomes:
            self.add_outcome(outcome, known_at)


def twin_of(signal: Signal) -> Twin:
    """Return what two signals have in common that are nearly the same."""
    return (signal.strategy, signal.symbol, signal.params.side)


def _when(result: Result) -> float:
    return result.known_at
