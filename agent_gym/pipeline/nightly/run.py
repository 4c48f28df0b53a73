"""Plays a suite: what the ledger has is taken from it, two seeds a scenario are played again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Protocol, cast

import msgspec

from agent_gym.core.manifest import fingerprint
from agent_gym.evaluation.gate.samples import (
    RunStatus,
    Sample,
    ScenarioSamples,
    SuiteSamples,
    few_notes,
)
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, Suite
from agent_gym.pipeline.nightly.crew import Crew, Heard, Row, Task
from agent_gym.pipeline.nightly.jobs import failed_row
from agent_gym.pipeline.nightly.ledger import Ledger

REPEATED_SEEDS = 2
OTHER_FIGURES = "!figures"  # behind a hash: the way was the same, the figures were not
CUT_SHORT = ("interrupted", "cancelled")


class Watch(Protocol):
    """Sees what is being done, to tell whoever waits."""

    def expect(self, n: int) -> None:
        """Hear that so many more seeds are wanted."""

    def start(self, scenario: str, kept: int = 0) -> None:
        """Hear that a scenario begins, of which so many seeds are done already."""

    def advance(self, scenario: str, n: int = 1, error: str | None = None) -> None:
        """Hear that so many seeds have been played."""

    def tell(self, text: str) -> None:
        """Hear something that whoever waits should read."""


class Silence:
    """Tells nobody."""

    def expect(self, n: int) -> None:
        """Say nothing."""

    def start(self, scenario: str, kept: int = 0) -> None:
        """Say nothing."""

    def advance(self, scenario: str, n: int = 1, error: str | None = None) -> None:
        """Say nothing."""

    def tell(self, text: str) -> None:
        """Say nothing."""


SILENCE = Silence()


@dataclass(frozen=True, slots=True)
class Played:
    """The rows of a set of tasks, by scenario and in the order of their seeds.

    Attributes:
        rows: One for each seed, good or not.
        complete: Nothing was cut short by Ctrl-C.
        played: Episodes that were played.
        kept: Episodes that were found in the ledger.
        repeated: The hash of the second playing, by scenario and seed.
        served: Which seeds were found in the ledger, by scenario.
        loaded: Packages of the user's that were loaded while playing, with a file of each.
        notes: What the reader must know.
        stale: Scenarios of which a kept episode went differently when it was played again.
    """

    rows: dict[str, list[Row]]
    complete: bool
    played: int
    kept: int
    repeated: dict[str, dict[int, str]] = field(default_factory=dict)
    served: dict[str, frozenset[int]] = field(default_factory=dict)
    loaded: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Player:
    """One side of a comparison: code, subject, and the ledger of what it has already played."""

    ledger: Ledger
    crew: Crew
    code_hash: str
    subject: Subject
    watch: Watch = SILENCE
    _counted: set[str] = field(default_factory=set, compare=False, repr=False)

    def play(self, tasks: Sequence[Task]) -> Played:
        """Return all rows; only what the ledger does not have is played.

        Seeds that are asked for once more are not counted once more for whoever waits.
        """
        keys = self._keys(tasks)
        done = self.ledger.find(keys.values())
        told = self._counted & done.keys()
        self.watch.expect(len(keys) - len(told))
        missing = []
        for task in tasks:
            name = task.scenario.name
            seeds = tuple(seed for seed in task.seeds if keys[name, seed] not in done)
            before = sum(keys[name, seed] in told for seed in task.seeds)
            self.watch.start(name, kept=len(task.seeds) - len(seeds) - before)
            if seeds:
                missing.append(Task(task.scenario, seeds))
        self._counted.update(keys.values())
        new = self.crew.play(missing, self._keeper(keys)) if missing else {}
        made = {(name, row["seed"]): row for name, rows in new.items() for row in rows}
        rows = {
            task.scenario.name: [
                made.get((task.scenario.name, seed)) or done[keys[task.scenario.name, seed]]
                for seed in task.seeds
            ]
            for task in tasks
        }
        served = {
            task.scenario.name: frozenset(
                seed for seed in task.seeds if (task.scenario.name, seed) not in made
            )
            for task in tasks
        }
        return Played(
            rows,
            _whole(new),
            played=len(made),
            kept=len(keys) - len(made),
            served=served,
            loaded=_loaded(new),
        )

    def adopt(self, played: Played, tasks: Sequence[Task]) -> None:
        """Keep good rows that were played in this run as this player's own."""
        keys = self._keys(tasks)
        good = {
            keys[name, row["seed"]]: _kept(row)
            for name, rows in played.rows.items()
            for row in rows
            if row["status"] == "ok" and row["seed"] not in played.served[name]
        }
        if good:
            self.ledger.keep(good)

    def found(self, tasks: Sequence[Task]) -> Played:
        """Return what the ledger has and play nothing; the rest counts as cancelled."""
        keys = self._keys(tasks)
        done = self.ledger.find(keys.values())
        rows = {
            task.scenario.name: [
                done.get(keys[task.scenario.name, seed])
                or failed_row(seed, "cancelled", "the run was stopped")
                for seed in task.seeds
            ]
            for task in tasks
        }
        return Played(rows, complete=False, played=0, kept=len(done))

    def repeat(self, played: Played, tasks: Sequence[Task], date: str) -> Played:
        """Play two good seeds of each scenario a second time, in other processes, and note how."""
        again = [Task(task.scenario, _chosen(task, played, date)) for task in tasks]
        again = [task for task in again if task.seeds]
        self.watch.expect(sum(len(task.seeds) for task in again))
        rows = self.crew.play(again, self._tell) if again else {}
        played = replace(
            played,
            complete=played.complete and _whole(rows),
            played=played.played + sum(map(len, rows.values())),
            loaded=played.loaded | _loaded(rows),
        )
        if played.complete:
            stale = [task for task in tasks if _is_stale(played, task.scenario.name, rows)]
            played = self._anew(played, stale)
        repeated = {}
        for name, second in rows.items():
            first = {row["seed"]: row for row in played.rows[name] if row["status"] == "ok"}
            repeated[name] = {
                row["seed"]: _repeated_hash(first[row["seed"]], row)
                for row in second
                if row["status"] not in CUT_SHORT and row["seed"] in first
            }
        return replace(played, repeated=repeated)

    def _anew(self, played: Played, stale: Sequence[Task]) -> Played:
        """Play what the ledger had of scenarios that go differently now; its rows are set aside."""
        if not stale:
            return played
        keys = self._keys(stale)
        notes = list(played.notes)
        for task in stale:
            name = task.scenario.name
            n = self.ledger.retire(keys[name, task.seeds[0]].rpartition("-")[0])
            notes.append(
                f"{name}: a kept episode went differently when it was played again, so {n} kept "
                f"episodes were set aside and those of tonight played anew; something that decides "
                f"figures is not in the code's hash: name it with --also"
            )
        tasks = [
            Task(task.scenario, tuple(s for s in task.seeds if s in played.served[name]))
            for task in stale
            for name in [task.scenario.name]
        ]
        n_anew = sum(len(task.seeds) for task in tasks)
        self.watch.expect(n_anew)
        new = self.crew.play(tasks, self._keeper(keys))
        made = {(name, row["seed"]): row for name, found in new.items() for row in found}
        rows = {
            name: [made.get((name, row["seed"]), row) for row in found]
            for name, found in played.rows.items()
        }
        return replace(
            played,
            rows=rows,
            complete=_whole(new),
            played=played.played + n_anew,
            kept=played.kept - n_anew,
            served=played.served | {name: frozenset() for name in new},
            loaded=played.loaded | _loaded(new),
            notes=tuple(notes),
            stale=tuple(task.scenario.name for task in stale),
        )

    def _keys(self, tasks: Sequence[Task]) -> dict[tuple[str, int], str]:
        """Return the ledger's key of every seed: the hash of all that decides its figures."""
        keys = {}
        for task in tasks:
            question = fingerprint(
                {
                    "code": self.code_hash,
                    "identity": task.scenario.identity(),
                    "name": task.scenario.name,
                    "subject": subject_document(self.subject),
                }
            )
            for seed in task.seeds:
                keys[task.scenario.name, seed] = f"{question}-{seed}"
        return keys

    def _keeper(self, keys: Mapping[tuple[str, int], str]) -> Heard:
        def heard(name: str, rows: list[Row]) -> None:
            good = {keys[name, row["seed"]]: _kept(row) for row in rows if row["status"] == "ok"}
            if good:
                self.ledger.keep(good)
            self._tell(name, rows)

        return heard

    def _tell(self, name: str, rows: list[Row]) -> None:
        for row in rows:
            self.watch.advance(name, error=row["error"])


