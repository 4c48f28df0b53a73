"""One market stays one market, whatever its file, its symbol or its cut is called."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core.clock import DAY_NS, HOUR_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.evaluation.baselines import Arm, reference_arms
from agent_gym.evaluation.protocol.forward import ForwardPlan, evaluate_forward
from agent_gym.evaluation.protocol.setting import Setting, stretch
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.protocol.trials import Stretch, TrialRegistry
from tests.samples import random_bars

BARS = random_bars(1_500, kind="spot")
DICE = Arm(label="dice", refs=(Ref(use="rules/random", params={"hold_bars": 6}),))
ARMS = (DICE, *reference_arms(allow_short=False)[:2])


def renamed(bars):
    return replace(bars, provenance=bars.provenance.model_copy(update={"origin": "other.csv"}))


def other_symbol(bars):
    changes = {"symbol": "DOGE/EUR", "exchange": "elsewhere"}
    return replace(bars, instrument=bars.instrument.model_copy(update=changes))


def nameless(bars):
    unknown = {"symbol": "UNKNOWN", "exchange": "unknown"}
    return renamed(replace(bars, instrument=bars.instrument.model_copy(update=unknown)))


def other_kind(bars):
    return replace(bars, instrument=bars.instrument.model_copy(update={"kind": "perp"}))


def cut(bars):
    return other_symbol(bars.rows(7, len(bars) - 5))


def mended(bars):
    close = bars.close.copy()
    close[::50] *= 1.0001
    high, low = np.maximum(bars.high, close), np.minimum(bars.low, close)
    return other_symbol(replace(bars, close=close, high=high, low=low))


def whole(bars):
    return stretch(bars, 0, len(bars))


@pytest.mark.parametrize("copy", [renamed, other_symbol, nameless, other_kind, cut, mended])
def test_a_copy_is_the_same_market(copy):
    mine, theirs = whole(BARS), whole(copy(BARS))
    assert mine.meets(theirs)
    assert theirs.meets(mine)


@pytest.mark.parametrize("copy", [other_symbol, cut])
def test_stretches_of_a_copy_meet_where_they_share_days(copy):
    other = copy(BARS)
    assert stretch(BARS, 1_200, 1_500).meets(stretch(other, 0, 1_300))
    assert not stretch(BARS, 1_400, 1_500).meets(stretch(other, 0, 1_300))


def test_other_closes_are_another_market():
    for seed in range(1, 30):
        other = other_symbol(random_bars(1_500, seed, kind="spot"))
        assert not whole(BARS).meets(whole(other))


def test_equal_fingerprints_are_enough():
    fields = {"kind": "spot", "period_ns": HOUR_NS, "first_ns": 0, "last_ns": DAY_NS}
    one, two = (Stretch(name=name, fingerprint="f", **fields) for name in "ab")
    assert one.meets(two)
    assert not one.meets(two.model_copy(update={"first_ns": DAY_NS + 1, "last_ns": 2 * DAY_NS}))
    assert not one.meets(two.model_copy(update={"fingerprint": "g"}))


def test_days_without_bars_are_no_evidence():
    gone = np.arange(1_500) % 240 >= 24  # one day in ten is there
    sparse, other = BARS, random_bars(1_500, 3, kind="spot")
    rows = np.flatnonzero(~gone)

    def thin(bars):
        names = ("open", "high", "low", "close", "volume")
        return replace(bars, ts=bars.ts[rows], **{n: getattr(bars, n)[rows] for n in names})

    assert not whole(thin(sparse)).meets(whole(other_symbol(thin(other))))
    assert whole(thin(sparse)).meets(whole(other_symbol(thin(sparse))))


def test_marks_are_short_and_tell_no_trial_apart(tmp_path):
    market = whole(BARS)
    assert len(market.days) <= 3 * (1_500 // 24 + 2)
    assert "days" not in market.as_dict()
    registry = TrialRegistry(tmp_path / "trials.jsonl")
    found = evaluate_forward(BARS, ARMS, plan(), Setting(registry))
    assert "days" not in found.market
    first = registry.trials()[0]
    bare = first.plan.model_copy(
        update={"market": first.plan.market.model_copy(update={"days": ""})}
    )
    assert first.plan.market.days
    assert bare.bench == first.plan.bench
    assert "days" not in first.as_dict()["market"]


def plan(**changes):
    walk = WalkForward(train=400, test=200, validate=50, purge=2, embargo=20)
    return ForwardPlan(**({"walk": walk, "lockbox": 240, "draws": 20} | changes))


@pytest.mark.parametrize("copy", [nameless, other_symbol, cut])
def test_a_copy_gives_no_second_lockbox_and_its_trials_count(tmp_path, copy):
    asked = Setting(TrialRegistry(tmp_path / "trials.jsonl"))
    first = evaluate_forward(BARS, ARMS, plan(release="1.0", who="ada"), asked)
    other = copy(BARS)
    with pytest.raises(ConfigError, match=r"opened for this release before.*ada"):
        evaluate_forward(other, ARMS, plan(release="1.0"), asked)
    later = evaluate_forward(other, ARMS, plan(), asked)
    assert later.lockbox["openings"] == 1
    assert later.agents[0].standing.trials == 2 * first.agents[0].standing.trials
