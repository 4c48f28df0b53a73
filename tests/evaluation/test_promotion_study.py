import pytest

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.promotion import MonitorPolicy, PromotionPolicy
from agent_gym.evaluation.promotion import power as study
from agent_gym.evaluation.promotion.picture import promotion_svg
from agent_gym.evaluation.promotion.study import (
    Arm,
    ask_families,
    ask_gate,
    ask_monitor,
    noise,
    peeking_z,
    share_of_best,
)

ROUGH = PromotionPolicy(reps=10)


@pytest.mark.parametrize("shape", ["normal", "t3", "zeros80", "left_skew", "right_skew"])
def test_a_challenger_that_is_no_better_is_seldom_promoted(shape):
    tally = ask_gate(Arm(shape), Seeds(1), 150, ROUGH)
    assert tally.promoted <= 15  # 5 % are 7.5; 15 would be one in a hundred


def test_a_challenger_that_is_better_usually_is():
    assert ask_gate(Arm("normal", 1.0), Seeds(2), 40, ROUGH).promoted >= 34
    assert ask_gate(Arm("normal", 0.5), Seeds(3), 60, ROUGH).promoted >= 24


def test_spending_alpha_is_what_keeps_many_candidates_honest():
    spent, unspent = ask_families("normal", Seeds(4), 25, 10, ROUGH)
    assert spent <= 4
    assert unspent >= spent + 3


def test_the_watch_seldom_ends_a_good_rollout_and_soon_a_bad_one():
    quiet = ask_monitor(Arm("normal", 0.0, 200), Seeds(5), 60, MonitorPolicy())
    assert sum(end is not None for end in quiet) <= 3
    harm = ask_monitor(Arm("normal", -0.6, 200), Seeds(6), 41, MonitorPolicy())
    assert None not in harm
    assert sorted(harm)[20] <= 48


def test_bad_rules_are_seen_to_be_bad():
    assert peeking_z(Seeds(7), 400, 200) >= 80  # every fifth good rollout ended
    equal = share_of_best(Seeds(8), 1_000, 0.0, 0.1)
    worse = share_of_best(Seeds(9), 1_000, 0.1, 0.1)
    assert equal <= 750
    assert worse >= 250  # a tenth worse, and deployed every fourth time


def test_noise_has_mean_0_and_sd_1():
    for shape in ("normal", "left_skew", "left_lognormal"):
        drawn = noise(shape, Seeds(10), 200_000)
        assert abs(drawn.mean()) < 0.02
        assert abs(drawn.std() - 1.0) < 0.1


@pytest.fixture(scope="module")
def tiny():
    return study.promotion_study(4, seed=3)


def test_the_study_is_the_same_for_any_number_of_workers(tiny):
    assert study._answer(4, 3, ("false promotion", "t3")) == tiny["false_promotion"]["t3"]
    some = [("controls",), ("false promotion", "normal"), ("harm", "t3", "-0.6")]
    assert list(study._asked(some, 4, 3, 2)) == [study._answer(4, 3, one) for one in some]


def test_every_figure_has_bounds(tiny):
    def shares(value):
        if isinstance(value, dict):
            if "hits" in value:
                yield value
            for part in value.values():
                yield from shares(part)
        elif isinstance(value, list):
            for part in value:
                yield from shares(part)

    found = list(shares(tiny))
    assert len(found) > 40
    assert all(0.0 <= one["low"] <= one["share"] <= one["high"] <= 1.0 for one in found)
    assert isinstance(tiny["meets_target"], bool)


def test_the_picture_is_the_same_for_the_same_study(tiny):
    picture = promotion_svg(tiny)
    assert picture == promotion_svg(tiny)
    assert picture.startswith("<?xml")


def test_a_missed_target_is_told(tiny):
    good = {"share": 0.0}
    document = tiny | {
        "families": {"normal": {"alpha_spent": good}},
        "false_promotion": {s: {"first_candidate": good} for s in tiny["rollback"]["shapes"]},
        "power": {"shapes": {"normal": {"share": 0.71}}},
        "rollback": {
            "shapes": {
                shape: {"false_rollback": good, "harm": {"-0.6": {"median_episodes": 40}}}
                for shape in tiny["rollback"]["shapes"]
            }
        },
    }
    assert study._meets(document)
    for part, value in (
        ("families", {"normal": {"alpha_spent": {"share": 0.051}}}),
        ("power", {"shapes": {"normal": {"share": 0.69}}}),
    ):
        assert not study._meets(document | {part: value})


def test_a_study_needs_runs():
    with pytest.raises(ConfigError):
        study.promotion_study(0)
