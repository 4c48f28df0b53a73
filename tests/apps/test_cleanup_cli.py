from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from tests.apps.cli_samples import Call, make_call


@pytest.fixture
def call(tmp_path, monkeypatch, capsys) -> Call:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return make_call("cleanup", monkeypatch, capsys)


@pytest.fixture
def old(tmp_path) -> Path:
    run = tmp_path / "home" / "experiments" / "old" / "seed_0"
    run.mkdir(parents=True)
    for name in ("config.json", "result.json"):
        (run / name).write_text("{}")
    for path in (run.parent, run, *run.iterdir()):
        os.utime(path, (0, 0))
    return run.parent


def test_it_shows_and_removes_only_when_told(call, old):
    code, out, _ = call("--keep", 0)
    assert code == 0
    assert "1 would go: 4 bytes. Nothing was removed; add --yes." in out
    assert old.is_dir()
    code, out, _ = call("--keep", 0, "--json")
    told = json.loads(out)
    assert [each["path"] for each in told["goes"]] == ["experiments/old"]
    assert not told["carried_out"]
    assert told["bytes"] == 4
    code, out, _ = call("--keep", 0, "--yes", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["carried_out"]
    assert told["bytes_freed"] == 4
    assert not old.exists()
    code, out, _ = call("--keep", 0, "--yes")
    assert code == 0
    assert "had to go" in " ".join(out.split())


def test_the_pages_of_this_folder_and_named_ones_keep_what_they_tell_of(call, old, tmp_path):
    (tmp_path / "docs" / "results").mkdir(parents=True)
    page = tmp_path / "docs" / "results" / "lander.json"
    page.write_text('["experiments/old"]')
    code, out, _ = call("--keep", 0, "--yes", "--json")
    assert code == 0
    assert json.loads(out)["goes"] == []
    page.rename(tmp_path / "docs" / "page.unknown")
    other = tmp_path / "site"
    other.mkdir()
    (other / "index.html").write_text("<a href='experiments/old'>")
    _, out, _ = call("--keep", 0, "--pages", other, "--json")
    assert json.loads(out)["goes"] == []
    _, out, _ = call("--keep", 0, "--json")
    assert len(json.loads(out)["goes"]) == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--older-than", -1), "--older-than"),
        (("--keep", -1), "--keep"),
        (("--older-than", "soon"), "--older-than"),
        (("--pages", "gone"), "no such folder"),
        (("--all",), "--help"),
    ],
)
def test_what_cannot_be_meant_exits_with_2(call, words, hint):
    code, _, err = call(*words)
    assert code == 2
    assert hint in err


def test_while_a_night_is_under_way_it_exits_with_5(call, old):
    with (old.parents[1] / "nightly.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, _, err = call("--keep", 0, "--yes")
    assert code == 5
    assert "lock" in err
    assert old.is_dir()
