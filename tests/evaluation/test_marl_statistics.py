"""Teams over seeds: areas and times by hand, ratios with open ends, verdicts, differences."""

import math

import numpy as np
import pytest

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.marl import compare_arms, compare_teams, horizon, run_of, verdict
from agent_gym.evaluation.statistics import kaplan_meier, time_ratio
from agent_gym.evaluation.statistics.time_ratios import TimeRatio
from tests.evaluation.team_samples import BUDGET, arm_of, team


def ratio(low, high, pairs=20):
    return TimeRatio(1.0, 1.0, 1.0, low, high, 0.95, pairs, 0, 0)


# Weeks of remission (Freireich et al. 1963): the placebo side has no censoring.
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]


def test_the_restricted_mean_is_the_mean_of_times_that_end_at_the_limit():
    curve = kaplan_meier(PLACEBO, [True] * len(PLACEBO))
    assert curve.restricted_mean(23.0) == pytest.approx(np.mean(PLACEBO))
    assert curve.restricted_mean(10.0) == pytest.approx(np.mean(np.minimum(PLACEBO, 10)))
    assert curve.restricted_mean(0.0) == 0.0
    with pytest.raises(DataError, match="at least 0"):
        curve.restricted_mean(-1.0)


def test_the_restricted_mean_by_hand_with_censoring():
    # 3/4 are left after 1; of the two that are still watched at 3 one goes: 3/8.
    curve = kaplan_meier([1.0, 2.0, 3.0, 4.0], [True, False, True, False])
    assert curve.restricted_mean(4.0) == pytest.approx(1.0 + 0.75 * 2.0 + 0.375 * 1.0)
    nobody = kaplan_meier([4.0, 4.0], [False, False])
    assert nobody.restricted_mean(4.0) == 4.0


def test_a_ratio_of_whole_pairs_is_the_mean_of_their_middle_half():
    a, b = np.array([1.0, 2.0, 4.0, 400.0]), np.ones(4)
    found = time_ratio((a, [True] * 4), (b, [True] * 4), Seeds(1))
    assert found.estimate == pytest.approx(math.sqrt(2.0 * 4.0))
    assert found.low < found.estimate < found.high
    assert (found.open_above, found.open_below) == (0, 0)
    back = time_ratio((b, [True] * 4), (a, [True] * 4), Seeds(1))
    assert back.estimate == pytest.approx(1.0 / found.estimate)


def test_pairs_that_are_open_make_the_answer_open_and_never_better():
    times = np.full(12, 50.0)
    whole = time_ratio((times, [True] * 12), (times, [True] * 12), Seeds(1))
    assert whole.below(1.15)
    lacking = [False] * 2 + [True] * 10
    slow = time_ratio((times, lacking), (times, [True] * 12), Seeds(1))
    assert slow.estimate == pytest.approx(1.0)  # two of twelve are not in the middle half
    assert slow.high is None
    assert not slow.below(1.15)
    assert slow.open_above == 2
    fast = time_ratio((times, [True] * 12), (times, lacking), Seeds(1))
    assert fast.low == 0.0
    assert fast.high == pytest.approx(1.0)
    nobody = time_ratio((times, [False] * 12), (times, [False] * 12), Seeds(1))
    assert (nobody.estimate, nobody.least, nobody.most) == (None, 0.0, None)
    assert (nobody.low, nobody.high) == (0.0, None)


def test_the_interval_of_the_ratio_holds_the_truth_about_as_often_as_it_says():
    rng, held, wrongly = Seeds(3).rng(), 0, 0
    for draw in range(150):
        a, b = 60.0 * np.exp(0.3 * rng.standard_normal((2, 20)))
        found = time_ratio((a, [True] * 20), (b, [True] * 20), Seeds(draw), reps=400)
        held += found.low <= 1.0 <= found.high
        wrongly += found.below(1.0)
    assert 138 <= held <= 150
    assert wrongly <= 8


