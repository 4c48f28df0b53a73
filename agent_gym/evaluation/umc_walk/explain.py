"""What UMC believed at one close and why it traded, asked of the very agent that did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agent_gym.agents.umc.efe import FreeEnergy
from agent_gym.agents.umc.telling import bar_energy
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.backtest import columns_for
from agent_gym.evaluation.umc_walk.beliefs import Believed, believed, regime_names, row_of
from agent_gym.evaluation.umc_walk.folds import FoldAgent
from agent_gym.evaluation.umc_walk.store import StoredRun
from agent_gym.markets.quality import format_time

IN_BP = 1e4
SMALL_BP = 0.005


@dataclass(frozen=True, slots=True)
class Head:
    """One law of the market: how far it is believed and what it says of the next bar."""

    name: str
    chance: float
    expected_bp: float


@dataclass(frozen=True, slots=True)
class Level:
    """One position that could have been chosen; free energy is in nats, less is better.

    ``planned`` counts from now on and None says that the position was not allowed: the model
    explained too little. The other terms are of the next bar alone.
    """

    position: float
    planned: float | None
    risk: float
    ambiguity: float
    information: float
    free_energy: float


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What was believed and why; ``same`` says that the agent still says what it said then."""

    ts_ns: int
    fold: int
    tier: str
    heads: tuple[Head, ...]
    levels: tuple[Level, ...]
    figures: dict[str, float | None]
    regimes: dict[str, float]
    held: float
    chosen: float
    traded: float
    same: bool
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "at": format_time(self.ts_ns),
            "ts_ns": self.ts_ns,
            "fold": self.fold,
            "tier": self.tier,
            "heads": [asdict(head) for head in self.heads],
            "levels": [asdict(level) for level in self.levels],
            **self.figures,
            "regimes": self.regimes,
            "held": self.held,
            "chosen": self.chosen,
            "traded": self.traded,
            "same_as_recorded": self.same,
            "sentence": self.sentence,
        }


def explain(run: StoredRun, at_ns: int) -> Explanation:
    """Return the explanation of the last decision at or before a moment of the test."""
    row = _row(run, at_ns)
    trace = run.trace
    each = run.fold(int(trace.fold[row]))
    close = int(np.searchsorted(run.bars.ts + run.bars.period_ns, trace.ts[row]))
    told = _followed(run, each, close)
    now = row_of(told.trace, -1 % len(told.lam))
    held, place = float(told.held[-1]), int(told.chosen_places[-1])
    held_place = int(np.searchsorted(told.levels, held))
    energy = bar_energy(each.agent.config, now, told.levels, held_place, float(told.lam[-1]))
    levels = _levels(told, energy)
    figures = _figures(told)
    names = each.agent.mind.model.heads
    heads = tuple(
        Head(name, float(now.told.chance[0, i]), IN_BP * float(now.told.mean[0, i]))
        for i, name in enumerate(names)
    )
    called = regime_names(each.agent)
    regimes = {name: float(now.regimes[0, state]) for state, name in called.items()}
    chosen = float(told.levels[place])
    traded = float(trace.columns["target"][row])
    recorded = {name: float(trace.columns[name][row]) for name in ("chosen", "lambda")}
    said = {"chosen": chosen, "lambda": float(told.lam[-1])}
    return Explanation(
        ts_ns=int(trace.ts[row]),
        fold=each.number,
        tier=each.agent.mind.model.report.chosen,
        heads=heads,
        levels=levels,
        figures=figures,
        regimes=regimes,
        held=held,
        chosen=chosen,
        traded=traded,
        same=recorded == said,
        sentence=_sentence(heads, levels, figures, (held, chosen, traded)),
    )


def _row(run: StoredRun, at_ns: int) -> int:
    ts = run.trace.ts
    row = int(np.searchsorted(ts, at_ns, side="right")) - 1
    late = at_ns >= int(ts[-1]) + run.bars.period_ns
    if row < 0 or late:
        raise ConfigError(
            "no decision was tested then",
            where="--at",
            found=format_time(at_ns),
            expected=f"a time from {format_time(int(ts[0]))} to {format_time(int(ts[-1]))}",
            remedy="What lies before was learned from; what lies after was not walked over",
        )
    return row


def _followed(run: StoredRun, each: FoldAgent, close: int) -> Believed:
    columns = columns_for(run.bars.rows(0, close + 1), each.agent.needs)
    seen = {name: column[each.begin :] for name, column in columns.items()}
    return believed(each.agent, seen, run.config.bounds(run.bars.instrument))


def _levels(told: Believed, energy: FreeEnergy) -> tuple[Level, ...]:
    planned = told.planned[-1]
    return tuple(
        Level(
            position=float(level),
            planned=float(planned[i]) if np.isfinite(planned[i]) else None,
            risk=float(energy.risk[i]),
            ambiguity=float(energy.ambiguity[i]),
            information=float(energy.information[i]),
            free_energy=float(energy.total[i]),
        )
        for i, level in enumerate(told.levels)
    )


def _figures(told: Believed) -> dict[str, float | None]:
    heads, surprise = told.trace.told, float(told.surprise[-1])
    return {
        "expected_return_bp": IN_BP * float(heads.edge[-1]),
        "expected_return_se_bp": IN_BP * float(heads.error[-1]),
        "sigma_bp": IN_BP * float(told.trace.series.sigma[-1]),
        "coherence": float(told.trace.coherence[-1]),
        "information_gain": float(told.information[-1]),
        "lambda": float(told.lam[-1]),
        "surprise": surprise if np.isfinite(surprise) else None,
    }


def _sentence(
    heads: tuple[Head, ...],
    levels: tuple[Level, ...],
    figures: dict[str, float | None],
    step: tuple[float, float, float],
) -> str:
    """Say in one sentence what was done and why."""
    held, chosen, traded = step
    edge, error = figures["expected_return_bp"] or 0.0, figures["expected_return_se_bp"] or 0.0
    best = max(heads, key=lambda head: head.chance)
    done = f"It kept {_signed(held)}"
    if held != chosen:
        done = f"It went from {_signed(held)} to {_signed(chosen)}"
    if traded != chosen and abs(traded - chosen) > 1e-6:
        done += f" (risk parts left {traded:+.3g} of it)"
    expected = f"it expected {edge:+.2f} bp from the next bar, give or take {error:.2f}"
    if abs(edge) < SMALL_BP:
        expected = "it expected next to nothing from the next bar"
    return (
        f"{done}, because {expected}, believed the head '{best.name}' most "
        f"({100 * best.chance:.0f} %), and {_rival(levels, held, chosen)}."
    )


def _rival(levels: tuple[Level, ...], held: float, chosen: float) -> str:
    """Say by how much the choice was better than the next best, or than staying."""
    planned = {level.position: level.planned for level in levels if level.planned is not None}
    if chosen not in planned:
        return "the model explained too little for any other position"
    own = planned.pop(chosen)
    if held != chosen and held in planned:
        return f"staying at {_signed(held)} would have cost {planned[held] - own:.3g} nats more"
    if not planned:
        return "no other position was allowed"
    other = min(planned, key=lambda position: planned[position])
    return f"the next best, {_signed(other)}, would have cost {planned[other] - own:.3g} nats more"


def _signed(position: float) -> str:
    return f"{position:+g}" if position else "0"
