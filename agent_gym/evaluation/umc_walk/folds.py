"""The agents of a walk: one a fold, taught exactly as the walk teaches them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.protocol.walk import MEMORY_BARS, lesson

Done = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class FoldAgent:
    """An agent and the decisions that are its own.

    Attributes:
        number: Of the fold, from 1 on.
        agent: As it was before its test.
        begin: First row that it follows.
        first: First row whose decision is its own.
        stop: First row whose decision is not its own any more.
    """

    number: int
    agent: UMCAgent
    begin: int
    first: int
    stop: int


def fold_agents(ledger: Ledger, ref: Ref, done: Done | None = None) -> list[FoldAgent]:
    """Teach an agent for each fold of a ledger: the same rows, the same seeds, the same bits.

    With risk parts a walk goes bar by bar, and an agent is shown only so many bars before its test.
    """
    found: list[FoldAgent] = []
    last = len(ledger.folds) - 1
    for number, fold in enumerate(ledger.folds):
        agent = cast(UMCAgent, make("agent", ref))
        if found:
            agent.succeed(found[-1].agent)
        seeds = Seeds(ledger.seed).child("fit", number)
        agent.fit(*lesson(ledger.bars, fold.train, agent.needs, ledger.config, seeds))
        if fold.validate is not None:
            tuning = seeds.child("tune")
            agent.tune(*lesson(ledger.bars, fold.validate, agent.needs, ledger.config, tuning))
        first = fold.test.start - 1
        begin = 0 if ledger.config.risk() is None else max(0, first - MEMORY_BARS)
        stop = len(ledger.bars) if number == last else fold.test.stop - 1
        found.append(FoldAgent(number + 1, agent, begin, first, stop))
        if done is not None:
            done(number + 1, last + 1)
    return found
