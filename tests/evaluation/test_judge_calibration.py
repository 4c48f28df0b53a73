"""Calibration tells good judges from bad ones: dice, places, noise, and the truth."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_samples import Scripted, answer_of, by_dice, by_place, constant, group_of, oracle, reader

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.judge import (
    JudgeConfig,
    RecordConfig,
    Refused,
    RelativeJudge,
    TruthBackend,
    calibrate,
)
from agent_gym.evaluation.judge.agreement import (
    flip_rate,
    pairwise_accuracy,
    rank_correlation,
    tie_share,
)
from agent_gym.evaluation.judge.practice import practice_groups


def groups(n=30, size=6):
    rng = Seeds(11).child("qualities").rng()
    made = [
        group_of(rng.choice(100, size, replace=False), group_id=f"g{number}") for number in range(n)
    ]
    return [group for group, _ in made], {group.group_id: truth for group, truth in made}


def found_of(backend, n=30, **config):
    shown, truth = groups(n)
    return calibrate(RelativeJudge(backend, JudgeConfig(**config)), shown, truth)


def test_a_judge_that_knows_agrees_and_never_flips():
    found = found_of(oracle(top=100.0))
    assert found.figures["pairwise_accuracy"].estimate == 1.0
    assert found.figures["kendall_tau"].estimate == pytest.approx(1.0)
    assert found.figures["stability_tau"].estimate == pytest.approx(1.0)
    for name in ("order_flip_rate", "repeat_flip_rate", "score_spread", "tie_share"):
        assert found.figures[name].estimate == pytest.approx(0.0)
    assert found.sentence.startswith("better than chance: 100.0%")


def test_the_truth_itself_comes_out_at_one_hundred_per_cent():
    shown, truth = groups(4)
    found = calibrate(RelativeJudge(TruthBackend(truth)), shown, truth)
    assert found.figures["pairwise_accuracy"].estimate == 1.0
    assert found.hindsight


def test_dice_agree_with_half_of_all_pairs():
    found = found_of(by_dice(), n=60)
    accuracy = found.figures["pairwise_accuracy"]
    assert accuracy.low < 0.5 < accuracy.high
    assert accuracy.estimate == pytest.approx(0.5, abs=0.06)
    assert found.figures["kendall_tau"].estimate == pytest.approx(0.0, abs=0.12)
    assert found.figures["order_flip_rate"].estimate == pytest.approx(0.5, abs=0.06)
    assert found.figures["repeat_flip_rate"].estimate == pytest.approx(0.5, abs=0.08)
    assert found.sentence.startswith("not shown to be better than chance")


def test_a_liking_for_places_shows_as_flips_that_asking_again_does_not():
    found = found_of(by_place())
    assert found.figures["order_flip_rate"].estimate == 1.0
    assert found.figures["repeat_flip_rate"].estimate == 0.0
    assert found.figures["tie_share"].estimate == 1.0  # the pair of passes cancels out
    assert found.figures["pairwise_accuracy"].estimate == 0.5
    assert found.figures["kendall_tau"] is None


def test_half_a_liking_for_places_flips_some_pairs_and_passes_mend_it():
    found = found_of(oracle(bias=0.4, top=200.0))
    assert 0.2 < found.figures["order_flip_rate"].estimate < 0.9
    assert found.figures["repeat_flip_rate"].estimate == 0.0
    single = found.figures["single_pass_accuracy"].estimate
    assert found.figures["pairwise_accuracy"].estimate == 1.0 > single


def test_noise_flips_as_often_when_asked_again_as_in_reverse():
    found = found_of(oracle(noise=0.2, top=100.0))
    order = found.figures["order_flip_rate"].estimate
    repeat = found.figures["repeat_flip_rate"].estimate
    assert order == pytest.approx(repeat, abs=0.06)
    assert order > 0.05
    assert found.figures["score_spread"].estimate > 0.1
    better = found.figures["pairwise_accuracy"].estimate
    assert better > found.figures["single_pass_accuracy"].estimate > 0.6


def test_a_judge_who_always_says_the_same_ties_everything():
    found = found_of(constant())
    assert found.figures["tie_share"].estimate == 1.0
    assert found.figures["pairwise_accuracy"].estimate == 0.5
    assert found.figures["kendall_tau"] is None
    assert found.figures["order_flip_rate"].estimate == 0.0


def test_a_judge_that_is_upside_down_is_worse_than_chance():
    def say(request):
        said = json.loads(oracle(top=100.0).say(request))["scores"]
        return answer_of({one["id"]: 1 - one["score"] for one in said})

    found = found_of(Scripted(say))
    assert found.figures["pairwise_accuracy"].estimate == 0.0
    assert found.sentence.startswith("worse than chance")


def test_refusals_and_nonsense_are_counted_and_cost_their_groups():
    shown, truth = groups(6)

    def say(request):
        number = int(request.group_id[1:])
        if number == 0:
            raise Refused("no")
        if number == 1:
            return "{"
        if number == 2 and len(request.messages) == 2:
            return "{"
        return oracle(top=100.0).say(request)

    found = calibrate(RelativeJudge(Scripted(say), JudgeConfig(passes=2)), shown, truth)
    assert set(found.failed) == {"g0", "g1"}
    assert found.counts == {
        "records": 36,
        "passes": 18,
        "failed_passes": 6,
        "requests": 3 * 1 + 3 * 2 + 3 * 2 + 3 * 3 * 1,
        "repaired": 3,
        "cached": 0,
        "refused": 3,
        "malformed": 3,
        "timeout": 0,
        "unavailable": 0,
    }
    assert found.figures["pairwise_accuracy"].estimate == 1.0
    json.dumps(found.as_dict(), allow_nan=False)


def test_a_judge_that_never_answers_leaves_nothing_to_say():
    def say(request):
        raise Refused("no")

    found = found_of(Scripted(say), n=3)
    assert len(found.failed) == 3
    assert set(found.figures.values()) == {None}
    assert found.sentence.startswith("too few groups")
    json.dumps(found.as_dict(), allow_nan=False)


def test_what_cannot_be_calibrated_is_refused():
    shown, truth = groups(3)
    with pytest.raises(ConfigError, match="no other order"):
        calibrate(RelativeJudge(constant(), JudgeConfig(passes=1)), shown, truth)
    with pytest.raises(ConfigError, match="too few groups"):
        calibrate(RelativeJudge(constant()), shown[:1], truth)
    with pytest.raises(DataError, match="is not known"):
        calibrate(RelativeJudge(constant()), shown, {"g0": truth["g0"]})


def test_copies_do_not_count_as_ties():
    group, truth = group_of([1, 5, 5, 9])  # two records read the same
    shown, more = groups(1)
    found = calibrate(RelativeJudge(oracle(top=100.0)), [group, *shown], {"g": truth} | more)
    assert found.figures["tie_share"].estimate == 0.0
    assert found.counts["records"] == 3 + 6


def test_records_without_hindsight_hold_enough_to_judge_by():
    made = list(practice_groups(10, 3, RecordConfig()))
    truth = {one.group.group_id: one.returns for one in made}
    shown = [one.group for one in made]
    config = JudgeConfig(passes=2)
    found = calibrate(RelativeJudge(reader(), config), shown, truth)
    assert found.figures["pairwise_accuracy"].low > 0.6
    assert not found.hindsight
    dice = calibrate(RelativeJudge(by_dice(), config), shown, truth)
    assert dice.figures["pairwise_accuracy"].high < found.figures["pairwise_accuracy"].low


# The figures themselves.

SCORES = st.lists(st.integers(0, 9).map(float), min_size=2, max_size=8)


@given(SCORES, st.data())
def test_laws_of_the_figures(first, data):
    second = data.draw(
        st.lists(st.integers(0, 9).map(float), min_size=len(first), max_size=len(first))
    )
    flips = flip_rate(first, second)
    assert flips == flip_rate(second, first)
    assert flip_rate(first, first) == 0.0
    mirrored = [-value for value in second]
    assert flips + flip_rate(first, mirrored) <= 1.0 + 1e-12
    accuracy, turned = pairwise_accuracy(first, second), pairwise_accuracy(first, mirrored)
    if accuracy is None:
        assert len(set(second)) == 1
    else:
        assert accuracy + turned == pytest.approx(1.0)
    tau = rank_correlation(first, second)
    if tau is not None:
        assert tau == pytest.approx(-rank_correlation(first, mirrored))
    if len(set(second)) == len(second) and len(set(first)) == len(first):
        assert tau == pytest.approx(2 * accuracy - 1)
    assert tie_share(first) == 1.0 if len(set(first)) == 1 else tie_share(first) < 1.0
