from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from agent_gym.agents.llm.agent import LlmAgent
from agent_gym.agents.llm.policy import LanguagePolicy
from agent_gym.agents.llm.prompts import PromptConfig
from agent_gym.agents.team import Independent
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.world import TRADER
from agent_gym.rollouts.database import TrajectoryContext, TrajectoryRecorder, TrajectoryStore
from agent_gym.rollouts.play import run_episode
from agent_gym.training.grpo import (
    AdamConfig,
    AlarmLimits,
    DPOConfig,
    GRPOConfig,
    GRPOTrainingService,
    RolloutBatch,
    SFTConfig,
    batch_of,
    imitate_best,
    prefer_best,
)
from agent_gym.training.grpo.config import EntropySchedule
from agent_gym.training.grpo.loss import LossInputs, policy_loss
from agent_gym.training.grpo.loss_config import LossConfig
from agent_gym.training.llm import notes
from agent_gym.training.llm.learner import LanguageLearner
from agent_gym.training.llm.proof import prompts_of
from tests.agents.llm_samples import LORA, WHOLE, moved, policy, world

NOTES = notes.training_notes(Seeds(3), 6)
NEWS = PromptConfig(question="{news} {state} Price. BUY, SELL or HOLD:")
QUICK = GRPOConfig(
    updates=1,
    epochs=2,
    entropy=EntropySchedule(start=0.0),
    alarms=AlarmLimits(max_kl=None, max_clip_share=None),
)


def played(learner: LanguageLearner, members: int = 4, seed: int = 0) -> RolloutBatch:
    def read(texts: object) -> np.ndarray:
        return learner.log_probs(prompts_of(learner.policy, NOTES)).numpy()

    return notes.play(read, NOTES, members, Seeds(seed), learner.version)


def recorded(own: LanguagePolicy, folder: Path, members: int = 3) -> RolloutBatch:
    """Play a snapshot, keep it in a store, and read it back as training does."""
    with (
        TrajectoryStore.open(f"sqlite:///{folder / 't.db'}", folder=folder / "steps") as store,
        TrajectoryRecorder(store) as recorder,
    ):
        stage, agent = world(), LlmAgent(own)
        ids = []
        for member in range(members):
            recorder.begin(
                TrajectoryContext(
                    agent_version=agent.version, snapshot_id=stage.snapshot.id, seed=member
                )
            )
            name = f"episode-{member}"
            run_episode(stage, Independent({TRADER: agent}), name, Seeds(member), [recorder])
            ids += recorder.trajectory_ids(name).values()
        return batch_of(store.read(ids), stage.start(TRADER, Seeds(0)).feature_names)


@pytest.mark.parametrize("adapter", [LORA, WHOLE])
def test_the_first_ratio_is_one(adapter: object) -> None:
    learner = LanguageLearner(moved(policy(adapter)))  # type: ignore[arg-type]
    batch = played(learner)
    with torch.no_grad():
        before = learner.evaluate(batch)
    assert np.array_equal(before.log_prob.numpy(), batch.log_probs)  # what was drawn, bit for bit
    now = learner.evaluate(batch)
    np.testing.assert_allclose(now.log_prob.detach().numpy(), batch.log_probs, atol=1e-5)
    assert now.entropy is not None
    assert now.log_probs is not None
    chances = now.log_probs.exp().sum(-1).detach().numpy()
    np.testing.assert_allclose(chances, 1.0, atol=1e-12)


def test_what_was_recorded_in_a_snapshot_is_found_again(tmp_path: Path) -> None:
    learner = LanguageLearner(moved(policy(prompt=NEWS)))
    batch = recorded(learner.policy, tmp_path)
    assert batch.texts is not None
    found = learner.evaluate(batch)
    np.testing.assert_allclose(found.log_prob.detach().numpy(), batch.log_probs, atol=1e-4)
    quiet = np.array([["News of this tick: none." in text for text in one] for one in batch.texts])
    assert 0 < quiet.sum() < quiet.size
    assert np.all(found.log_prob.detach().numpy()[quiet] == 0)
    assert found.entropy is not None
    assert np.all(found.entropy.detach().numpy()[quiet] == 0)
    assert np.all(found.log_prob.detach().numpy()[~quiet] < 0)


