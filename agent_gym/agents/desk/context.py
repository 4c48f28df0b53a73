"""RecentContext: what came in, what was said of it and what came of it.

Every record carries the time at which the desk came to know it. ``as_of(t)`` shows what was known
at ``t`` and nothing that was learned later, whatever time the record itself speaks of.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agent_gym.agents.desk.context_db import ContextDb
from agent_gym.agents.desk.context_index import ContextIndex, twin_of
from agent_gym.agents.desk.context_reader import KINDS, ContextReader, Rings
from agent_gym.agents.desk.context_ring import Ring, encoded
from agent_gym.agents.desk.rejections import MEANINGS, RejectCode
from agent_gym.agents.desk.schemas import (
    AgentResponse,
    Decision,
    FilterResult,
    Outcome,
    PnLSnapshot,
    Rejection,
    Signal,
    SignalFeatures,
)
from agent_gym.agents.desk.signals import parse_signal
from agent_gym.core.errors import AgentError, ConfigError

_BY_TEXT = {meaning.text: code for code, meaning in MEANINGS.items()}


class RecentContext(ContextReader):
    """The last ``maxlen`` records of each kind, and all of them in a file if one is named.

    Opening a file again fills the rings from it. Ids are remembered beyond the ring: the last
    250,000 without a file, all of them with one.

    Example:
        >>> context = RecentContext()
        >>> context.store_signal({"signal_id": "signal1", "strategy": "momentum",
        ...     "params": {"amount": 0.1}, "timestamp": 1234567890.0}).strategy
        'momentum'
        >>> context.has_seen("signal1"), context.as_of(1234567889.0).has_seen("signal1")
        (True, False)
    """

    def __init__(self, maxlen: int = 10_000, db: Path | None = None) -> None:
        if maxlen < 1:
            raise ConfigError("a context holds at least one record", found=maxlen)
        rings = Rings(**{kind: Ring(kind, maxlen) for kind in KINDS})
        super().__init__(rings, ContextIndex(), None, None if db is None else ContextDb(db))
        self.maxlen = maxlen
        self.latest = 0.0
        if self._db is not None:
            self._refill(self._db, None)

    def store_signal(
        self, signal: Signal | Mapping[str, Any], known_at: float | None = None
    ) -> Signal:
        """Keep a signal; a mapping is read first (and refused with BadSignal if it is wrong)."""
        record = signal if isinstance(signal, Signal) else parse_signal(signal)
        is_repeat = self.has_seen(record.signal_id)
        moment = record.timestamp if known_at is None else known_at
        is_cleared = self._store("signal", record, record.signal_id, moment)
        self._index.add_signal(record, moment, is_repeat=is_repeat)
        if is_cleared:
            self._reindex()
        return record

    def store_rejection(
        self, rejection: Rejection | FilterResult | Mapping[str, Any], known_at: float | None = None
    ) -> Rejection:
        """Keep why a signal was not traded; a mapping may give ``code``, or ``reason`` in words."""
        record = self._rejection(rejection, known_at)
        moment = record.timestamp if known_at is None else known_at
        is_cleared = self._store("rejection", record, record.signal_id, moment)
        self._index.add_rejection(record, moment)
        if is_cleared:
            self._reindex()
        return record

    def store_features(self, features: SignalFeatures, known_at: float | None = None) -> None:
        """Keep the features of a signal; ``known_at`` is that of the signal itself."""
        self._store("features", features, features.signal_id, self._moment(known_at))

    def store_filter_result(self, result: FilterResult, known_at: float | None = None) -> None:
        """Keep what the filter said; a rejection among it is stored by ``store_rejection``."""
        self._store("result", result, result.signal_id, self._moment(known_at))

    def store_decision(self, decision: Decision, known_at: float | None = None) -> None:
        """Keep what the rule table decided."""
        self._store("decision", decision, decision.signal_id, self._moment(known_at))

    def store_response(self, response: AgentResponse, known_at: float | None = None) -> None:
        """Keep an agent's answer."""
        self._store("response", response, response.trace_id, self._moment(known_at))

    def store_pnl(self, snapshot: PnLSnapshot, known_at: float | None = None) -> None:
        """Keep the account at a moment."""
        moment = snapshot.timestamp if known_at is None else known_at
        self._store("pnl", snapshot, "", moment)

    def store_outcome(self, outcome: Outcome, known_at: float | None = None) -> None:
        """Keep what came of a signal."""
        moment = self._moment(outcome.closed_at if known_at is None else known_at)
        is_cleared = self._store("outcome", outcome, outcome.signal_id, moment)
        self._index.add_outcome(outcome, moment)
        if is_cleared:
            self._reindex()

    def has_twin(self, signal: Signal, within_s: float) -> bool:
        """Return whether nearly the same signal is counted within so many seconds of this one."""
        times = self._index.twins.get(twin_of(signal))
        if times is None:
            return False
        nearest = times.nearest(signal.timestamp)
        return nearest is not None and abs(nearest - signal.timestamp) <= within_s

    def passed(self, strategy: str, after: float) -> int:
        """Return how many signals of a strategy the filter let pass after a moment."""
        times = self._index.passed.get(strategy)
        return 0 if times is None else times.count(after, inf)

    def as_of(self, moment: float) -> ContextReader:
        """Return what was known at a moment.

        If the rings have dropped records since, they are read from the file again, which is
        exact and slow; without a file the view holds what is left. For work over a long past
        give the context a ``maxlen`` that holds it.
        """
        if (
            self._db is not None
            and moment < self.latest
            and any(r.has_dropped for r in self._rings)
        ):
            past = RecentContext(self.maxlen)
            past._refill(self._db, moment)
            return ContextReader(past._rings, past._index, moment, self._db)
        return ContextReader(self._rings, self._index, moment, self._db)

    def close(self) -> None:
        """Let go of the file, if there is one."""
        if self._db is not None:
            self._db.close()

    def _moment(self, known_at: float | None) -> float:
        return self.latest if known_at is None else known_at

    def _store(self, kind: str, record: Struct, record_id: str, known_at: float) -> bool:
        if not isfinite(known_at):
            raise AgentError("a record needs the time at which it was known", found=known_at)
        if self._db is not None:
            self._write(self._db, kind, record, record_id, known_at)
        return self._take(kind, record, known_at)

    def _take(self, kind: str, record: Any, known_at: float) -> bool:
        self.latest = max(self.latest, known_at)
        ring: Ring[Any] = getattr(self._rings, kind)
        return ring.add(known_at, record)

    def _write(
        self, db: ContextDb, kind: str, record: Struct, record_id: str, known_at: float
    ) -> None:
        body = encoded(record)
        try:
            is_same = msgspec.json.decode(body, type=KINDS[kind]) == record
        except msgspec.ValidationError:
            is_same = False
        if not is_same:  # NaN would come back as null, a tuple in a payload as a list
            raise AgentError(
                f"a {kind} would not come back from the file as it is",
                where=record_id or str(known_at),
                found=body.decode()[:200],
                remedy="Use finite numbers, text, lists and mappings",
            )
        db.append(kind, known_at, record_id, body)

    def _refill(self, db: ContextDb, until: float | None) -> None:
        for kind, record_type in KINDS.items():
            ring: Ring[Any] = getattr(self._rings, kind)
            for known_at, body in db.latest(kind, self.maxlen, until):
                try:
                    record = msgspec.json.decode(body, type=record_type)
                except msgspec.MsgspecError as error:
                    raise db.damaged(kind, str(error)) from error
                self._take(kind, record, known_at)
            if until is None:
                ring.told = db.count(kind)
        self._reindex()

    def _reindex(self) -> None:
        self._index.rebuild(self.known("signal"), self.known("rejection"), self.known("outcome"))

    def _rejection(
        self, raw: Rejection | FilterResult | Mapping[str, Any], known_at: float | None
    ) -> Rejection:
        if isinstance(raw, Rejection):
            return raw
        if isinstance(raw, FilterResult):
            if raw.code is None:
                raise AgentError("an accepted signal has no rejection", where=raw.signal_id)
            signal = self._index.signals.get(raw.signal_id)
            return Rejection(
                raw.signal_id,
                raw.code,
                self._moment(known_at),
                raw.detail,
                raw.stage,
                "" if signal is None else signal.strategy,
            )
        said = str(raw.get("code") or raw.get("reason") or "")
        code = _BY_TEXT.get(said) or next((c for c in RejectCode if c.value == said), None)
        if code is None:
            raise AgentError(
                "a rejection needs a code of the list, or its text",
                where=str(raw.get("signal_id")),
                found=said,
                expected="for example risk.exposure_limit or 'Exposure limit exceeded'",
            )
        moment = raw.get("timestamp")
        return Rejection(
            str(raw.get("signal_id", "")),
            code,
            self._moment(known_at) if moment is None else float(moment),
            str(raw.get("detail", "")),
            strategy=str(raw.get("strategy", "")),
        )
