from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_gym.core.seeds import Seeds
from agent_gym.markets.snapshot.config import SCENARIOS, Burst, SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.markets.snapshot.law import BANDS, NewsLaw, band_of, limits_of, read_post
from agent_gym.markets.snapshot.reaction import at_once, evidence_of
from agent_gym.markets.snapshot.wording import write

SMALL = {"duration_minutes": 600, "prediction_markets": 2, "perpetual_markets": 1, "agents": 4}


def make(seed: int = 0, **fields: object):
    return BenchmarkDataGenerator(SnapshotConfig(**(SMALL | fields))).generate(seed)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_equal_seeds_make_equal_snapshots_and_zero_is_a_seed(scenario):
    assert make(0, scenario=scenario).snapshot.id == make(0, scenario=scenario).snapshot.id
    ids = {make(seed, scenario=scenario).snapshot.id for seed in (0, 1, 2)}
    assert len(ids) == 3


def test_nothing_comes_from_the_clock_or_the_process():
    code = (
        "from agent_gym.markets.snapshot.generator import *\n"
        f"print(BenchmarkDataGenerator(SnapshotConfig(**{SMALL!r})).generate(0).snapshot.id)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert told.stdout.strip() == make(0).snapshot.id


def test_the_state_before_the_first_tick_is_that_of_the_start():
    for scenario in SCENARIOS:
        snapshot = make(3, scenario=scenario).snapshot
        firsts = [one.initial_price for one in snapshot.perpetuals]
        np.testing.assert_allclose(snapshot.closes[0], firsts, rtol=1e-9)
        assert not snapshot.columns.noise[0].any()
        assert not snapshot.columns.informed[0].any()
        assert snapshot.posts_at[0] == ()


OTHERS = {
    "scenario": "quiet",
    "duration_minutes": 630,
    "tick_interval_s": 600,
    "start_ns": 5_000_000_000,
    "prediction_markets": 3,
    "perpetual_markets": 2,
    "agents": 5,
    "posts_per_market": 9.0,
    "breaking_share": 0.5,
    "rumour_share": 0.6,
    "misleading_share": 0.9,
    "report": NewsLaw(delta=1.3),
    "breaking": NewsLaw(delta=1.1),
    "rumour": NewsLaw(jump=0.04),
    "sentiment_noise": 0.9,
    "at_once": 0.6,
    "half_life_ticks": 3.0,
    "flow_noise": 0.2,
    "volatility": 0.01,
    "liquidity": 9_000.0,
    "funding_base_bps": 5.0,
    "wordings": "other",
    "bursts": (Burst(at=0.3),),
}


def test_every_field_of_the_config_changes_the_snapshot():
    assert set(OTHERS) == set(SnapshotConfig.model_fields)
    base = make(1).snapshot
    for name, value in OTHERS.items():
        changed = make(1, **{name: value}).snapshot
        assert changed.id != base.id, name


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"duration_minutes": 7, "tick_interval_s": 900}, "whole number of ticks"),
        ({"duration_minutes": 30, "tick_interval_s": 900}, "20 to"),
        ({"breaking_share": 0.7, "rumour_share": 0.7}, "more than 1"),
        ({"scenario": "sideways"}, "scenario"),
        ({"tik": 3}, "tik"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(fields, words):
    with pytest.raises(ValidationError, match=words):
        SnapshotConfig(**fields)


laws = st.builds(
    NewsLaw, delta=st.floats(0.3, 2.0), noise_share=st.floats(0.0, 0.8), up_share=st.just(0.5)
)


@given(laws, st.floats(0.05, 0.95), st.integers(0, 2**31))
@settings(max_examples=20)
def test_evidence_is_consistent(law, reliability, seed):
    """Under NO, the likelihood ratio of YES has the mean 1: evidence neither inflates nor hides."""
    rng = Seeds(seed).rng()
    n, blur = 4_000, 0.5
    e = -law.mean + law.delta * rng.standard_normal(n)
    e = np.where(rng.random(n) < reliability, e, -e)
    noise = rng.random(n) < law.noise_share
    e = np.where(noise, law.noise_deviation * rng.standard_normal(n), e)
    x = e + blur * rng.standard_normal(n)
    ratios = np.array(
        [
            math.exp(read_post(law, reliability, band_of(a), b, blur).evidence)
            for a, b in zip(e.tolist(), x.tolist(), strict=True)
        ]
    )
    assert abs(ratios.mean() - 1.0) < 5.0 * ratios.std() / math.sqrt(n) + 0.01


@given(st.floats(-4.0, 4.0))
def test_a_band_holds_its_evidence(evidence):
    low, high = limits_of(band_of(evidence))
    assert low <= evidence < high
    assert band_of(evidence) in BANDS


def test_an_author_who_is_right_half_the_time_says_nothing():
    law = NewsLaw()
    for band, seen in ((3, 2.5), (-2, -1.0), (0, 0.1)):
        assert read_post(law, 0.5, band, seen, 0.5).evidence == pytest.approx(0.0, abs=1e-12)
    liar = read_post(law, 0.1, 3, 2.0, 0.5).evidence
    assert liar < 0.0 < read_post(law, 0.9, 3, 2.0, 0.5).evidence


def test_shares_of_noise_and_of_turned_posts_are_as_stated():
    noise = total = wrong = 0
    expected = 0.0
    for seed in range(40):
        made = make(seed, rumour_share=0.0, breaking_share=0.0)
        by_id = made.snapshot.author_of
        for post, hidden in zip(made.snapshot.posts, made.truth.posts, strict=True):
            assert post.id == hidden.post
            noise += hidden.noise
            total += 1
            if not hidden.noise:
                wrong += hidden.turned
                expected += 1.0 - by_id[post.author].reliability
    share = made.snapshot.config.report.noise_share
    assert abs(noise / total - share) < 4.0 * math.sqrt(share * (1 - share) / total)
    assert abs(wrong - expected) < 4.0 * math.sqrt(expected)


def test_news_tell_the_outcome_and_prices_follow_them():
    """The original drew outcomes apart from everything visible: the price agreed half the time."""
    agree, beliefs, prior = [], [], []
    for seed in range(60):
        made = make(seed, posts_per_market=16.0)
        snapshot = made.snapshot
        for m, market in enumerate(snapshot.predictions):
            start = math.log(market.initial_price / (1.0 - market.initial_price))
            told = sum(
                evidence_of(snapshot.config, snapshot.author_of[post.author], post)
                for post in snapshot.posts
                if post.market == market.id
            )
            flows = snapshot.columns.noise[:, m] + snapshot.columns.informed[:, m]
            price = start + flows.sum() / market.liquidity
            outcome = made.truth.outcomes[market.id]
            agree.append((price > 0.0) == outcome)
            sign = -1.0 if outcome else 1.0
            beliefs.append(math.log1p(math.exp(sign * (start + told))))
            prior.append(math.log1p(math.exp(sign * start)))
    assert np.mean(agree) > 0.7
    assert np.mean(beliefs) < np.mean(prior) - 0.15


def test_long_is_not_a_sure_winner():
    """In the original, prices drifted up so that whoever was long won 99.5 % of the days."""
    rises = [
        make(seed, scenario="quiet").snapshot.closes[-1, 0]
        > make(seed, scenario="quiet").snapshot.closes[0, 0]
        for seed in range(40)
    ]
    assert 0.25 < np.mean(rises) < 0.75


def test_a_perpetual_takes_in_part_of_a_post_at_once_and_the_rest_later():
    early, later = [], []
    for seed in range(40):
        made = make(seed, posts_per_market=3.0, volatility=0.0005, misleading_share=0.0)
        logs = np.log(made.snapshot.closes[:, 0])
        for post, hidden in zip(made.snapshot.posts, made.truth.posts, strict=True):
            if hidden.move == 0.0 or hidden.turned or post.tick + 8 > made.snapshot.ticks:
                continue
            early.append(np.sign(hidden.move) * (logs[post.tick] - logs[post.tick - 1]))
            later.append(np.sign(hidden.move) * (logs[post.tick + 8] - logs[post.tick]))
    assert 0.0 < np.mean(early) < np.mean(later)


def test_headlines_move_prices_by_their_sentiment_alone():
    snapshot = make(2).snapshot
    post = snapshot.posts[0]
    assert math.copysign(1.0, at_once(snapshot.config, post, perpetual=True)) == math.copysign(
        1.0, post.sentiment
    )


def test_words_grow_with_the_band_and_differ_between_books():
    common, other = make(4).snapshot, make(4, wordings="other").snapshot
    said = [
        (write(common, a), write(other, b)) for a, b in zip(common.posts, other.posts, strict=True)
    ]
    assert said
    assert all(a != b for a, b in said)
    strong = {write(common, p) for p in common.posts if abs(p.band) == 3}
    mild = {write(common, p) for p in common.posts if abs(p.band) == 1}
    assert not strong & mild


def test_events_name_what_happens_in_a_tick():
    snapshot = make(0).snapshot
    kinds = {event["type"] for t in range(snapshot.ticks + 1) for event in snapshot.events(t)}
    assert kinds == {"market:trade", "price:updated", "post:created", "market:resolved"}
    resolved = [
        (t, event["marketId"])
        for t in range(snapshot.ticks + 1)
        for event in snapshot.events(t)
        if event["type"] == "market:resolved"
    ]
    assert sorted(resolved) == sorted((one.resolve_tick, one.id) for one in snapshot.predictions)
