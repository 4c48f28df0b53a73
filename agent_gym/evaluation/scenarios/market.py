"""The market scenarios: an agent trades through a shock, on the venue of every backtest.

Belongs here: ``flash_crash``, ``price_gap``, ``funding_spike``, ``feed_outage`` and ``thin_book``.
Bars come from the generator of minutes, the shock is laid over them, and the backtest engine does
the rest; what happened is measured in ``market_figures``.
"""

from __future__ import annotations

from abc import abstractmethod
from hashlib import blake2b
from typing import ClassVar, Generic, TypeVar

import numpy as np
from typing_extensions import override

from agent_gym.core.clock import MINUTE_NS, SystemClock
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.scenarios.market_config import (
    FeedOutageConfig,
    FlashCrashConfig,
    FundingSpikeConfig,
    MarketSetting,
    PriceGapConfig,
    ThinBookConfig,
)
from agent_gym.evaluation.scenarios.market_figures import (
    COMMON,
    FUNDING_PAID,
    TRADES_IN_OUTAGE,
    Played,
    common_figures,
    funding_paid,
    new_targets,
)
from agent_gym.evaluation.scenarios.market_line import Flags, Wiring, outages
from agent_gym.evaluation.scenarios.market_run import MarketRun
from agent_gym.evaluation.scenarios.market_school import School
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.evaluation.scenarios.scenario import Episode, Scenario, Subject
from agent_gym.evaluation.scenarios.shocks import (
    Shock,
    charge,
    crash,
    draw_shocks,
    drift,
    gap,
    thin,
)
from agent_gym.markets.bars import Bars
from agent_gym.markets.resample import resample
from agent_gym.markets.synthetic import DEFAULT_START_NS, GeneratorConfig, generate

S = TypeVar("S", bound=MarketSetting)


class MarketScenario(Scenario, Generic[S]):
    """A market with shocks; subclasses say what a shock does."""

    version: ClassVar[int] = 1
    metrics: ClassVar[tuple[Metric, ...]] = COMMON

    def __init__(self, setting: S) -> None:
        self.setting = setting

    @abstractmethod
    def draw(self, seeds: Seeds) -> tuple[Shock, ...]:
        """Draw when the shocks come and how large they are."""

    @abstractmethod
    def strike(self, bars: Bars, shocks: tuple[Shock, ...]) -> Bars:
        """Return the bars with the shocks in them."""

    def outages(self, bars: Bars, shocks: tuple[Shock, ...], seeds: Seeds) -> Flags:
        """Return for each close whether the agent's feed is down."""
        return np.zeros(len(bars), dtype=np.bool_)

    def wiring(self) -> Wiring:
        """Return how the line between market and agent is laid."""
        return Wiring()

    def own_figures(self, played: Played, down: Flags) -> dict[str, float | None]:
        """Return the figures that this scenario has beside the common ones."""
        return {}

    def market(self, seeds: Seeds) -> tuple[Bars, tuple[Shock, ...]]:
        """Return the bars of a seed with the shocks in them, and the shocks."""
        bars = self._calm(self.setting.n_bars, DEFAULT_START_NS, seeds.child("market"))
        shocks = self.draw(seeds.child("shocks"))
        return self.strike(bars, shocks), shocks

    def past(self, seeds: Seeds) -> Bars:
        """Return what an agent learns from: bars of the same kind of market that end before it.

        They are drawn apart from the market of the seed, and no shock is in them.
        """
        n_bars = self.setting.train_bars or 0
        began_ns = DEFAULT_START_NS - n_bars * self.setting.bar_minutes * MINUTE_NS
        return self._calm(n_bars, began_ns, seeds.child("past"))

    def _calm(self, n_bars: int, start_ns: int, seeds: Seeds) -> Bars:
        minutes = n_bars * self.setting.bar_minutes
        config = GeneratorConfig(preset="btc-1m", n_bars=minutes, start_ns=start_ns)
        return resample(generate(config, seeds).bars, self.setting.bar_minutes * MINUTE_NS)

    @override
    def play(self, seeds: Seeds, subject: Subject) -> Episode:
        clock = SystemClock()
        began = clock.monotonic_s()
        bars, shocks = self.market(seeds)
        laid = clock.monotonic_s()
        down = self.outages(bars, shocks, seeds.child("faults"))
        past = None if self.setting.train_bars is None else self.past
        school = School(subject.agent, self.setting.venue, seeds, past)
        run = MarketRun(school, subject.plant, seeds, down, self.wiring())
        results, line = run.trade(bars)
        traded = clock.monotonic_s()
        asked = np.array(line.asked[: len(bars) - 1])
        played = Played(
            results,
            asked,
            line.refused,
            shocks,
            bars,
            self.setting.venue,
            run.causality_breaks(bars, asked),
        )
        return Episode(
            metrics=common_figures(played) | self.own_figures(played, down),
            trajectory_hash=_trajectory_hash(asked, results),
            events=len(shocks) + asked.size + len(results.fills),
            perf={
                "market_s": laid - began,
                "trade_s": traded - laid,
                "judge_s": clock.monotonic_s() - traded,
            },
        )


