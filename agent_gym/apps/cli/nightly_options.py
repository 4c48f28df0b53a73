"""What ``run`` and ``nightly`` share: which suite, who is under test, and how it is played."""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field
from typing_extensions import override

from agent_gym.apps.cli.config_options import parse_pairs, words_of
from agent_gym.apps.cli.output import notes
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Ref, configure
from agent_gym.evaluation.plain_file import read_plain
from agent_gym.evaluation.scenarios.bot import BotConfig
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import Suite, default_suite, load_suite
from agent_gym.pipeline.nightly.crew import TIMEOUT_S
from agent_gym.pipeline.nightly.options import RunOptions
from agent_gym.pipeline.nightly.prepare import import_modules
from agent_gym.pipeline.nightly.run import Watch
from agent_gym.reporting.nightly import ConsoleProgress

MOST_WORKERS = 256
HOW = ("workers", "timeout_s")  # options on which no figure depends


class PlayOptions(Config):
    """Which suite is played, by whom, and how."""

    scenarios: Path | None = Field(
        default=None, description="JSON or YAML file of the scenarios; default: the built-in suite"
    )
    agent: str | None = Field(
        default=None, description="agent under test, such as rules/momentum or NAME:fast=10,slow=50"
    )
    desk: str | None = Field(default=None, description="desk under test, in the same way")
    bot: str | None = Field(
        default=None, description="bot under test in sandbox sessions: its command"
    )
    bot_folder: Path | None = Field(
        default=None, description="the bot's code; default: the folder of the file that is run"
    )
    seeds: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="seeds of each scenario; default: its own number",
    )
    workers: int = Field(
        default=min(os.cpu_count() or 1, MOST_WORKERS),
        ge=1,
        le=MOST_WORKERS,
        description="processes; no figure depends on it",
    )
    timeout_s: float = Field(
        default=TIMEOUT_S, gt=0.0, description="seconds that a job of a few seeds may take"
    )
    timings: bool = Field(
        default=True,
        description="write wall-clock figures; equal runs give equal bytes without",
    )
    plant: str | None = Field(
        default=None, description="self-test: put this fault in and see whether the gate finds it"
    )

    also: tuple[Path, ...] = Field(
        default=(),
        description="file or folder beside the code that decides figures, such as prompts or a "
        "model; repeatable",
    )

    def run_options(
        self, command: str, imports: tuple[str, ...], date: str | None = None
    ) -> RunOptions:
        """Return what the pipeline is asked for; modules of the user's come first of all."""
        import_modules(imports)
        suite = self._suite()
        agent = suite.agent if self.agent is None else reference(self.agent, "--agent")
        desk = suite.desk if self.desk is None else reference(self.desk, "--desk")
        words = words_of(self.model_copy(update={name: _DEFAULT[name] for name in HOW}))
        dated = [] if date is None else ["--date", date]
        imported = [word for name in imports for word in ("--import", name)]
        return RunOptions(
            suite=suite,
            subject=Subject(desk, agent, self.plant, self._bot(suite)),
            workers=self.workers,
            timeout_s=self.timeout_s,
            imports=imports,
            also=self.also,
            date=date,
            timings=self.timings,
            command=tuple(map(shlex.quote, ("agent-gym", command, *words, *dated, *imported))),
        )

    def _bot(self, suite: Suite) -> BotConfig | None:
        if self.bot is None:
            if self.bot_folder is not None:
                raise ConfigError("--bot-folder goes with --bot only", where="--bot-folder")
            return suite.bot
        said = {"command": self.bot, "folder": self.bot_folder}
        limit = {} if suite.bot is None else {"limit_s": suite.bot.limit_s}
        return configure(BotConfig, said | limit, where="--bot").settled(Path.cwd(), "--bot")

    def _suite(self) -> Suite:
        suite = default_suite() if self.scenarios is None else _loaded(self.scenarios)
        if self.seeds is None:
            return suite
        scenarios = tuple(
            each.model_copy(update={"n_seeds": self.seeds}) for each in suite.scenarios
        )
        return suite.model_copy(update={"scenarios": scenarios})


_DEFAULT = {name: PlayOptions.model_fields[name].default for name in HOW}


def _loaded(path: Path) -> Suite:
    """Return the suite of a file; one that selects nothing is refused, never a green run."""
    said = read_plain(path)
    if said == [] or (isinstance(said, dict) and said.get("scenarios") == []):
        raise ConfigError(
            "no scenario is selected",
            where=str(path),
            found="an empty list",
            remedy="Name at least one scenario; `agent-gym run --help` says where an example is",
        )
    return load_suite(path)


def reference(word: str, option: str) -> Ref:
    """Return what ``NAME`` or ``NAME:fast=10,slow=50`` names.

    Example:
        >>> reference("rules/sma-cross:fast=5", "--agent")
        Ref(use='rules/sma-cross', params={'fast': 5})
    """
    name, _, said = word.partition(":")
    if not name:
        raise ConfigError(f"{option} needs a name", where=option, found=repr(word))
    return Ref(use=name, params=parse_pairs(said.split(","), option) if said else {})


def user() -> str:
    """Return who is logged in, for the record of a baseline."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


class _Live(Watch):
    """Moves a progress display."""

    def __init__(self, progress: ConsoleProgress) -> None:
        self._progress = progress
        self._progress.total = 0

    @override
    def expect(self, n: int) -> None:
        self._progress.total += n

    @override
    def start(self, scenario: str, kept: int = 0) -> None:
        self._progress.start(scenario, kept)

    @override
    def advance(self, scenario: str, n: int = 1, error: str | None = None) -> None:
        self._progress.advance(scenario, n, error)

    @override
    def tell(self, text: str) -> None:
        self._progress.note(text)


@contextmanager
def live(title: str, suite: Suite) -> Iterator[Watch]:
    """Show on stderr how far a run is: a bar on a terminal, a line now and then elsewhere."""
    total = sum(scenario.n_seeds for scenario in suite.scenarios)
    with ConsoleProgress(title, total, notes) as progress:
        yield _Live(progress)
