"""Whether the model that had to answer did: stored calls against the registry's history.

Every call names how long the history was when it was asked who answers. The history is a hash
chain, so who served then can be worked out again, whatever has happened since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_gym.core.clock import MINUTE_NS
from agent_gym.pipeline.registry import ModelDeploymentService
from agent_gym.pipeline.registry.ledger import HistoryEntry
from agent_gym.pipeline.registry.rollout import in_canary, read_rollout
from agent_gym.pipeline.runtime.calls import StoredCall, stored_calls
from agent_gym.rollouts.database import TrajectoryStore

MOST_TOLD = 20
TURN_NS = 2 * MINUTE_NS  # a change is dated when it begins, and is seen when it is kept


@dataclass(frozen=True, slots=True)
class Canary:
    """A challenger that answers for a share of the agents."""

    model: str
    salt: str
    percent: float


@dataclass(frozen=True, slots=True)
class Serving:
    """Who served after an entry of the history."""

    at_ns: int
    champion: str | None
    canary: Canary | None

    def answers(self, agent_id: str) -> str | None:
        """Return who answered for an agent."""
        canary = self.canary
        if canary is not None and in_canary(agent_id, canary.salt, canary.percent):
            return canary.model
        return self.champion


@dataclass(frozen=True, slots=True)
class ServedReport:
    """What the stored calls say.

    Attributes:
        checked: Calls that were looked at.
        answered: Those with a decision.
        lost: Those without.
        models: How many decisions came from each model.
        n_wrong: Decisions of a model that had not to answer, and what else is wrong.
        wrong: The first of them in words.
    """

    checked: int
    answered: int
    lost: int
    models: dict[str, int]
    n_wrong: int
    wrong: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Return whether every decision came from the model that served."""
        return self.n_wrong == 0

    @property
    def words(self) -> str:
        """Return it in a sentence."""
        told = f"{self.answered:,} of {self.checked:,} calls were answered"
        if self.ok:
            return f"{told}, each by the model that served then"
        return f"{told}; {self.n_wrong:,} wrong: {self.wrong[0]}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self) | {"ok": self.ok, "words": self.words}


def verify_served(
    store: TrajectoryStore, deployments: ModelDeploymentService, since_ns: int = 0
) -> ServedReport:
    """Check from the stored calls that the champion answered, or the canary for its share.

    Args:
        store: Where the calls are.
        deployments: Whose history says who served.
        since_ns: Calls before that are not looked at.
    """
    wrong = list(deployments.registry.ledger.check_history())
    timeline = serving(deployments)
    checked = lost = 0
    models: Counter[str] = Counter()
    doubts: list[_Doubt] = []
    set_back = _SetBack(timeline)
    for each in stored_calls(store):
        set_back.see(each)
        if each.at_ns < since_ns:
            continue
        checked += 1
        if each.call.status == "lost" or each.call.model is None:
            lost += 1
            continue
        models[each.call.model] += 1
        if (doubt := _doubt(each, timeline)) is not None:
            doubts.append(doubt)
    wrong += [doubt.words for doubt in doubts if not set_back.explains(doubt)]
    return ServedReport(
        checked, checked - lost, lost, dict(models), len(wrong), tuple(wrong[:MOST_TOLD])
    )


def serving(deployments: ModelDeploymentService) -> tuple[Serving, ...]:
    """Return who served before the history began, and after each of its entries."""
    now = Serving(0, None, None)
    found = [now]
    for entry in deployments.history():
        now = _after(entry, now, deployments)
        found.append(now)
    return tuple(found)


def _after(entry: HistoryEntry, now: Serving, deployments: ModelDeploymentService) -> Serving:
    data, champion, canary = entry.data, now.champion, now.canary
    if entry.event == "installed":
        champion = data["model"]
    elif entry.event == "deployed":
        canary = None
    elif entry.event == "advanced":
        canary = None
        if data["stage"] == "full":
            champion = data["model"]
        else:
            canary = _canary(data["rollout"], deployments)
    elif entry.event == "rolled back":
        champion, canary = data["champion"], None
    return Serving(entry.at_ns, champion, canary)


def _canary(rollout_id: int, deployments: ModelDeploymentService) -> Canary:
    with deployments.registry.ledger.look() as (connection, _):
        rollout = read_rollout(connection, rollout_id)
    assert rollout is not None  # the history names it
    return Canary(rollout.model, rollout.salt, rollout.percent)


@dataclass(frozen=True, slots=True)
class _Doubt:
    """What seems wrong with a call.

    Attributes:
        words: What.
        off_ns: How far the clock must have been set back to explain it; None if nothing does.
    """

    words: str
    off_ns: int | None = None


class _SetBack:
    """How far the clock was set back at most, as the stored times themselves show.

    Calls and the history are each stored one after another, and the entry that a call names was
    there before it. Times that do not follow that order are those of a clock that was set.
    """

    def __init__(self, timeline: tuple[Serving, ...]) -> None:
        self._timeline = timeline
        self._latest_ns = self._last_ns = self._most_ns = 0
        latest_ns = 0
        for entry in timeline:
            self._most_ns = max(self._most_ns, latest_ns - entry.at_ns)
            latest_ns = max(latest_ns, entry.at_ns)

    def see(self, each: StoredCall) -> None:
        """Take in the times of the next call."""
        before_ns = self._latest_ns
        if 0 < each.call.position < len(self._timeline):
            before_ns = max(before_ns, self._timeline[each.call.position].at_ns)
        if each.at_ns < self._last_ns:  # it was set while this call was under way, or just before
            before_ns = max(before_ns, each.call.asked_ns)
        self._most_ns = max(self._most_ns, before_ns - each.at_ns)
        self._latest_ns, self._last_ns = max(self._latest_ns, each.at_ns), each.at_ns

    def explains(self, doubt: _Doubt) -> bool:
        """Return whether a call only seems to be wrong."""
        if doubt.off_ns is None or not self._most_ns:
            return False
        return doubt.off_ns <= self._most_ns + TURN_NS


def _doubt(each: StoredCall, timeline: tuple[Serving, ...]) -> _Doubt | None:
    """Return what is wrong with a call; None if nothing is."""
    call, who = each.call, f"agent {each.agent_id}, tick {each.call.tick}"
    if not 0 < call.position < len(timeline):
        return _Doubt(f"{who}: the history has no entry {call.position}")
    expected = timeline[call.position].answers(each.agent_id)
    if call.model != expected:
        return _Doubt(f"{who}: {_short(call.model)} answered, {_short(expected)} served")
    # The entry that it names must have been the last one then, or nearly.
    earliest = timeline[call.position].at_ns - TURN_NS
    later = timeline[call.position + 1 : call.position + 2]
    latest = min(later[0].at_ns + TURN_NS if later else each.at_ns, each.at_ns)
    off_ns = max(earliest - call.asked_ns, call.asked_ns - latest)
    if off_ns <= 0:
        return None
    newest = bisect_right([one.at_ns for one in timeline], call.asked_ns) - 1
    words = f"it goes by entry {call.position} of the history when {newest} was the last"
    return _Doubt(f"{who}: {words}", off_ns)


def _short(model: str | None) -> str:
    return "no model" if model is None else model[:12]
