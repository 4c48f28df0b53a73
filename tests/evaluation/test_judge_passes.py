"""Passes: other orders, other labels, the mean; nothing depends on how a group is given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_samples import (
    Scripted,
    answer_of,
    by_place,
    candidate,
    constant,
    group_of,
    oracle,
    records_in,
)
from pydantic import ValidationError

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.judge import (
    AnswerCache,
    CandidateGroup,
    JudgeConfig,
    RelativeJudge,
    Rubric,
    TruthBackend,
)
from agent_gym.evaluation.judge.agreement import rank_correlation


def judged(backend, group, **config):
    return RelativeJudge(backend, JudgeConfig(**config)).judge(group)


def test_a_judge_that_knows_gives_what_it_knows():
    group, truth = group_of([3, 9, 0, 10])
    found = judged(oracle(), group)
    assert found.scores == pytest.approx({name: value / 10 for name, value in truth.items()})
    assert found.ranks() == {"id-0": 3, "id-1": 2, "id-2": 4, "id-3": 1}
    assert all(0 <= score <= 1 for score in found.scores.values())


@settings(max_examples=15)
@given(st.permutations(range(5)))
def test_the_order_in_which_a_group_is_given_changes_nothing(order):
    group, _ = group_of([3, 9, 0, 7, 5])
    mixed = CandidateGroup(group_id="g", candidates=tuple(group.candidates[i] for i in order))
    first, second = oracle(noise=0.1), oracle(noise=0.1)
    assert judged(first, group).scores == judged(second, mixed).scores
    assert [one.messages for one in first.asked] == [one.messages for one in second.asked]


def test_every_pass_has_another_order_and_other_labels():
    backend = constant()
    group, _ = group_of(range(6))
    judged(backend, group, passes=6)
    shown = [list(records_in(one).values()) for one in backend.asked]
    assert [one[::-1] for one in shown[::2]] == shown[1::2]  # pairs: an order and its reverse
    assert len({tuple(one) for one in shown}) == 6
    labels = [label for one in backend.asked for label in one.labels]
    assert len(set(labels)) == len(labels)


def test_other_seeds_draw_other_orders_and_the_same_seed_the_same():
    group, _ = group_of(range(8))

    def asked(seed):
        backend = constant()
        judged(backend, group, passes=2, seed=seed)
        return [one.messages for one in backend.asked]

    assert asked(0) == asked(0)
    assert asked(0) != asked(1)


def test_a_liking_for_places_falls_out_of_a_pair_of_passes():
    group, truth = group_of([3, 5, 4, 6, 2])
    biased = oracle(bias=0.3)
    one = judged(biased, group, passes=1).scores
    two = judged(biased, group, passes=2).scores
    assert one != pytest.approx({name: value / 10 + 0.15 for name, value in truth.items()})
    assert two == pytest.approx({name: value / 10 + 0.15 for name, value in truth.items()})
    # Who looks at nothing but places says nothing after a pair.
    blind = judged(by_place(), group, passes=2).scores
    assert blind == pytest.approx(dict.fromkeys(truth, 0.8))


def test_more_passes_rank_better():
    rng = Seeds(7).child("qualities").rng()

    def tau(passes):
        found = []
        for number in range(40):
            qualities = rng_rows[number]
            group, truth = group_of(qualities, group_id=f"g{number}")
            scores = judged(oracle(noise=0.1, bias=0.6, top=160.0), group, passes=passes).scores
            found.append(rank_correlation([scores[n] for n in truth], list(truth.values())))
        return np.mean(found)

    rng_rows = [rng.choice(64, 8, replace=False) for _ in range(40)]
    one, two, four, eight = (tau(n) for n in (1, 2, 4, 8))
    assert one < two - 0.1
    assert two < four < eight


def test_identical_records_are_shown_once_and_share_their_score():
    made = [candidate("a", "x"), candidate("b", "y"), candidate("c", "x"), candidate("d", "x")]
    backend = Scripted(
        lambda request: answer_of(
            {name: 0.9 if "x" in text else 0.2 for name, text in records_in(request).items()}
        )
    )
    found = judged(backend, CandidateGroup(group_id="g", candidates=tuple(made)), passes=2)
    assert [len(one.labels) for one in backend.asked] == [2, 2]
    assert found.scores == pytest.approx({"a": 0.9, "b": 0.2, "c": 0.9, "d": 0.9})
    assert len(found.representatives) == 2


def test_a_group_of_equals_is_one_record_and_one_score():
    made = tuple(candidate(name, "x", "y") for name in "abc")
    backend = constant(0.4)
    found = judged(backend, CandidateGroup(group_id="g", candidates=made), passes=1)
    assert len(backend.asked) == 1
    assert list(records_in(backend.asked[0]).values()) == ["|> did: x\n|> did: y"]
    assert found.scores == dict.fromkeys("abc", 0.4)
    assert set(found.normalized().values()) == {None}


@pytest.mark.parametrize("n", [9, 10, 16, 17, 30])
def test_a_large_group_is_dealt_out_and_nobody_is_alone(n):
    backend = oracle(top=40.0)
    group, truth = group_of(range(n))
    found = judged(backend, group, passes=2, max_shown=8)
    assert found.scores == pytest.approx({name: value / 40 for name, value in truth.items()})
    sizes = [len(one.labels) for one in backend.asked]
    assert sum(sizes) == 2 * n
    assert 2 <= min(sizes) <= max(sizes) <= 8


def test_all_of_a_pass_fails_if_a_part_of_it_fails():
    def say(request):
        if any("quality 3" in text for text in records_in(request).values()):
            return "no {"
        return answer_of(dict.fromkeys(records_in(request), 0.5))

    group, _ = group_of(range(9))
    found = judged(Scripted(say), group, passes=2, max_shown=5)
    assert not found.judged
    assert [one.scores for one in found.passes] == [{}, {}]


def test_workers_change_no_score():
    group, _ = group_of(range(8))
    config = JudgeConfig(passes=8)
    alone = RelativeJudge(oracle(noise=0.2), config).judge(group)
    many = RelativeJudge(oracle(noise=0.2), config, workers=4).judge(group)
    assert alone == many


def test_the_version_is_that_of_everything_that_decides():
    group, _ = group_of([1, 2])
    versions = {
        RelativeJudge(constant(), config).version
        for config in (
            JudgeConfig(),
            JudgeConfig(passes=5),
            JudgeConfig(seed=1),
            JudgeConfig(max_shown=4),
            JudgeConfig(rubric=Rubric(name="decisions", text="another")),
            JudgeConfig.model_validate({"record": {"hindsight": True}}),
        )
    }
    other = constant()
    other.version = "2"
    assert len(versions | {RelativeJudge(other).version}) == 7
    assert judged(constant(), group) == judged(constant(), group)


def test_normalized_scores_are_deviations_from_the_group():
    group, _ = group_of([0, 5, 10])
    found = judged(oracle(), group).normalized()
    assert list(found.values()) == pytest.approx([-1.2247449, 0.0, 1.2247449])


def test_what_is_no_group_is_refused():
    with pytest.raises(ValidationError):
        CandidateGroup(group_id="g", candidates=())
    with pytest.raises(ValidationError, match="one id"):
        CandidateGroup(group_id="g", candidates=(candidate("a", "x"), candidate("a", "y")))
    with pytest.raises(ConfigError, match="at a time"):
        RelativeJudge(constant(), workers=0)


# The judge that knows.


def test_the_truth_goes_from_worst_to_best_of_the_whole_group():
    group, truth = group_of([2, 4, 12, 7, 3, 2, 9, 5, 6, 8])
    found = judged(TruthBackend({"g": truth}), group, max_shown=3)  # parts see the same scale
    assert found.scores == pytest.approx(
        {name: (value - 2) / 10 for name, value in truth.items()}, abs=1e-12
    )


def test_equal_outcomes_are_all_in_the_middle():
    group, truth = group_of([1, 2, 3])
    found = judged(TruthBackend({"g": dict.fromkeys(truth, 0.1)}), group)
    assert set(found.scores.values()) == {0.5}


def test_what_the_truth_does_not_know_ends_the_run():
    group, truth = group_of([1, 2, 3])
    with pytest.raises(DataError, match="nothing is known of a group"):
        judged(TruthBackend({}), group)
    del truth["id-1"]
    with pytest.raises(DataError, match="nothing is known of a trajectory"):
        judged(TruthBackend({"g": truth}), group)


def test_the_truth_is_hindsight_and_is_not_cached(tmp_path):
    backend = TruthBackend({})
    assert RelativeJudge(backend).knows_outcomes
    assert not RelativeJudge(constant()).knows_outcomes
    with pytest.raises(ConfigError, match="not kept"):
        RelativeJudge(backend, cache=AnswerCache(tmp_path))
