"""The keeper that puts a fit into a folder now and then, and takes it up from there.

A checkpoint is written whole or not at all; tensors are safetensors, the rest is JSON. One whose
bytes are not those that were written is refused, and so is one of another fit: every state carries
a digest of all that decides what the fit comes to.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from agent_gym.agents.artifact import read_artifact, write_artifact
from agent_gym.agents.sb3.folder import settled
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.agents.umc.keeper import FitState, ResumableFit
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json
from agent_gym.training.umc.records import FitRecord, Spent, TellFit, event_of

KIND = "umc/fit"
ARRAYS, VALUES = "arrays.safetensors", "values.json"
EVERY_STEPS = 200


class CheckpointKeeper:
    """Runs fits; what was done before is not done again.

    Args:
        folder: Where checkpoints go, one folder a fit.
        every_steps: Steps between checkpoints; the end of a fit is always kept.
        tell: Is told of every step.
        clock: Tells how long a fit took.
    """

    def __init__(
        self,
        folder: Path,
        every_steps: int = EVERY_STEPS,
        tell: TellFit | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.folder = folder
        self.records: dict[str, FitRecord] = {}
        self.spent: dict[str, Spent] = {}
        self._every, self._tell = every_steps, tell
        self._clock = clock or SystemClock()

    def run(self, name: str, fit: ResumableFit) -> None:
        """Take all steps that are left since the last checkpoint."""
        place = self.place(name)
        before = self._taken_up(name, place, fit)
        wall_s, cpu_s = self._clock.monotonic_s(), time.process_time()
        while not fit.done:
            fit.step()
            if fit.done or fit.step_count % self._every == 0:
                now = Spent(
                    before.wall_s + self._clock.monotonic_s() - wall_s,
                    before.cpu_s + time.process_time() - cpu_s,
                )
                write_checkpoint(place, name, fit.state(), now)
                self.spent[name] = now
            if self._tell is not None:
                self._tell(event_of(name, fit))
        self.records[name] = FitRecord.of(name, fit)

    def place(self, name: str) -> Path:
        """Return the folder of a fit's checkpoint."""
        return self.folder / re.sub(r"[^a-z0-9]+", "-", name.lower())

    def tidy(self) -> None:
        """Remove what a process that was killed while it wrote has left; nobody else may write."""
        for path in self.folder.glob(".*.tmp"):
            shutil.rmtree(path, ignore_errors=True)

    def _taken_up(self, name: str, place: Path, fit: ResumableFit) -> Spent:
        if not settled(place).exists():
            self.spent[name] = Spent()
            return Spent()
        try:
            state, spent = read_checkpoint(place)
            fit.restore(state)
        except DataError as error:
            error.where = f"{place}: {error.where}" if error.where else str(place)
            error.remedy = (
                f"Remove {place} to let this fit begin anew, or begin the training anew "
                "(--no-resume) or in another folder"
            )
            raise
        self.spent[name] = spent
        return spent


def write_checkpoint(place: Path, name: str, state: FitState, spent: Spent) -> None:
    """Put a state into a folder, whole or not at all."""
    # np.array keeps a single number a single number, which ascontiguousarray does not.
    arrays = {key: np.array(array, order="C") for key, array in state.arrays.items()}
    values = {"name": name, "values": state.values, "spent": asdict(spent)}
    text = to_json(values) + "\n"
    write_artifact(place, KIND, {ARRAYS: bytes_of(arrays), VALUES: text.encode()})


def read_checkpoint(place: Path) -> tuple[FitState, Spent]:
    """Read a state; a file with a single changed byte is refused."""
    _, files = read_artifact(place, KIND)
    try:
        values: dict[str, Any] = json.loads(files[VALUES])
        state = FitState(tensors_of(checked_tensors(files[ARRAYS])), values["values"])
        return state, Spent(**values["spent"])
    except (KeyError, TypeError, ValueError, SafetensorError) as error:
        raise DataError("this is no checkpoint of a fit", where=str(place), found=error) from error