def test_it_trains_on_what_was_recorded_in_a_snapshot(tmp_path: Path) -> None:
    learner = LanguageLearner(moved(policy(prompt=NEWS)))
    batch = recorded(learner.policy, tmp_path)
    result = GRPOTrainingService(QUICK).train_on(learner, batch)
    assert result.changed
    assert result.groups.kept == 1
    assert set(result.trained_ids) == set(batch.ids)


def test_the_gradient_is_that_of_finite_differences() -> None:
    own = moved(policy())
    own.base.network.double()  # single precision would drown them; its norms stay single
    learner = LanguageLearner(own)
    batch = played(learner)
    advantages = torch.from_numpy(np.random.Generator(np.random.PCG64(1)).normal(size=len(batch)))
    behaviour = torch.from_numpy(batch.log_probs)

    def loss() -> torch.Tensor:
        seen = learner.evaluate(batch)
        inputs = LossInputs(
            seen.log_prob, behaviour, advantages, torch.from_numpy(batch.mask), entropy=seen.entropy
        )
        return policy_loss(inputs, LossConfig(), 0.3).loss

    torch.autograd.backward([loss()])
    gradients = {name: one.grad for name, one in learner.named_parameters()}
    assert all(one is not None for one in gradients.values())
    step = 1e-4
    for name, parameter in list(learner.named_parameters())[:4]:
        gradient = gradients[name]
        assert gradient is not None
        direction = gradient / gradient.norm()
        ends = []
        for sign in (1.0, -1.0):
            with torch.no_grad():
                parameter.add_(sign * step * direction)
            ends.append(float(loss().detach()))
            with torch.no_grad():
                parameter.sub_(sign * step * direction)
        slope = (ends[0] - ends[1]) / (2 * step)
        assert slope == pytest.approx(float(gradient.norm()), rel=1e-3)


def test_only_the_adapter_changes() -> None:
    own = policy()
    learner = LanguageLearner(own)
    frozen = {
        name: one.detach().clone()
        for name, one in own.base.network.named_parameters()
        if name not in own.parameters
    }
    result = GRPOTrainingService(QUICK).train_on(learner, played(learner))
    assert result.changed
    assert len(frozen) > 10
    for name, one in own.base.network.named_parameters():
        if name in frozen:
            assert torch.equal(one, frozen[name])


def test_equal_rewards_change_no_bit() -> None:
    learner = LanguageLearner(moved(policy()))
    batch = played(learner)
    same = replace(batch, rewards=np.ones_like(batch.rewards), returns=np.ones(len(batch)))
    result = GRPOTrainingService(QUICK).train_on(learner, same)
    assert not result.changed
    assert result.groups.dropped == len(NOTES)


def test_without_log_probs_grpo_refuses_and_the_best_can_be_imitated_or_preferred() -> None:
    adam = AdamConfig(learning_rate=0.01)
    for teach in (
        lambda own, given: imitate_best(own, given, SFTConfig(epochs=8, adam=adam)),
        lambda own, given: prefer_best(own, given, DPOConfig(epochs=8, beta=1.0, adam=adam)),
    ):
        learner = LanguageLearner(policy(WHOLE))
        batch = played(learner, members=6)
        unknown = replace(batch, log_probs=np.full_like(batch.log_probs, np.nan))
        with pytest.raises(DataError, match="imitate_best"):
            GRPOTrainingService(QUICK).train_on(learner, unknown)

        def gap(own: LanguageLearner, given: RolloutBatch) -> float:
            with torch.no_grad():
                found = own.evaluate(given).log_prob[:, 0].numpy()
            groups = np.array(given.group_keys)
            rows = [np.flatnonzero(groups == key) for key in dict.fromkeys(given.group_keys)]
            return float(
                np.mean(
                    [
                        found[one[given.returns[one].argmax()]]
                        - found[one[given.returns[one].argmin()]]
                        for one in rows
                    ]
                )
            )

        before = gap(learner, unknown)
        assert teach(learner, unknown).changed
        assert gap(learner, unknown) > before + 0.2


def test_words_are_needed_and_answers_must_be_its_own() -> None:
    learner = LanguageLearner(policy())
    batch = played(learner)
    with pytest.raises(DataError, match="recorded without"):
        learner.evaluate(replace(batch, texts=None))
    with pytest.raises(DataError, match="none of the policy's answers"):
        learner.evaluate(replace(batch, actions=batch.actions + 0.5))