@pytest.mark.parametrize(
    ("first", "second"), [([1.0], [1.0]), ([1.0, 2.0], [1.0, 2.0, 3.0]), ([0.0, 1.0], [1.0, 1.0])]
)
def test_what_is_no_ratio_is_refused(first, second):
    with pytest.raises(DataError):
        time_ratio((first, [True] * len(first)), (second, [True] * len(second)), Seeds(0))


def test_areas_and_times_of_a_run_by_hand():
    run = team(0, reach=40_000)
    # From 0 to 1/4 in 10k, 1/4 until 30k, up to 1 at 40k, 1 until 100k.
    by_hand = (0.5 * 0.25 * 1 + 0.25 * 2 + 0.5 * 1.25 * 1 + 1.0 * 6) / 10
    assert run.area(BUDGET) == pytest.approx(by_hand)
    assert run.reached(0.8, BUDGET) == (40_000, True)
    assert run.reached(0.8, 35_000) == (30_000, False)
    assert run.win_rates([0, 35_000, BUDGET]).tolist() == [0.0, 0.625, 1.0]


def test_who_stops_early_stays_where_it_was():
    whole = team(0, reach=40_000)
    early = team(0, reach=40_000, env_steps=50_000, curve=whole.curve[:5])
    assert early.area(BUDGET) == pytest.approx(whole.area(BUDGET))
    assert horizon([early, whole]) == BUDGET
    assert horizon([whole, team(1, env_steps=60_000, budget=60_000)]) == 60_000
    late = team(2, env_steps=BUDGET + 300)
    assert horizon([early, late, team(3, env_steps=2 * BUDGET, budget=2 * BUDGET)]) == BUDGET + 300


def test_a_comparison_tells_who_did_not_get_there():
    runs = [*arm_of("mappo", [40_000] * 6 + [999_999] * 6), *arm_of("amal", [30_000] * 12)]
    found = compare_teams(runs).as_dict()["tasks"]["3m"]
    times = found["arms"]["mappo"]["steps_to"]["0.8"]
    assert (times["reached"], times["not_reached"]) == (6, 6)
    assert times["restricted_mean"] == pytest.approx(0.5 * (40_000 + BUDGET))
    assert times["median"]["estimate"] == 40_000
    assert times["median"]["high"] is None
    (one,) = [r for r in found["ratios"] if r["win_rate"] == 0.8]
    assert (one["arm"], one["against"], one["open_below"]) == ("amal", "mappo", 6)
    assert one["estimate"] is None
    assert one["high"] < 1.0
    assert found["verdicts"] == {
        "amal": {
            "word": "matches",
            "why": "below 1.15 against mappo; mappo-reuse was not played",
        }
    }


def test_the_final_share_is_that_of_all_fresh_starts():
    arm = compare_teams(arm_of("mappo", [40_000] * 5)).as_dict()["tasks"]["3m"]["arms"]["mappo"]
    assert arm["episodes"]["wins"] == sum(970 + seed for seed in range(5))
    assert arm["episodes"]["estimate"] == pytest.approx(0.972)
    assert arm["episodes"]["low"] < 0.972 < arm["episodes"]["high"]
    assert arm["worst_seed"] == 0.97
    assert arm["final"]["estimate"] == pytest.approx(0.972)
    assert arm["seeds_above"] == {"0.8": 5, "0.95": 5}


def test_equal_runs_give_equal_documents_and_one_seed_has_no_interval():
    runs = [*arm_of("mappo", [30_000, 50_000, 40_000]), *arm_of("ippo", [60_000] * 3)]
    assert compare_teams(runs).as_dict() == compare_teams(runs).as_dict()
    alone = compare_teams([team(0)]).as_dict()["tasks"]["3m"]
    assert alone["arms"]["mappo"]["final"]["low"] is None
    assert alone["arms"]["mappo"]["curve"]["low"] is None
    assert alone["ratios"] == []


