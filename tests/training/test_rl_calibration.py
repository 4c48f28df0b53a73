from __future__ import annotations

import pytest
import torch

from agent_gym.core.clock import ManualClock
from agent_gym.training.rl import calibration
from agent_gym.training.rl.calibration import calibrate, candidates
from agent_gym.training.rl.config import TrainerConfig
from tests.training.rl_samples import small_config


def test_each_candidate_is_valid_and_the_configs_own_comes_first() -> None:
    config = small_config("ppo")
    found = candidates(config)
    assert found[0] == config
    assert {each.threads for each in found} == {1, 2}
    assert {each.n_envs for each in found} == {3, 6, 12}, "2 would leave a fragment of a batch"
    assert len(found) == len({each.model_dump_json() for each in found})
    assert all((24 * each.n_envs) % each.agent.batch_size == 0 for each in found)  # type: ignore[attr-defined]


def test_only_threads_are_recommended_and_nothing_else_is_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = small_config("ppo")

    def speed(candidate: TrainerConfig, *_: object) -> float:
        return 100.0 * candidate.threads + candidate.n_envs

    monkeypatch.setattr(calibration, "_speed", speed)
    said: list[str] = []
    found = calibrate(config, say=said.append)
    assert (found.recommended.threads, found.recommended.n_envs) == (2, 3)
    assert found.as_configured.threads == 1
    assert found.fastest.steps_per_s == max(each.steps_per_s for each in found.layouts)
    assert [each.learns_alike for each in found.layouts].count(True) == 2
    assert len(said) == len(found.layouts)


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_speed_is_measured(algo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ticking(ManualClock):
        def monotonic_s(self) -> float:
            self.sleep_s(0.5)
            return super().monotonic_s()

    config = small_config(algo)
    monkeypatch.setattr(calibration, "candidates", lambda config: [config])
    threads = torch.get_num_threads()
    found = calibrate(config, budget_s=1.0, clock=Ticking())
    size = 72 if algo == "ppo" else 6
    assert found.fastest.steps_per_s == pytest.approx(2 * size / 1.0)
    assert torch.get_num_threads() == threads
