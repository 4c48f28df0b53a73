from __future__ import annotations

from typing import Any, ClassVar

from agent_gym.core.registry import Config, Ref, make, register
from agent_gym.core.types import Decision, EpisodeStart, Observation, Step
from agent_gym.evaluation.scenarios.market import MarketScenario
from agent_gym.evaluation.scenarios.market_config import (
    FeedOutageConfig,
    FlashCrashConfig,
    FundingSpikeConfig,
    MarketSetting,
    PriceGapConfig,
    ThinBookConfig,
)
from agent_gym.evaluation.scenarios.scenario import Subject

TYPES = ("flash_crash", "price_gap", "funding_spike", "feed_outage", "thin_book")
CONFIGS: dict[str, type[MarketSetting]] = {
    "flash_crash": FlashCrashConfig,
    "price_gap": PriceGapConfig,
    "funding_spike": FundingSpikeConfig,
    "feed_outage": FeedOutageConfig,
    "thin_book": ThinBookConfig,
}
FLAT = Subject(agent=Ref(use="rules/flat"))
RANDOM = Subject(agent=Ref(use="rules/random"))


class AnyConfig(Config):
    use: str = "rules/sma-cross"
    action: float | None = None


class Plain:
    """A rule without its whole-series door, so that every decision is asked for one by one."""

    def __init__(self, config: AnyConfig) -> None:
        self._agent: Any = make("agent", Ref(use=config.use))
        self._action = config.action
        self.name = self._agent.name

    def reset(self, start: EpisodeStart) -> None:
        self._agent.reset(start)

    def act(self, obs: Observation) -> Decision:
        made: Decision = self._agent.act(obs)
        return made if self._action is None else Decision(self._action)

    def observe(self, step: Step) -> None:
        self._agent.observe(step)


class Diary:
    """Buys at once and writes down all it is shown."""

    name = "test/diary"
    runs: ClassVar[list[Diary]] = []

    def reset(self, start: EpisodeStart) -> None:
        self._column = start.column("close")
        self.shown: list[tuple[int, float]] = []
        self.learned: list[tuple[int, int]] = []
        self.runs.append(self)

    def act(self, obs: Observation) -> Decision:
        self.shown.append((obs.ts, float(obs.features[self._column])))
        return Decision(1.0)

    def observe(self, step: Step) -> None:
        self.learned.append((step.before.ts, step.after.observation.ts))


register("agent", "test/scenario-plain", AnyConfig)(Plain)
register("agent", "test/scenario-diary", AnyConfig)(lambda config: Diary())


def scenario(kind: str, **params: Any) -> MarketScenario[Any]:
    made = make("scenario", Ref(use=kind, params=params))
    assert isinstance(made, MarketScenario)
    return made


def plain(**params: Any) -> Subject:
    return Subject(agent=Ref(use="test/scenario-plain", params=params))


class Moody(Plain):
    """Decides by a coin that no seed governs."""

    tossed: ClassVar[int] = 0

    def act(self, obs: Observation) -> Decision:
        type(self).tossed += 1
        return Decision(float(self.tossed * 2_654_435_761 % 2**32 > 2**31))


register("agent", "test/scenario-moody", AnyConfig)(Moody)
