"""UMC as a policy of snapshot markets: least free energy, artifact, agent."""

import numpy as np
import pytest

from agent_gym.agents.artifact import read_artifact, write_artifact
from agent_gym.agents.information.mixtures import row_mixture
from agent_gym.agents.umc.efe import Actions, Market, g_lambda, outcome_floor
from agent_gym.agents.umc.efe.preference import Preference
from agent_gym.agents.umc.linear import Sums
from agent_gym.agents.umc.snapshots.agent import UMCMarketAgent
from agent_gym.agents.umc.snapshots.law import KINDS
from agent_gym.agents.umc.snapshots.lessons import Lessons
from agent_gym.agents.umc.snapshots.policy import KIND, READ, MarketConfig, UMCMarketPolicy
from agent_gym.core import Ref, Seeds, make
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.types import ActionSpec, EpisodeStart, Inspectable, Observation, Role, Saveable

NAMES = tuple(f"{m}/{name}" for m in ("pm-1", "perp-1") for name in (*READ, "gap", "return_5"))


def taught(slope=0.5, seed=1, rows=400, noise=0.3, **settings):
    rng = Seeds(seed).child("lesson").rng()
    inputs = np.column_stack([np.ones(rows), rng.normal(size=(rows, 2))])
    moves = slope * inputs[:, 1] + noise * rng.standard_normal(rows)
    lessons = {"s": {kind: Sums.of(inputs, moves) for kind in KINDS}}
    return UMCMarketPolicy(MarketConfig(**settings), Lessons.of(lessons, 3))


def question(gap, chance=0.5, position=0.0):
    return np.array([0.0, chance - 0.5, 0.3, position, gap, 0.0])


def perpetual(gap, position=0.0, unit=0.02):
    return np.array([1.0, unit * 2.0, 2.0, position, gap, 0.0])


def best(policy, *blocks):
    return policy.levels[policy.log_probs(np.array(blocks)).argmax(axis=1)].tolist()


def test_who_was_taught_nothing_holds_nothing():
    policy = UMCMarketPolicy(MarketConfig())
    rng = Seeds(0).rng()
    blocks = rng.normal(scale=3.0, size=(500, 6))
    blocks[:, 0] = rng.integers(0, 2, 500)
    blocks[:, 1] = rng.uniform(-0.5, 0.5, 500)
    blocks[:, 3] = 0.0
    assert set(best(policy, *blocks)) == {0.0}
    assert best(taught(), *blocks) != best(policy, *blocks)


def test_it_follows_its_law_on_both_kinds_of_market():
    policy = taught()
    assert best(policy, question(1.0), question(-1.0)) == [1.0, -1.0]
    assert best(policy, perpetual(1.0), perpetual(-1.0)) == [1.0, -1.0]
    assert best(policy, question(0.0), perpetual(0.0)) == [0.0, 0.0]
    against = taught(slope=-0.5)
    assert best(against, question(1.0), perpetual(1.0)) == [-1.0, -1.0]


def test_free_energy_is_that_of_efe():
    policy = taught(rows=30, noise=1.5)
    config, block = policy.config, question(0.4, chance=0.3, position=-0.5)
    law, levels = policy.laws["question"], policy.levels
    seen = block[len(READ) :]
    stake = config.budget * 0.3 * 0.7
    told, spread = seen @ law.slopes, law.noise + seen @ law.errors @ seen
    heads = row_mixture(
        [1.0 - law.chance, law.chance],
        [0.0, stake * told],
        [stake**2 * law.walk, stake**2 * spread],
    )
    closed, opened = np.where(levels < 0.0, np.abs(levels + 0.5), 0.5), np.maximum(levels, 0.0)
    cost = config.budget * config.question.fee * (0.7 * closed + 0.3 * opened)
    found = g_lambda(
        Actions(levels, cost, outcome_floor(config.nat)),
        Market(heads, np.zeros(2, np.int64), np.arange(2)),
        Preference.of_kelly(config.kelly_fraction, config.nat),
        lam=0.0,
    )
    assert 0.01 < law.chance < 0.999
    assert np.allclose(np.exp(policy.log_probs(block)), found.chances(1.0), atol=1e-9)
    assert policy.log_probs(block).argmax() == found.choice()


def test_a_trade_must_be_worth_its_cost_and_what_is_held_is_kept():
    policy = taught(slope=0.1, noise=0.01)
    weak = 0.1  # a hundredth of a move: less than the fee, though the right side
    assert best(policy, perpetual(weak), perpetual(weak, 1.0)) == [0.0, 1.0]
    assert best(policy, perpetual(weak, 0.97)) == [1.0]  # grown out of its size: not traded
    free = taught(slope=0.1, noise=0.01, perpetual={"ticks": 2, "fee": 0.0, "leverage": 3.0})
    assert best(free, perpetual(weak)) == [1.0]


