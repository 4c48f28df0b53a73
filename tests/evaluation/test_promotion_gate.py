import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.promotion import (
    Evidence,
    Figures,
    Integrity,
    Limits,
    Look,
    Pair,
    PromotionPolicy,
    Verdict,
    alpha_of,
    chance_of_improvement,
    judge_promotion,
    pairs_needed,
    skew_corrected_p,
)
from agent_gym.evaluation.statistics import sign_flip

FACTS = (
    "artifact_hash_ok",
    "policy_loads",
    "replay_equal",
    "snapshots_hash_ok",
    "data_manifest_ok",
)
GOOD = Integrity(**dict.fromkeys(FACTS, True))
WELL = Figures(
    max_drawdown=0.1, ruined=0, invalid_rate=0.0, latency_ms=2.0, entropy=0.4, kl_to_champion=0.2
)


def noise(n, sd=0.02, seed=0):
    drawn = Seeds(seed).child("noise").rng().normal(0.0, 1.0, n)
    return sd * (drawn - drawn.mean()) / drawn.std(ddof=1)


def evidence(gains, slices=2, integrity=GOOD, figures=WELL):
    pairs = tuple(
        Pair(
            snapshot_id=f"s{i}",
            slice=f"slice-{i % slices}",
            champion=0.1 * i,
            challenger=0.1 * i + g,
        )
        for i, g in enumerate(np.asarray(gains).tolist())
    )
    return Evidence(
        champion="old",
        challenger="new",
        sealed_set="sealed",
        pairs=pairs,
        integrity=integrity,
        figures=figures,
    )


def look(number=1):
    return Look(sealed_set="sealed", candidate="new", number=number, alpha=alpha_of(number))


def judge(gains, number=1, policy=None, **given):
    return judge_promotion(evidence(gains, **given), look(number), policy)


def test_a_better_challenger_is_promoted_and_every_check_has_words():
    verdict = judge(0.015 + noise(20))
    assert verdict.promoted
    assert verdict.failed == ()
    assert verdict.sentence.startswith(
        "promoted: yes, the challenger earns +0.015 an episode on 20"
    )
    names = [check.name for check in verdict.checks]
    assert names[0] == "integrity"
    assert names[-2:] == ["superiority", "non_inferiority"]
    assert set(names[1:-2]) == {
        "max_drawdown", "ruined", "invalid_rate", "latency_ms", "kl_to_champion", "entropy",
    }  # fmt: skip
    assert all(check.words for check in verdict.checks)


def test_an_equal_or_worse_challenger_stays_out_with_the_reason_in_numbers():
    for mean in (0.0, -0.01):
        verdict = judge(mean + noise(20))
        assert not verdict.promoted
        assert verdict.sentence.startswith("promoted: no, because superiority: ")
        assert "is above 0.0304 (look 1)" in verdict.sentence
    assert not judge(np.zeros(20)).promoted


def test_the_test_is_the_exact_sign_flip_with_a_guard_against_skew():
    gains = 0.01 + noise(20)
    figures = judge(gains).check("superiority").figures
    assert figures["p_sign_flip"] == sign_flip(gains, "greater")
    assert figures["p"] == max(figures["p_sign_flip"], figures["p_skew_corrected"])
    assert figures["iqm_low"] <= figures["iqm"] <= figures["iqm_high"]
    assert figures["improvement_low"] <= figures["improvement"] <= figures["improvement_high"]
    assert (figures["pairs"], figures["sd"]) == (20, pytest.approx(0.02))


def test_rare_big_losses_do_not_pass_where_the_sign_flip_alone_would_let_them():
    """Nineteen small gains and a loss that eats them: the mean is hardly above zero."""
    drawn = Seeds(5).child("skew").rng().exponential(1.0, (400, 20))
    rows = 1.0 - drawn  # mean 0, skewed to the left
    flip = np.array([sign_flip(row, "greater") for row in rows])
    guarded = np.array([max(p, skew_corrected_p(row)) for p, row in zip(flip, rows, strict=True)])
    assert np.mean(flip <= 0.05) > 0.08  # what it is there for
    assert np.mean(guarded <= 0.05) < np.mean(flip <= 0.05) - 0.03


