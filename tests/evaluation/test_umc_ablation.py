from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from agent_gym.core.files import to_json
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.evaluation.statistics import Interval
from agent_gym.evaluation.umc import AblationPlan, GatesPlan, run_ablation
from agent_gym.evaluation.umc.ablation import _jobs
from agent_gym.evaluation.umc.arm_jobs import ArmsJob, _ledger, _traded
from agent_gym.evaluation.umc.comparison import (
    _holm_by_metric,
    compare_arms,
    judge_sign,
    optional_parts,
    unsure_parts,
)
from agent_gym.evaluation.umc.courses import seed_job
from agent_gym.evaluation.umc.echo_jobs import GateJob, ReflexiveJob
from agent_gym.evaluation.umc.plan import COURSES, flat_costs
from agent_gym.evaluation.umc.variants import EXPECTED, MARGINS, REFERENCE, VARIANTS, about
from agent_gym.markets.known import draw

SHORT = 1_600
M1 = Ref(use="known/m1", params={"drift_bp": 12.0, "n_bars": SHORT})


def test_holm_by_hand_and_for_each_figure_on_its_own():
    tests = [("net", 0.01), ("score", 0.04), ("net", 0.04), ("net", 0.03)]
    # Net: .01 x 3, then .03 x 2, then max(.04 x 1, .06); score stands alone.
    assert _holm_by_metric(tests) == pytest.approx([0.03, 0.04, 0.06, 0.06])


@pytest.mark.parametrize(
    ("sign", "differences", "ends", "p_holm", "verdict"),
    [
        ("exactly 0", [0.0, 0.0], (0.0, 0.0), 1.0, "as expected"),
        ("exactly 0", [0.0, 1e-15], (0.0, 0.0), 1.0, "not as expected"),
        ("about 0", [-0.1, 0.2], (-0.1, 0.2), 1.0, "as expected"),
        ("about 0", [1.0, 2.0], (-0.1, 2.0), 1.0, "not contradicted"),
        ("about 0", [1.0, 2.0], (0.1, 2.0), 0.01, "not as expected"),
        ("about 0", [1.0, 2.0], (0.1, 2.0), 0.06, "not contradicted"),
        ("positive", [1.0, 2.0], (0.1, 2.0), 0.01, "as expected"),
        ("positive", [1.0, 2.0], (0.1, 2.0), 0.05, "not shown"),
        ("positive", [1.0, 2.0], (-0.1, 2.0), 0.01, "not shown"),
        ("positive", [-1.0, -2.0], (-2.0, -0.1), 0.01, "not as expected"),
        ("negative", [-1.0, -2.0], (-2.0, -0.1), 0.01, "as expected"),
        ("negative", [-1.0, -2.0], (-2.0, -0.1), 0.5, "not shown"),
        ("negative", [-1.0, 2.0], (-2.0, 3.0), 0.01, "not shown"),
        ("at least 0", [-1.0, 1.0], (-2.0, 0.0), 0.01, "not contradicted"),
        ("at least 0", [0.0, 1.0], (0.0, 1.0), 1.0, "as expected"),
        ("at least 0", [-1.0, -1.5], (-2.0, -0.1), 0.01, "not as expected"),
        ("at least 0", [-1.0, -1.5], (-2.0, -0.1), 0.2, "not contradicted"),
    ],
)
def test_a_sign_is_judged_by_interval_and_holm(sign, differences, ends, p_holm, verdict):
    found = Interval(0.0, *ends, 0.95)
    assert judge_sign(sign, np.array(differences), found, p_holm, 0.3) == verdict


def test_differences_are_paired_and_parts_without_any_are_optional():
    luck = Seeds(0).rng().normal(0.0, 5.0, 12)
    table = {
        "m1": {
            "full": {"net_bp": luck.tolist()},
            "lambda_0": {"net_bp": luck.tolist()},
            "kalman_only": {"net_bp": (luck - 1.0).tolist()},
            "with_actor": {"net_bp": (luck[:4] - 1.0).tolist()},
        }
    }
    found = {one.arm: one for one in compare_arms(table, 0)}
    assert found["kalman_only"].interval.estimate == pytest.approx(-1.0)
    assert found["kalman_only"].interval.high < 0.0
    assert found["kalman_only"].p == pytest.approx(2.0 / 2**12)
    assert found["with_actor"].differences.size == 4
    assert found["lambda_0"].p == 1.0
    assert found["lambda_0"].verdict == "as expected"
    assert optional_parts(list(found.values())) == ["lambda"]
    assert unsure_parts(list(found.values())) == ["actor"]


def test_a_difference_among_many_is_shown_only_if_it_survives_holm():
    step = np.array([1.0, 1.2, 0.8, 1.1, 0.9, 1.0])  # the least p of six seeds is 2 / 2**6
    alone = {"m4": {"full": {"net_bp": [0.0] * 6}, "one_head": {"net_bp": (-step).tolist()}}}
    others = {f"{name}": {"net_bp": step.tolist()} for name in ("kalman_only", "exact_only")}
    among = {"m4": alone["m4"] | others}
    verdicts = [
        next(one.verdict for one in compare_arms(table, 0) if one.arm == "one_head")
        for table in (alone, among)
    ]
    assert verdicts == ["as expected", "not shown"]


