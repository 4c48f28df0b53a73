"""Gate F: what others made never reaches the model, and hardly the policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from typing_extensions import override

from agent_gym.evaluation.leakage.umc import UmcLeakageConfig, umc_leakage
from agent_gym.evaluation.umc.figure import GateFigure, counted, worst
from agent_gym.evaluation.umc.plan import GatesPlan, Judged, Letter
from agent_gym.rollouts.jobs import Job

PARTS = {
    "F.g1_purity": "g1_purity",
    "F.g3_replay": "g3_predictive_leakage",
    "F.g3_live": "g3_predictive_leakage_live",
    "F.g4_policy": "g4_policy_influence",
}
SHORT = 4  # of the bars that were asked for, this part is one stretch of a check


class LeakJob(Job):
    """The four numbers and the control of one seed."""

    seed: int = Field(ge=0)
    config: UmcLeakageConfig = UmcLeakageConfig()

    @override
    def run(self) -> dict[str, Any]:
        """Measure them."""
        return {"status": "ok", "seed": self.seed, **umc_leakage(self.seed, self.config).as_dict()}


class Leaks:
    """Gate F."""

    letters: tuple[Letter, ...] = ("F",)

    def jobs(self, plan: GatesPlan) -> dict[str, Job]:
        """Return one check a seed."""
        config = UmcLeakageConfig()
        if plan.bars is not None and plan.bars < config.train_bars:
            short = plan.bars // SHORT
            config = UmcLeakageConfig(
                train_bars=plan.bars, held_out_bars=short, echo_bars=2 * short, live_bars=short
            )
        return {
            f"leakage, seed {seed}": LeakJob(seed=seed, config=config) for seed in plan.numbers()
        }

    def judge(self, plan: GatesPlan, rows: Sequence[dict[str, Any]]) -> Judged:
        """Hold the worst seed against each bound."""
        figures: dict[str, GateFigure] = {
            name: worst(name, [row[part]["value"] for row in rows]) for name, part in PARTS.items()
        }
        hashes = [row["g2_non_interference"] for row in rows]
        changed = [own["sha256_with"] != own["sha256_without"] for own in hashes]
        caught = [row["control"]["caught"] and row["gate"]["withheld"] > 0 for row in rows]
        figures["F.g2_hashes"] = counted("F.g2_hashes", sum(changed), len(rows))
        figures["F.control"] = counted(
            "F.control", sum(caught), len(rows), "with the gate open G1, G2 and G3 must break"
        )
        return Judged(figures, {"leakage": [dict(row) for row in rows]})
