"""Pages about teams: the answer first, every figure there, nothing that was not seen filled in."""

import json
from xml.etree import ElementTree

import pytest

from agent_gym.core.errors import DataError
from agent_gym.evaluation.marl import compare_arms, compare_teams, over_seeds
from agent_gym.evaluation.marl.runs import Seen
from agent_gym.reporting.marl import (
    ABLATION,
    COMPARISON,
    DIAGNOSIS,
    difference_row,
    mark_of,
    missed_of,
    places,
    ratio_row,
    write_ablation,
    write_comparison,
    write_diagnosis,
)
from agent_gym.reporting.marl.comparison_page import comparison_markdown
from tests.evaluation.team_samples import arm_of, team

MANIFEST = {"command": "agent-gym marl compare --seeds 12"}


def comparison():
    runs = [
        *arm_of("mappo", [40_000, 50_000, 60_000] * 4),
        *arm_of("mappo-reuse", [40_000] * 12),
        *arm_of("amal", [20_000, 30_000] * 6),
        *arm_of("ippo", [999_999] * 12),
    ]
    cpu_s = {"3m": {"mappo": [5.0, 7.0], "amal": [30.0]}}
    return compare_teams(runs).as_dict() | {"manifest": MANIFEST, "cpu_s": cpu_s}


def ablation():
    times = [20_000 + 10_000 * (seed % 3) for seed in range(12)]
    slower = [steps + 30_000 for steps in times]
    runs = [*arm_of("amal", times), *arm_of("slow", slower), *arm_of("same", times)]
    arms = {"amal": "nothing", "slow": "`learn.epochs` = 1", "same": "`amal.lambda_info` = 0.0"}
    return compare_arms(runs, "amal").as_dict() | {"manifest": MANIFEST, "arms": arms}


def report(**values):
    bounds = {"leaks": (None, 0), "calibration": (0.2, None), "bonus_ratio": (0.02, 0.5)}
    bounds["elite_gain"] = (0.0, None)
    given = {"leaks": 0, "calibration": 0.3, "bonus_ratio": 0.1} | values
    return {
        "env_steps": 4_000,
        "iterations": [told(step) for step in range(1_000, 4_001, 1_000)],
        "figures": {
            name: {
                "value": value,
                "low": bounds[name][0],
                "high": bounds[name][1],
                "bound": "in words",
                "passed": value is not None
                and (bounds[name][0] is None or value >= bounds[name][0])
                and (bounds[name][1] is None or value <= bounds[name][1]),
            }
            for name, value in given.items()
        },
    }


def told(step):
    """What AMAL says of an iteration: it is calibrated early, and no auxiliary team went out."""
    early = step < 2_500
    plain = {"information": 1.0, "model_r2": 0.5, "lambda_info": 0.1, "ess": None, "cem_kl": None}
    return plain | {"env_steps": step, "calibration": 0.3 if early else 0.15}


def diagnosis(reports):
    return {"figures": over_seeds(reports), "reports": reports, "manifest": MANIFEST}


def words_of(picture):
    drawn = ElementTree.fromstring(picture.read_text())
    return " ".join(node.text or "" for node in drawn.iter() if node.tag.endswith("text"))


def test_the_page_of_a_comparison_answers_first(tmp_path):
    write_comparison(tmp_path, comparison())
    data, page, picture = places(tmp_path, COMPARISON)
    text = page.read_text()
    assert text.index("amal beats MAPPO and MAPPO with reuse") < text.index("![Win rates]")
    assert "mappo: 12 of 12 seeds win at least 95 % of fresh starts." in text
    assert "ippo: not shown to match MAPPO (not below 1.15 against mappo)." in text
    assert "| 0 of 12 | 0 of 12 | - |" in text  # nobody got there, and nobody said how long it took
    assert "| ippo | mappo | 80 % | above " in text
    assert "12 above, 0 below" in text
    assert "| 6 |" in text.splitlines()[text.splitlines().index("## 3m") + 6]
    assert MANIFEST["command"] in text
    assert json.loads(data.read_text()) == comparison()
    shown = words_of(picture)
    assert "mappo-reuse" in shown
    assert "3m: seeds that have shown 80 %" in shown


