"""Where ``agent-gym evaluate`` writes is asked before it works, and refusals leave nothing."""

import json

import pytest

from agent_gym.apps.cli import evaluate
from tests.apps.cli_samples import bars_file, make_call

SHORT = ("--train", "10d", "--validation", "2d", "--test", "5d", "--embargo", 20, "--draws", 10)


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    return make_call("evaluate", monkeypatch, capsys)


@pytest.fixture
def trials(monkeypatch, capsys):
    return make_call("trials", monkeypatch, capsys)


@pytest.fixture
def words(tmp_path):
    file = bars_file(tmp_path, 900, kind="spot")
    return ("rules/random", "--data", file, *SHORT, "--lockbox", "none")


def no_work(*_):
    raise AssertionError


STRANGERS = [
    b"root:x:0:0:root:/root:/bin/bash\nbin:x:1\n",
    b"one line without an end",
    b"{}\n",
    b"[1]\n",
    b"\n",
    b"\xff\xfe\x00\x01\n",
    b'{"at_ns": 1, "note": "ours?"}\n',
]


@pytest.mark.parametrize("content", STRANGERS)
def test_a_file_that_is_no_registry_is_left_alone(
    call, trials, words, tmp_path, monkeypatch, content
):
    monkeypatch.setattr(evaluate, "forward", no_work)
    folder = tmp_path / "etc"
    folder.mkdir()
    stranger = folder / "passwd"
    stranger.write_bytes(content)
    for ask in (
        lambda: call(*words, "--registry", stranger),
        lambda: trials("--registry", stranger),
    ):
        code, _, err = ask()
        assert code == 2
        assert "this is not a registry" in err
    assert [path.name for path in folder.iterdir()] == ["passwd"]
    assert stranger.read_bytes() == content


def test_a_broken_registry_is_found_before_any_work(call, words, tmp_path, monkeypatch):
    path = tmp_path / "trials.jsonl"
    assert call(*words, "--registry", path)[0] == 0
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    monkeypatch.setattr(evaluate, "forward", no_work)
    code, _, err = call(*words, "--registry", path)
    assert code == 4
    assert "chain of this file is broken" in err


def test_a_missing_count_is_a_warning(call, trials, words, tmp_path):
    path = tmp_path / "trials.jsonl"
    assert call(*words, "--registry", path)[0] == 0
    assert "Warning" not in trials("--registry", path)[1]
    path.with_name("trials.jsonl.head").unlink()
    code, out, _ = trials("--registry", path)
    assert code == 0
    assert "Warning:" in out
    assert "is missing" in " ".join(out.split())
    assert json.loads(trials("--registry", path, "--json")[1])["verified"]["warnings"]
    code, _, err = call(*words, "--registry", path)
    assert code == 0
    assert "is missing" in err


def test_a_report_makes_its_folder_but_only_at_the_end(call, words, tmp_path, monkeypatch):
    page = tmp_path / "new" / "deep" / "page.html"
    code, _, _ = call(*words[:2], tmp_path / "absent.csv", "--report", page)
    assert code != 0
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "home").exists()
    assert call(*words, "--report", page)[0] == 0
    assert page.is_file()


def test_a_report_that_cannot_be_written_is_refused_first(call, words, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate, "forward", no_work)
    (tmp_path / "file").write_text("x")
    good = tmp_path / "new" / "page.html"
    for bad in (tmp_path / "file" / "page.html", tmp_path, tmp_path / "new" / "page.pdf"):
        assert call(*words, "--report", good, "--report", bad)[0] == 2
    same = tmp_path / "new" / "trials.json"
    code, _, err = call(*words, "--registry", same, "--report", same)
    assert code == 2
    assert "over the registry" in err
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "home").exists()
