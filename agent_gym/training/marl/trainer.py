"""The door: a config and a folder in, a trained team and its record out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from agent_gym.agents.artifact import About
from agent_gym.core.clock import SystemClock
from agent_gym.core.files import write_json
from agent_gym.core.manifest import Manifest, describe, fingerprint, installed_versions
from agent_gym.training.marl.amal import amal_for
from agent_gym.training.marl.amal.keeping import foresight_of
from agent_gym.training.marl.best import BestTeam, Confirmed
from agent_gym.training.marl.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.critics import critic_of
from agent_gym.training.marl.looks import Look
from agent_gym.training.marl.records import Listener, Spent, TrainingRecord
from agent_gym.training.marl.session import Session
from agent_gym.training.marl.worlds import MakeWorlds, battle_worlds
from agent_gym.training.rl.folder_lock import at_work
from agent_gym.training.threads import torch_threads

CHECKPOINT, POLICY, BEST, CRITIC = "checkpoint", "policy", "best", "critic"
FORESIGHT = "foresight"
CONFIG, RECORD, TIMINGS = "config.json", "training.json", "timings.json"


def train_team(
    config: TeamTrainConfig, folder: Path, listener: Listener | None = None
) -> TrainingRecord:
    """Train a team on its battle; the same call goes on where it was stopped, to the bit.

    Args:
        config: What is trained and how.
        folder: Where everything goes: ``policy``, ``best``, ``training.json``, ``timings.json``.
        listener: Is told of every iteration.
    """
    return TeamTrainer(config, folder, listener).train()


class TeamTrainer:
    """Runs a session in a folder.

    Args:
        config: What is trained and how.
        folder: Where everything goes.
        listener: Is told of every iteration.
        make_worlds: Makes the environments; battles, if nothing else is named.
        command: The command that makes the same team again.
    """

    def __init__(
        self,
        config: TeamTrainConfig,
        folder: Path,
        listener: Listener | None = None,
        *,
        make_worlds: MakeWorlds = battle_worlds,
        command: Sequence[str] = ("agent-gym", "marl", "train"),
    ) -> None:
        self.config, self.folder = config, folder
        self._listener, self._make, self._command = listener, make_worlds, tuple(command)

    def train(self) -> TrainingRecord:
        """Play what is left, judge the team, and write it with its record."""
        with at_work(self.folder), torch_threads(1), threadpool_limits(limits=1):
            amal = amal_for(self.config, self._make)
            session = Session(self.config, self._make, amal)
            manifest = self._manifest(session)
            run = fingerprint(manifest.model_dump(mode="json", exclude={"command"}))
            watch = _Watch(self._take_up(session, run))
            write_json(self.folder / CONFIG, self.config.model_dump(mode="json"))
            while not session.over:
                self._iterate(session, watch, run)
            record = self._record(session, manifest, watch)
            critic_of(session.learner).save(self.folder / CRITIC)
            if amal is not None:
                foresight_of(amal, record.policy).save(self.folder / FORESIGHT)
            _best(session).policy.save(self.folder / BEST, About(config=manifest.config))
            self._write(record)
        return record

    def _iterate(self, session: Session, watch: _Watch, run: str) -> None:
        before = session.env_steps
        progress = session.iterate()
        if progress.look is not None:
            watch.look()
        every = self.config.checkpoint_every
        if before // every < session.env_steps // every or session.over:
            kept = session.state()
            kept.values["spent"] = asdict(watch.spent())
            write_checkpoint(self.folder / CHECKPOINT, run, kept)
        if self._listener is not None:
            self._listener(progress)

    def _take_up(self, session: Session, run: str) -> Spent:
        kept = read_checkpoint(self.folder / CHECKPOINT, run)
        if kept is None:
            return Spent()
        values = dict(kept.values)
        spent = values.pop("spent")
        session.restore(Checkpoint(kept.arrays, values))
        return Spent(spent["wall_s"], spent["cpu_s"], tuple(spent["looks"]))

    def _manifest(self, session: Session) -> Manifest:
        """Return what decides every bit; when checkpoints are written does not."""
        manifest = describe(
            argv=list(self._command),
            config=self.config.model_dump(mode="json", exclude={"checkpoint_every"}),
            data=session.identity,
            seeds=(self.config.seed,),
        )
        versions = installed_versions() | {"torch": str(torch.__version__)}
        return manifest.model_copy(update={"versions": versions})

    def _record(self, session: Session, manifest: Manifest, watch: _Watch) -> TrainingRecord:
        full = session.env_steps >= self.config.env_steps
        final = session.judge(session.learner.policy)
        return TrainingRecord(
            folder=self.folder,
            policy=session.learner.policy,
            algorithm=self.config.algorithm,
            status="done" if full else "stopped_early",
            env_steps=session.env_steps,
            curve=tuple(session.curve),
            final=final,
            best=_confirmed(session, final),
            manifest=manifest,
            spent=watch.spent(),
            amal=tuple(session.told),
        )

    def _write(self, record: TrainingRecord) -> None:
        about = About(config=record.manifest.config)
        record.policy.save(self.folder / POLICY, about)
        write_json(self.folder / RECORD, record.as_dict())
        write_json(self.folder / TIMINGS, asdict(record.spent))


def _best(session: Session) -> BestTeam:
    found = session.best
    assert found is not None, "the last step is looked at, so there is a best look"
    return found


def _confirmed(session: Session, final: Look) -> Confirmed:
    """Judge the team of the best look; if it is the last one, that has been done."""
    best = _best(session)
    last = best.policy.version == session.learner.policy.version
    fresh = final if last else session.judge(best.policy)
    return Confirmed(best.env_steps, best.wins, best.mean, fresh, best.policy.version)


class _Watch:
    """Counts seconds from what was spent before."""

    def __init__(self, before: Spent) -> None:
        self._before, self._looks = before, before.looks
        self._clock = SystemClock()
        self._wall_s, self._cpu_s = self._clock.monotonic_s(), time.process_time()

    def look(self) -> None:
        self._looks = (*self._looks, self.spent().cpu_s)

    def spent(self) -> Spent:
        return Spent(
            self._before.wall_s + self._clock.monotonic_s() - self._wall_s,
            self._before.cpu_s + time.process_time() - self._cpu_s,
            self._looks,
        )