def _trajectory_hash(asked: FloatArray, results: BacktestResults) -> str:
    """Return one hash of all decisions, fills and marks."""
    digest = blake2b(digest_size=16)
    for part in (asked, results.target, results.fills, results.position, results.equity):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


class FlashCrash(MarketScenario[FlashCrashConfig]):
    """The price falls within minutes and comes back in part."""

    @override
    def draw(self, seeds: Seeds) -> tuple[Shock, ...]:
        return draw_shocks(self.setting, seeds, self.setting.depth, 1.0)

    @override
    def strike(self, bars: Bars, shocks: tuple[Shock, ...]) -> Bars:
        return crash(bars, shocks, self.setting)


class PriceGap(MarketScenario[PriceGapConfig]):
    """The price jumps between a close and the next open."""

    @override
    def draw(self, seeds: Seeds) -> tuple[Shock, ...]:
        return draw_shocks(self.setting, seeds, self.setting.gap, self.setting.down_share)

    @override
    def strike(self, bars: Bars, shocks: tuple[Shock, ...]) -> Bars:
        return gap(bars, shocks, self.setting)


class FundingSpike(MarketScenario[FundingSpikeConfig]):
    """Holding a position gets dear, or pays, for some hours."""

    metrics: ClassVar[tuple[Metric, ...]] = (*COMMON, FUNDING_PAID)

    @override
    def draw(self, seeds: Seeds) -> tuple[Shock, ...]:
        setting = self.setting
        return draw_shocks(setting, seeds, setting.rate_bps, setting.longs_pay_share)

    @override
    def strike(self, bars: Bars, shocks: tuple[Shock, ...]) -> Bars:
        return charge(bars, shocks, self.setting)

    @override
    def own_figures(self, played: Played, down: Flags) -> dict[str, float | None]:
        return {FUNDING_PAID.name: funding_paid(played)}


class FeedOutage(MarketScenario[FeedOutageConfig]):
    """The agent is blind for some hours while the venue goes on."""

    metrics: ClassVar[tuple[Metric, ...]] = (*COMMON, TRADES_IN_OUTAGE)

    @override
    def draw(self, seeds: Seeds) -> tuple[Shock, ...]:
        return draw_shocks(self.setting, seeds, self.setting.move, self.setting.down_share)

    @override
    def strike(self, bars: Bars, shocks: tuple[Shock, ...]) -> Bars:
        return drift(bars, shocks)

    @override
    def outages(self, bars: Bars, shocks: tuple[Shock, ...], seeds: Seeds) -> Flags:
        return outages(bars, shocks, seeds)

    @override
    def wiring(self) -> Wiring:
        return Wiring(feed=self.setting.feed)

    @override
    def own_figures(self, played: Played, down: Flags) -> dict[str, float | None]:
        return {TRADES_IN_OUTAGE.name: new_targets(played.asked, down)}


class ThinBook(MarketScenario[ThinBookConfig]):
    """There is next to nobody to trade with."""

    @override
    def draw(self, seeds: Seeds) -> tuple[Shock, ...]:
        return draw_shocks(self.setting, seeds, self.setting.volume_share, 0.0)

    @override
    def strike(self, bars: Bars, shocks: tuple[Shock, ...]) -> Bars:
        return thin(bars, shocks, self.setting.spread_factor)


register("scenario", "flash_crash", FlashCrashConfig)(FlashCrash)
register("scenario", "price_gap", PriceGapConfig)(PriceGap)
register("scenario", "funding_spike", FundingSpikeConfig)(FundingSpike)
register("scenario", "feed_outage", FeedOutageConfig)(FeedOutage)
register("scenario", "thin_book", ThinBookConfig)(ThinBook)
