"""``agent-gym report``: the page of any run by name, the nearest name on a typo."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer

from agent_gym.evaluation.page import Answer, Origin, Page, whole_page
from tests.apps.cli_samples import Call, make_call, name_walk


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    return make_call("report", monkeypatch, capsys)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    for place in (
        "reports/nightly.html",
        "reports/runs/n-1/nightly.html",
        "reports/self_test/nightly.html",
        "reports/loop-7/report.html",
        "experiments/lander-ppo/report.html",
        "marl/battle.html",
    ):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("<p>page</p>")
    (tmp_path / "marl" / "a.battle.jsonl").touch()
    (tmp_path / "experiments" / "young" / "seed_0").mkdir(parents=True)
    return tmp_path


def test_all_pages_are_listed_the_newest_first(call: Call, pages: Path) -> None:
    os.utime(pages / "marl" / "battle.html", (2**31, 2**31))
    code, out, _ = call("--json")
    assert code == 0
    found = json.loads(out)["pages"]
    assert found[0]["name"] == "marl/battle"
    kinds = {each["name"]: each["kind"] for each in found}
    assert kinds == {
        "marl/battle": "battle",
        "nightly": "nightly",
        "n-1": "nightly",
        "self_test": "self-test",
        "loop-7": "harness",
        "lander-ppo": "training",
    }


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("latest", "reports/nightly.html"),
        ("n-1", "reports/runs/n-1/nightly.html"),
        ("loop-7", "reports/loop-7/report.html"),
        ("lander-ppo", "experiments/lander-ppo/report.html"),
        ("marl/battle", "marl/battle.html"),
    ],
)
def test_a_run_is_found_by_name_and_by_folder(
    call: Call, pages: Path, word: str, place: str
) -> None:
    for said in (word, pages / place, (pages / place).parent):
        code, out, _ = call(said, "--json")
        assert code == 0
        assert json.loads(out) == {"run": str(said), "page": str(pages / place), "opened": False}
    assert str(pages / place) in call(word)[1].replace("\n", "")


@pytest.mark.parametrize("kind", ["UMC", "Sandbox session", "Evaluation"])
def test_a_page_says_itself_what_it_is(call: Call, tmp_path: Path, kind: str) -> None:
    answer = Answer("same", "word", "headline")
    made = whole_page(Page(kind, "about", "title", answer, (), Origin(("agent-gym",))))
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "report.html").write_text(made)
    (found,) = json.loads(call("--json")[1])["pages"]
    assert (found["name"], found["kind"]) == ("some", kind.lower())


def test_only_a_night_has_a_comment(call: Call, pages: Path) -> None:
    code, out, _ = call("lander-ppo", "--markdown", "-", "--json")
    assert code == 2
    assert "nightly --comment" in json.loads(out)["remedy"]
    assert call("--markdown", "-")[0] == 2


def test_a_typo_gets_the_nearest_name(call: Call, pages: Path) -> None:
    code, out, _ = call("lander-pp", "--json")
    assert code == 2
    assert "Did you mean 'lander-ppo'" in json.loads(out)["remedy"]
    code, out, _ = call("young", "--json")
    assert code == 2
    assert "results page" in json.loads(out)["remedy"]
    assert call("--open")[0] == 2


def test_open_asks_the_browser_and_says_if_there_is_none(
    call: Call, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def launch(url: str) -> int:
        asked.append(url)
        return len(asked) - 1

    monkeypatch.setattr(typer, "launch", launch)
    assert json.loads(call("latest", "--open", "--json")[1])["opened"] is True
    assert asked == [(pages / "reports" / "nightly.html").as_uri()]
    code, out, _ = call("latest", "--open")
    assert code == 0
    assert "open this file yourself" in " ".join(out.split())


@pytest.mark.parametrize("word", ["latest", "nope"])
def test_where_there_are_no_pages_none_is_offered(call: Call, word: str) -> None:
    code, _, err = call(word)
    assert code == 2
    said = " ".join(err.split())
    assert "there are no pages yet" in said
    assert "agent-gym demo" in said
    assert "Did you mean" not in said


def test_without_a_night_latest_is_not_offered(call: Call, pages: Path) -> None:
    for path in (pages / "reports" / "nightly.html", *pages.glob("reports/runs/*/nightly.html")):
        path.unlink()
    assert "there is no night yet" in " ".join(call("latest")[2].split())
    said = " ".join(call("loop-8")[2].split())
    assert "Did you mean 'loop-7'" in said
    assert "latest" not in said


def test_the_page_of_a_backtest_is_found(
    call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name_walk(monkeypatch)
    backtest = make_call("backtest", monkeypatch, capsys)
    words = ("--agent", "rules/flat", "--market", "test/walk", "--out", tmp_path / "mine", "--plot")
    assert backtest(*words)[0] == 0
    (page,) = json.loads(call("--json")[1])["pages"]
    assert (page["name"], page["kind"]) == ("mine", "backtest")
    code, out, _ = call("mine", "--json")
    assert code == 0
    assert Path(json.loads(out)["page"]).is_file()
