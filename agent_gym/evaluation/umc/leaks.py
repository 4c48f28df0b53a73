"""Gate F: what others made never reaches the model, and hardly the policy, in any tier.

The exact tier's rows bear no tier in their names. The recurrent one is trained small and quick, on
fewer seeds, and only where torch is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, TypeAlias

from pydantic import Field
from typing_extensions import override

from agent_gym.evaluation.leakage.report import check_leakage
from agent_gym.evaluation.leakage.umc import (
    EXACT,
    RECURRENT,
    TIERS,
    UmcLeakageConfig,
    UmcSubject,
)
from agent_gym.evaluation.umc.bounds import BOUNDS
from agent_gym.evaluation.umc.figure import RANGE, GateFigure, counted, worst
from agent_gym.evaluation.umc.plan import GatesPlan, Judged, Letter
from agent_gym.rollouts.jobs import Job

Rows: TypeAlias = Sequence[dict[str, Any]]
PARTS = {
    "F.g1_purity": "g1_purity",
    "F.g3_replay": "g3_predictive_leakage",
    "F.g4_policy": "g4_policy_influence",
}
LIVE, HASHES, CONTROL = "F.g3_live", "F.g2_hashes", "F.control"
LIVE_PART = "g3_predictive_leakage_live"
SHORT = 4  # of the bars that were asked for, this part is one stretch of a check
RECURRENT_SEEDS = 3
RECURRENT_LIVE_BARS = 2_000  # a network learns less surely, so it is given more


class LeakJob(Job):
    """The four numbers and the control of one tier and seed."""

    seed: int = Field(ge=0)
    tier: str = EXACT
    config: UmcLeakageConfig = UmcLeakageConfig()

    @override
    def run(self) -> dict[str, Any]:
        """Measure them."""
        subject = UmcSubject(self.seed, self.config)
        found = check_leakage(subject.train, subject.logits, subject.gate, subject.live)
        crowd = {"size": self.config.echoes.size, "generations": subject.population.generations}
        row = {"status": "ok", "seed": self.seed, "tier": self.tier, "echoes": crowd}
        return row | found.as_dict()


class Leaks:
    """Gate F."""

    letters: tuple[Letter, ...] = ("F",)

    def jobs(self, plan: GatesPlan) -> dict[str, Job]:
        """Return one check a tier and seed."""
        return {
            f"leakage, {tier}, seed {seed}": LeakJob(
                seed=seed, tier=tier, config=_config(plan, tier)
            )
            for tier in TIERS
            for seed in _seeds(plan, tier)
        }

    def judge(self, plan: GatesPlan, rows: Sequence[dict[str, Any]]) -> Judged:
        """Hold the worst seed of each tier against each bound."""
        figures: dict[str, GateFigure] = {}
        for tier in TIERS:
            own = [row for row in rows if row["tier"] == tier]
            figures |= tier_figures(tier, own) if own else not_measured(tier)
        return Judged(figures, {"leakage": [dict(row) for row in rows]})


def tier_figures(tier: str, rows: Rows) -> dict[str, GateFigure]:
    """Return the figures of one tier."""
    end = "" if tier == EXACT else f".{tier}"
    crowd = rows[0]["echoes"]
    words = f"{crowd['size']} echoes, {min(row['echoes']['generations'] for row in rows)} or more "
    words += "generations of each family"
    if tier == RECURRENT:
        words += f"; a small network, trained for seconds, {len(rows)} seeds"
    figures = {
        name + end: worst(name + end, [row[part]["value"] for row in rows], words)
        for name, part in PARTS.items()
    }
    hashes = [row["g2_non_interference"] for row in rows]
    changed = [own["sha256_with"] != own["sha256_without"] for own in hashes]
    caught = [row["control"]["caught"] and row["gate"]["withheld"] > 0 for row in rows]
    figures[HASHES + end] = counted(HASHES + end, sum(changed), len(rows), words)
    figures[LIVE + end] = live_figure(LIVE + end, [row[LIVE_PART] for row in rows])
    told = "with the gate open G1, G2 and G3 must break, in every part that learns"
    figures[CONTROL + end] = counted(CONTROL + end, sum(caught), len(rows), told)
    return figures


def live_figure(name: str, found: Rows) -> GateFigure:
    """Return the seed that comes nearest to its limit or passes it furthest.

    The limit is the bound, or 1.2 times what two seeds without echoes differ by, if that is more.
    """
    leaked = [each["value"] for each in found]
    place = max(range(len(found)), key=lambda i: leaked[i] / found[i]["bound"])
    bound = replace(BOUNDS[name], value=found[place]["bound"])
    floors = [each["floor"] for each in found]
    words = (
        f"two seeds without echoes differ by {min(floors):.2g} to {max(floors):.2g} nats; "
        "shown is the seed nearest to its limit, the larger of 0.002 and 1.2 times that"
    )
    return GateFigure(leaked[place], min(leaked), max(leaked), bound, len(found), RANGE, words)


def not_measured(tier: str) -> dict[str, GateFigure]:
    """Return figures that say that the tier cannot be trained here."""
    words = "not measured: torch is not installed"
    names = (*PARTS, HASHES, LIVE, CONTROL)
    return {
        f"{name}.{tier}": GateFigure(
            None, None, None, replace(BOUNDS[f"{name}.{tier}"], rule="shown only"), 0, "none", words
        )
        for name in names
    }


def _seeds(plan: GatesPlan, tier: str) -> range:
    if tier != RECURRENT:
        return plan.numbers()
    return plan.numbers()[:RECURRENT_SEEDS] if find_spec("torch") else range(0)


def _config(plan: GatesPlan, tier: str) -> UmcLeakageConfig:
    usual = UmcLeakageConfig(tier=TIERS[tier])
    if plan.bars is not None and plan.bars < usual.train_bars:
        short = plan.bars // SHORT
        return UmcLeakageConfig(
            tier=TIERS[tier],
            train_bars=plan.bars,
            held_out_bars=short,
            echo_bars=2 * short,
            live_bars=short,
        )
    if tier == RECURRENT:
        return usual.model_copy(update={"live_bars": RECURRENT_LIVE_BARS})
    return usual
