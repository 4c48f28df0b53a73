"""What is asked of the gates: which agent, on which markets, over how many seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import Field

from agent_gym.core.registry import Config, Ref, entry
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.umc.bounds import NULLS
from agent_gym.evaluation.umc.figure import GateFigure
from agent_gym.rollouts.jobs import Job

Letter: TypeAlias = Literal["A", "B", "C", "D", "E", "F", "G"]
LETTERS: tuple[Letter, ...] = ("A", "B", "C", "D", "E", "F", "G")
UMC = "umc"
AGENT = "agent"
COST_BP = 5.0
FLOW = ("volume_z", "taker_imbalance", "book_imbalance", "order_flow")
SIGNALS = tuple(f"signal_{number:02d}" for number in range(1, 12))


@dataclass(frozen=True, slots=True)
class Course:
    """A market that an agent is sent through.

    Attributes:
        use: Its name.
        params: What differs from its defaults.
        cost_bp: What a trade costs there; the agent reckons with the same.
        inputs: Columns that are shown to an agent that takes inputs.
        prefers: What an agent that has preferences is told to prefer there.
        times: Seeds for each seed that was asked for; a paired test needs more of them.
    """

    use: str
    params: Mapping[str, Any] = field(default_factory=dict)
    cost_bp: float = COST_BP
    inputs: tuple[str, ...] = ()
    prefers: Mapping[str, Any] = field(default_factory=dict)
    times: int = 1


GAIN = {"kelly_fraction": 10.0}
COURSES: dict[str, Course] = {
    **{name: Course(f"known/{name}") for name in NULLS},
    "n4": Course("known/n4", inputs=FLOW),  # flow that follows the price: it is there to mislead
    "m1": Course("known/m1", {"drift_bp": 6.0}, times=5),
    "m2": Course("known/m2", inputs=("signal_mispricing",), times=2),
    "m3": Course("known/m3", cost_bp=1.0, times=2),
    # What a full position costs in growth is as much as there is to gain at this cost. The optimum
    # is that of the gain, so who is held against it must want the gain as well.
    "m3_at_5bp": Course("known/m3", prefers=GAIN, times=25),
    "m3_at_5bp_by_growth": Course("known/m3", times=5),
    "m4": Course("known/m4", inputs=SIGNALS, times=2),
    "b1": Course("known/b1", {"drift_bp": 6.0, "break_at": 0.75}, times=10),
}


class GatesPlan(Config):
    """The agent, the gates that are asked for, and how much work they may make."""

    agent: Ref = Field(default=Ref(use=UMC), description="the agent; costs and inputs are set")
    only: tuple[Letter, ...] = Field(default=LETTERS, min_length=1, description="gates, by letter")
    seeds: int = Field(default=20, ge=2, description="paths of each null; others take more")
    first_seed: int = Field(default=0, ge=0)
    bars: int | None = Field(default=None, ge=1_000, description="null: two years of hours")
    data: Path | None = Field(
        default=None, description="real bars for the test of time reversal; null: generated ones"
    )

    def market(self, course: Course) -> Ref:
        """Return the market of a course."""
        length = {} if self.bars is None else {"n_bars": self.bars}
        return Ref(use=course.use, params={**course.params, **length})

    def numbers(self, times: int = 1) -> range:
        """Return the seeds of a course."""
        return range(self.first_seed, self.first_seed + times * self.seeds)

    def agent_for(self, course: Course) -> Ref:
        """Return the agent that reckons with the costs of a course and is shown its inputs."""
        known = entry("agent", self.agent.use).config.model_fields
        liked = {name: value for name, value in course.prefers.items() if name in known}
        agent = Ref(use=self.agent.use, params={**liked, **self.agent.params})
        return agent_for(agent, course.cost_bp, course.inputs)


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of the jobs of one part of the gates."""

    figures: Mapping[str, GateFigure]
    details: Mapping[str, Any]


class Part(Protocol):
    """One or two gates: the jobs that they need, and what they say about the rows of these."""

    @property
    def letters(self) -> tuple[Letter, ...]: ...
    def jobs(self, plan: GatesPlan) -> dict[str, Job]: ...
    def judge(self, plan: GatesPlan, rows: Sequence[dict[str, Any]]) -> Judged: ...


def agent_for(agent: Ref, cost_bp: float, inputs: tuple[str, ...] = ()) -> Ref:
    """Return an agent with costs and inputs, as far as its config knows of such things."""
    known = entry("agent", agent.use).config.model_fields
    params: dict[str, Any] = dict(agent.params)
    if "cost_bp" in known:
        params["cost_bp"] = cost_bp
    if "inputs" in known and inputs:
        params["inputs"] = list(inputs)
    return Ref(use=agent.use, params=params)


def flat_costs(cost_bp: float) -> BacktestConfig:
    """Return an account with one flat cost that may be sold short."""
    return BacktestConfig(
        taker_bps=cost_bp,
        slippage_bps=0.0,
        half_spread_bps=0.0,
        impact=0.0,
        participation=None,
        allow_short=True,
        missing_funding="zero",
    )
