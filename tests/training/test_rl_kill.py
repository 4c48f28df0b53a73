"""SIGKILL, for real, at moments nobody chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.training.rl import reproducibility
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.reproducibility import ReproducibilityReport, verify_reproducibility
from agent_gym.training.rl.result import TrainingResult
from tests.training.rl_samples import small_config


@pytest.mark.parametrize(
    ("algo", "processes"), [("ppo", True), ("a2c", False), ("sac", False), ("td3", False)]
)
def test_killed_run_ends_like_the_unbroken_one(algo: str, processes: bool) -> None:
    said: list[str] = []
    report = verify_reproducibility(
        small_config(algo), steps=720, kills=2, seed=3, processes=processes, say=said.append
    )
    assert report.exact, report
    assert len(report.killed_at) == 2
    assert (report.repeated == report.unbroken) is processes
    assert said[-1] == f"killed at step {report.killed_at[-1]}"


def report_of(**changes: object) -> ReproducibilityReport:
    fields = {
        "algo": "ppo",
        "env": "x",
        "seed": 0,
        "steps": 1,
        "unbroken": "a",
        "repeated": "a",
        "resumed": "a",
        "killed_at": (1,),
        "differing_files": (),
    }
    return ReproducibilityReport.model_validate(fields | changes)


def test_report_is_exact_only_if_nothing_differs() -> None:
    assert report_of().exact
    assert report_of(repeated=None).exact
    assert not report_of(resumed="b").exact
    assert not report_of(repeated="b").exact
    assert not report_of(differing_files=("metrics.csv",)).exact


def test_backend_without_a_state_is_refused_in_words() -> None:
    config = small_config().model_copy(update={"backend": "envpool"})
    with pytest.raises(ConfigError, match="envpool cannot be kept"):
        verify_reproducibility(config)


def test_run_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(config: TrainerConfig, seed: int, folder: Path) -> TrainingResult:
        return original(config.model_copy(update={"env": "Nowhere-v0"}), seed, folder)

    original = reproducibility._run
    monkeypatch.setattr(reproducibility, "_run", broken)
    with pytest.raises(AgentError, match="has failed"):
        verify_reproducibility(small_config(), steps=72)
