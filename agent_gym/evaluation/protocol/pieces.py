"""The tested stretches of a combinatorial split: each is traded in an account of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

from typing_extensions import override

from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent, Learner, SeriesAgent
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.account import Decided, Ledger
from agent_gym.evaluation.protocol.decisions import row_of
from agent_gym.evaluation.protocol.failures import failed_row, placed
from agent_gym.evaluation.protocol.school import Lessons, spliced
from agent_gym.evaluation.protocol.splits import Combinatorial, Span, WalkForward
from agent_gym.evaluation.protocol.walk import MEMORY_BARS, Leg, is_taught, walked
from agent_gym.markets.bars import Bars
from agent_gym.markets.parquet import read_native
from agent_gym.rollouts.jobs import Job

Source: TypeAlias = Callable[[], tuple[Agent, Ref]]


def is_fixed(arm: Arm) -> bool:
    """Say whether an arm neither learns nor chooses, so that all its paths are one."""
    return len(arm.refs) == 1 and not is_taught(arm.refs)


class Pieces:
    """Bars in groups; the account of a group opens at the row before it and sees all before it."""

    def __init__(self, bars: Bars, split: Combinatorial, config: BacktestConfig, seed: int) -> None:
        self.bars, self.config, self.seed = bars, config, seed
        self.choices = split.choices()
        self._split = split
        # Row 0 only decides: there is none before it to decide at.
        self.spans = [Span(max(1, span.start), span.stop) for span in split.spans(len(bars))]
        if self.spans[0].length < 1:
            raise ConfigError(
                "groups of one row cannot be traded",
                found=f"{len(bars):,} rows in {split.groups} groups",
                remedy="Use fewer --groups, or a longer series",
            )
        self._ledgers: dict[int, Ledger] = {}

    def check(self) -> None:
        """Raise ConfigError if some combination leaves nothing to learn from."""
        for chosen in self.choices:
            self._split.combination(len(self.bars), chosen)

    def ledger(self, group: int) -> Ledger:
        """Return the account of a group, on bars that end with it."""
        if group not in self._ledgers:
            span = self.spans[group]
            walk = WalkForward(train=span.start, test=span.length)
            bars = self.bars.rows(0, span.stop)
            self._ledgers[group] = Ledger(bars, walk, self.config, self.seed)
        return self._ledgers[group]

    def lessons(self, number: int) -> Lessons:
        """Return what can be learned under one combination."""
        rows = self._split.combination(len(self.bars), self.choices[number]).train
        return Lessons(spliced(self.bars, rows), self.config, Seeds(self.seed).child("fit", number))

    def decide(self, arm: Arm, number: int | None) -> list[Decided]:
        """Return what an arm asks for on the groups that a combination tests, in their order.

        Without a combination, which is for arms that neither learn nor choose, on all groups.
        """
        if number is None:
            (ref,) = arm.refs
            return [
                self._decided(arm.label, group, lambda: (cast(Agent, make("agent", ref)), ref))
                for group in range(len(self.spans))
            ]
        groups, taught = self.choices[number], Taught(self.lessons(number), arm)
        try:
            return [self._decided(arm.label, group, taught.agent) for group in groups]
        except AgentError as error:
            told = "+".join(str(group + 1) for group in groups)
            raise placed(error, f"groups {told} tested") from error

    def _decided(self, label: str, group: int, source: Source) -> Decided:
        """Return what an agent asks for that sits out until the group begins."""

        def made() -> tuple[Agent, tuple[Ref, ...]]:
            agent, ref = source()
            span = self.spans[group]
            memory = MEMORY_BARS if isinstance(agent, Learner) else span.start
            leg = Leg(agent, span.start - 1, span.stop, max(0, span.start - 1 - memory))
            return walked([leg]), (ref,)

        return self.ledger(group).decide_as(label, made)


class Taught:
    """What an arm is after its lessons, made when it is first asked for."""

    def __init__(self, lessons: Lessons, arm: Arm) -> None:
        self._lessons, self._refs = lessons, arm.refs
        self._chosen: Ref | None = None
        self._kept: Agent | None = None

    def agent(self) -> tuple[Agent, Ref]:
        """Return the agent and its configuration.

        A fitted agent that decides bar by bar may learn while it trades, so it is fitted anew for
        every stretch; else one stretch would be learned from before the next.
        """
        if not is_taught(self._refs):
            if self._chosen is None:
                self._chosen = self._lessons.best(self._refs)
            return cast(Agent, make("agent", self._chosen)), self._chosen
        if self._kept is None or not isinstance(self._kept, SeriesAgent):
            self._kept = self._lessons.fitted(self._refs[0])
        return self._kept, self._refs[0]


class PiecesJob(Job):
    """One arm under one combination over bars in a file; the row holds the targets."""

    arm: Arm
    number: int | None
    bars_file: Path
    split: Combinatorial
    config: BacktestConfig
    seed: int

    @override
    def run(self) -> dict[str, Any]:
        """Decide."""
        bars = read_native(self.bars_file)
        return pieces_row(Pieces(bars, self.split, self.config, self.seed), self.arm, self.number)

    @override
    def reads(self) -> tuple[Path, ...]:
        """Return the file of bars."""
        return (self.bars_file,)


def pieces_row(pieces: Pieces, arm: Arm, number: int | None) -> dict[str, Any]:
    """Return what an arm decides on each tested group, or how it failed."""
    try:
        return {"status": "ok", "pieces": [row_of(each) for each in pieces.decide(arm, number)]}
    except AgentError as error:
        return {"status": "ok"} | failed_row(error)
