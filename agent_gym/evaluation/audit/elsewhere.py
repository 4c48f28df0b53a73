"""The same subject in another process: made there from its description, and played there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent_gym.core.registry import Config
from agent_gym.evaluation.audit.shifted_clock import shifted_clock
from agent_gym.evaluation.audit.stream import record
from agent_gym.evaluation.audit.subject import Subject
from agent_gym.markets.parquet import read_native, write_bars
from agent_gym.rollouts.contracts import trajectory_hash
from agent_gym.rollouts.executor import LocalExecutor
from agent_gym.rollouts.jobs import Job

HASH_SEED = "PYTHONHASHSEED"
BARS = "bars.parquet"


class AwayGame(Job):
    """A subject as plain values: where its parts are found, and the seeds to play, in order.

    The clock is set before the agent's module is looked for, so that what a module reads from the
    clock when it is imported is other than here, too.
    """

    factory: str
    config: dict[str, Any] | None
    config_class: str | None
    world: str
    bars: Path
    seeds: tuple[int, ...]
    clock_shift_s: int = 0

    @override
    def run(self) -> dict[str, Any]:
        """Play every seed and return the hash of each episode."""
        if not self.clock_shift_s:
            return self._play()
        with shifted_clock(self.clock_shift_s):
            for address in (self.factory, self.world):
                found_at(address)
        with shifted_clock(self.clock_shift_s):  # the modules just found are reached now
            return self._play()

    def _play(self) -> dict[str, Any]:
        kind = None if self.config_class is None else found_at(self.config_class)
        config = None if kind is None else kind.model_validate(self.config)
        subject = Subject(
            "away", read_native(self.bars), found_at(self.factory), config, found_at(self.world)
        )
        return {"status": "ok", "hashes": hashes(subject, self.seeds)}


def hashes(subject: Subject, seeds: Sequence[int]) -> list[str]:
    """Return the hash of an episode for each seed."""
    return [
        trajectory_hash(record(subject.world(subject.bars), subject.ready(), seed).steps)
        for seed in seeds
    ]


def away_game(subject: Subject, seeds: tuple[int, ...], folder: Path) -> AwayGame | None:
    """Return the subject as a job, or None if another process could not find its parts."""
    factory, world = _address(subject.factory), _address(subject.world)
    kind = None if subject.config is None else _address(type(subject.config))
    if factory is None or world is None or (kind is None) != (subject.config is None):
        return None
    bars = folder / BARS
    if not bars.exists():
        write_bars(bars, subject.bars)
    config = None if subject.config is None else _plain(subject.config)
    return AwayGame(
        factory=factory, config=config, config_class=kind, world=world, bars=bars, seeds=seeds
    )


def play_away(
    subject: Subject, seeds: tuple[int, ...], hash_seed: int, clock_shift_s: int = 0
) -> dict[str, Any] | None:
    """Play in a new process with other hash seeds and another time; None if that cannot be done."""
    with tempfile.TemporaryDirectory() as folder:
        job = away_game(subject, seeds, Path(folder))
        if job is None:
            return None
        job = job.model_copy(update={"clock_shift_s": clock_shift_s})
        with _environment(HASH_SEED, str(hash_seed)):
            return LocalExecutor(1, fresh=True).run([job]).rows[0]


def found_at(address: str) -> Any:
    """Return what stands at ``module:name``."""
    module, _, name = address.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _address(thing: Callable[..., Any] | None) -> str | None:
    """Return where another process finds this very thing, None if it cannot."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if module in (None, "__main__", "builtins") or name is None or "<" in name:
        return None
    address = f"{module}:{name}"
    return address if found_at(address) is thing else None


def _plain(config: Config) -> dict[str, Any]:
    return config.model_dump(mode="json")


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
