"""What callers hand to the store: plain values, checked and cleaned on the way in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from agent_gym.core.clock import HOUR_NS, SECOND_NS
from agent_gym.core.registry import Config
from agent_gym.rollouts.database.model_tables import (
    AgentStatus,
    Health,
    MarketKind,
    ModelStatus,
    Stage,
)
from agent_gym.rollouts.database.tables import CallPurpose, Purpose

LARGEST_INTEGER = 2**63 - 1


def storable(text: str) -> str:
    """Return text that every database takes: no NUL, no halves of characters.

    Agents and models say what they like; that must not cost the trajectory.

    Example:
        >>> storable("a" + chr(0) + chr(0xD800))
        'a??'
    """
    return text.replace("\x00", "?").encode("utf-8", "replace").decode("utf-8")


def plain_values(value: Any) -> Any:
    """Return a value as JSON can say it: a number that is none is null, the unknown is its text.

    Example:
        >>> plain_values({"sharpe": float("nan"), 1: (2, {3})})
        {'sharpe': None, '1': [2, '{3}']}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(str(name)): plain_values(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(part) for part in value]
    return storable(repr(value))


def plain_json(value: Any) -> str:
    """Return JSON of whatever a world or an agent says."""
    try:
        return json.dumps(plain_values(value), allow_nan=False, sort_keys=True)
    except RecursionError:
        return '"nested too deeply"'


Words: TypeAlias = Annotated[str, AfterValidator(storable)]
Plain: TypeAlias = Annotated[dict[str, Any], BeforeValidator(plain_values)]
Score: TypeAlias = Annotated[float, Field(ge=0.0, le=1.0)]
Whole: TypeAlias = Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]


FEATURE_NAMES = "feature_names"
"""Under which ``details`` say what the columns of the observations are."""


class TrajectoryContext(Config):
    """What the steps of an episode do not say themselves.

    Trajectories with the same ``group_key`` can be compared: same snapshot, rules and policy
    version. It is put together from these where it is not given, and unknown if one is missing.
    """

    agent: Words | None = Field(default=None, description="default: its name in the steps")
    agent_version: Words | None = Field(default=None, description="hash of the policy")
    snapshot_id: Words | None = None
    scenario_id: Words | None = Field(default=None, description="default: benchmark-<snapshot_id>")
    rules_version: Words = "1"
    group_key: Words | None = None
    seed: int | None = Field(default=None, ge=0, le=LARGEST_INTEGER)
    run_id: Words = Field(default="", description="keeps equal episodes of two runs apart")
    window_id: Words | None = Field(
        default=None, description="default: hour of the simulated start"
    )
    window_hours: int = Field(default=1, ge=1)
    purpose: Purpose = "training"
    details: Plain = Field(default_factory=dict)

    @property
    def scenario(self) -> str | None:
        """The scenario, made from the snapshot if it is not given."""
        if self.scenario_id is None and self.snapshot_id is not None:
            return f"benchmark-{self.snapshot_id}"
        return self.scenario_id

    @property
    def group(self) -> str | None:
        """The key of the group; None if the trajectory cannot be compared with any other."""
        if self.group_key is not None:
            return self.group_key
        if self.snapshot_id is None or self.agent_version is None:
            return None
        return f"{self.snapshot_id}/{self.rules_version}/{self.agent_version}"


def window_of(start_ns: int, hours: int = 1) -> str:
    """Return the window of a simulated moment: the UTC hour in which it begins.

    Example:
        >>> window_of(1_704_069_000_000_000_000)
        '2024-01-01T00:00'
    """
    first = start_ns // (hours * HOUR_NS) * (hours * HOUR_NS)
    return datetime.fromtimestamp(first // SECOND_NS, UTC).strftime("%Y-%m-%dT%H:00")


class EpisodeFigures(Config):
    """What is known of an episode once it has ended."""

    final_balance: float | None = None
    final_pnl: float | None = None
    trades_executed: Count | None = None
    posts_created: Count | None = None
    reward_components: Plain = Field(default_factory=dict)
    metrics: Plain = Field(default_factory=dict)


class LlmCallRecord(Config):
    """One question to a model; ``model_version`` is the hash of the model that really answered."""

    t: Count
    model: Words
    model_version: Words | None = None
    purpose: CallPurpose = "action"
    action_type: Words | None = None
    system_prompt: Words = ""
    user_prompt: Words = ""
    messages: Annotated[list[Any] | None, BeforeValidator(plain_values)] = None
    response: Words = ""
    reasoning: Words | None = None
    temperature: float | None = None
    max_tokens: Count | None = None
    top_p: float | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    latency_ms: float | None = None
    log_prob: float | None = None
    tokens: Plain | None = Field(default=None, description="ids and log-probabilities")
    details: Plain = Field(default_factory=dict)


class JudgmentRecord(Config):
    """What a judge said of one trajectory; the same judge on the same group says it once."""

    trajectory_id: str
    group_id: Words
    judge_model: Words
    judge_version: Words
    overall_score: Score
    normalized_score: float | None = None
    rank: Count | None = None
    component_scores: dict[str, float] = Field(default_factory=dict)
    reasoning: Words | None = None
    strengths: tuple[Words, ...] = ()
    weaknesses: tuple[Words, ...] = ()
    criteria: Plain = Field(default_factory=dict)


class ModelRecord(Config):
    """A model that came out of training; ``model_id`` is the hash of its files."""

    model_id: Words
    version: Words
    base_model: Words | None = None
    batch_id: Words | None = None
    status: ModelStatus = "ready"
    storage_path: Words | None = None
    benchmark_score: float | None = None
    accuracy: float | None = None
    avg_reward: float | None = None
    eval_metrics: Plain = Field(default_factory=dict)
    wandb_run_id: Words | None = None


class DeploymentRecord(Config):
    """A model goes into service."""

    deployment_id: Words
    model_id: Words
    stage: Stage
    traffic_share: Score = 1.0
    health: Health = "healthy"
    reason: Words | None = None


class OutcomeRecord(Config):
    """What became of one market in one window."""

    window_id: Words
    snapshot_id: Words
    market: Words
    kind: MarketKind
    start_price: float | None = None
    end_price: float | None = None
    change_percent: float | None = None
    sentiment: float | None = None
    news_events: tuple[Words, ...] = ()
    question: Words | None = None
    outcome: bool | None = None
    final_probability: Score | None = None


class AgentRecord(Config):
    """An agent of the service as it begins."""

    agent_id: Words
    name: Words
    points: int = Field(default=0, ge=0, le=LARGEST_INTEGER)
    status: AgentStatus = "active"
    snapshot_id: Words | None = None
    policy_version: Words | None = None
    state: Plain = Field(default_factory=dict)
