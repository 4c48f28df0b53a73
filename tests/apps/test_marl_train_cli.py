"""``agent-gym marl train`` and ``compare``: what they write, say, refuse and go on with."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agent_gym.apps.cli import marl_train
from agent_gym.apps.cli.marl_choices import names_of, tasks_of
from agent_gym.apps.cli.marl_compare import CompareJob, StudyPlaces, compare_jobs
from agent_gym.apps.cli.marl_view import progress_line, reached_words
from agent_gym.apps.cli.output import EXIT_DATA, EXIT_OK, EXIT_RUN, EXIT_USAGE
from agent_gym.core.clock import ManualClock, SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.rollouts.jobs import pack
from agent_gym.training.marl import TeamTrainConfig, TeamTrainer
from agent_gym.training.marl.collection import Episodes
from agent_gym.training.marl.jobs import Ran, TeamJob, read_progress, told_in
from agent_gym.training.marl.learner import LearnFigures
from agent_gym.training.marl.looks import Look
from agent_gym.training.marl.records import Progress
from agent_gym.training.marl.runs import changed, named_config, stored_training
from tests.apps.cli_samples import Call, make_call

TINY = {
    "n_envs": 4,
    "n_steps": 20,
    "env_steps": 800,
    "network": {"hidden": 8},
    "learn": {"epochs": 2},
    "evaluation": {"every": 240, "episodes": 8, "final_episodes": 16},
    "checkpoint_every": 80,
}


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    return make_call("marl", monkeypatch, capsys)


def tiny(folder: Path, name: str = "tiny", **changes: Any) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(TINY | changes))
    return path


def tiny_amal(folder: Path) -> Path:
    learn = {"epochs": 2, "reuse": {}}
    model = {"hidden": 8, "updates": 2}
    amal = {"num_auxiliary_agents": 2, "evolution_frequency": 1, "model": model, "cem_probes": 4}
    return tiny(folder, "whole", learn=learn, amal=amal)


def trained(config: Path, folder: Path, command: str = "") -> None:
    """Train here and now, without a process of its own."""
    TeamTrainer(named_config(str(config))[1], folder, command=command.split()).train()


def bits(folder: Path) -> dict[str, bytes]:
    """Return all that equal trainings share, by name."""
    names = [folder / "training.json", *sorted((folder / "policy").iterdir())]
    return {str(path.relative_to(folder)): path.read_bytes() for path in names}


def test_seeds_are_trained_judged_and_told(call: Call, tmp_path: Path) -> None:
    config = tiny(tmp_path)
    words = ("train", "--config", config, "--seeds", 2, "--seed", 3)
    code, out, _ = call(*words, "--json")
    assert code == EXIT_OK
    said = json.loads(out)
    folder = tmp_path / "home" / "experiments" / "marl" / "3m-800" / "tiny"
    assert said["folder"] == str(folder)
    assert [each["seed"] for each in said["seeds"]] == [3, 4]
    first = said["seeds"][0]
    assert first["final"]["episodes"] == 16
    assert first["final"]["low"] <= first["final"]["estimate"] <= first["final"]["high"]
    assert first["steps_to"]["0.8"] == {"env_steps": 800, "reached": False}
    assert said["figures"]["steps_to"]["0.8"]["not_reached"] == 2
    kept = json.loads((folder / "seed_4" / "training.json").read_text())
    assert kept["manifest"]["command"] == (
        f"agent-gym marl train --config {config} --map 3m --steps 800 --seed 4"
    )
    assert not (folder / "seed_3" / "progress.json").exists()
    # The number of processes changes no bit, and seeds differ.
    assert call(*words, "--jobs", 2, "--out", tmp_path / "out")[0] == EXIT_OK
    for seed in ("seed_3", "seed_4"):
        assert bits(folder / seed) == bits(tmp_path / "out" / seed)
    assert bits(folder / "seed_3") != bits(folder / "seed_4")
    # What is done is not done again: a record that was touched up is believed, not made anew.
    kept["final"]["wins"] = 16
    (folder / "seed_4" / "training.json").write_text(json.dumps(kept))
    code, shown, _ = call(*words)
    assert code == EXIT_OK
    assert "100.0%" in shown
    assert "not by 800" in shown


def test_a_killed_training_goes_on_to_the_bit(call: Call, tmp_path: Path) -> None:
    config = tiny(tmp_path, env_steps=4_000, checkpoint_every=400)
    folder = tmp_path / "killed" / "seed_0"
    _kill_in_the_middle(config, folder)
    assert call("train", "--config", config, "--out", folder.parent)[0] == EXIT_OK
    command = f"agent-gym marl train --config {config} --map 3m --steps 4000 --seed 0"
    trained(config, tmp_path / "whole", command)
    assert bits(folder) == bits(tmp_path / "whole")


def _kill_in_the_middle(config: Path, folder: Path) -> None:
    """Train in a process of its own, and end it as soon as it has kept something."""
    job = TeamJob(
        arm="tiny", config=named_config(str(config))[1], folder=folder, command=("of", "another")
    )
    work = "import json, sys; from agent_gym.rollouts.jobs import unpack"
    work += "; unpack(json.loads(sys.argv[1])).run()"
    process = subprocess.Popen([sys.executable, "-c", work, json.dumps(pack(job))])
    clock = SystemClock()
    while not (folder / "checkpoint").exists():
        assert process.poll() is None
        clock.sleep_s(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not (folder / "training.json").exists()


@pytest.mark.parametrize(
    ("words", "found", "remedy"),
    [
        (("--algo", "mapo"), "mapo", "Did you mean 'mappo'"),
        (("--map", "2s_vs_1s"), "2s_vs_1s", "Did you mean '2s_vs_1sc'"),
        (("--seeds", "0"), "0", ""),
        (("--steps", "0"), "0", ""),
        (("--reward", "dens"), "'dens'", ""),
        (("--config", "nowhere.yaml"), "None", "Check the path"),
        (("--algo", "ippo", "--config", "mine.yaml"), "--algo ippo and --config mine.yaml", ""),
        (("--set", "learn.epoch=3"), "learn.epoch", "Did you mean 'learn.epochs'"),
        (("--set", "lern.epochs=3"), "lern", "Did you mean 'learn'"),
        (("--set", "seed.a=3"), "seed.a", "Known: "),
        (("--set", "learn.reuse.wait=3"), "3", ""),
        (("--set", "gibberish"), "'gibberish'", "TeamTrainConfig"),
        (("--set", "n_envs=1000000000"), "1000000000", ""),
        (("--set", "n_steps=1000000000"), "1000000000", ""),
        (("--set", "network.hidden=1000000", "--dry-run"), "1000000", ""),
        (("--set", "network.layers=1000000", "--dry-run"), "1000000", ""),
        (("--algo", "amal", "--set", "amal.model.hidden=1000000"), "1000000", ""),
        (("--map", "3m", "--set", "world.map=8m"), "an option says it as well", ""),
    ],
)
def test_what_cannot_be_trained_is_refused(
    call: Call, words: tuple[str, ...], found: str, remedy: str
) -> None:
    code, out, _ = call("train", *words, "--json")
    error = json.loads(out)
    assert code == EXIT_USAGE
    assert str(error["found"]) == found
    assert remedy in (error["remedy"] or "")


def test_the_largest_sizes_are_taken(call: Call) -> None:
    sizes = ("n_envs=4096", "n_steps=10000", "network.hidden=4096", "network.layers=64")
    words = [word for pair in sizes for word in ("--set", pair)]
    assert call("train", *words, "--dry-run", "--json")[0] == EXIT_OK


def test_what_failed_is_told_and_nothing_else(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, out = tiny(tmp_path), tmp_path / "out"
    trained(config, out / "seed_0")
    told = {"error": "MemoryError", "what": "Unable to allocate 7 TiB", "raised_at": None}

    def failing(jobs: list[TeamJob], _workers: int) -> Ran:
        return Ran([stored_training(job.folder) or told for job in jobs], complete=True)

    monkeypatch.setattr(marl_train, "run_teams", failing)
    words = ("train", "--config", config, "--out", out)
    code, shown, _ = call(*words, "--seed", 1)
    assert code == EXIT_RUN
    assert "Nothing was trained" in shown
    assert "Seed 1 failed: Unable to allocate 7 TiB" in shown
    assert "fresh starts won" not in shown
    assert "Written" not in shown
    # Beside a seed that was trained the table says what that one came to.
    code, shown, _ = call(*words, "--seeds", 2)
    assert code == EXIT_RUN
    assert "Seed 1 failed: Unable to allocate 7 TiB" in shown
    assert "fresh starts won" in " ".join(shown.split())
    assert "Written to" in shown
    assert "Nothing" not in shown


def test_another_training_or_other_files_are_not_written_over(call: Call, tmp_path: Path) -> None:
    config, out = tiny(tmp_path), tmp_path / "out"
    trained(config, out / "seed_0")
    before = bits(out / "seed_0")
    code, _, said = call("train", "--config", config, "--out", out, "--set", "learn.epochs=1")
    assert code == EXIT_USAGE
    assert "learn.epochs: 2 there, 1 here" in said
    assert "--out" in said
    assert bits(out / "seed_0") == before
    # When checkpoints are written changes no number, so it is the same training.
    again = ("--config", config, "--out", out, "--set", "checkpoint_every=7")
    assert call("train", *again)[0] == EXIT_OK
    code, _, said = call("train", "--config", config, "--out", tmp_path)
    assert code == EXIT_USAGE
    assert "other files" in said
    # A record that cannot be read is told.
    (out / "seed_0" / "timings.json").write_text("{")
    code, _, said = call("train", "--config", config, "--out", out)
    assert code == EXIT_DATA
    assert "timings.json" in said


def test_a_comparison_plays_what_is_missing_and_writes_a_page(call: Call, tmp_path: Path) -> None:
    mappo, ippo = tiny(tmp_path, "mappo"), tiny(tmp_path, "ippo", learn={"critic": "own"})
    words = ("compare", "--algos", f"{mappo},{ippo}", "--seeds", 2, "--maps", "3m,3m:kills@400")
    runs = tmp_path / "runs"
    code, out, _ = call(*words, "--runs", runs, "--out", tmp_path / "docs", "--json")
    assert code == EXIT_OK
    said = json.loads(out)
    assert set(said["tasks"]) == {"3m", "3m:kills"}
    assert said["tasks"]["3m:kills"]["until"] == 400
    assert len(said["runs"]) == 8
    assert said["tasks"]["3m"]["verdicts"]["ippo"]["word"] == "not shown"
    assert said["manifest"]["seeds"] == [0, 1]
    assert json.loads((tmp_path / "docs" / "marl.json").read_text()) == said
    page = (tmp_path / "docs" / "marl.md").read_text()
    assert "0 of 2 seeds win at least 95 % of fresh starts" in page
    code, out, _ = call("compare", runs / "3m-800", "--json")
    again = json.loads(out)
    assert code == EXIT_OK
    for arm, own in again["tasks"]["3m"]["arms"].items():
        assert own == said["tasks"]["3m"]["arms"][arm]
    assert call("compare", runs / "3m-800", "--seeds", 3)[0] == EXIT_USAGE
    assert call("compare", tmp_path / "docs")[0] == EXIT_DATA


def test_an_ablation_compares_arms_seed_by_seed(call: Call, tmp_path: Path) -> None:
    words = ("ablation", "--algo", tiny_amal(tmp_path), "--arms", "mappo,lambda-0", "--seeds", 2)
    code, out, _ = call(*words, "--runs", tmp_path / "runs", "--out", tmp_path / "docs", "--json")
    assert code == EXIT_OK
    said = json.loads(out)
    assert {one["arm"] for one in said["comparisons"]} == {"mappo", "lambda-0"}
    assert said["too_few_seeds"] == ["mappo", "lambda-0"]
    assert said["arms"]["lambda-0"] == "`amal.lambda_info` = 0.0"
    for run in said["runs"]:  # what AMAL spent is read from its record
        assert (run["auxiliary_share"] is None) == (run["arm"] == "mappo")
        assert (run["bonus_weight"] == 0.0) == (run["arm"] == "lambda-0")
    assert 0.0 < said["runs"][0]["auxiliary_share"] < 1.0
    assert "too few seeds" in (tmp_path / "docs" / "marl_ablation.md").read_text()
    # The command of an arm makes it again.
    kept = next(run for run in said["runs"] if run["arm"] == "lambda-0" and run["seed"] == 1)
    again = shlex.split(kept["command"])[2:]
    assert call(*again, "--out", tmp_path / "again", "--json")[0] == EXIT_OK
    record = json.loads((tmp_path / "again" / "seed_1" / "training.json").read_text())
    assert record["model_hash"] == kept["model_hash"]
    assert call("ablation", "--arms", "lambda-1")[0] == EXIT_USAGE


def test_a_diagnosis_tells_what_is_missed_by_its_exit_code(call: Call, tmp_path: Path) -> None:
    words = ("diagnose", "--algo", tiny_amal(tmp_path), "--runs", tmp_path / "runs")
    code, out, _ = call(*words, "--out", tmp_path / "docs", "--json")
    said = json.loads(out)
    missed = [name for name, one in said["figures"].items() if not one["passed"]]
    assert missed  # a training of seconds cannot have learned a world
    assert code == EXIT_RUN
    assert said["figures"]["leaks"]["passed"]
    assert (tmp_path / "docs" / "marl_diagnosis.svg").exists()
    code, shown, _ = call(*words)
    assert code == EXIT_RUN
    assert f"Missed: {missed[0]}" in shown
    code, _, told = call("diagnose", "--algo", tiny(tmp_path))
    assert code == EXIT_USAGE
    assert "only a training of AMAL" in told


def test_looks_can_be_closer_in_folders_of_their_own(tmp_path: Path) -> None:
    places = StudyPlaces(runs=tmp_path)
    usual, often = (
        compare_jobs(CompareJob(algos="mappo", seeds=2, looks_every=every), places)[0]
        for every in (None, 2_000)
    )
    assert usual.folder == tmp_path / "3m-250000" / "mappo" / "seed_0"
    assert often.folder == tmp_path / "3m-250000-looks2000" / "mappo" / "seed_0"
    assert (usual.config.evaluation.every, often.config.evaluation.every) == (8_000, 2_000)
    words = often.command[often.command.index("--seed") + 2 :]
    assert words == ("--set", "evaluation.every=2000")
    with pytest.raises(ValidationError):
        CompareJob(looks_every=0)


def test_tasks_and_names_are_read_or_refused() -> None:
    assert tasks_of("8m@5", "sparse", None) == [("8m", "sparse", 5)]
    for words in ("3m:", "3m@x", "3n", ""):
        with pytest.raises(ConfigError):
            tasks_of(words, None, None)
    with pytest.raises(ConfigError, match="each once"):
        names_of("a,a", "--algos")


def test_a_part_is_changed_where_it_is_named_and_nowhere_else() -> None:
    config = changed(TeamTrainConfig(), {"learn": {"epochs": 3}, "learn.reuse": {}}, where="here")
    assert config.learn.epochs == 3
    assert config.learn.clip == TeamTrainConfig().learn.clip
    assert config.algorithm == "mappo-reuse"
    deeper = changed(config, {"learn.reuse.weight": 0.25}, where="here")
    assert deeper.learn.reuse is not None
    assert deeper.learn.reuse.weight == 0.25


def test_progress_is_left_about_once_a_second(tmp_path: Path) -> None:
    clock = ManualClock()
    tell = told_in(tmp_path, clock)
    blank = {f.name: {} if "Mapping" in str(f.type) else 0.0 for f in fields(LearnFigures)}
    known: dict[str, Any] = {"entropy": 1.25, "approx_kl": 0.01, "clip_fraction": 0.1}
    figures = LearnFigures(
        **(blank | known | {"policy_loss": float("nan"), "ess": {"reused": 0.9}})
    )

    def progress(steps: int, look: Look | None = None) -> Progress:
        return Progress(1, steps, 800, Episodes(2, 1, 3.0), figures, look)

    assert read_progress(tmp_path) is None
    tell(progress(80))
    tell(progress(160, Look(8, 6, 1.0, 2.0)))
    found = read_progress(tmp_path)
    assert found is not None
    assert found["env_steps"] == 80
    clock.sleep_s(1.0)
    tell(progress(240))
    job = TeamJob(arm="tiny", config=TeamTrainConfig(env_steps=800), folder=tmp_path, command=())
    assert progress_line([job]) == (
        "0 of 1 done; tiny 3m seed 0 30% "
        "(wins 75 %, entropy 1.2, kl 0.01, clip fraction 0.1, ess reused 0.9)"
    )
    assert reached_words({"env_steps": 80, "reached": True}) == "80"