def test_frames_without_anything_in_them_are_not_drawn(tmp_path):
    never = [999_999] * 3
    lost = tuple(Seen(step, 0, 64) for step in range(10_000, 100_001, 10_000))
    runs = [
        *arm_of("mappo", [40_000] * 3),
        *arm_of("mappo", never, task="8m"),
        *arm_of("mappo", never, task="2s3z", curve=lost),
    ]
    document = compare_teams(runs).as_dict() | {
        "manifest": MANIFEST,
        "cpu_s": {"3m": {}, "8m": {}, "2s3z": {}},
    }
    write_comparison(tmp_path, document)
    _, page, picture = places(tmp_path, COMPARISON)
    shown = words_of(picture)
    drawn = ("3m: greedy wins", "3m: seeds that have shown", "8m: greedy wins")
    assert all(words in shown for words in drawn)
    assert "8m: seeds that have shown" not in shown
    assert "2s3z: greedy" not in shown
    said = (
        "8m: no seed has shown 80 % (mappo), so times are not drawn.",
        "2s3z is not drawn: hardly a battle was won (mappo).",
    )
    text = page.read_text()
    assert all(words in shown and f"*{words}*" in text for words in said)
    assert "best look" not in text.splitlines()[text.splitlines().index("## 3m") + 4]
    alone = compare_teams(runs[-3:]).as_dict() | {"manifest": MANIFEST, "cpu_s": {"2s3z": {}}}
    write_comparison(tmp_path / "alone", alone)
    assert said[1] in words_of(places(tmp_path / "alone", COMPARISON)[2])


def test_the_page_says_what_amal_spent_and_older_ones_say_nothing():
    assert "What AMAL spent" not in comparison_markdown(comparison(), "x.svg")
    shares = (0.1, 0.2, 0.25)
    spent = [
        team(seed, "amal", 20_000, auxiliary_share=share, bonus_weight=0.05)
        for seed, share in enumerate(shares)
    ]
    found = compare_teams([*arm_of("mappo", [40_000] * 3), *spent]).as_dict()
    assert found["tasks"]["3m"]["arms"]["mappo"]["spent"] is None
    document = found | {"manifest": MANIFEST, "cpu_s": {"3m": {}}}
    text = comparison_markdown(document, "x.svg")
    assert "| amal | 3 | 20 % (10 % to 25 %) | 0.05 |" in text
    assert "- *What AMAL spent*: the share" in text
    assert "*Best look*" not in text
    # A seed that does not tell leaves the arm out: the others might not be like it.
    found = compare_teams([*spent[:2], team(2, "amal", 20_000)]).as_dict()
    assert found["tasks"]["3m"]["arms"]["amal"]["spent"] is None


def test_the_page_says_how_far_apart_looks_are():
    assert "Looks are about 10k steps apart" in comparison_markdown(comparison(), "x.svg")
    often = tuple(Seen(step, 64, 64) for step in range(2_000, 100_001, 2_000))
    runs = [*arm_of("mappo", [40_000] * 3), *arm_of("amal", [2_000] * 3, curve=often)]
    document = compare_teams(runs).as_dict() | {"manifest": MANIFEST, "cpu_s": {"3m": {}}}
    text = comparison_markdown(document, "x.svg")
    assert "Looks are 10k (mappo), 2k (amal) steps apart" in text
    assert "do not compare" in text


def test_the_page_of_an_ablation_names_what_does_nothing(tmp_path):
    write_ablation(tmp_path, ablation())
    _, page, picture = places(tmp_path, ABLATION)
    text = page.read_text()
    assert "2 of 6 differences to `amal` can be told from nothing." in text
    assert "4 of them had no chance of it" in text
    assert "wins may still be off by: same (+0.0 to +0.0 points)." in text
    assert "*final wins*: share of fresh starts" in text
    assert "| `slow` | `learn.epochs` = 1 |" in text
    assert text.count("| differs |") == 2
    assert "slow" in words_of(picture)


