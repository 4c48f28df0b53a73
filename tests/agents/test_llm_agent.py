from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from agent_gym.agents.llm.agent import LlmAgent
from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.policy import LanguagePolicy
from agent_gym.agents.llm.prompts import PromptConfig, questions
from agent_gym.agents.team import Independent
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec, EpisodeStart, Observation, Role, Step
from agent_gym.envs.benchmark.world import TRADER
from agent_gym.evaluation.benchmark.runner import BenchmarkRunner, RunnerConfig
from agent_gym.rollouts.database import TrajectoryContext, TrajectoryRecorder, TrajectoryStore
from agent_gym.rollouts.database.records import LlmCallRecord
from agent_gym.rollouts.play import EpisodeResult, run_episode
from agent_gym.training.llm.snapshots import Steps
from tests.agents.llm_samples import moved, policy, snapshot_path, tiny_folder, world

PROMPT = PromptConfig(question="{news} {state} Price. BUY, SELL or HOLD:")


def reader() -> LanguagePolicy:
    return moved(policy(prompt=PROMPT))


def episode(agent: LlmAgent, seed: int = 0) -> tuple[EpisodeResult, list[Step]]:
    kept = Steps()
    result = run_episode(world(), Independent({TRADER: agent}), "one", Seeds(seed), [kept])
    return result, kept.steps


def test_it_plays_a_snapshot_and_its_log_probs_are_those_of_the_policy() -> None:
    own = reader()
    result, steps = episode(LlmAgent(own))
    assert result.status == "ok"
    assert len(steps) == result.steps == 20
    held, drawn = np.zeros(2), 0
    for step in steps:
        asked = questions(step.before.text or "", ("pm-1", "perp-1"), PROMPT, Answers())
        signals = step.decision.signals or {}
        action = np.asarray(step.decision.action)
        expected = 0.0
        for one in asked:
            with torch.no_grad():
                row = own.log_probs([one.prompt])[0]
            expected += float(row[own.answers.levels.index(float(action[one.place]))])
            held[one.place] = action[one.place]
        assert signals["log_prob"] == pytest.approx(expected, abs=1e-4)
        assert np.array_equal(action, held)  # what nobody asked about stays
        drawn += len(asked)
    assert drawn > 4
    assert len({tuple(np.asarray(step.decision.action)) for step in steps}) > 1


def test_the_same_seed_plays_the_same_and_another_does_not() -> None:
    own = reader()

    def actions(seed: int) -> list[list[float]]:
        return [np.asarray(s.decision.action).tolist() for s in episode(LlmAgent(own), seed)[1]]

    assert actions(0) == actions(0)
    assert any(actions(0) != actions(seed) for seed in (1, 2, 3))


def test_without_dice_nothing_was_drawn() -> None:
    own = reader()
    played = [episode(LlmAgent(own, deterministic=True), seed)[1] for seed in (0, 1)]
    assert all(step.decision.signals is None for steps in played for step in steps)
    first, second = ([np.asarray(s.decision.action).tolist() for s in one] for one in played)
    assert first == second


def test_a_world_without_words_is_an_error_of_the_episode() -> None:
    result = run_episode(
        world(text=False), Independent({TRADER: LlmAgent(reader())}), "one", Seeds(0)
    )
    assert result.status == "error"
    assert result.error is not None
    assert "Set text to true" in str(result.error["remedy"])


def test_one_market_without_a_name_gets_a_number() -> None:
    agent = LlmAgent(policy())
    start = EpisodeStart(Role("trader"), ("price",), ActionSpec(), Seeds(0))
    agent.reset(start)
    decision = agent.act(Observation(0, np.zeros(1), None, "Huge demand. Price 12."))  # type: ignore[arg-type]
    assert decision.action in (-1.0, 0.0, 1.0)
    assert decision.signals is not None
    assert decision.signals["log_prob"] < 0 < decision.signals["entropy"]
    assert decision.rationale in ("SELL", "HOLD", "BUY")


def test_counted_actions_are_refused() -> None:
    start = EpisodeStart(Role("trader"), ("price",), ActionSpec(n=3), Seeds(0))
    with pytest.raises(Exception, match="counts its actions"):
        LlmAgent(policy()).reset(start)


def test_calls_are_stored_with_the_hash_of_the_model_that_answered(tmp_path: Path) -> None:
    agent = LlmAgent(reader())
    with (
        TrajectoryStore.open(f"sqlite:///{tmp_path / 't.db'}", folder=tmp_path / "steps") as store,
        TrajectoryRecorder(store) as recorder,
    ):
        snapshot = world().snapshot.id
        recorder.begin(TrajectoryContext(agent_version=agent.version, snapshot_id=snapshot))
        run_episode(world(), Independent({TRADER: agent}), "one", Seeds(0), [recorder])
        recorder.add_calls(LlmCallRecord(**call.as_record()) for call in agent.calls)
        (trajectory,) = recorder.trajectory_ids("one").values()
        stored = store.calls(trajectory)
        row = store.get(trajectory)
    assert len(stored) == len(agent.calls) == agent.counts["asked"] > 4
    assert row.agent_version == agent.version
    assert row.has_log_probs
    for call, own in zip(stored, agent.calls, strict=True):
        assert call.model_version == agent.version
        assert call.user_prompt == own.user_prompt
        assert call.response == call.action_type
        assert call.response in ("SELL", "HOLD", "BUY")
        index = Answers().words.index(str(call.response))
        assert call.tokens["log_probs"][index] == call.log_prob


def test_the_registry_builds_it_and_the_runner_plays_it(tmp_path: Path) -> None:
    own = reader()
    own.save(tmp_path / "policy")
    model = str(tmp_path / "policy")
    made = make("agent", Ref(use="llm", params={"model": model}))
    assert isinstance(made, LlmAgent)
    assert made.version == own.version
    config = RunnerConfig(optimum=False, world={"text": True}, timeout_s=250.0)
    report = BenchmarkRunner(config).run(
        [snapshot_path()], {"trained": Ref(use="llm", params={"model": model})}
    )
    assert [row["status"] for row in report.rows] == ["ok"]


def test_a_plain_model_plays_too_and_settings_that_do_nothing_are_refused(tmp_path: Path) -> None:
    tiny = str(tiny_folder())
    made = make("agent", Ref(use="llm", params={"model": tiny, "temperature": 2.0}))
    assert isinstance(made, LlmAgent)
    reader().save(tmp_path / "policy")
    url = {"url": "http://127.0.0.1:1/v1"}
    for params in (
        {"model": str(tmp_path / "policy"), "temperature": 2.0},
        {"model": str(tmp_path / "policy"), "answers": {}},
        {"model": tiny, "base": tiny},
        {"model": "m", "endpoint": url, "deterministic": True},
        {"model": "m", "endpoint": url, "device": "cuda"},
    ):
        with pytest.raises(ConfigError):
            make("agent", Ref(use="llm", params=params))