def test_figures_over_all_tasks_take_the_same_seeds_everywhere():
    runs = [*arm_of("mappo", [40_000] * 3), *arm_of("mappo", [70_000] * 3, task="8m")]
    over = compare_teams(runs).as_dict()["overall"]["mappo"]
    areas = [team(0, reach=reach).area(BUDGET) for reach in (40_000, 70_000)]
    assert over["area"]["mean"] == pytest.approx(np.mean(areas))
    assert compare_teams(runs[:-1]).as_dict()["overall"] == {}


def test_a_seed_that_comes_twice_is_refused():
    with pytest.raises(DataError, match="comes twice"):
        compare_teams([team(3), team(3)])


@pytest.mark.parametrize(
    ("against", "word"),
    [
        ({"mappo": ratio(0.6, 0.9), "mappo-reuse": ratio(0.7, 0.99)}, "beats"),
        ({"mappo": ratio(0.6, 0.9), "mappo-reuse": ratio(0.7, 1.01)}, "matches"),
        ({"mappo": ratio(0.6, 0.9)}, "matches"),
        ({"mappo": ratio(0.6, 0.9), "mappo-short": ratio(0.9, 1.1)}, "matches"),
        ({"mappo": ratio(0.6, 0.9), "mappo-short": ratio(0.9, 1.2)}, "not shown"),
        (
            {
                "mappo": ratio(0.6, 0.9),
                "mappo-short": ratio(0.7, 1.05),
                "mappo-reuse": ratio(0.5, 0.9),
            },
            "matches",
        ),
        (
            {
                "mappo": ratio(0.6, 0.9),
                "mappo-short": ratio(0.7, 0.95),
                "mappo-reuse": ratio(0.5, 0.9),
            },
            "beats",
        ),
        ({"mappo": ratio(0.6, 1.14), "mappo-reuse": ratio(0.5, 0.9)}, "matches"),
        ({"mappo": ratio(0.6, 1.15), "mappo-reuse": ratio(0.5, 0.9)}, "not shown"),
        ({"mappo": ratio(0.6, None)}, "not shown"),
        ({"mappo": ratio(0.1, 0.2, pairs=9), "mappo-reuse": ratio(0.1, 0.2)}, "not shown"),
        ({"mappo-reuse": ratio(0.1, 0.2)}, "not shown"),
        ({"mappo": None}, "not shown"),
    ],
)
def test_the_words_follow_from_the_bounds(against, word):
    assert verdict(against).word == word


def test_an_ablation_finds_the_part_that_matters_and_names_the_one_that_does_not():
    times = [20_000 + 10_000 * (seed % 4) for seed in range(12)]
    slower = [steps + 30_000 for steps in times]
    runs = [*arm_of("amal", times), *arm_of("slow", slower), *arm_of("same", times)]
    found = compare_arms(runs, "amal")
    shown = {(one.arm, one.metric): one.shown for one in found.compared}
    assert shown[("slow", "area")]
    assert shown[("slow", "log_steps")]
    assert not shown[("slow", "final")]
    assert not any(shown[("same", metric)] for metric in ("area", "final", "log_steps"))
    assert found.idle() == ["same"]
    area = next(one for one in found.compared if (one.arm, one.metric) == ("slow", "area"))
    assert area.p == pytest.approx(2.0**-11)
    assert area.p_holm == pytest.approx(2 * 2.0**-11)  # two arms were asked
    assert area.interval.high < 0.0


def test_few_seeds_call_no_part_idle():
    runs = [*arm_of("amal", [40_000] * 9), *arm_of("same", [40_000] * 9)]
    found = compare_arms(runs, "amal")
    assert (found.idle(), found.unsure()) == ([], ["same"])
    with pytest.raises(DataError, match="nothing to compare with"):
        compare_arms(runs, "mappo")


def test_a_record_that_is_none_is_refused():
    with pytest.raises(DataError, match="not whole"):
        run_of({"kind": "training of a team"})
    with pytest.raises(DataError, match="no training"):
        run_of({"kind": "other"})
