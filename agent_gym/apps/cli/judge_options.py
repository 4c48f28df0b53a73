"""What can be said to ``agent-gym judge``, and the judge that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import home
from agent_gym.core.registry import Config, configure
from agent_gym.evaluation.judge import (
    DECISIONS,
    OUTCOMES,
    AnswerCache,
    CassetteBackend,
    JudgeBackend,
    JudgeConfig,
    RecordConfig,
    RecordingBackend,
    RelativeJudge,
    TruthBackend,
    read_rubric,
)
from agent_gym.evaluation.judge.truth import RETURN
from agent_gym.rollouts.database import TrajectoryStore
from agent_gym.rollouts.database.store import DATABASE


class JudgeOptions(Config):
    """Who judges, and how groups are shown."""

    backend: Literal["truth", "openai", "cassette"] = Field(
        default="truth",
        description="truth (recorded outcomes), openai (a model behind an endpoint) or cassette",
    )
    passes: int = Field(default=4, ge=1, le=64, description="times a group is shown")
    seed: int = Field(default=0, ge=0, description="of orders, labels and practice groups")
    max_shown: int = Field(default=8, ge=3, le=64, description="records in one question")
    measure: str = Field(
        default=RETURN, min_length=1, description="the truth: total_reward or a recorded metric"
    )
    rubric: Path | None = Field(default=None, description="text file by which a model judges")
    hindsight: bool = Field(default=False, description="tell a model how trajectories ended")
    base_url: str | None = Field(default=None, description="endpoint, such as http://HOST:8000/v1")
    model: str | None = Field(default=None, description="model of the endpoint")
    key_variable: str = Field(
        default="OPENAI_API_KEY", description="environment variable that holds the endpoint's key"
    )
    temperature: float | None = Field(
        default=0.0, ge=0.0, le=2.0, description="of the model; none: not said"
    )
    max_tokens: int = Field(default=4_096, ge=64, le=1_000_000, description="of one answer")
    completion_tokens: bool = Field(
        default=False, description="limit them by max_completion_tokens, as some models insist on"
    )
    json_mode: bool = Field(default=True, description="ask the endpoint for JSON alone")
    timeout_s: float = Field(default=120.0, gt=0.0, le=3_600.0, description="of one reply")
    retries: int = Field(default=2, ge=0, le=10, description="of a question that failed on the way")
    workers: int = Field(default=1, ge=1, le=64, description="questions at a time")
    cache: Path | None = Field(default=None, description="folder that keeps good answers")
    record: Path | None = Field(default=None, description="cassette to record all calls on")
    cassette: Path | None = Field(default=None, description="cassette to play back")


_OF_MODELS = frozenset({"rubric", "hindsight"})
_OF_ENDPOINTS = frozenset(
    {
        "base_url",
        "model",
        "key_variable",
        "temperature",
        "max_tokens",
        "completion_tokens",
        "json_mode",
        "timeout_s",
        "retries",
    }
)
_OF: Mapping[str, frozenset[str]] = {
    "truth": frozenset(),
    "openai": _OF_MODELS | _OF_ENDPOINTS | {"workers", "cache", "record"},
    "cassette": _OF_MODELS | {"cassette"},
}
_NEEDED = {"truth": (), "openai": ("base_url", "model"), "cassette": ("cassette",)}


def judge_of(options: JudgeOptions, truth: Mapping[str, Mapping[str, float]]) -> RelativeJudge:
    """Return the judge that was asked for; ``truth`` is for the one that knows."""
    check(options)
    rubric = OUTCOMES if options.hindsight else DECISIONS
    config = JudgeConfig(
        passes=options.passes,
        seed=options.seed,
        max_shown=options.max_shown,
        rubric=rubric if options.rubric is None else read_rubric(options.rubric),
        record=record_of(options),
    )
    cache = None if options.cache is None else AnswerCache(options.cache)
    return RelativeJudge(_backend(options, truth), config, cache, options.workers)


def record_of(options: JudgeOptions) -> RecordConfig:
    """Return how much a record may tell."""
    return RecordConfig(hindsight=options.hindsight)


def check(options: JudgeOptions) -> None:
    """Refuse options that are missing, or that would change nothing."""
    told, own = options.model_fields_set, _OF[options.backend]
    for name in sorted((frozenset().union(*_OF.values()) - own) & told):
        raise ConfigError(
            f"the option {_flag(name)} changes nothing here",
            where=f"--backend {options.backend}",
            remedy="Leave it out, or choose another backend",
        )
    for name in _NEEDED[options.backend]:
        if getattr(options, name) is None:
            raise ConfigError(f"the option {_flag(name)} is missing", where=options.backend)


@contextmanager
def open_store(folder: Path | None, url: str | None) -> Iterator[TrajectoryStore]:
    """Open a store that is there already; looking at one must not make one."""
    place = folder or home() / "trajectories"
    if not place.is_dir() or (url is None and not (place / DATABASE).is_file()):
        raise DataError(
            "there is no trajectory store here",
            where=str(place),
            expected=f"a folder with {DATABASE}, or a folder of steps and --database",
            remedy="`agent-gym harness` records one",
        )
    with TrajectoryStore.open(url, folder=place) as store:
        yield store


def _backend(options: JudgeOptions, truth: Mapping[str, Mapping[str, float]]) -> JudgeBackend:
    if options.backend == "truth":
        return TruthBackend(truth, options.measure)
    if options.backend == "cassette" and options.cassette is not None:
        return CassetteBackend.load(options.cassette)
    endpoint = _endpoint()
    said = options.model_dump(include=set(_OF_ENDPOINTS))
    made: JudgeBackend = endpoint.OpenAIBackend(
        configure(endpoint.EndpointConfig, said, where="--backend openai")
    )
    return made if options.record is None else RecordingBackend(made, options.record)


def _endpoint() -> Any:
    try:
        return import_module("agent_gym.evaluation.judge.endpoint")
    except ModuleNotFoundError as error:
        raise ConfigError(
            "asking a model needs a library that is not installed",
            found=error.name,
            remedy="`pip install 'agent-gym[llm]'`",
        ) from error


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
