"""Everything that can be known and refused before the first seed is played."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from msgspec.structs import replace

from agent_gym.core.clock import Clock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home, to_json
from agent_gym.core.manifest import describe
from agent_gym.core.registry import configure, entry, unknown
from agent_gym.evaluation.scenarios.bot import BotConfig
from agent_gym.evaluation.scenarios.plants import PLANTS
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import Suite, fixed_seeds
from agent_gym.pipeline.nightly.code_identity import (
    CodeIdentity,
    bot_code,
    code_identity,
    packages_of,
)
from agent_gym.pipeline.nightly.crew import LocalCrew, Row, Task
from agent_gym.pipeline.nightly.imported import OWN, imported_packages, is_of_the_user
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.libraries import distributions_of, is_installed
from agent_gym.pipeline.nightly.options import RunOptions
from agent_gym.pipeline.nightly.run import Played, Player, Watch, subject_document, suite_samples
from agent_gym.pipeline.nightly.setup import Setup
from agent_gym.pipeline.nightly.times import compact, iso, run_date
from agent_gym.reporting.nightly import Code, NightlyRun, SeedLists

PLANTED = "planted"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked question, and the name of the run that will answer it."""

    options: RunOptions
    setup: Setup
    code: CodeIdentity
    tasks: tuple[Task, ...]
    run_id: str
    created_at: str
    started_ns: int

    @property
    def planted(self) -> bool:
        """Return whether a fault was put in on purpose."""
        return self.options.subject.plant is not None

    def player(self, ledger: Ledger, watch: Watch) -> Player:
        """Return who plays today's side."""
        asked = self.options
        crew = LocalCrew(asked.subject, asked.workers, asked.timeout_s, asked.imports)
        return Player(ledger, crew, self.code.code_hash, asked.subject, watch)


def prepare(options: RunOptions, clock: Clock, baseline_id: str | None = None) -> Prepared:
    """Check what is asked for and name the run.

    Raises:
        ConfigError: A module, scenario, metric, agent, desk or planted fault does not exist.
    """
    import_modules(options.imports)
    suite, subject = options.suite, options.subject
    check_subject(subject)
    check_bot(suite, subject.bot)
    for scenario in suite.scenarios:
        scenario.metrics()
    bot = bot_code(subject.bot)
    code = code_identity(
        imported_packages((*packages_of(suite, subject, options.imports), *bot.packages)),
        also=(*options.also, *bot.folders),
        libraries=bot.libraries,
    )
    now_ns = clock.now_ns()
    setup = Setup(
        suite=suite.model_dump(mode="json", exclude_unset=True),
        subject=subject_document(subject),
        imports=options.imports,
        date=run_date(now_ns, options.date),
        code_hash=code.code_hash,
        packages=code.packages,
        versions=code.versions,
        baseline=baseline_id,
        also=code.also,
        libraries=code.libraries,
    )
    return Prepared(
        options=options,
        setup=setup,
        code=code,
        tasks=tuple(Task(each, fixed_seeds(suite.id, each)) for each in suite.scenarios),
        run_id=_run_id(now_ns, setup),
        created_at=iso(now_ns),
        started_ns=now_ns,
    )


def uncounted(prepared: Prepared, loaded: Mapping[str, str]) -> dict[str, str]:
    """Return what was loaded while playing and is not in the code's hash yet."""
    found = {}
    for name, file in loaded.items():
        if name in (OWN, *prepared.setup.packages):
            continue
        libraries = distributions_of(name) if is_installed(Path(file)) else ()
        if not libraries or not set(libraries) <= set(prepared.code.libraries):
            found[name] = file
    return found


def widened(prepared: Prepared, loaded: Mapping[str, str]) -> Prepared:
    """Return the same question with more modules in the code's hash.

    Args:
        prepared: The question as it was.
        loaded: Top-level packages that were loaded while playing, with a file of each; one that is
            of a distribution counts as that, one that cannot be found by its name by its file.
    """
    setup = prepared.setup
    libraries, names, files = set(setup.libraries), [], []
    for name, file in loaded.items():
        known = distributions_of(name) if is_installed(Path(file)) else ()
        libraries.update(known)
        if is_of_the_user(name):
            names.append(name)
        elif not known:
            files.append(Path(file))
    code = code_identity(
        imported_packages((*setup.packages, *names)),
        also=(*map(Path, setup.also), *files),
        libraries=sorted(libraries),
    )
    setup = replace(
        setup,
        code_hash=code.code_hash,
        packages=code.packages,
        also=code.also,
        libraries=code.libraries,
    )
    run_id = _run_id(prepared.started_ns, setup)
    return dataclasses.replace(prepared, code=code, setup=setup, run_id=run_id)


def check_subject(subject: Subject) -> None:
    """Raise ConfigError unless agent, desk and planted fault exist with these parameters."""
    agent, desk = subject.agent, subject.desk
    configure(entry("agent", agent.use).config, agent.params, where=f"agent {agent.use}")
    configure(entry("desk", desk.use).config, desk.params, where=f"desk {desk.use}")
    if subject.plant is not None and subject.plant not in PLANTS:
        raise unknown("planted fault", subject.plant, tuple(sorted(PLANTS)))


