"""UMC in the nightly: played once, then known; what changes its trading turns the night red."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_gym.core.registry import Ref
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, Suite
from agent_gym.pipeline.nightly import (
    Approval,
    NightlyOptions,
    RunOptions,
    Workspace,
    run_nightly,
)
from tests.pipeline.nightly_samples import DirectCrew, clock_at, without_processes

SEEDS = 5
SMALL = {"warmup_hours": 3.0, "shocks": 1, "bar_minutes": 15, "train_bars": 400}
SUITE = Suite(
    id="umc-small",
    agent=Ref(use="umc"),
    scenarios=(
        ScenarioConfig(name="umc_gap", type="price_gap", hours=30.0, n_seeds=SEEDS, params=SMALL),
    ),
)
LIGHT = {"model": {"tiers": [{"use": "umc/exact"}]}}
POLICY = GatePolicy(n_screen=SEEDS, n_confirm=10, max_confirm=10, repeat=False)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    without_processes(monkeypatch.setattr)


def night(home: Path, day: int, *, approve: str | None = None, **said):
    agent = Ref(use="umc", params=LIGHT | said)
    approval = None if approve is None else Approval(approve, "tester")
    return run_nightly(
        RunOptions(SUITE, Subject(agent=agent), timings=False),
        NightlyOptions(approval=approval, fail_on_regression=True, policy=POLICY),
        Workspace(home),
        clock=clock_at(day),
    )


def test_umc_is_known_the_second_night_and_a_reckless_one_turns_it_red(tmp_path: Path) -> None:
    night(tmp_path, 0, approve="first")
    assert len(set(DirectCrew.played)) == SEEDS
    DirectCrew.played.clear()
    again = night(tmp_path, 1)
    assert len(DirectCrew.played) <= 2  # those that are looked at again every night
    assert again.exit_code == 0
    # It believes that trading is free: more of it, and more costs.
    reckless = night(tmp_path, 2, cost_bp=0.0, lam={"coherence_threshold": 1e-9})
    assert reckless.exit_code == 1
