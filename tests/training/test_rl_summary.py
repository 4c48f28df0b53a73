"""What an experiment says: the figures are those of the statistics, and nothing is left out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from agent_gym.core.files import to_json
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import holm, iqm, kaplan_meier
from agent_gym.training.rl.result import TrainingResult
from agent_gym.training.rl.run_records import ArmRuns, RunRecord, read_run, steps_taken
from agent_gym.training.rl.summary import Ask, metrics_rows, rank_test, summarize

ASK = Ask(threshold=200.0, resamples=300)


def run(seed, score, *, status="done", reached=None, last=1000):
    ok = score is not None
    result = TrainingResult(
        status=status,
        error=None if ok else {"what": "it broke"},
        algo="ppo",
        env="X-v1",
        seed=seed,
        steps=last,
        best_step=last,
        best_mean=score,
        final_mean=score,
        cpu_s=10.0,
        wall_s=20.0,
        state_hash=None,
        config={"steps": 1000},
        manifest={},
    )
    steps = range(100, last + 1, 100)
    looks = tuple((s, 250.0 if reached is not None and s >= reached else 0.0) for s in steps)
    final = (score - 5.0, score + 5.0) if ok else ()
    return RunRecord(seed, Path(f"seed_{seed}"), result, looks, final)


def arm(name, scores, reached=None):
    reached = reached or [None] * len(scores)
    pairs = enumerate(zip(scores, reached, strict=True))
    return ArmRuns(name, {}, tuple(run(k, score, reached=when) for k, (score, when) in pairs))


def test_figures_are_those_of_the_runs():
    scores = [100.0, 210.0, 220.0, 230.0, 240.0]
    reached = [None, 300, 500, 500, 900]
    (found,) = summarize([arm("a", scores, reached)], ASK)["arms"]
    assert found["iqm"]["estimate"] == iqm(scores) == 220.0
    assert found["iqm"]["low"] < 220.0 < found["iqm"]["high"]
    assert found["mean"]["estimate"] == 200.0
    assert (found["n"], found["best"], found["worst"], found["cpu_s"]) == (5, 240.0, 100.0, 50.0)
    survival = found["steps_to_threshold"]
    assert (survival["reached"], survival["censored"]) == (4, 1)
    curve = kaplan_meier([1000, 300, 500, 500, 900], [False, True, True, True, True])
    assert survival["curve"]["not_yet"] == curve.share.tolist()
    assert survival["median"]["estimate"] == 500.0
    assert [row["first_reached"] for row in found["runs"]] == reached


def test_not_reached_is_said_and_counted():
    found = summarize([arm("a", [1.0, 2.0, 3.0], [400, None, None])], ASK)["arms"][0]
    assert found["steps_to_threshold"]["median"]["estimate"] is None
    assert found["steps_to_threshold"]["censored"] == 2
    assert metrics_rows(summarize([arm("a", [1.0], [None])], ASK))[0]["median_steps"] is None


def test_profiles_of_all_arms_have_one_scale():
    low, high = summarize([arm("a", [0.0, 10.0]), arm("b", [100.0, 110.0])], ASK)["arms"]
    assert low["profile"]["marks"] == high["profile"]["marks"]
    assert (low["profile"]["marks"][0], low["profile"]["marks"][-1]) == (-5.0, 115.0)
    pairs = zip(low["profile"]["share"], high["profile"]["share"], strict=True)
    assert all(worse <= better for worse, better in pairs)


def test_each_arm_is_compared_with_the_first_and_corrected_for_all():
    scores = {
        "a": [10, 11, 12, 13, 14],
        "b": [30, 31, 32, 33, 34],
        "c": [9, 12.5, 13.5, 10.5, 12.2],
    }
    first, better, same = summarize([arm(*item) for item in scores.items()], ASK)["arms"]
    assert first["against_first"] is None
    won, drawn = better["against_first"]["improvement"], same["against_first"]["improvement"]
    assert (won["estimate"], won["low"], won["high"]) == (1.0, 1.0, 1.0)
    assert won["p"] == pytest.approx(2 / 252)
    assert [won["p_holm"], drawn["p_holm"]] == holm([won["p"], drawn["p"]]).tolist()
    assert won["p_holm"] < 0.05 < drawn["p_holm"]
    assert better["against_first"]["difference_of_iqm"] == 20.0


def test_steps_are_compared_too():
    fast = arm("fast", [1.0] * 5, [100, 100, 200, 200, 300])
    slow = arm("slow", [1.0] * 5, [800, 900, None, None, None])
    never = arm("never", [1.0] * 5)
    _, told, none = summarize([fast, slow, never], ASK)["arms"]
    assert told["against_first"]["steps"]["p"] == pytest.approx(2 / 252)
    assert told["against_first"]["steps"]["p_holm"] == pytest.approx(4 / 252)
    assert none["against_first"]["steps"]["p_holm"] < 0.05
    alone = summarize([never, arm("other", [2.0] * 5)], ASK)["arms"][1]
    assert alone["against_first"]["steps"] is None  # nobody ever reached it: no test


def test_failed_and_missing_runs_are_rows():
    broken = run(1, None, status="error", last=300)
    missing = RunRecord(2, Path("seed_2"), None)
    whole = ArmRuns("a", {}, (run(0, 50.0), broken, missing))
    told = summarize([whole], ASK)
    (found,) = told["arms"]
    assert told["status"] == "partial"
    assert (found["n"], found["failed"], found["missing"]) == (1, 1, 1)
    assert [row["status"] for row in found["runs"]] == ["done", "error", "missing"]
    assert found["runs"][1]["error"] == {"what": "it broke"}
    assert found["runs"][1]["score"] is None
    assert found["iqm"] == {"estimate": 50.0, "low": None, "high": None, "level": 0.95}
    assert found["steps_to_threshold"]["censored"] == 2  # the failed one, at its last look
    assert any("failed" in note for note in told["notes"])
    assert any("5 or more" in note for note in told["notes"])


def test_nothing_at_all_is_told_too():
    told = summarize(
        [ArmRuns("a", {}, (RunRecord(0, Path("x"), None),)), arm("b", [1.0, 2.0])], ASK
    )
    first, second = told["arms"]
    assert (first["iqm"], first["profile"], first["steps_to_threshold"]) == (None, None, None)
    assert second["against_first"] is None
    assert metrics_rows(told)[0]["iqm"] is None


def test_it_is_json_and_the_same_twice():
    arms = [arm("a", [1.0, 2.0, 9.0], [100, None, 500]), arm("b", [3.0, 4.0, 5.0])]
    assert to_json(summarize(arms, ASK)) == to_json(summarize(arms, ASK))


def test_a_run_under_way_is_no_evidence_yet():
    going = RunRecord(1, Path("seed_1"), None, looks=((100, 0.0), (200, 0.0)))
    found = summarize([ArmRuns("a", {}, (run(0, 1.0, reached=100), going))], ASK)["arms"][0]
    assert (found["steps_to_threshold"]["n"], found["missing"]) == (1, 1)


def test_different_lengths_are_noted():
    longer = run(0, 1.0)
    longer = RunRecord(0, longer.folder, longer.result.model_copy(update={"config": {"steps": 9}}))
    told = summarize([arm("a", [1.0]), ArmRuns("b", {}, (longer,))], ASK)
    assert any("different numbers of steps" in note for note in told["notes"])


@pytest.mark.parametrize("shift", [0.0, 1.5, 3.0])
def test_the_rank_test_is_that_of_mann_and_whitney(shift):
    rng = Seeds(5).child("ranks").rng()
    ours, theirs = rng.normal(shift, 1.0, 6), rng.normal(0.0, 1.0, 6)
    exact = mannwhitneyu(ours, theirs, method="exact").pvalue
    assert rank_test(ours, theirs, Seeds(1)) == pytest.approx(exact)
    assert rank_test([1.0] * 5, [1.0] * 5, Seeds(1)) == 1.0


def test_equal_arms_are_rarely_called_different():
    rng, wrong = Seeds(6).child("null").rng(), 0
    for _ in range(200):
        scores = rng.normal(size=10)
        wrong += rank_test(scores[:5], scores[5:], Seeds(1)) <= 0.05
    assert wrong <= 18  # 6 expected at 8 of 252 dealings


def test_a_run_is_read_from_its_files(tmp_path):
    rows = "step,seed,reward,length\n100,1,10.0,5\n100,2,20.0,5\n200,1,40.0,5\n200,2,60"
    (tmp_path / "evaluations.csv").write_text(rows, encoding="utf-8")
    found = read_run(tmp_path, 3)
    assert found.looks == ((100, 15.0), (200, 40.0))  # the last row is still being written
    assert (found.status, found.score, found.final) == ("missing", None, ())
    assert found.first_reaching(30.0) == (200, True)
    assert found.first_reaching(99.0) == (200, False)
    assert RunRecord(0, tmp_path, None).first_reaching(1.0) is None


def test_how_far_a_run_is(tmp_path):
    assert steps_taken(tmp_path, 900) == 0
    (tmp_path / "metrics.csv").write_text("step,loss\n", encoding="utf-8")
    assert steps_taken(tmp_path, 900) == 0
    body = "".join(f"{100 * k},{np.pi}\n" for k in range(1, 700))
    (tmp_path / "metrics.csv").write_text(f"step,loss\n{body}70000,3", encoding="utf-8")
    assert steps_taken(tmp_path, 10**6) == 69_900
    assert steps_taken(tmp_path, 900) == 900
    stopped, done = (run(0, 1.0, status=status).result for status in ("interrupted", "done"))
    (tmp_path / "result.json").write_text(stopped.model_dump_json(), encoding="utf-8")
    assert steps_taken(tmp_path, 10**6) == 69_900
    (tmp_path / "result.json").write_text(done.model_dump_json(), encoding="utf-8")
    assert steps_taken(tmp_path, 10**6) == 10**6


def test_one_is_not_told_as_many():
    (few,) = summarize([arm("a", [1.0])], Ask())["notes"]
    assert few.startswith("an arm has one seed;")
    lost = ArmRuns("b", {}, (run(0, None, status="error"), run(1, 2.0), run(2, 3.0)))
    notes = summarize([lost], Ask())["notes"]
    assert any(note.startswith("one run failed and has no score") for note in notes)
    assert any(note.startswith("an arm has 2 seeds;") for note in notes)


def test_many_more_steps_than_were_asked_for_are_said():
    asked = [replace_steps(run(k, 1.0), 3_000, 32_768) for k in range(5)]
    (note,) = summarize([ArmRuns("a", {}, tuple(asked))], Ask())["notes"]
    assert note.startswith("32,768 steps were taken where 3,000 were asked for")
    near = [replace_steps(run(k, 1.0), 250_000, 251_904) for k in range(5)]
    assert summarize([ArmRuns("a", {}, tuple(near))], Ask())["notes"] == []


def replace_steps(one, asked, taken):
    config = one.result.config | {"steps": asked}
    return replace(one, result=one.result.model_copy(update={"config": config, "steps": taken}))
