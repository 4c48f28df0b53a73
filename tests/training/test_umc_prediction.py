"""UMC learns from records of snapshots: each counts once, and moves of others teach nothing."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.agents.gate import ProvenanceError, Source, Tagged, Tags
from agent_gym.agents.umc.snapshots.policy import MarketConfig, UMCMarketPolicy
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo.batch import Recorded, stack
from agent_gym.training.umc import prediction
from agent_gym.training.umc.prediction import distances, lessons_of

FEATURES = ("perpetual", "open", "price", "move", "position", "gap", "return_5")
NAMES = tuple(f"{market}/{name}" for market in ("pm-1", "perp-1") for name in FEATURES)
TICKS, UNIT = 100, 0.02
CONFIG = MarketConfig()


def shown(seed, slope=0.1, answered=60, own_trade=0.0):
    """Return what a snapshot shows: a question and a perpetual that both follow their gap."""
    rng = Seeds(seed).child("snapshot").rng()
    row = np.zeros((TICKS, 2, len(FEATURES)))
    for market in range(2):
        gap = np.zeros(TICKS)
        for t in range(1, TICKS):
            gap[t] = 0.9 * gap[t - 1] + (rng.random() < 0.2) * rng.standard_normal()
        steps = slope * gap[:-1] + 0.03 * rng.standard_normal(TICKS - 1) - 0.01
        path = np.concatenate([[0.0], np.cumsum(steps)])
        row[:, market, 3] = path
        row[:, market, 5] = gap
        row[:, market, 6] = path - path[np.maximum(np.arange(TICKS) - 5, 0)]
    traded = np.where(np.arange(TICKS) >= 30, own_trade, 0.0)
    chance = 1.0 / (1.0 + np.exp(-row[:, 0, 3] - traded))
    row[:, 0, 2], row[:, 1, 2] = chance - 0.5, UNIT * row[:, 1, 3]
    row[:, 1, 0], row[:, :, 1] = 1.0, 1.0
    row[answered:, 0, 1], row[answered:, 0, 2] = 0.0, 0.5 * np.sign(row[answered, 0, 3])
    return row.reshape(TICKS, -1)


def played(snapshots, each=1, trades=(0.0,), **how):
    rows = [
        Recorded(
            id=f"{seed}-{k}",
            group_key=f"g{seed}",
            version="v",
            feature_names=NAMES,
            observations=shown(seed, own_trade=trades[k % len(trades)], **how),
            actions=np.zeros((TICKS, 2)),
            rewards=np.zeros(TICKS),
        )
        for seed in snapshots
        for k in range(each)
    ]
    return stack(rows), tuple(f"s{seed}" for seed in snapshots for _ in range(each))


def policy_of(lessons):
    return UMCMarketPolicy(CONFIG, lessons)


def test_a_planted_law_is_found():
    laws = policy_of(lessons_of(*played(range(12)), CONFIG)).laws
    own = laws["perpetual"]
    assert own.chance > 0.99
    wanted = 0.1 * (1.0 + 0.9)  # the move of two ticks, of a gap that keeps nine tenths
    assert abs(own.slopes[0] - wanted) < 3.0 * np.sqrt(own.errors[0, 0])
    assert laws["question"].chance > 0.9
    assert laws["question"].slopes[0] > 0.0


def test_the_moves_of_others_teach_nothing():
    batch, names = played(range(12))
    seeds = [Seeds(k).child("control") for k in range(25)]
    laws = [policy_of(lessons_of(batch, names, CONFIG, one)).laws for one in seeds]
    for kind in ("perpetual", "question"):
        chances = np.array([one[kind].chance for one in laws])
        assert chances.mean() < 0.15, kind
        slopes = np.array([one[kind].slopes[0] for one in laws])
        assert abs(slopes.mean()) < 3.0 * slopes.std() / 5.0, kind
    first = lessons_of(batch, names, CONFIG, seeds[0]).arrays()
    again = lessons_of(batch, names, CONFIG, seeds[0]).arrays()
    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_a_control_takes_moves_of_other_snapshots_and_other_ticks():
    found = list(prediction._stretches(*played(range(4)), CONFIG))
    mine = [one for one in found if one.kind == "perpetual"]
    mixed = prediction.with_moves_of_others(mine, Seeds(0))
    for before, after in zip(mine, mixed, strict=True):
        assert np.array_equal(before.inputs.x, after.inputs.x)
        (source,) = {after.outcomes.prov[k].run_id for k in range(len(after.outcomes))}
        assert source.split("/")[0] != before.snapshot
        assert after.outcomes.prov[0].t != before.outcomes.prov[0].t
        assert len(after.outcomes) == len(before.outcomes)
    with pytest.raises(DataError, match="other snapshots"):
        lessons_of(*played([1], each=3), CONFIG, Seeds(0))


def test_a_snapshot_counts_once_however_often_it_was_played():
    once, often = (lessons_of(*played(range(4), each=n), CONFIG) for n in (1, 5))
    assert once.snapshots == often.snapshots == ("s0", "s1", "s2", "s3")
    for name, array in once.arrays().items():
        assert np.allclose(array, often.arrays()[name], rtol=1e-9), name


def test_own_trades_are_averaged_out():
    alone = lessons_of(*played(range(4)), CONFIG).arrays()["question.cross"]
    lone = lessons_of(*played(range(4), trades=(0.05,)), CONFIG).arrays()["question.cross"]
    both = lessons_of(*played(range(4), each=2, trades=(0.05, -0.05)), CONFIG)
    off = np.abs(both.arrays()["question.cross"] - alone).max()
    assert off < 0.1 * np.abs(lone - alone).max()


def test_moves_are_those_that_were_recorded():
    (one,) = (s for s in prediction._stretches(*played([7]), CONFIG) if s.kind == "perpetual")
    row = shown(7).reshape(TICKS, 2, -1)[:, 1]
    assert len(one.inputs) == TICKS - 2
    assert np.allclose(one.outcomes.x, row[2:, 3] - row[:-2, 3])
    assert np.allclose(one.inputs.x[:, 1:], row[:-2, 5:7])
    (other,) = (s for s in prediction._stretches(*played([7]), CONFIG) if s.kind == "question")
    row = shown(7).reshape(TICKS, 2, -1)[:, 0]
    chance = row[:, 2] + 0.5
    assert len(other.inputs) == 60  # until its answer, which the last rows are told of
    assert chance[60] in (0.0, 1.0)
    slope = chance[50] * (1.0 - chance[50])
    assert other.outcomes.x[50] == pytest.approx((chance[60] - chance[50]) / slope)
    assert other.outcomes.x[10] == pytest.approx(
        (chance[26] - chance[10]) / (chance[10] * (1.0 - chance[10]))
    )


def test_rows_that_are_not_primary_do_not_pass():
    found = next(iter(prediction._stretches(*played([7]), CONFIG)))
    rows = len(found.outcomes)
    echo = Tagged(np.array(found.outcomes.x), Tags.of(Source.ECHO, "crowd", np.arange(rows)))
    gate = prediction.AsymmetricGate(prediction.GateConfig())
    assert prediction._sums(gate, [found], 3, 1.0).rows == rows
    with pytest.raises(ProvenanceError, match="primary rows alone"):
        prediction._sums(gate, [replace(found, outcomes=echo)], 3, 1.0)


def test_distance_is_from_the_champion_and_none_from_oneself():
    batch, names = played(range(6))
    champion = UMCMarketPolicy(CONFIG)
    challenger = champion.taught(lessons_of(batch, names, CONFIG))
    entropy, far = distances(champion, challenger, batch)
    assert entropy > 0.0
    assert far > 0.0
    assert distances(challenger, challenger, batch) == (entropy, 0.0)