def test_the_page_of_a_diagnosis_shows_what_was_missed(tmp_path):
    reports = [report(), report(calibration=0.0), report(calibration=0.1)]
    document = diagnosis(reports)
    write_diagnosis(tmp_path, document)
    _, page, picture = places(tmp_path, DIAGNOSIS)
    text = page.read_text()
    assert (
        "2 of 3 bounds hold: 1 with the whole interval over seeds, 0 on average alone, 1 " in text
    )
    assert "by construction. Missed: `calibration`." in text
    assert "| 1 of 3 | **missed** |" in text
    assert "| calibration | 0.3 | 0.15 |" in text
    assert "| `leaks` | rows of auxiliary teams" in text
    assert "| divergence of auxiliary teams, nats | - | - |" in text  # nobody went out
    assert "bonus ratio" in words_of(picture)
    assert "information, nats" in words_of(picture)
    assert missed_of(document) == ["calibration"]


def test_a_bound_that_the_interval_crosses_holds_on_average_alone():
    found = over_seeds([report(calibration=each) for each in (0.1, 0.2, 0.5)])
    assert mark_of("calibration", found["calibration"]) == "on average"
    found = over_seeds([report(calibration=each) for each in (0.3, 0.31, 0.32)])
    assert mark_of("calibration", found["calibration"]) == "shown"


def test_a_gain_of_the_elites_must_be_told_from_luck():
    lucky = over_seeds([report(elite_gain=each) for each in (-0.5, 0.1, 0.9)])["elite_gain"]
    assert lucky["value"] > 0
    assert not lucky["passed"]
    steady = over_seeds([report(elite_gain=each) for each in (0.4, 0.5, 0.6)])["elite_gain"]
    assert steady["passed"]
    assert over_seeds([report(elite_gain=0.5)])["elite_gain"]["passed"]  # no interval over one


def test_one_seed_can_spoil_a_leak_and_what_was_not_seen_keeps_no_bound():
    found = over_seeds([report(), report(leaks=1)])
    assert not found["leaks"]["passed"]
    assert found["calibration"]["passed"]
    unseen = over_seeds([report(bonus_ratio=None), report()])["bonus_ratio"]
    assert not unseen["passed"]
    assert (unseen["value"], unseen["seeds_passed"]) == (0.1, 1)
    single = over_seeds([report()])
    assert single["leaks"]["passed"]
    assert single["leaks"]["interval"] is None
    with pytest.raises(DataError, match="different figures"):
        over_seeds([report(), {"figures": {}}])


def test_equal_documents_give_equal_files(tmp_path):
    studies = (
        (COMPARISON, write_comparison, comparison()),
        (ABLATION, write_ablation, ablation()),
        (DIAGNOSIS, write_diagnosis, diagnosis([report()])),
    )
    for name, write, document in studies:
        for side in ("a", "b"):
            write(tmp_path / side, document)
        pairs = zip(places(tmp_path / "a", name), places(tmp_path / "b", name), strict=True)
        assert all(a.read_bytes() == b.read_bytes() for a, b in pairs)


def test_rows_say_what_is_open():
    one = {
        "arm": "a",
        "against": "b",
        "win_rate": 0.8,
        "estimate": None,
        "least": 0.0,
        "most": 0.9,
        "low": 0.0,
        "high": None,
        "pairs": 12,
        "open_above": 1,
        "open_below": 6,
    }
    assert ratio_row(one)[3:] == ["below 0.90", "open", "12", "1 above, 6 below"]
    row = difference_row(
        {
            "task": "3m",
            "arm": "a",
            "metric": "log_steps",
            "estimate": 0.1,
            "low": -0.1,
            "high": 0.3,
            "p_holm": 0.5,
            "shown": False,
            "seeds": 10,
        }
    )
    assert row[3:5] == ["+0.10", "-0.10 to +0.30"]
