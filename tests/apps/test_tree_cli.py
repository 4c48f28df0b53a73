"""The whole tree of commands: light to start, help for each, JSON from each, names completed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_gym.apps.cli import completion, known_names
from agent_gym.apps.cli.main import COMMANDS
from agent_gym.apps.cli.tree import load_command, load_whole
from agent_gym.envs.battle import MAPS
from agent_gym.training.rl.experiment_config import shipped_names, shipped_trainings

ROOT = Path(__file__).parents[2]
HEAVY = (
    "torch",
    "numba",
    "polars",
    "pandas",
    "numpy",
    "scipy",
    "scipy.stats",
    "matplotlib",
    "gymnasium",
)
WITHOUT_JSON = {
    "benchmark mcp": "speaks the Model Context Protocol on standard output",
    "mcp": "speaks the Model Context Protocol on standard output",
}
"""Commands that print no result, and why."""


def leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with its words."""
    inside = getattr(command, "commands", {})
    if not inside or getattr(command, "invoke_without_command", False):
        yield " ".join(path), command
    for name, each in inside.items():
        yield from leaves(each, (*path, name))


LEAVES = [leaf for name in COMMANDS for leaf in leaves(load_whole(name, COMMANDS[name]), (name,))]


def in_a_process(program: str, **settings: str) -> tuple[str, str]:
    """Return what a fresh interpreter prints, on both sides."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout, done.stderr


def loaded_by(words: str, **settings: str) -> tuple[str, list[str]]:
    """Run a command line in a fresh interpreter; return what it said and what it imported."""
    program = (
        "import sys\nfrom agent_gym.apps.cli.main import run\n"
        f"try:\n    run({words.split()!r}, as_json=False)\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    out, err = in_a_process(program, **settings)
    said, _, found = out.rpartition("LOADED")
    return said + err, found.split()


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[words for words, _ in LEAVES])
def test_every_command_says_what_it_does_and_speaks_json(words: str, command: Any) -> None:
    text = (command.help or "").strip()
    assert len(text.split()) >= 4, f"{words} has no description"
    for option in command.params:
        if option.param_type_name == "option" and not option.hidden:
            assert option.help, f"{words} {option.opts[0]} has no help"
    has_json = any("--json" in option.opts for option in command.params)
    assert has_json != (words in WITHOUT_JSON), f"{words}: --json, or a reason why not"


def test_no_reason_stands_for_a_command_that_is_gone() -> None:
    assert set(WITHOUT_JSON) <= {words for words, _ in LEAVES}


@pytest.mark.parametrize("words", ["--help", "--version", "bogus", "--bogus"])
def test_the_root_imports_nothing_heavy(words: str) -> None:
    said, found = loaded_by(words)
    assert said.strip()
    assert found == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("marl", "behaviour"),
        ("marl --help", "Play replays again; one that was changed"),
        ("marl shwo", "Did you mean 'show'"),
    ],
)
def test_the_help_of_teams_imports_none_of_its_parts(words: str, hint: str) -> None:
    said, found = loaded_by(words)
    assert hint in " ".join(said.replace("│", " ").split())
    assert set(found) <= {"numpy"}  # of the clock, which tells how long kernels are compiled


def test_lines_of_lazy_parts_are_the_first_sentences_of_their_help() -> None:
    lines = load_command("marl").commands
    parts = load_whole("marl").commands
    assert list(lines) == list(parts)
    for name, part in parts.items():
        said = " ".join(part.help.split("\n\n")[0].split())
        assert said == lines[name].help


def test_battles_are_recorded_and_watched_without_what_learns_and_draws(tmp_path: Path) -> None:
    replay = tmp_path / "3m-nearest-seed0-0001.battle.jsonl"
    for words, done in (
        (f"marl record --script nearest --out {tmp_path}", replay.exists),
        (f"marl verify {replay}", lambda: True),
        (f"marl show {replay}", (tmp_path / "3m-nearest-seed0-0001.html").exists),
    ):
        said, found = loaded_by(words)
        assert replay.name.partition(".")[0] in "".join(said.split())
        assert done()
        assert not {"torch", "matplotlib", "scipy.stats"} & set(found)


def test_help_lists_every_command_with_its_line() -> None:
    said, _ = loaded_by("--help")
    for name, text in COMMANDS.items():
        assert f"  {name} " in said
        assert text[:30] in said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("train --confg x", "--config"),
        ("train --config lander-pp", "lander-ppo"),
        ("train --algo pp0 --env LunarLander-v3", "'ppo'"),
        ("train --config lander-ppo --set agent.gama=1", "'gamma'"),
        ("train verif", "'verify'"),
        ("train speed --config lander-pp", "lander-ppo"),
        ("harness --agnts 3", "--agents"),
        ("harness --policy umk", "umc"),
        ("verify --foldr x", "--folder"),
        ("harness --help", "--shuffle-rewards"),
        ("train --help", "unsafe-import-zip"),
    ],
)
def test_a_typo_is_refused_before_torch_is_loaded(words: str, hint: str) -> None:
    said, found = loaded_by(words)
    assert hint in said
    assert not {"torch", "numba", "polars"} & set(found)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("agent-gym ba", ["backtest"]),
        ("agent-gym agents ", ["list", "show"]),
        ("agent-gym agents show rules/sma", ["rules/sma-cross"]),
        ("agent-gym backtest --agent rules/sma", ["rules/sma-cross"]),
        ("agent-gym backtest --market known/b", ["known/b1"]),
        ("agent-gym audit mapp", ["mappo", "mappo-reuse", "mappo-short"]),
        ("agent-gym train --config market-t", ["market-td3"]),
        ("agent-gym experiment run gam", ["gamma_experiments"]),
        ("agent-gym marl train --map 3s", ["3s_vs_5z"]),
        ("agent-gym market generate --preset btc-1h", ["btc-1h"]),
        ("agent-gym replay latest flash", ["flash_crash"]),
        ("agent-gym harness --shuf", ["--shuffle-rewards"]),
    ],
)
def test_a_shell_completes_names_without_heavy_libraries(line: str, expected: list[str]) -> None:
    words = line.split(" ")
    said, found = loaded_by(
        "",
        _AGENT_GYM_COMPLETE="complete_bash",
        COMP_WORDS=line,
        COMP_CWORD=str(len(words) - 1),
    )
    assert said.split()[: len(expected)] == expected
    assert set(said.split()) - {"--no-shuffle-rewards"} == set(expected)
    assert not {"torch", "numba", "polars"} & set(found)


def test_options_after_a_first_word_that_is_a_name_are_completed_too() -> None:
    settings = {"_AGENT_GYM_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    said, _ = loaded_by("", COMP_WORDS="agent-gym audit --less", **settings)
    assert said.split() == ["--lessons"]


def test_the_light_lists_are_those_of_the_rooms() -> None:
    assert tuple(MAPS) == known_names.MAPS
    assert set(known_names.trainings()) == set(shipped_trainings())
    assert set(known_names.experiments()) == set(shipped_names()) - set(shipped_trainings())
    teams = {path.stem for path in (known_names.CONFIGS / "marl").glob("*.yaml")}
    assert set(known_names.TEAMS) == teams


def test_what_is_completed_exists() -> None:
    options = {name for _, command in LEAVES for each in command.params for name in each.opts}
    assert set(completion.OPTIONS) <= options
    for source in (*completion.OPTIONS.values(), *completion.ARGUMENTS.values()):
        assert source()


def test_completion_can_be_installed(tmp_path: Path) -> None:
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # whatever shell runs the tests
    said, _ = loaded_by("--install-completion bash", HOME=str(tmp_path), **named)
    assert "completion installed" in said
    script = tmp_path / ".bash_completions" / "agent-gym.sh"
    assert "_AGENT_GYM_COMPLETE=complete_bash" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()


def test_a_misspelled_team_is_near_a_team() -> None:
    said, _ = loaded_by("audit amall")
    assert "Did you mean 'amal'" in said
    assert "mappo-reuse" in said


def test_commands_stand_in_the_order_of_their_names() -> None:
    assert sorted(COMMANDS) == list(COMMANDS)


@pytest.mark.parametrize(
    ("words", "known"),
    [("train --config lander-ppo --seeds 2", "250000"), ("harness --agents 3", "rehearsal")],
)
def test_a_dry_run_tells_the_plan_and_does_nothing(words: str, known: str, tmp_path: Path) -> None:
    said, found = loaded_by(f"{words} --dry-run --json", AGENT_GYM_HOME=str(tmp_path / "home"))
    assert '"done": false' in said
    assert known in said
    assert "torch" not in found
    assert not list(tmp_path.iterdir())
