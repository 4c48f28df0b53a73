"""``agent-gym marl record|verify|show|behaviour``: replays by command."""

from __future__ import annotations

import json
import re

import pytest

from agent_gym.evaluation.battle import METRICS, read_replay
from tests.apps.cli_samples import make_call
from tests.evaluation.battle_replay_samples import critic, team


@pytest.fixture
def call(monkeypatch, capsys):
    return make_call("marl", monkeypatch, capsys)


@pytest.fixture
def folder(tmp_path):
    policy = team()
    policy.save(tmp_path / "run" / "policy")
    critic(policy).save(tmp_path / "run" / "critic")
    return tmp_path / "run"


def test_battles_are_recorded_and_proven(call, folder, tmp_path):
    out = tmp_path / "out"
    words = ("record", "--policy", folder, "--seed", 4, "--episodes", 2, "--out", out, "--json")
    code, text, _ = call(*words)
    made = json.loads(text)
    assert code == 0
    assert [row["episode"] for row in made["replays"]] == [1, 2]
    assert {row["checkpoint"] for row in made["replays"]} == {team().version}
    first = read_replay(out / "3m-run-seed4-0001.battle.jsonl")
    assert set(first.header.signals) == {"entropy", "value"}
    code, text, _ = call("verify", out, "--policy", folder, "--json")
    assert (code, json.loads(text)["passed"]) == (0, True)
    code, _, err = call(*words[:-1])
    assert code == 2
    assert "--replace" in err
    assert call(*words[:-1], "--replace")[0] == 0


def test_a_changed_replay_exits_with_its_step(call, tmp_path):
    out = tmp_path / "out"
    assert call("record", "--script", "focus", "--seed", 1, "--episodes", 2, "--out", out)[0] == 0
    path = out / "3m-focus-seed1-0002.battle.jsonl"
    lines = path.read_text().splitlines()
    row = json.loads(lines[6])
    row["actions"][0] = 1 if row["actions"][0] != 1 else 2
    lines[6] = json.dumps(row)
    path.write_text("\n".join(lines) + "\n")
    code, text, _ = call("verify", out, "--json")
    found = json.loads(text)
    assert (code, found["passed"]) == (3, False)
    assert [row["verified"] for row in found["replays"]] == [True, False]
    assert found["replays"][1]["error"]["where"] == f"{path}, step 6"
    code, text, _ = call("verify", out)
    assert code == 3
    assert "NO" in text
    whole = found["replays"][1]["error"]
    assert len(whole["found"]) == len(whole["expected"]) == 64
    flat = re.sub(r"[^0-9a-z]", "", text)  # a narrow table folds its lines
    assert whole["found"][:12] in flat
    assert whole["found"][:13] not in flat
    assert call("show", path)[0] == 3
    assert not path.with_name("3m-focus-seed1-0002.html").exists()


def test_a_replay_is_shown(call, tmp_path):
    out = tmp_path / "out"
    call("record", "--script", "nearest", "--map", "1m_vs_1m", "--out", out)
    path = out / "1m_vs_1m-nearest-seed0-0001.battle.jsonl"
    clips = ("--gif", tmp_path / "a.gif", "--mp4", tmp_path / "a.mp4")
    code, text, _ = call("show", path, *clips, "--json")
    assert code == 0
    assert len(json.loads(text)["written"]) == 3
    assert (tmp_path / "a.gif").read_bytes().startswith(b"GIF89a")
    assert b"ftyp" in (tmp_path / "a.mp4").read_bytes()[:16]
    assert "<canvas" in (out / "1m_vs_1m-nearest-seed0-0001.html").read_text()
    assert call("show", path, "--gif", tmp_path / "a.png")[0] == 2


def test_behaviour_is_compared(call, folder):
    words = ("behaviour", "--policy", folder, "--episodes", 6, "--against", "random")
    code, text, _ = call(*words, "--json")
    found = json.loads(text)
    assert code == 0
    assert [team["name"] for team in found["teams"]] == ["run", "random"]
    assert set(found["teams"][0]["figures"]) == {metric.name for metric in METRICS}
    assert found["teams"][1]["lead"]["won"]["defined"] == 6
    code, text, _ = call(*words)
    assert code == 0
    assert "damage exchange" in " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("record",), "either a policy plays or a script"),
        (("record", "--script", "focus", "--policy", "x"), "both"),
        (("record", "--script", "handover"), "hand-over"),
        (("record", "--script", "focus", "--map", "4m"), "3m"),
        (("record", "--script", "focus", "--drawn"), "no chances"),
        (("behaviour", "--script", "focus", "--against", "nobody"), "nearest"),
    ],
)
def test_what_does_not_fit_is_a_wrong_command(call, tmp_path, monkeypatch, words, said):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    code, _, err = call(*words)
    assert code == 2
    assert said in err
    assert not (tmp_path / "replays").exists()


def test_the_folder_of_a_training_leads_to_its_teams(call, folder, tmp_path):
    folder.rename(tmp_path / "seed_0")
    code, out, _ = call("record", "--policy", tmp_path, "--out", tmp_path / "out", "--json")
    error = json.loads(out)
    assert code == 3
    assert error["found"] == "seed_0/policy"
    assert str(tmp_path / "seed_0" / "policy") in error["remedy"]
    assert not (tmp_path / "out").exists()


def test_missing_files_are_refused(call, tmp_path):
    assert call("record", "--policy", tmp_path / "none")[0] == 3
    assert call("show", tmp_path / "none.battle.jsonl")[0] == 3
    assert call("verify", tmp_path)[0] == 2
