"""Whatever ends a run is told clearly, written down, and leaves nothing half-written."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from agent_gym.agents.sb3.artifact import verify_model
from agent_gym.core.errors import AgentError, AgentGymError, ConfigError, DataError, StoreError
from agent_gym.training.rl.checkpoints import CheckpointStore
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.folder_lock import at_work
from agent_gym.training.rl.overrides import default_folder
from agent_gym.training.rl.result import RunFolder
from agent_gym.training.rl.trainer import Trainer, create_trainer_from_config
from tests.training.rl_samples import csv_files, small_config

QUICK = {
    "steps": 54,
    "evaluation": {"every": 30, "episodes": 1, "final_episodes": 1},
    "checkpoints": {"every": 18, "keep": 1},
    "normalize": {},
}


class Paying(gym.Env[Any, Any]):
    """Pays NaN from some step on; with ``seen`` it shows it instead."""

    observation_space = gym.spaces.Box(-1, 1, (2,))

    def __init__(
        self, after: int = 30, continuous: bool = False, seen: bool = False, render_mode: Any = None
    ) -> None:
        self.action_space: Any = (
            gym.spaces.Box(-1, 1, (1,)) if continuous else gym.spaces.Discrete(2)
        )
        self._after, self._count, self._seen = after, 0, seen

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._count += 1
        bad = float("nan") if self._count > self._after else 1.0
        shown = np.full(2, bad if self._seen else 0.5, np.float32)
        return shown, 1.0 if self._seen else bad, self._count % 10 == 0, False, {}


gym.register("tests/Paying-v0", entry_point=Paying)


def assert_whole(folder: Path) -> None:
    """Every file that is there can be read to its end, and nothing temporary is left."""
    assert [path for path in folder.rglob("*") if ".tmp" in path.name] == []
    for path in folder.rglob("*.json"):
        json.loads(path.read_bytes())
    for path in folder.glob("*.csv"):
        rows = path.read_text().split("\n")
        assert rows.pop() == ""
        assert {row.count(",") for row in rows} == {rows[0].count(",")}
    run = RunFolder(folder)
    store = CheckpointStore(run.checkpoints)
    for step in store.steps():
        store.load(step)
    for model in (run.best, run.last):
        if model.exists():
            verify_model(model)


def written_error(folder: Path) -> dict[str, Any]:
    assert_whole(folder)
    result = json.loads(RunFolder(folder).result.read_bytes())
    assert result["status"] == "error"
    assert result["final_mean"] is None
    error: dict[str, Any] = result["error"]
    return error


# --- numbers that are none ---------------------------------------------------------------------


@pytest.mark.parametrize("algo", ["ppo", "a2c", "sac", "td3"])
def test_learning_rate_that_explodes_ends_clearly(algo: str, tmp_path: Path) -> None:
    config = small_config(algo)
    agent = config.agent.model_dump() | {"learning_rate": 1e30}
    config = small_config(algo, agent=agent, evaluation={"every": 10_000}, steps=2000)
    with pytest.raises(AgentError, match="left the finite numbers") as caught:
        Trainer(config, 5, tmp_path).train()
    assert "learning_rate" in str(caught.value)
    assert "iteration" in str(caught.value)
    assert written_error(tmp_path) == caught.value.as_dict()


@pytest.mark.parametrize(("algo", "continuous"), [("ppo", False), ("sac", True)])
def test_reward_that_is_no_number_ends_clearly(algo: str, continuous: bool, tmp_path: Path) -> None:
    params = {"after": 60, "continuous": continuous}
    config = small_config(algo, normalize={}, evaluation={"every": 10_000}, steps=2000).model_copy(
        update={"env": "tests/Paying-v0", "env_params": params, "continuous": None}
    )
    with pytest.raises(AgentError, match="left the finite numbers"):
        Trainer(config, 5, tmp_path).train()
    assert written_error(tmp_path)["found"].startswith(("a parameter", "critic_loss", "actor_loss"))


def test_reward_that_is_no_number_in_an_evaluation_ends_clearly(tmp_path: Path) -> None:
    config = small_config(
        "a2c",
        normalize={},
        steps=36,
        evaluation={"every": 18, "episodes": 9, "final_episodes": 1},
    ).model_copy(update={"env": "tests/Paying-v0", "env_params": {"after": 60}, "continuous": None})
    with pytest.raises(DataError, match="a reward that is not a number"):
        Trainer(config, 5, tmp_path).train()
    assert "seed" in written_error(tmp_path)["where"]
    assert not RunFolder(tmp_path).best.exists()


# --- nowhere to write --------------------------------------------------------------------------


class FailingCall:
    """Fails once, at the k-th call, as a disk does that is full; ``stays`` means ever after too."""

    def __init__(self, call: Callable[..., Any], k: int, *, stays: bool = False) -> None:
        self._call, self._k, self._stays, self.count = call, k, stays, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        if self.count - 1 == self._k or (self._stays and self.count > self._k):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._call(*args, **kwargs)


def quick() -> TrainerConfig:
    return small_config("a2c", **QUICK)


def test_full_disk_at_any_write_ends_clearly_and_can_be_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Trainer(quick(), 5, tmp_path / "whole").train()
    counting = FailingCall(os.fsync, 10**9)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", counting)
        Trainer(quick(), 5, tmp_path / "counted").train()
    assert counting.count > 30
    for k in range(0, counting.count, 7):
        folder = tmp_path / str(k)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", FailingCall(os.fsync, k))
            with pytest.raises(StoreError, match="No space left"):
                Trainer(quick(), 5, folder).train()
        assert "No space left" in written_error(folder)["found"]
        assert Trainer(quick(), 5, folder).train().state_hash == whole.state_hash
        assert csv_files(folder) == csv_files(tmp_path / "whole")


def test_row_that_does_not_fit_ends_clearly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(FileIO):
        rows = 0

        def write(self, content: Any) -> int:
            Full.rows += 1
            if Full.rows == 3:
                super().write(content[:5])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(content)

    with monkeypatch.context() as patched:
        patched.setattr("agent_gym.training.rl.tables.FileIO", Full)
        with pytest.raises(StoreError, match="No space left"):
            Trainer(quick(), 5, tmp_path).train()
    assert written_error(tmp_path)["where"].endswith(".csv")


def test_disk_that_stays_full_still_tells_the_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", FailingCall(os.fsync, 20, stays=True))
        with pytest.raises(StoreError, match="No space left"):
            Trainer(quick(), 5, tmp_path).train()
    assert_whole(tmp_path)
    assert not RunFolder(tmp_path).result.exists()


def test_folder_that_cannot_be_made_ends_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot write"):
        Trainer(quick(), 5, tmp_path / "file" / "run").train()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_second_process_in_a_folder_is_refused(tmp_path: Path) -> None:
    with at_work(tmp_path), pytest.raises(AgentGymError, match="at work here"):
        Trainer(quick(), 5, tmp_path).train()
    assert Trainer(quick(), 5, tmp_path).train().status == "done"


# --- asked for what is not ---------------------------------------------------------------------


def test_unknown_key_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="stepz") as caught:
        create_trainer_from_config({"algo": "ppo", "stepz": 5}, folder=tmp_path / "run")
    assert "'steps'" in str(caught.value)
    with pytest.raises(ConfigError, match="gama"):
        create_trainer_from_config({"algo": "ppo", "agent": {"gama": 5}}, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_wrong_pair_is_refused_with_the_fix_before_anything_is_written(tmp_path: Path) -> None:
    wrong = {"algo": "sac", "env": "LunarLander-v3"}
    with pytest.raises(ConfigError, match="LunarLanderContinuous-v3"):
        create_trainer_from_config(wrong, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    fits = create_trainer_from_config(wrong | {"continuous": "auto"}, folder=tmp_path / "run")
    assert fits.plan.recipe.continuous


def test_config_may_be_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    path = tmp_path / "run.yaml"
    path.write_text("algo: a2c\nenv: market\nsteps: 7\n")
    trainer = create_trainer_from_config(path, seed=3)
    assert trainer.config.steps == 7
    assert trainer.folder.path == tmp_path / "home/experiments/a2c_market/seed_3"
    assert default_folder(trainer.config, 3) == trainer.folder.path
    with pytest.raises(ConfigError, match="seed"):
        create_trainer_from_config(path, seed=-1)


# --- anything else -----------------------------------------------------------------------------


class Raising:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def on_iteration(self, _: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (RuntimeError("of a library"), "error"),
        (AgentGymError("of ours", remedy="Do that"), "error"),
    ],
)
def test_what_ends_a_run_is_written_down_and_raised(
    error: BaseException, status: str, tmp_path: Path
) -> None:
    with pytest.raises(type(error)):
        Trainer(quick(), 5, tmp_path, [Raising(error)]).train()
    result = json.loads(RunFolder(tmp_path).result.read_bytes())
    assert result["status"] == status
    told = result["error"]["what"] if result["error"] else ""
    assert str(getattr(error, "what", error)) in told
    assert Trainer(quick(), 5, tmp_path).train().status == "done"


@pytest.mark.parametrize("change", [{"backend": "envpool"}, {"learner": "sbx"}])
def test_run_that_cannot_be_gone_on_with_exactly_says_so(
    change: dict[str, Any], tmp_path: Path
) -> None:
    trainer = Trainer(quick(), 5, tmp_path)
    config = quick().model_copy(update=change)
    trainer.plan = trainer.plan._replace(config=config)
    tmp_path.mkdir(exist_ok=True)
    RunFolder(tmp_path).config.write_text(json.dumps(config.model_dump(mode="json")))
    with pytest.raises(ConfigError, match="cannot go on") as caught:
        trainer.train()
    assert "cannot be kept" in str(caught.value)
    assert "--fresh" in str(caught.value)