def test_the_guard_is_student_where_there_is_no_skew():
    row = np.array([-1.0, 1.0, 3.0, 5.0, 7.0]) - 2.0
    assert skew_corrected_p(row) == pytest.approx(
        stats.ttest_1samp(row, 0, alternative="greater").pvalue
    )
    assert skew_corrected_p(np.full(5, 0.25)) == 0.0
    assert skew_corrected_p(np.full(5, -0.25)) == 1.0
    assert skew_corrected_p(np.zeros(5)) == 1.0


def test_alpha_is_spent_over_candidates():
    gains = 0.0092 + noise(20)
    p = judge(gains).check("superiority").figures["p"]
    assert alpha_of(2) < p <= alpha_of(1)
    assert judge(gains, number=1).promoted
    later = judge(gains, number=2)
    assert not later.promoted
    assert "is above 0.0076 (look 2)" in later.sentence
    assert sum(alpha_of(k) for k in range(1, 5_000)) < 0.05
    with pytest.raises(ValueError, match="from 1"):
        alpha_of(0)


def test_too_few_pairs_are_no_evidence_however_good():
    verdict = judge(np.full(19, 0.5))
    assert "superiority: 19 sealed pairs are fewer than the 20 asked for" in verdict.sentence
    assert judge(np.full(20, 0.5)).promoted


@pytest.mark.parametrize("fact", FACTS)
def test_a_false_fact_ends_the_matter(fact):
    facts = GOOD.model_copy(update={fact: False, "notes": "seen twice"})
    verdict = judge(0.05 + noise(20), integrity=facts)
    assert not verdict.promoted
    assert [check.name for check in verdict.failed] == ["integrity"]
    assert "(seen twice)" in verdict.sentence


@pytest.mark.parametrize(
    ("figure", "bad", "words"),
    [
        ("max_drawdown", 0.36, "max_drawdown: 0.36 of equity; the most allowed is 0.35"),
        ("ruined", 1, "ruined: 1 episodes; the most allowed is 0"),
        ("invalid_rate", 0.02, "invalid_rate: 0.02 of actions; the most allowed is 0.01"),
        ("latency_ms", 1_001.0, "latency_ms: 1001 ms (p99); the most allowed is 1000"),
        ("entropy", 0.001, "entropy: 0.001 nats; the least allowed is 0.01"),
        ("kl_to_champion", 5.5, "kl_to_champion: 5.5 nats; the most allowed is 5"),
    ],
)
def test_every_absolute_limit_stops_a_winner(figure, bad, words):
    verdict = judge(0.05 + noise(20), figures=WELL.model_copy(update={figure: bad}))
    assert [check.name for check in verdict.failed] == [figure]
    assert words in verdict.sentence
    unknown = judge(0.05 + noise(20), figures=WELL.model_copy(update={figure: None}))
    assert f"{figure}: was not measured" in unknown.sentence
    limit = {"ruined": "max_ruined", "invalid_rate": "max_invalid_rate", "entropy": "min_entropy"}
    limit |= {"latency_ms": "max_latency_ms", "kl_to_champion": "max_kl"}
    free = PromotionPolicy(limits=Limits(**{limit.get(figure, figure): None}))
    asked = judge(0.05 + noise(20), policy=free, figures=WELL.model_copy(update={figure: bad}))
    assert asked.promoted


def test_one_slice_cannot_pay_for_the_others():
    gains = np.where(np.arange(40) % 5 == 3, -0.02, 0.05) + noise(40, sd=0.004)
    verdict = judge(gains, slices=5)
    assert [check.name for check in verdict.failed] == ["non_inferiority"]
    assert "worse by more than 0.001 an episode in slice-3 -0.0" in verdict.sentence
    assert "Holm over 5 slices" in verdict.sentence
    assert verdict.check("superiority").passed
    wide = PromotionPolicy(slice_margin=0.05)
    assert judge(gains, slices=5, policy=wide).promoted


