"""What training leaves beside the policy says what critic and world model said while it learned."""

import json
import shutil

import numpy as np
import pytest
import torch

from agent_gym.agents.marl.critic import TeamCritic
from agent_gym.agents.marl.foresight import ForesightCard, TeamForesight
from agent_gym.agents.marl.network import NetworkConfig
from agent_gym.core import DataError
from agent_gym.envs.battle import battle_map
from agent_gym.evaluation.battle import INFORMATION, Start, open_team, record
from agent_gym.training.marl import LearnConfig, train_team
from agent_gym.training.marl.amal.keeping import foresight_of
from agent_gym.training.marl.critics import critic_of
from agent_gym.training.marl.rows import critic_inputs
from tests.training.amal_samples import session_of, small_amal
from tests.training.marl_samples import parts, small


@pytest.mark.parametrize(
    ("critic", "recurrent"), [("state", False), ("own", False), ("state", True)]
)
def test_it_says_what_the_learner_says(tmp_path, critic, recurrent):
    config = small(
        learn=LearnConfig(epochs=1, critic=critic),
        network=NetworkConfig(hidden=8, recurrent=recurrent),
    )
    learner, collector = parts(config)
    batch, _ = collector.collect(learner.policy)
    learner.learn([batch])  # moves weights and the scale of values away from where they began
    kept = critic_of(learner)
    kept.save(tmp_path / "critic")
    loaded = TeamCritic.load(tmp_path / "critic")
    seen = critic_inputs(batch, with_state=critic == "state")[:2]
    rows = torch.from_numpy(seen.reshape(2, -1, seen.shape[-1]).astype(np.float32))
    memory = torch.zeros(rows.shape[1], config.network.memory)
    begun = torch.zeros(rows.shape[:2], dtype=torch.bool)
    with torch.no_grad():
        answers = learner.parts.critic.answers(rows, memory, begun)
    expected = learner.parts.norms["team"].denormalize(answers.heads["team"].numpy())
    remembered = loaded.memory(batch.observations.shape[1])
    for t in (0, 1):
        found, remembered = loaded.values(batch.observations[t], batch.state[t], remembered)
        assert found["team"].ravel() == pytest.approx(expected[t].ravel(), abs=1e-4)
    assert np.std(found["team"]) > 0.0


def test_training_leaves_it_beside_the_policy(tmp_path):
    record = train_team(small(env_steps=160), tmp_path)
    player = open_team(tmp_path)
    assert player.critic.policy == record.policy.version == player.version
    path = tmp_path / "critic" / "critic.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    with pytest.raises(DataError, match="damaged"):
        open_team(tmp_path)


def test_the_model_of_the_world_says_what_amal_says(tmp_path):
    session = session_of(small_amal())
    for _ in range(2):
        session.iterate()
    agent, policy = session.mixer, session.learner.policy
    batch, _ = session.collector.collect(policy)
    expected = agent.information(batch)
    foresight_of(agent, policy).save(tmp_path / "foresight")
    loaded = TeamForesight.load(tmp_path / "foresight")
    for t in (0, 7):
        found = loaded.information(batch.state[t], batch.actions[t], batch.alive[t])
        assert found == pytest.approx(expected[t], rel=1e-3, abs=1e-4)
    assert np.std(expected) > 0.0
    other = dict(loaded.weights) | {"biases.0": loaded.weights["biases.0"] + np.float32(np.nan)}
    with pytest.raises(DataError, match="do not fit"):
        TeamForesight(loaded.card, other)


def test_a_recorded_battle_tells_information(tmp_path):
    train_team(small_amal({"env_steps": 160}), tmp_path)
    player = open_team(tmp_path)
    replay = record(player, battle_map("3m"), Start(3, 1))
    told = replay.signal(INFORMATION)
    assert told.min() >= 0.0
    assert told.max() > told.min()
    card = json.loads((tmp_path / "foresight" / "foresight.json").read_text())
    loaded = TeamForesight.load(tmp_path / "foresight")
    strange = ForesightCard.model_validate(card | {"policy": "0" * 64})
    shutil.rmtree(tmp_path / "foresight")
    TeamForesight(strange, loaded.weights).save(tmp_path / "foresight")
    with pytest.raises(DataError, match="foresight beside this policy belongs to another"):
        open_team(tmp_path)
