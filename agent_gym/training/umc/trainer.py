"""The trainer: one agent on all bars, or one a fold, each going on from the one before.

A fold is taught the same rows with the same seeds as ``evaluation`` teaches it, so an evaluation
under the same keeper finds every slow fit done and judges these very agents.

To go on after a stop, all folds are walked from the first again: fits that are done are taken from
their checkpoints, and only what takes seconds is computed once more. So there is nothing else that
has to be kept, and nothing that could differ.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.keeper import kept_by
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import AgentGymError
from agent_gym.core.files import write_json
from agent_gym.core.manifest import describe
from agent_gym.core.registry import make
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.protocol.splits import Fold, Span
from agent_gym.evaluation.protocol.walk import lesson
from agent_gym.markets.bars import Bars
from agent_gym.training.rl.folder_lock import at_work
from agent_gym.training.umc.checkpoints import EVERY_STEPS, CheckpointKeeper
from agent_gym.training.umc.config import UMCTrainConfig
from agent_gym.training.umc.records import FitEvent, FoldRecord, Spent, Tell, TrainEvent, UMCTrained
from agent_gym.training.umc.run_file import RUN, begin_run

CHECKPOINTS, RECORD, TIMINGS = "checkpoints", "training.json", "timings.json"
ALONE = "agent"


class UMCTrainer:
    """Trains UMC into a folder; the same call goes on where it was stopped, to the bit.

    Args:
        bars: What it may learn from; a walk also holds the rows that are tested later.
        config: Who learns what.
        folder: Where everything goes.
        tell: Is told of every fold and every step.
        every_steps: Steps between two checkpoints of a fit; changes no number.
        command: The command that makes the same agents again.
    """

    def __init__(
        self,
        bars: Bars,
        config: UMCTrainConfig,
        folder: Path,
        tell: Tell | None = None,
        *,
        every_steps: int = EVERY_STEPS,
        command: Sequence[str] = ("agent-gym", "umc", "train"),
    ) -> None:
        self.bars, self.config, self.folder = bars, config, folder
        self.keeper = CheckpointKeeper(folder / CHECKPOINTS, every_steps, self._tell_fit)
        self._tell, self._command = tell, tuple(command)
        self._clock: Clock = SystemClock()
        self._folds: Sequence[Fold | None] = (
            (None,) if config.walk is None else config.walk.folds(len(bars))
        )
        self._number = 0

    def train(self) -> UMCTrained:
        """Train what is not trained yet, write the agents and the record."""
        found: list[FoldRecord] = []
        with self.keeping():
            begin_run(self.folder, self.config, self.bars)
            for number, fold in enumerate(self._folds, start=1):
                self._number = number
                self._say()
                found.append(self._trained(fold, found[-1].agent if found else None))
        trained = UMCTrained(
            self.folder,
            found,
            describe(
                argv=list(self._command),
                config=self.config.model_dump(mode="json", by_alias=True),
                data=self.bars.describe(),
                seeds=(self.config.seed,),
            ),
            dict(self.keeper.spent),
        )
        write_json(self.folder / RECORD, trained.as_dict())
        write_json(self.folder / TIMINGS, trained.timings())
        return trained

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep every slow fit inside; an evaluation of this walk finds them done."""
        with at_work(self.folder), kept_by(self.keeper):
            self.keeper.tidy()
            yield

    def begin_anew(self) -> None:
        """Remove what an earlier training has left in the folder, and nothing else."""
        with at_work(self.folder):
            for path in (*self.folder.glob("fold_*"), self.folder / ALONE, self.keeper.folder):
                shutil.rmtree(path, ignore_errors=True)
            for name in (RUN, RECORD, TIMINGS):
                (self.folder / name).unlink(missing_ok=True)

    def _trained(self, fold: Fold | None, earlier: UMCAgent | None) -> FoldRecord:
        wall_s, cpu_s = self._clock.monotonic_s(), time.process_time()
        known = set(self.keeper.records)
        agent = cast(UMCAgent, make("agent", self.config.ref))
        if earlier is not None:
            agent.succeed(earlier)
        try:
            self._teach(agent, fold)
        except AgentGymError as error:
            place = f"fold {self._number} of {len(self._folds)}"
            error.where = f"{place}, {error.where}" if error.where else place
            raise
        folder = self.folder / (ALONE if fold is None else f"fold_{self._number}")
        agent.save(folder)
        fits = tuple(each for name, each in self.keeper.records.items() if name not in known)
        spent = Spent(self._clock.monotonic_s() - wall_s, time.process_time() - cpu_s)
        return FoldRecord(self._number, fold, agent, folder, fits, spent)

    def _teach(self, agent: UMCAgent, fold: Fold | None) -> None:
        """Let it learn as a walk forward does: the same rows, the same seeds."""
        seeds, config = Seeds(self.config.seed).child("fit", self._number - 1), self.config.backtest
        learned = Span(0, len(self.bars)) if fold is None else fold.train
        agent.fit(*lesson(self.bars, learned, agent.needs, config, seeds))
        if fold is not None and fold.validate is not None:
            tuning = seeds.child("tune")
            agent.tune(*lesson(self.bars, fold.validate, agent.needs, config, tuning))

    def _tell_fit(self, event: FitEvent) -> None:
        self._say(event)

    def _say(self, event: FitEvent | None = None) -> None:
        if self._tell is not None:
            self._tell(TrainEvent(self._number, len(self._folds), event))