def test_a_slice_in_which_harm_could_not_be_seen_is_no_slice_without_harm():
    assert [pairs_needed(m) for m in (1, 2, 3, 5, 10)] == [5, 6, 6, 7, 8]
    for slices in range(1, 12):
        n = pairs_needed(slices)
        assert 2.0**-n * slices <= 0.05 < 2.0 ** -(n - 1) * slices
    verdict = judge(0.05 + noise(20), slices=5)
    assert "fewer than 7 pairs in each of 5 slices: slice-0 has 4" in verdict.sentence


def test_slices_can_be_asked_to_prove_that_they_are_no_worse():
    asked = PromotionPolicy(slice_rule="shown", slice_margin=0.005)
    assert judge(0.02 + noise(40, sd=0.01), slices=2, policy=asked).promoted
    gains = np.where(np.arange(40) % 2 == 0, -0.003, 0.05) + noise(40, sd=0.02)
    verdict = judge(gains, slices=2, policy=asked)
    assert "not shown to lose no more than 0.005" in verdict.sentence
    assert judge(gains, slices=2).promoted  # but no harm is shown either
    with pytest.raises(ValidationError, match="margin above 0"):
        PromotionPolicy(slice_rule="shown", slice_margin=0.0)


def test_a_look_belongs_to_its_candidate_and_set():
    other = Look(sealed_set="sealed", candidate="another", number=1, alpha=alpha_of(1))
    with pytest.raises(DataError, match="another candidate"):
        judge_promotion(evidence(noise(20)), other)
    other = Look(sealed_set="another", candidate="new", number=1, alpha=alpha_of(1))
    with pytest.raises(DataError, match="another sealed set"):
        judge_promotion(evidence(noise(20)), other)


def test_evidence_that_makes_no_sense_is_refused():
    one = Pair(snapshot_id="s", slice="bull", champion=0.0, challenger=1.0)
    given = {"sealed_set": "x", "integrity": GOOD, "figures": WELL}
    with pytest.raises(ValidationError, match="found twice: s"):
        Evidence(champion="old", challenger="new", pairs=(one, one), **given)
    with pytest.raises(ValidationError, match="its own challenger"):
        Evidence(champion="old", challenger="old", pairs=(one,), **given)
    for bad in (math.nan, math.inf):
        with pytest.raises(ValidationError):
            Pair(snapshot_id="s", slice="bull", champion=0.0, challenger=bad)
    assert not judge(np.empty(0)).promoted


def test_a_verdict_can_be_written_and_not_forged():
    for mean in (0.02, -0.02):
        verdict = judge(mean + noise(20))
        assert Verdict.from_dict(verdict.as_dict()) == verdict
    forged = verdict.as_dict() | {"promoted": True}
    with pytest.raises(DataError, match="contradicts its own checks"):
        Verdict.from_dict(forged)
    short = verdict.as_dict()
    short["checks"] = [check for check in short["checks"] if check["passed"]]
    with pytest.raises(DataError, match="no verdict"):
        Verdict.from_dict(short)
    with pytest.raises(DataError, match="no such check"):
        verdict.check("luck")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(-0.02, 0.02), st.floats(0.001, 1_000.0))
def test_the_verdict_knows_no_order_and_no_unit(seed, mean, scale):
    gains = mean + noise(20, seed=seed)
    free = PromotionPolicy(slice_margin=0.0)
    here, there = judge(gains, policy=free), judge(scale * gains, policy=free)
    assert here.promoted == there.promoted
    turned = judge(gains[::-1], policy=free)
    told = [one.check("superiority").figures["p"] for one in (turned, here)]
    assert told[0] == pytest.approx(told[1], rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 0.02))
def test_earning_more_everywhere_never_loses_a_promotion(seed, more):
    gains = 0.008 + noise(20, seed=seed)
    if judge(gains).promoted:
        assert judge(gains + more).promoted


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=40))
def test_the_chance_of_improvement_holds_its_estimate(signs):
    found = chance_of_improvement(np.array(signs), 0.95)
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0
    mirrored = chance_of_improvement(-np.array(signs), 0.95)
    assert mirrored.estimate == pytest.approx(1.0 - found.estimate)
    assert mirrored.low == pytest.approx(1.0 - found.high)