def test_risk_makes_positions_smaller():
    bold, shy = (taught(noise=2.0, rows=4000, kelly_fraction=k) for k in (1.0, 0.02))
    assert best(bold, question(1.0)) == [1.0]
    assert abs(best(shy, question(1.0))[0]) < 1.0


def test_a_perpetual_that_has_not_moved_yet_is_left_as_it_is():
    still = perpetual(3.0)
    still[1:3] = 0.0
    assert best(taught(), still) == [0.0]


def test_an_artifact_comes_back_and_a_changed_byte_is_refused(tmp_path):
    policy = taught()
    manifest = policy.save(tmp_path / "m")
    again = UMCMarketPolicy.load(tmp_path / "m")
    assert again.version == policy.version == manifest.model_hash
    assert again.files == policy.files
    block = question(0.3)
    assert np.array_equal(again.log_probs(block), policy.log_probs(block))
    for name in policy.files:
        path = tmp_path / "m" / name
        kept = path.read_bytes()
        path.write_bytes(kept[:-2] + bytes([kept[-2] ^ 1]) + kept[-1:])
        with pytest.raises(DataError):
            UMCMarketPolicy.load(tmp_path / "m")
        path.write_bytes(kept)
    UMCMarketPolicy.load(tmp_path / "m")


def test_what_is_no_policy_is_refused(tmp_path):
    policy = taught()
    _, files = policy.save(tmp_path / "m"), policy.files
    write_artifact(tmp_path / "text", KIND, {**files, "policy.json": b"{}"})
    with pytest.raises(DataError, match="no policy of UMC"):
        UMCMarketPolicy.load(tmp_path / "text")
    other = UMCMarketPolicy(MarketConfig()).files
    write_artifact(tmp_path / "mixed", KIND, {**files, "policy.json": other["policy.json"]})
    with pytest.raises(DataError, match="fit together"):
        UMCMarketPolicy.load(tmp_path / "mixed")
    with pytest.raises(DataError, match="kind"):
        read_artifact(tmp_path / "m", "neural/market")


@pytest.mark.parametrize("levels", [[-1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0]])
def test_levels_rise_and_hold_nothing_too(levels):
    with pytest.raises(ValueError, match="levels must rise and hold 0"):
        MarketConfig(levels=tuple(levels))


def started(policy, seed=0, **how):
    agent = UMCMarketAgent(policy, **how)
    agent.reset(EpisodeStart(Role("trader"), NAMES, ActionSpec(), Seeds(seed)))
    return agent


def test_the_agent_draws_as_often_as_it_says():
    policy, blocks = taught(nat=0.02), np.array([question(0.5), perpetual(-0.5)])
    agent, seen = started(policy), Observation(0, blocks.ravel())
    chances = np.exp(policy.log_probs(blocks))
    made = [agent.act(seen) for _ in range(3000)]
    drawn = np.array([one.action for one in made])
    for market in range(2):
        found = [(drawn[:, market] == level).mean() for level in policy.levels]
        assert np.abs(found - chances[market]).max() < 0.03
    entropy = -(chances * np.log(chances)).sum()
    assert made[0].signals["entropy"] == pytest.approx(entropy)
    picks = [list(policy.levels).index(level) for level in made[0].action]
    assert made[0].signals["log_prob"] == pytest.approx(np.log(chances)[[0, 1], picks].sum())


def test_the_agent_is_registered_and_reads_its_folder(tmp_path):
    policy = taught()
    policy.save(tmp_path / "m")
    params = {"model": str(tmp_path / "m"), "deterministic": True}
    agent = make("agent", Ref(use=KIND, params=params))
    assert isinstance(agent, Saveable)
    assert isinstance(agent, Inspectable)
    agent.reset(EpisodeStart(Role("trader"), NAMES, ActionSpec(), Seeds(0)))
    made = agent.act(Observation(0, np.array([question(1.0), perpetual(-1.0)]).ravel()))
    assert made.action.tolist() == [1.0, -1.0]
    assert made.signals is None
    assert agent.version == policy.version
    taught(slope=-0.5).save(tmp_path / "other")
    agent.load(tmp_path / "other")
    assert agent.version != policy.version
    row = np.array([question(1.0), perpetual(np.nan)]).ravel()
    with pytest.raises(AgentError, match="perp-1/gap"):
        agent.act(Observation(0, row))