@pytest.mark.parametrize(("seeds", "optional"), [(9, []), (10, ["lambda"])])
def test_nothing_is_called_optional_on_fewer_than_10_seeds(seeds, optional):
    same = {"net_bp": [1.0] * seeds}
    found = compare_arms({"m1": {"full": same, "lambda_0": same}}, 0)
    assert optional_parts(found) == optional
    assert unsure_parts(found) == ([] if optional else ["lambda"])


def test_what_came_after_the_first_run_is_marked():
    later = {(one.market, one.arm) for one in EXPECTED if one.later}
    assert {("e1", "lambda_paid"), ("m1", "lambda_paid"), ("m2", "lambda_0")} <= later
    assert {("m1", "lambda_0"), ("m3", "one_head"), ("e1", "lambda_fixed")}.isdisjoint(later)
    assert about("no_echo").later
    assert not about("with_macro").later


def test_every_expectation_is_about_an_arm_and_a_market_that_exist():
    for one in EXPECTED:
        assert one.sign != "about 0" or one.metric in MARGINS
        assert about(one.arm).part
        assert one.market in REFERENCE


def test_an_arm_that_nobody_knows_is_refused():
    with pytest.raises(ValidationError, match="no such arms"):
        AblationPlan(arms=("lambda_7",))


def test_the_whole_agent_is_the_one_that_the_gates_judge():
    course = replace(COURSES["m1"], params={"drift_bp": 12.0})
    judged = seed_job(GatesPlan(seeds=2, bars=SHORT), course, 3).run()["arms"]["agent"]
    arms = ArmsJob(market=M1, seed=3, arms=("full", "with_risk"), cost_bp=5.0).run()["arms"]
    assert arms["full"]["net_bp"] == judged["net_bp"] != 0.0
    assert arms["with_risk"]["max_drawdown"] < arms["full"]["max_drawdown"]
    assert arms["with_risk"]["log_score"] == arms["full"]["log_score"]


def test_a_risk_chain_that_holds_nothing_back_changes_nothing():
    job = ArmsJob(market=M1, seed=3, arms=("full",), cost_bp=5.0)
    bars = draw(M1, Seeds(3)).bars
    plain = _ledger(bars, flat_costs(5.0), 3)
    loose = _ledger(bars, flat_costs(5.0).model_copy(update={"max_drawdown": 0.999}), 3)
    own = job._taught(Ref(use="umc", params={"cost_bp": 5.0}), plain)
    wide = _ledger(bars, flat_costs(5.0).model_copy(update={"max_drawdown": 0.05}), 3)
    assert _traded("loose", loose, *own) == _traded("plain", plain, *own)
    assert _traded("wide", wide, *own) != _traded("plain", plain, *own)


def test_d35_a_poisoned_crowd_harms_who_learns_without_a_gate():
    rows = [GateJob(seed=seed, bars=2_000).run()["arms"] for seed in range(3)]
    harm = [row["no_gate_poisoned"]["log_score"] - row["gated"]["log_score"] for row in rows]
    clean = [row["no_gate_clean"]["log_score"] - row["gated"]["log_score"] for row in rows]
    assert max(harm) < 0.0
    assert all(row["no_echo"] == row["gated"] for row in rows)
    assert abs(np.mean(clean)) < 0.3 * abs(np.mean(harm))


def test_lambda_is_compared_on_the_same_path_of_a_market_that_orders_move():
    job = ReflexiveJob(seed=1, bars=60, past_bars=800)
    row = job.run()
    assert row == job.run()
    assert row["arms"]["lambda_0"]["changed_share"] == 0.0
    assert set(row["arms"]) == {"lambda_0", "lambda_fixed", "lambda_adaptive", "lambda_paid"}


def test_the_report_is_the_same_with_more_processes_and_lambda_changes_nothing(tmp_path):
    plan = AblationPlan(
        markets=("m1",), seeds=2, bars=SHORT, arms=("lambda_0", "lambda_fixed", "one_head")
    )
    documents = [
        run_ablation(plan, Setting(TrialRegistry(tmp_path / "t.jsonl"), jobs=jobs)).as_dict()
        for jobs in (1, 2)
    ]
    assert to_json(documents[0]) == to_json(documents[1])
    for one in documents[0]["comparisons"]:
        if one["part"] == "lambda":
            assert (one["estimate"], one["low"], one["high"]) == (0.0, 0.0, 0.0)
    assert documents[0]["optional"] == []
    assert "lambda" in documents[0]["too_few_seeds_for_optional"]
    assert not documents[0]["arms"]["lambda_0"]["added_after_the_first_run"]
    assert set(documents[0]["per_seed"]["m1"]) == {"full", "lambda_0", "lambda_fixed", "one_head"}


def test_heavy_arms_are_played_on_the_first_seeds_alone():
    plan = AblationPlan(seeds=3, heavy_seeds=1)
    assert not set(plan.light()) & set(plan.heavy())
    assert "with_actor" in plan.heavy()
    assert set(plan.light()) | set(plan.heavy()) == set(VARIANTS)
    assert AblationPlan(seeds=3).heavy() == ()


def test_heavy_arms_are_played_on_their_markets_alone():
    plan = AblationPlan(markets=("m1", "m2"), seeds=2, heavy_seeds=1, heavy_markets=("m1", "m3"))
    played = {(market, seed): job.arms for market, seed, job in _jobs(plan)}
    with_actor = {key for key, arms in played.items() if "with_actor" in arms}
    assert with_actor == {("m1", 0)}