def check_bot(suite: Suite, bot: BotConfig | None) -> None:
    """Raise ConfigError unless a bot is there exactly where one is under test."""
    wanted = [each.name for each in suite.scenarios if each.make().needs_bot]
    if wanted and bot is None:
        raise ConfigError(
            "a bot is under test, and none is named",
            where=f"scenario {wanted[0]}",
            expected='"bot" in the suite, or --bot COMMAND',
            remedy='Name it, such as --bot "python my_bot/bot.py"',
        )
    if bot is None:
        return
    if not wanted:
        raise ConfigError(
            "no scenario of this suite is played by a bot",
            where="bot",
            found=", ".join(sorted({each.type for each in suite.scenarios})),
            remedy="Leave the bot out, or add a scenario of the type sandbox_session",
        )
    bot.check("bot")
    if bot.folder is not None and home().resolve().is_relative_to(bot.folder):
        raise ConfigError(
            "the folder of the bot holds the results, so its code would change with every night",
            where="bot",
            found=str(bot.folder),
            remedy="Keep the bot in a folder of its own",
        )


def nightly_run(
    prepared: Prepared,
    played: Played,
    finished_at: str,
    fresh: Mapping[str, tuple[int, ...]],
    notes: tuple[str, ...],
) -> NightlyRun:
    """Return the run as the reports take it."""
    options, suite = prepared.options, prepared.options.suite
    samples = suite_samples(suite, prepared.run_id, played, suite.scenarios)
    return NightlyRun(
        run_id=prepared.run_id,
        suite_id=suite.id,
        suite_version=suite.version,
        created_at=prepared.created_at,
        finished_at=finished_at,
        status="complete" if played.complete else "partial",
        command=" ".join(options.command),
        samples=samples,
        code=Code(
            commit=prepared.code.commit,
            dirty=prepared.code.dirty,
            code_hash=prepared.code.code_hash,
        ),
        manifest=_manifest(prepared),
        machine=_machine(),
        subject=prepared.setup.subject,
        seeds=SeedLists(
            fixed={task.scenario.name: task.seeds for task in prepared.tasks}, fresh=dict(fresh)
        ),
        expected=tuple(scenario.name for scenario in suite.scenarios),
        params={each.name: each.setting().model_dump(mode="json") for each in suite.scenarios},
        durations=_durations(played) if options.timings else {},
        perf=_perf(played) if options.timings else {},
        notes=(*_planted_note(options.subject), *played.notes, *notes),
    )


def _planted_note(subject: Subject) -> tuple[str, ...]:
    if subject.plant is None:
        return ()
    return (f"SELF-TEST: the fault {subject.plant!r} was planted; this run can be no baseline",)


def import_modules(names: Sequence[str]) -> None:
    """Import the modules that register things of the user's; they may add types of scenarios."""
    for name in names:
        try:
            import_module(name)
        except ImportError as error:
            raise ConfigError(
                "this module cannot be imported",
                where="--import",
                found=f"{name}: {error}",
                remedy="Put its folder on PYTHONPATH",
            ) from error


def _run_id(now_ns: int, setup: Setup) -> str:
    asked = [setup.suite, setup.subject, setup.code_hash, setup.date, setup.baseline]
    said = to_json([*asked, now_ns])  # two runs of one second are two runs
    digest = blake2b(said.encode(), digest_size=4).hexdigest()
    mark = f"-{PLANTED}" if setup.subject["plant"] is not None else ""
    return f"{compact(now_ns)}-{digest}{mark}"


def _manifest(prepared: Prepared) -> dict[str, Any]:
    setup, suite = prepared.setup, prepared.options.suite
    made = describe(
        argv=list(prepared.options.command),
        config={
            "suite": setup.suite,
            "subject": setup.subject,
            "imports": list(setup.imports),
            "also": setup.also,
            "date": setup.date,
        },
        data={scenario.name: scenario.identity()["data_hash"] for scenario in suite.scenarios},
        commit=prepared.code.commit,
    )
    return made.model_dump(mode="json") | {"packages": setup.packages, "libraries": setup.versions}


def _machine() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def _durations(played: Played) -> dict[str, float]:
    return {
        name: round(sum(row["duration_s"] for row in rows), 6) for name, rows in played.rows.items()
    }


def _perf(played: Played) -> dict[str, dict[str, float]]:
    return {name: _medians(rows) for name, rows in played.rows.items()}


def _medians(rows: list[Row]) -> dict[str, float]:
    names = sorted({name for row in rows for name in row["perf"]})
    return {
        name: median(row["perf"][name] for row in rows if row["perf"].get(name) is not None)
        for name in names
    }


def suite_of(setup: Setup) -> Suite:
    """Return the suite of a run that was kept."""
    return configure(Suite, setup.suite, where="setup.json")
