"""A suite: which scenarios are played, with which parameters and seeds, for whom."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import to_json
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config, Ref, configure, entry, unknown
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.plain_file import read_plain
from agent_gym.evaluation.scenarios.bot import BotConfig
from agent_gym.evaluation.scenarios.metric import LARGEST_REL, Metric, Tolerance
from agent_gym.evaluation.scenarios.scenario import Episode, Scenario, Subject

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
SEED_BITS = 48  # a seed is written to JSON, and readers of JSON may hold numbers as float64
REPLAY_VERSION = 2  # changes when the same log would be played in another way
FILE_KEYS = ("path", "mapping")  # of a source: where the log lies, not what is in it


class ScenarioConfig(Config):
    """One entry of a suite: a type of scenario under a name, with its parameters.

    ``hours`` and ``source`` are handed to the type as parameters of these names. A tolerance that
    gives only one of its two parts leaves the other as the metric has it.
    """

    name: str = Field(pattern=NAME)
    type: str
    hours: float | None = Field(default=None, gt=0.0, le=24.0 * 366)
    seed: int = Field(default=0, ge=0, lt=2**SEED_BITS)
    n_seeds: int = Field(default=24, ge=1, le=10_000)
    params: dict[str, Any] = Field(default_factory=dict)
    tolerances: dict[str, Tolerance] = Field(default_factory=dict)
    source: dict[str, Any] | None = None

    def setting(self) -> Config:
        """Return the parameters as the type's own config, defaults filled in.

        Raises:
            ConfigError: No such type or parameter; the message has the nearest name.
        """
        kind = entry("scenario", self.type).config
        given = dict(self.params)
        for name, value in (("hours", self.hours), ("source", self.source)):
            if value is None:
                continue
            if name in given:
                raise ConfigError(f"{name!r} is given twice", where=f"scenario {self.name}")
            if name not in kind.model_fields:
                raise ConfigError(
                    f"scenarios of the type {self.type!r} take no {name!r}",
                    where=f"scenario {self.name}",
                    remedy=f"Parameters are: {', '.join(kind.model_fields)}",
                )
            given[name] = value
        return configure(kind, given, where=f"scenario {self.name} ({self.type})")

    def make(self) -> Scenario:
        """Return the scenario; it is made once and can be played any number of times."""
        return _made(to_json(self.model_dump(mode="json")))

    def metrics(self) -> tuple[Metric, ...]:
        """Return what is measured, with the tolerances of this entry in place."""
        measured = self.make().figures()
        known = tuple(metric.name for metric in measured)
        for name in self.tolerances:
            if name not in known:
                raise unknown(f"metric of scenario {self.name}", name, known)
        return tuple(self._checked(self._tolerated(metric)) for metric in measured)

    def _checked(self, metric: Metric) -> Metric:
        """Refuse tolerances that would make the gate blind."""
        where = f"scenario {self.name}, metric {metric.name}"
        if metric.must_be_zero and metric.name in self.tolerances:
            raise ConfigError(
                "a metric that must be zero takes no tolerance",
                where=where,
                found=self.tolerances[metric.name].model_dump(exclude_unset=True),
                remedy=f"Take {metric.name!r} out of 'tolerances'",
            )
        if metric.tolerance.rel > LARGEST_REL:
            raise ConfigError(
                "a relative tolerance is too wide: the figure could vanish unseen",
                where=where,
                found=metric.tolerance.rel,
                expected=f"at most {LARGEST_REL:g} of the baseline",
                remedy="Give a smaller share as 'rel', or an amount in the metric's unit as 'abs'",
            )
        return metric

    def _tolerated(self, metric: Metric) -> Metric:
        own = self.tolerances.get(metric.name)
        if own is None:
            return metric
        given = {name: getattr(own, name) for name in own.model_fields_set}
        tolerance = metric.tolerance.model_copy(update=given)
        return metric.model_copy(update={"tolerance": tolerance})

    def identity(self) -> dict[str, str]:
        """Return what must be equal for two results to be comparable.

        Tolerances and the number of seeds are left out: they say how to judge and how long to
        look, not what is measured.
        """
        scenario, params = self.make(), self.setting().model_dump(mode="json")
        version = str(scenario.version)
        if isinstance(params.get("source"), dict):
            version += f", replay {REPLAY_VERSION}"
            params["source"] = {k: v for k, v in params["source"].items() if k not in FILE_KEYS}
        definitions = [[m.name, m.unit, m.direction, m.must_be_zero] for m in scenario.figures()]
        return {
            "type": self.type,
            "version": version,
            "config_hash": fingerprint({"params": params, "seed": self.seed}),
            "data_hash": scenario.data_hash(),
            "metrics": fingerprint(definitions),
        }


class Suite(Config):
    """Scenarios that are played together, and who is under test unless someone else is named."""

    id: str = Field(default="default", pattern=NAME)
    version: int = Field(default=1, ge=1)
    scenarios: tuple[ScenarioConfig, ...] = Field(min_length=1, max_length=500)
    agent: Ref = Ref(use="rules/sma-cross")
    desk: Ref = Ref(use="core-agent")
    bot: BotConfig | None = None

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [scenario.name for scenario in self.scenarios]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two scenarios are named {', '.join(map(repr, twice))}")
        return self

    def subject(self) -> Subject:
        """Return who is under test."""
        return Subject(desk=self.desk, agent=self.agent, bot=self.bot)

    def scenario(self, name: str) -> ScenarioConfig:
        """Return an entry by its name."""
        for each in self.scenarios:
            if each.name == name:
                return each
        raise unknown("scenario", name, tuple(each.name for each in self.scenarios))


def load_suite(path: Path) -> Suite:
    """Return the suite that a JSON or YAML file holds, every entry checked to the last parameter.

    A list of scenarios is a suite, too; it is called as the file is. Files that a source names are
    looked for beside the suite's file, and so is the bot.
    """
    value = read_plain(path)
    if isinstance(value, list):
        value = {"id": path.stem, "scenarios": value}
    if not (isinstance(value, dict) and isinstance(value.get("scenarios"), list)):
        raise ConfigError(
            "a suite file holds no scenarios",
            where=str(path),
            found=type(value).__name__,
            expected="a list of scenarios, or a mapping with the key 'scenarios'",
        )
    entries = [
        _entry(each, f"{path.name}, scenario {i}", path.resolve().parent)
        for i, each in enumerate(value["scenarios"], start=1)
    ]
    names = [entry.name for entry in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(
            "two scenarios of a suite have the same name",
            where=path.name,
            found=", ".join(twice),
            remedy="Give each scenario a name of its own",
        )
    suite = configure(Suite, {**value, "scenarios": entries}, where=path.name)
    if suite.bot is not None:
        bot = suite.bot.settled(path.resolve().parent, f"{path.name}, bot")
        suite = suite.model_copy(update={"bot": bot})
    for scenario in suite.scenarios:
        scenario.metrics()
    return suite


def default_suite() -> Suite:
    """Return the suite that the package brings along."""
    with as_file(files("agent_gym") / "configs" / "sample_scenarios.json") as path:
        return load_suite(path)


def fixed_seeds(suite_id: str, scenario: ScenarioConfig) -> tuple[int, ...]:
    """Return the seeds that every run of a scenario shares.

    They depend on the suite's id, the scenario's name and its ``seed``; more seeds keep the first
    ones.

    Example:
        >>> few = ScenarioConfig(name="calm", type="signal_throughput", n_seeds=2)
        >>> more = few.model_copy(update={"n_seeds": 3})
        >>> fixed_seeds("nightly", few) == fixed_seeds("nightly", more)[:2]
        True
    """
    name, n_seeds = scenario.name, scenario.n_seeds
    return tuple(_hashed("fixed", suite_id, name, scenario.seed, i) for i in range(n_seeds))


def fresh_seeds(suite_id: str, run_date: str, scenario_name: str, n: int) -> tuple[int, ...]:
    """Return seeds that nobody could have tuned to: they depend on the date of the run.

    Seed ``i`` is the hash of suite id, date, scenario and ``i``; they never meet the fixed ones but
    by the accident of 48 bits.
    """
    return tuple(_hashed("fresh", suite_id, run_date, scenario_name, i) for i in range(n))


def play_seed(scenario: ScenarioConfig, subject: Subject, seed: int) -> Episode:
    """Play one seed of one scenario.

    Raises:
        DataError: A figure is missing, was not announced, or is not finite; it could not gate.
    """
    made = scenario.make()
    episode = made.play(Seeds(seed), subject)
    _check(episode.metrics, made.figures(), f"scenario {scenario.name}, seed {seed}")
    return episode


def _check(found: Mapping[str, float | None], expected: tuple[Metric, ...], where: str) -> None:
    names = {metric.name for metric in expected}
    if set(found) != names:
        raise DataError(
            "the figures are not those that were announced",
            where=where,
            found=sorted(set(found) - names) or None,
            expected=sorted(names - set(found)) or None,
        )
    for name, value in found.items():
        if value is not None and not math.isfinite(value):
            raise DataError("a figure is not finite", where=f"{where}, {name}", found=value)


def _entry(value: Any, where: str, folder: Path) -> ScenarioConfig:
    if not isinstance(value, dict):
        raise ConfigError(
            "a scenario is not a mapping", where=where, found=repr(value)[:80], expected="a mapping"
        )
    if "seeds" in value:  # nearest in letters is 'seed', which is something else
        raise ConfigError(
            "parameter 'seeds': a scenario has no such field",
            where=where,
            found=repr(value["seeds"])[:80],
            remedy="Did you mean 'n_seeds' (how many)? 'seed' chooses which ones",
        )
    config = configure(ScenarioConfig, value, where=where)
    if config.source is None:
        return config
    beside = {
        key: str(folder / name)
        for key, name in config.source.items()
        if key in FILE_KEYS and isinstance(name, str)
    }
    return config.model_copy(update={"source": config.source | beside})


@lru_cache(maxsize=256)
def _made(text: str) -> Scenario:
    config = ScenarioConfig.model_validate_json(text)
    scenario = entry("scenario", config.type).factory(config.setting())
    if not isinstance(scenario, Scenario):
        raise ConfigError(
            "what is registered is no scenario",
            where=f"scenario {config.type}",
            found=type(scenario).__name__,
            expected="a subclass of agent_gym.evaluation.scenarios.Scenario",
        )
    return scenario


def _hashed(*words: str | int) -> int:
    digest = blake2b("\x1f".join(map(str, words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - SEED_BITS)
