"""What one agent believed and wished at each close of a series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.choice import begin_choice, sized
from agent_gym.agents.umc.macro import Regime
from agent_gym.agents.umc.mind import Trace
from agent_gym.agents.umc.tiers import Forecasts
from agent_gym.agents.umc.tiers.information import head_information
from agent_gym.core.types import ActionSpec, FloatArray
from agent_gym.evaluation.umc_walk.energy import bar_energies
from agent_gym.evaluation.umc_walk.lambda_path import lambda_path


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """One row a bar.

    Attributes:
        trace: What the mind said.
        levels: Positions to choose from.
        held: Position before the decision.
        chosen: Position that it wished for.
        target: The wish as it is handed to the account; an open short is resized now and then.
        planned: Free energy of each level from now on, by the planner.
        energy: Free energy of each level for the next bar alone.
        information: Nats that the next bar is expected to say about which head is right.
        lam: Lambda.
    """

    trace: Trace
    levels: FloatArray
    held: FloatArray
    chosen: FloatArray
    target: FloatArray
    planned: FloatArray
    energy: FloatArray
    information: FloatArray
    lam: FloatArray

    @property
    def surprise(self) -> FloatArray:
        """Return how unlikely each bar was, in nats, its density counted in deviations."""
        series = self.trace.series
        surprise: FloatArray = -(self.trace.told.score + np.log(series.expected_sigma))
        return surprise

    @property
    def chosen_places(self) -> NDArray[np.int64]:
        """Return the places of the chosen levels."""
        places: NDArray[np.int64] = np.searchsorted(self.levels, self.chosen).astype(np.int64)
        return places


def believed(agent: UMCAgent, columns: Mapping[str, FloatArray], actions: ActionSpec) -> Believed:
    """Let an agent follow a series from its first bar on and tell everything."""
    trace = agent.trace(columns)
    policy = agent.plans.policy(actions)
    levels, config = policy.levels, agent.config
    outlook = trace.outlook(config.lam.coherence_threshold)
    places, planned = policy.choose(trace, outlook, begin_choice(levels))
    chosen = levels[places.astype(np.int64)]
    held = np.concatenate([[0.0], chosen[:-1]])
    information = head_information(trace.told)
    lam = lambda_path(config.lam, information, trace.coherence).values
    return Believed(
        trace=trace,
        levels=levels,
        held=held,
        chosen=chosen,
        target=np.clip(sized(chosen, 0, config.resize_bars), actions.low, actions.high),
        planned=planned,
        energy=bar_energies(config, trace, levels, held, lam * information),
        information=information,
        lam=lam,
    )


def row_of(trace: Trace, row: int) -> Trace:
    """Return one row of a trace, as a decision at that bar sees it."""
    cut = slice(row, row + 1)
    told = trace.told
    return Trace(
        trace.series.rows(row, row + 1),
        Forecasts(
            told.chance[cut],
            told.mean[cut],
            told.variance[cut],
            told.score[cut],
            told.belief[cut],
        ),
        trace.coherence[cut],
        trace.regimes[cut],
    )


def regime_names(agent: UMCAgent) -> dict[int, str]:
    """Return what the macrostates are called, by number; empty without macrostates."""
    if agent.mind.macro is None:
        return {}
    return {
        label.state: label.regime.value
        if label.regime is not Regime.UNLABELED
        else f"state {label.state}"
        for label in agent.mind.macro.labels
    }
