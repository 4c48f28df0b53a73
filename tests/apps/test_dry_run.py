"""Every command is either known to write nothing, or says with --dry-run what it would write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_gym.apps.cli.main import run
from tests.apps.test_tree_cli import LEAVES

READS = {
    *("agents list", "agents show", "audit", "benchmark run", "benchmark mcp", "compare"),
    *(
        "data check",
        "data info",
        "db verify",
        "db stats",
        "desk analyze",
        "desk train",
        "desk verify-log",
        "desk signal",
    ),
    *("doctor", "experiment show", "experiment compare", "market realism", "marl verify"),
    *("marl behaviour", "mcp", "oracle", "registry list", "registry show", "registry verify"),
    *("registry history", "replay", "report", "snapshot verify", "snapshot show", "tokens list"),
    *("train verify", "train speed", "train schema", "trials", "umc explain", "umc stress"),
    *("blobs stats", "blobs verify", "registry keys list", "registry audit verify", "verify"),
}
"""Commands that leave nothing behind but what a machine caches."""

CASES = {
    "backtest": "--agent rules/rsi --market synthetic/btc-1h --out run --report page.html",
    "blobs push": "",
    "cleanup": "--yes",
    "data fetch": "--symbol BTC/USDT --start 2024-01-01 --end 2024-01-02 --out bars.parquet",
    "data import": "bars.csv --out bars.parquet",
    "demo": "--out demo",
    "desk play": "--out logs",
    "desk rollback": "--store models",
    "evaluate": "rules/rsi --market known/m1 --seeds 2 --report page.html",
    "experiment run": "gamma_experiments",
    "experiment search": "gamma_experiments",
    "export": "lander-ppo --out model",
    "gate faults": "--out faults.json",
    "gate power": "--out power.json",
    "gate same-code": "--out same.json",
    "harness": "--agents 2",
    "init": "project",
    "judge calibrate": "--out judge.json",
    "judge score": "",
    "llm prepare": "",
    "market generate": "--out market.parquet",
    "marl ablation": "--out study",
    "marl compare": "--out study",
    "marl diagnose": "--out study",
    "marl record": "--out battles",
    "marl show": "battle.replay --out page.html",
    "marl train": "--out teams",
    "nightly": "--seeds 1",
    "promotion power": "--out power.json",
    "registry audit anchor": "",
    "registry keys revoke": "key --reason test",
    "registry keys rotate": "",
    "registry keys sign": "model",
    "registry promote": "model",
    "registry rollback": "--reason test",
    "results lander": "--from runs --out pages",
    "results page": "runs --out page",
    "run": "--out run",
    "sandbox": "--market synthetic/btc-1h --name session --new-keys keys.json",
    "serve": "--port 0",
    "snapshot generate": "--out snapshots",
    "tokens add": "ann --role read",
    "tokens revoke": "ann",
    "train": "--config lander-ppo",
    "train unsafe-import-zip": "their.zip --algo ppo --env LunarLander-v3 --out model",
    "umc ablation": "--out study",
    "umc backtest": "--market known/m1 --out walk",
    "umc gates": "--out gates",
    "umc train": "--market known/m1 --out agent",
    "watch": "lander-ppo --out film.mp4",
}
"""Options with which a command would write."""

ELSEWHERE = {
    "blobs gc": "asks the database what is named, and is tested with its workspace",
    "desk retrain": "trains first, and is tested with its loop",
    **dict.fromkeys(
        ("db backup", "db migrate", "db prune", "db restore"),
        "needs a store, and is tested with it",
    ),
}


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[words for words, _ in LEAVES])
def test_a_command_that_writes_has_a_dry_run(words: str, command: Any) -> None:
    has = any("--dry-run" in option.opts for option in command.params)
    assert has != (words in READS), f"{words}: --dry-run, or a place among those that only read"
    assert has == (words in CASES or words in ELSEWHERE), f"{words} has no case here"


def test_nothing_is_listed_that_is_gone() -> None:
    assert READS | set(CASES) | set(ELSEWHERE) == {words for words, _ in LEAVES}


@pytest.mark.parametrize("words", CASES)
def test_a_dry_run_writes_nothing(words: str, tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    given = [*words.split(), *CASES[words].split(), "--dry-run", "--json"]
    code = run(given, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert code == 0, said
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_tells_what_and_where_and_no_password(
    tmp_path: Any, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "sandbox --market synthetic/btc-1h --name mine --seed 3 --dry-run --json"
    assert run([*words.split(), "--database", "postgresql://me:hush@db/x"], as_json=True) == 0
    text = capsys.readouterr().out
    said = json.loads(text)
    assert said["done"] is False
    assert "hush" not in text
    assert "trajectories" in said["plan"]["what"]
    assert "--seed 3" in " ".join(map(str, said["plan"].values()))


def test_a_dry_run_refuses_what_the_command_refuses(capsys: Any) -> None:
    words = "backtest --agent rules/rsi --market synthetic/btc-1h --fee-bps -1 --dry-run --json"
    assert run(words.split(), as_json=True) == 2
    assert "--fee-bps" in json.loads(capsys.readouterr().out)["what"]


@pytest.mark.parametrize("secret", ["changeme" * 8, "short", ""])
def test_a_dry_run_of_the_service_refuses_a_secret_that_can_be_guessed(
    secret: str, tmp_path: Any, monkeypatch: Any, capsys: Any
) -> None:
    words = ["serve", "--folder", str(tmp_path / "x"), "--dry-run", "--json"]
    monkeypatch.setenv("AGENT_GYM_SESSION_SECRET", secret)
    assert run(words, as_json=True) == 2
    assert "could be guessed" in capsys.readouterr().out
    assert run([*words, "--no-dashboard"], as_json=True) == 0  # nothing is signed then
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_of_the_service_refuses_to_listen_in_public(
    tmp_path: Any, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    words = ["serve", "--host", "0.0.0.0", "--dry-run", "--json"]
    assert run(words, as_json=True) == 2
    assert "--remote" in capsys.readouterr().out
    assert run([*words, "--remote"], as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["listens at"] == "0.0.0.0:8000"


def test_a_dry_run_of_the_service_refuses_files_that_others_may_read(
    tmp_path: Any, capsys: Any
) -> None:
    (tmp_path / "session.key").write_text("0" * 64)
    (tmp_path / "session.key").chmod(0o644)
    assert run(["serve", "--folder", str(tmp_path), "--dry-run", "--json"], as_json=True) != 0
    assert "others may read" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("marl train --algo mappoo", "mappoo"),
        ("marl train --map 3m --out /proc/x", "/proc/x"),
        ("marl compare --algos mappo,foo", "foo"),
        ("marl compare --algos mappo --out /proc/x", "/proc/x"),
        ("marl ablation --arms nobody", "nobody"),
        ("marl diagnose --algo mappo", "mappo"),
    ],
)
def test_a_dry_run_of_a_study_refuses_what_the_study_refuses(
    words: str, said: str, capsys: Any
) -> None:
    assert run([*words.split(), "--dry-run", "--json"], as_json=True) == 2
    assert said in capsys.readouterr().out


def test_a_dry_run_of_a_study_counts_its_trainings(
    tmp_path: Any, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    words = "marl compare --algos mappo,amal --maps 3m@1000,8m@500 --seeds 3 --dry-run --json"
    assert run(words.split(), as_json=True) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["trainings"] == "12, of which 0 are done"
    assert plan["environment steps"] == "9,000"