def _kept(row: Row) -> Row:
    """Return what the ledger keeps of a row: what was loaded for it is of tonight alone."""
    return {name: value for name, value in row.items() if name != "loaded"}


def _loaded(rows: Mapping[str, list[Row]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in (each for some in rows.values() for each in some):
        found |= row.get("loaded", {})
    return found


def _is_stale(played: Played, name: str, again: Mapping[str, list[Row]]) -> bool:
    """Say whether a seed that the ledger had went differently when it was played again."""
    first = {row["seed"]: row for row in played.rows[name]}
    return any(
        row["seed"] in played.served.get(name, ())
        and _repeated_hash(first[row["seed"]], row) != first[row["seed"]]["trajectory_hash"]
        for row in again.get(name, [])
    )


def _whole(rows: Mapping[str, list[Row]]) -> bool:
    return all(row["status"] not in CUT_SHORT for found in rows.values() for row in found)


def subject_document(subject: Subject) -> dict[str, Any]:
    """Return who is under test as plain values."""
    bot = None if subject.bot is None else subject.bot.model_dump(mode="json")
    return {
        "agent": subject.agent.model_dump(mode="json"),
        "desk": subject.desk.model_dump(mode="json"),
        "plant": subject.plant,
        **({} if bot is None else {"bot": bot}),
    }


def suite_samples(
    suite: Suite, run_id: str, played: Played, scenarios: Sequence[ScenarioConfig]
) -> SuiteSamples:
    """Return rows as the gate takes them, scenarios in the order of their names."""
    return SuiteSamples(
        run_id=run_id,
        suite_id=suite.id,
        suite_version=suite.version,
        scenarios=tuple(
            ScenarioSamples(
                name=scenario.name,
                identity=scenario.identity(),
                metrics=scenario.metrics(),
                samples=tuple(sample_of(row) for row in played.rows[scenario.name]),
                repeated=played.repeated.get(scenario.name, {}),
            )
            for scenario in sorted(scenarios, key=lambda each: each.name)
        ),
    )


def sample_of(row: Row) -> Sample:
    """Return a row as a sample."""
    return Sample(
        seed=row["seed"],
        status=cast(RunStatus, row["status"]),
        metrics=row["metrics"],
        trajectory_hash=row["trajectory_hash"],
        error=row["error"],
        notes=few_notes(row.get("notes", ())),
    )


def failures(samples: SuiteSamples) -> list[str]:
    """Return each scenario with a seed that is not good, and why."""
    found = []
    for scenario in samples.scenarios:
        bad = [sample for sample in scenario.samples if sample.status != "ok"]
        if bad or not scenario.samples:
            first = f"seed {bad[0].seed}: {bad[0].status}, {bad[0].error}" if bad else "no seed"
            found.append(f"{scenario.name}: {len(bad)} of {len(scenario.samples)} failed; {first}")
    return found


def _chosen(task: Task, played: Played, date: str) -> tuple[int, ...]:
    """Return good seeds to play again: others every day, the same ones within a day."""
    good = [row["seed"] for row in played.rows[task.scenario.name] if row["status"] == "ok"]

    def drawn(seed: int) -> bytes:
        return blake2b(f"{date}\0{task.scenario.name}\0{seed}".encode(), digest_size=8).digest()

    return tuple(sorted(sorted(good, key=drawn)[:REPEATED_SEEDS]))


def _repeated_hash(first: Row, second: Row) -> str:
    if second["status"] != "ok":
        return f"!{second['status']}"
    same = msgspec.json.encode(first["metrics"], order="deterministic") == msgspec.json.encode(
        second["metrics"], order="deterministic"
    )
    return str(second["trajectory_hash"]) + ("" if same else OTHER_FIGURES)
