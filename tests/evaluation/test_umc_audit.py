"""The audit on UMC: nothing is found in it, and what is planted in it is found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from typing_extensions import override

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.kept import write_agent
from agent_gym.agents.umc.market_gi import MarketGIConfig
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation
from agent_gym.evaluation.audit import AuditReport, Subject, audit
from agent_gym.markets.source import open_market

BARS = open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 240}), Seeds(0))
LIGHT = UMCConfig(model=MarketGIConfig(tiers=(Ref(use="umc/exact"),)), cost_bp=0.5)


class LooksAhead(UMCAgent):
    """Decides a series by closes that are one bar too new."""

    @override
    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        close = columns["close"]
        return super().targets(start, {**columns, "close": np.append(close[1:], close[-1:])})


class Forgetful(UMCAgent):
    """Leaves what it plans by out of the folder."""

    @override
    def save(self, folder: Path) -> None:
        kept = self._kept()
        write_agent(folder, self.config, {**kept, "plan/edges": 0.0 * kept["plan/edges"]})


class Scribbles(UMCAgent):
    """Writes into what it is shown."""

    @override
    def act(self, obs: Observation) -> Decision:
        made = super().act(obs)
        obs.features[:] = 0.0
        return made


class Unmoved(UMCAgent):
    """Shows a weight that learning never moves."""

    @override
    def weights(self) -> Mapping[str, FloatArray]:
        return {**super().weights(), "dead": np.ones(3)}


def report_of(kind: type[UMCAgent], check: str) -> AuditReport:
    params = {"cuts": 1, "series_cuts": 12} if check == "look-ahead" else {}
    return audit(Subject("umc", BARS, kind, LIGHT, lessons=3), [Ref(use=check, params=params)])


def errors_of(report: AuditReport) -> list[str]:
    return [found.what for found in report.findings("error", "warning")]


@pytest.mark.parametrize("check", ["look-ahead", "save-load", "purity", "learning"])
def test_nothing_is_found_in_umc(check: str) -> None:
    report = report_of(UMCAgent, check)
    assert errors_of(report) == []
    assert report.findings("fine")
    assert not report.failed


def test_a_lambda_at_its_bound_is_told_and_not_taken_for_a_free_one() -> None:
    report = report_of(UMCAgent, "clamps")
    assert errors_of(report) == []
    (told,) = [found for found in report.findings("note") if "lambda" in found.what]
    assert "not confirmed" in told.what
    assert told.evidence["share_of_later_half"] == 1.0
    free = next(f.what for f in report.findings("fine") if "move freely" in f.what)
    assert "surprise" in free
    assert "lambda" not in free


def test_the_agent_under_audit_trades() -> None:
    steps = Subject("umc", BARS, UMCAgent, LIGHT).stream.steps
    assert len({float(np.asarray(step.decision.action).item()) for step in steps}) > 1


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (LooksAhead, "look-ahead"),
        (Forgetful, "save-load"),
        (Scribbles, "purity"),
        (Unmoved, "learning"),
    ],
)
def test_a_planted_defect_is_found(kind: type[UMCAgent], check: str) -> None:
    assert errors_of(report_of(kind, check))
