"""Comparisons that were kept are read again, so that an arm can join them later."""

import json

import pytest

from agent_gym.apps.cli.marl_kept import read_kept
from agent_gym.core import DataError
from agent_gym.evaluation.marl import compare_teams
from tests.evaluation.team_samples import arm_of


@pytest.fixture
def page(tmp_path):
    runs = [*arm_of("mappo", [40_000, 50_000]), *arm_of("amal", [20_000, 30_000], best_wins=980)]
    document = compare_teams(runs).as_dict() | {
        "manifest": {"data": {"maps": ["a"]}},
        "cpu_s": {"3m": {"mappo": [1.0, 2.0], "amal": [3.0, 4.0]}},
    }
    path = tmp_path / "page.json"
    path.write_text(json.dumps(document))
    return path, runs, document


def test_a_kept_comparison_gives_its_runs_back(page):
    path, runs, document = page
    found = read_kept([path])
    assert [each.run for each in found] == runs
    assert [each.cpu_s for each in found] == [1.0, 2.0, 3.0, 4.0]
    assert {each.maps for each in found} == {("a",)}
    again = compare_teams([each.run for each in found]).as_dict()
    assert json.loads(json.dumps(again)) == {name: document[name] for name in again}


def test_a_newer_run_takes_the_place_of_an_older_one_if_asked(page, tmp_path):
    path, runs, document = page
    newer = arm_of("amal", [10_000, 12_000])
    other = compare_teams([*arm_of("mappo", [40_000, 50_000]), *newer]).as_dict()
    cpu_s = {"3m": {"mappo": [1.0, 2.0], "amal": [5.0, 6.0]}}
    second = tmp_path / "second.json"
    second.write_text(json.dumps(other | {"manifest": document["manifest"], "cpu_s": cpu_s}))
    found = read_kept([path, second], renew=True)
    assert [each.run for each in found] == [*runs[:2], *newer]
    assert [each.cpu_s for each in found] == [1.0, 2.0, 5.0, 6.0]
    assert [each.run for each in read_kept([second, path], renew=True)] == runs
    with pytest.raises(DataError, match="comes twice"):
        compare_teams([each.run for each in read_kept([path, second])])


def test_what_amal_spent_is_kept_and_may_be_missing(page):
    path, runs, document = page
    kept = {"auxiliary_share": 0.25, "bonus_weight": 0.5}
    document["runs"] = [each | kept for each in document["runs"]]
    path.write_text(json.dumps(document))
    assert {(each.run.auxiliary_share, each.run.bonus_weight) for each in read_kept([path])} == {
        (0.25, 0.5)
    }
    for each in document["runs"]:  # as pages were before it was told
        del each["auxiliary_share"], each["bonus_weight"]
    path.write_text(json.dumps(document))
    assert [each.run for each in read_kept([path])] == runs


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "ablation of a team"}, "no comparison of teams"),
        ({"cpu_s": {}}, "not whole"),
        ({"runs": [{"task": "3m", "arm": "mappo"}]}, "not whole"),
        ({"runs": None}, "not whole"),
    ],
)
def test_what_is_no_comparison_is_refused(page, change, words):
    path, _, document = page
    path.write_text(json.dumps(document | change))
    with pytest.raises(DataError, match=words):
        read_kept([path])


def test_a_folder_without_trainings_is_refused(tmp_path):
    with pytest.raises(DataError, match="no finished training"):
        read_kept([tmp_path])
