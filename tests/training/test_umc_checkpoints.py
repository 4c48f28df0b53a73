"""Checkpoints of UMC: SIGKILL at any step, damaged and foreign ones, and evaluation under them."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from agent_gym.agents.echo import EchoConfig
from agent_gym.agents.umc import keeper as keeping
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.training.umc import TrainEvent, UMCTrained, UMCTrainer, judge_walk
from agent_gym.training.umc.checkpoints import read_checkpoint
from tests.training.umc_samples import WALK, bars_of, config_of, contents, killed, trained

RECURRENT = "fit-0-umc-model-umc-recurrent"


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> UMCTrained:
    return trained(tmp_path_factory.mktemp("unbroken"))


def test_training_that_is_killed_again_and_again_ends_like_the_unbroken_one(
    tmp_path: Path, unbroken: UMCTrained
) -> None:
    kept = tmp_path / "checkpoints"
    assert killed(tmp_path, "recurrent", 9) == -signal.SIGKILL  # in the midst of a fit of the model
    assert [path.name for path in kept.iterdir()] == [RECURRENT]
    state, _ = read_checkpoint(kept / RECURRENT)
    assert state.values["step"] == 5
    assert killed(tmp_path, "actor", 30) == -signal.SIGKILL  # of the actor of the second fold
    assert killed(tmp_path, "fold 3", 1) == -signal.SIGKILL  # between two folds
    assert not (tmp_path / "fold_3").exists()
    told: list[TrainEvent] = []
    trained(tmp_path, tell=told.append)
    assert {event.fold for event in told if event.fit is not None} == {3}
    assert contents(tmp_path) == contents(unbroken.folder)


@pytest.fixture
def copied(tmp_path: Path, unbroken: UMCTrained) -> Path:
    shutil.copytree(unbroken.folder, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.mark.parametrize("name", ["arrays.safetensors", "values.json", "manifest.json"])
def test_a_damaged_checkpoint_is_refused(copied: Path, name: str) -> None:
    path = copied / "checkpoints" / RECURRENT / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError) as caught:
        trained(copied)
    assert RECURRENT in str(caught.value.where)
    assert "fold 1 of 3" in str(caught.value.where)
    assert "Remove" in str(caught.value.remedy)


def test_removing_it_as_the_remedy_says_helps(copied: Path, unbroken: UMCTrained) -> None:
    shutil.rmtree(copied / "checkpoints" / RECURRENT)
    trained(copied)
    assert contents(copied) == contents(unbroken.folder)


def test_a_checkpoint_of_another_fit_is_refused(copied: Path) -> None:
    place = copied / "checkpoints"
    shutil.rmtree(place / RECURRENT)
    shutil.copytree(place / RECURRENT.replace("fit-0", "fit-1"), place / RECURRENT)
    with pytest.raises(DataError, match="state is of another fit"):
        trained(copied)


def test_what_a_kill_left_half_written_is_tidied_away(copied: Path) -> None:
    rest = copied / "checkpoints" / f".{RECURRENT}.abc.tmp"
    rest.mkdir()
    trained(copied)
    assert not rest.exists()


def test_evaluation_trades_the_very_agents_that_were_trained(
    tmp_path: Path, unbroken: UMCTrained
) -> None:
    plain = Ledger(bars_of(), WALK, config_of().backtest, 3)
    alone = plain.decide(Arm(label="umc", refs=(config_of().ref,)))  # without any keeper
    told: list[TrainEvent] = []
    trainer = UMCTrainer(bars_of(), config_of(), unbroken.folder, told.append)
    setting = Setting(TrialRegistry(tmp_path / "trials.jsonl"))
    run = judge_walk(trainer, setting, draws=20, echoes=EchoConfig(size=0))
    assert not told  # no step was taken
    assert np.array_equal(run.results.target, alone.targets)
    for fold, mine in zip(run.folds, unbroken.folds, strict=True):
        for name, array in mine.agent.weights().items():
            assert np.array_equal(fold.agent.weights()[name], array)


def test_only_a_walk_can_be_judged(tmp_path: Path) -> None:
    trainer = UMCTrainer(bars_of(), config_of(walk=None), tmp_path)
    setting = Setting(TrialRegistry(tmp_path / "trials.jsonl"))
    with pytest.raises(ConfigError, match="only a walk"):
        judge_walk(trainer, setting, draws=20, echoes=EchoConfig(size=0))


def test_a_keeper_is_in_charge_for_a_while_only() -> None:
    class Named:
        def __init__(self) -> None:
            self.names: list[str] = []

        def run(self, name: str, fit: keeping.ResumableFit) -> None:
            self.names.append(name)

    one = Named()
    with pytest.raises(RuntimeError), keeping.kept_by(one):
        raise RuntimeError
    assert isinstance(keeping._in_charge.get(), keeping.Plain)
