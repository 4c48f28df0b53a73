"""A run that was stopped and gone on with is, bit by bit, the run that was not stopped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from agent_gym.core.seeds import Seeds
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.result import RunFolder
from agent_gym.training.rl.setup import Setup
from agent_gym.training.rl.snapshot import Snapshot, capture, restore, state_hash
from agent_gym.training.rl.trainer import Trainer
from tests.training.rl_samples import (
    FOUR,
    OTHERS,
    StopAt,
    begin,
    csv_files,
    run_out,
    small_config,
)

ITERATION = {"ppo": 72, "a2c": 18}  # steps of one; 6 for all others
CASES = [*((algo, "lander") for algo in FOUR + OTHERS), *((algo, "market") for algo in FOUR)]


@cache
def unbroken(algo: str, env: str) -> tuple[str, dict[str, bytes]]:
    folder = Path(mkdtemp())
    result = Trainer(small_config(algo, env), 5, folder).train()
    assert result.status == "done"
    assert result.state_hash is not None
    return result.state_hash, csv_files(folder)


def random_boundary(algo: str, env: str, config: TrainerConfig) -> int:
    """Return an iteration after the first checkpoint and before the last step."""
    size = ITERATION.get(algo, 6)
    first, last = config.checkpoints.every // size + 2, config.steps // size
    return int(Seeds(7).child(algo, env).rng().integers(first, last))


@pytest.mark.parametrize(("algo", "env"), CASES)
def test_stopped_and_gone_on_with_equals_unbroken(algo: str, env: str, tmp_path: Path) -> None:
    config = small_config(algo, env)
    stop = random_boundary(algo, env, config)
    with pytest.raises(StopAt.Killed):
        Trainer(config, 5, tmp_path, [StopAt(stop)]).train()
    assert RunFolder(tmp_path).checkpoints.exists()
    said: list[str] = []
    result = Trainer(config, 5, tmp_path).train(say=said.append)
    assert said[0].startswith("going on from step")
    assert (result.state_hash, csv_files(tmp_path)) == unbroken(algo, env)


def test_stopped_many_times_equals_unbroken(tmp_path: Path) -> None:
    config = small_config("td3")
    for stop in (3, 14, 27, 33, 60):
        with pytest.raises(StopAt.Killed):
            Trainer(config, 5, tmp_path, [StopAt(stop)]).train()
    result = Trainer(config, 5, tmp_path).train()
    assert (result.state_hash, csv_files(tmp_path)) == unbroken("td3", "lander")


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    result = Trainer(small_config("ppo"), 6, tmp_path).train()
    assert result.state_hash != unbroken("ppo", "lander")[0]


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_evaluations_and_checkpoints_do_not_change_training(algo: str, tmp_path: Path) -> None:
    seldom = {"every": 10_000, "episodes": 1, "final_episodes": 1}
    config = small_config(algo, evaluation=seldom, checkpoints={"every": 10_000})
    result = Trainer(config, 5, tmp_path).train()
    assert result.state_hash == unbroken(algo, "lander")[0]


# --- what a snapshot must hold: each part, left out, is missed --------------------------------

PARTS = {
    "numpy generator": ("rng/numpy",),
    "torch generator": ("rng/torch",),
    "environments": ("env/", "last/"),
    "optimisers": ("torch/policy.optimizer", "torch/actor.optimizer", "torch/critic.optimizer"),
    "normaliser": ("normalizer/",),
    "weights": ("torch/policy/",),
    "replay": ("replay/",),
    "counters": (),
}
VALUES = {
    "numpy generator": "rng",
    "environments": "env",
    "optimisers": "optimizers",
    "normaliser": "normalizer",
    "replay": "replay",
    "counters": "counters",
}


def without(part: str, whole: Snapshot, fresh: Snapshot) -> Snapshot:
    """Return a snapshot in which one part is that of a run that has just begun."""
    starts = PARTS[part]
    arrays = {
        name: array for name, array in whole.arrays.items() if not name.startswith(starts or "?")
    }
    arrays |= {name: a for name, a in fresh.arrays.items() if starts and name.startswith(starts)}
    name = VALUES.get(part)
    values = whole.values | ({} if name is None else {name: fresh.values[name]})
    return Snapshot(arrays, values)


def weights(setup: Setup) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in setup.model.policy.state_dict().values())


@cache
def cut(algo: str) -> tuple[Snapshot, bytes, str]:
    setup, loop = begin(small_config(algo))
    while loop.step < 200:
        loop.iterate()
    middle = capture(*setup)
    run_out(loop)
    return middle, weights(setup), state_hash(capture(*setup))


def go_on(algo: str, part: str | None) -> tuple[bytes, str]:
    setup, loop = begin(small_config(algo), seed=8)
    middle = cut(algo)[0]
    restore(*setup, middle if part is None else without(part, middle, capture(*setup)))
    run_out(loop)
    return weights(setup), state_hash(capture(*setup))


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_whole_snapshot_leads_to_the_same_weights_in_new_objects(algo: str) -> None:
    assert go_on(algo, None) == cut(algo)[1:]


@pytest.mark.parametrize(
    ("algo", "part"),
    [
        (algo, part)
        for algo in ("ppo", "sac")
        for part in PARTS
        if (algo, part) != ("ppo", "replay")
    ],
)
def test_snapshot_without_a_part_leads_elsewhere(algo: str, part: str) -> None:
    trained, hashed = go_on(algo, part)
    assert trained != cut(algo)[1]
    assert hashed != cut(algo)[2]


def test_hash_sees_every_bit_and_every_name() -> None:
    arrays, values = cut("ppo")[0]
    seen = {state_hash(Snapshot(arrays, values))}
    for name, array in arrays.items():
        if array.nbytes:
            other = array.copy()
            flat = other.reshape(-1).view(np.uint8)
            flat[-1] ^= 1
            seen.add(state_hash(Snapshot(arrays | {name: other}, values)))
    renamed = {f"{name}x": array for name, array in arrays.items()}
    seen.add(state_hash(Snapshot(renamed, values)))
    seen.add(state_hash(Snapshot(arrays, values | {"more": 1})))
    assert len(seen) == sum(array.nbytes > 0 for array in arrays.values()) + 3
