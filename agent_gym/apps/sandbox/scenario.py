"""``sandbox_session``: a bot of the user's trades on a sandbox exchange, once a seed.

The exchange is an app, so the scenario is one, too: suites find it by its entry point, and no room
below knows it. What is measured is in evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from agent_gym.apps.binding import LOOPBACK
from agent_gym.apps.sandbox.bots import Bot
from agent_gym.apps.sandbox.journal import Keeping
from agent_gym.apps.sandbox.keys import make_keys
from agent_gym.apps.sandbox.opening import open_session
from agent_gym.apps.sandbox.recording import Trajectories
from agent_gym.apps.sandbox.server import Place, serve
from agent_gym.apps.sandbox.session import Session
from agent_gym.apps.sandbox.settings import SandboxSettings
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.core.registry import Config, Ref, register
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.config import TradingTerms
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.evaluation.scenarios.scenario import Episode, Scenario, Subject
from agent_gym.evaluation.scenarios.session_figures import (
    SESSION,
    SessionPlayed,
    session_figures,
    session_hash,
)
from agent_gym.evaluation.session import SessionOrigin, session_results
from agent_gym.markets.bars import Bars
from agent_gym.markets.file_source import FileMarket, FileMarketConfig
from agent_gym.markets.source import open_market

TYPE, ACCOUNT = "sandbox_session", "bot"


class SandboxSessionConfig(Config):
    """The market of a session, its clock and what trading costs."""

    market: Ref = Field(default=Ref(use="synthetic/btc-1h"), description="drawn anew for each seed")
    source: FileMarketConfig | None = Field(
        default=None, description="recorded bars instead; a seed draws which part of them"
    )
    bars: int = Field(default=200, ge=2, le=100_000, description="bars that are traded")
    history: int = Field(default=100, ge=1, description="bars that are past when it begins")
    clock: Literal["step", "poll"] = Field(
        default="step",
        description="bars pass when the bot says so, or when it asks again what it has been told",
    )
    venue: TradingTerms = Field(
        default_factory=TradingTerms, description="capital and costs, as of the sandbox"
    )
    record: bool = Field(default=False, description="keep every session in the trajectory store")


@register("scenario", TYPE, SandboxSessionConfig)
class SandboxSession(Scenario):
    """A bot on a simulated exchange; how it trades is its own affair."""

    version: ClassVar[int] = 1
    metrics: ClassVar[tuple[Metric, ...]] = SESSION
    needs_bot: ClassVar[bool] = True

    def __init__(self, config: SandboxSessionConfig) -> None:
        self.config = config

    def market(self, seeds: Seeds) -> Bars:
        """Return the bars of a seed: a market that is drawn, or a part of what was recorded."""
        config = self.config
        wanted = config.history + config.bars
        if config.source is None:
            ref = config.market
            named = ref.model_copy(update={"params": {"n_bars": wanted} | ref.params})
            return open_market(named, seeds.child("market")).rows(0, wanted)
        whole = _recorded(config.source.model_dump_json())
        if len(whole) < wanted:
            raise ConfigError(
                "the file has fewer bars than a session takes",
                where=str(config.source.path),
                found=f"{len(whole):,}",
                expected=f"history and bars, {wanted:,} together",
            )
        first = int(seeds.child("part").rng().integers(0, len(whole) - wanted + 1))
        return whole.rows(first, first + wanted)

    @override
    def data_hash(self) -> str:
        source = self.config.source
        return "" if source is None else _recorded(source.model_dump_json()).fingerprint

    @override
    def play(self, seeds: Seeds, subject: Subject) -> Episode:
        if subject.bot is None:
            raise ConfigError("a bot is under test, and none is named", where=TYPE)
        clock, config = SystemClock(), self.config
        began_s = clock.monotonic_s()
        terms = {name: getattr(config.venue, name) for name in TradingTerms.model_fields}
        settings = SandboxSettings(speed=config.clock, history=config.history, **terms)
        session = open_session([self.market(seeds)], make_keys((ACCOUNT,)), settings)
        session.plays_out = True
        seed = seeds.child("bot").as_int()
        origin = SessionOrigin(config.venue.backtest(), seed=seed)
        if config.record:
            name = f"{TYPE}-{seed}-{clock.now_ns()}"
            session.witness = Trajectories(
                session, Keeping(name, home() / "sandbox" / name), origin
            )
        bot = Bot(subject.bot, limit_s=subject.bot.limit_s, quiet=True)
        run_bot(session, bot, Place("127.0.0.1", 0, LOOPBACK), {"SANDBOX_SEED": str(seed)})
        results = session_results(session.floor, ACCOUNT, origin)
        played = SessionPlayed(
            session.floor, ACCOUNT, results, config.venue, session.refused[ACCOUNT]
        )
        return Episode(
            metrics=session_figures(played),
            trajectory_hash=session_hash(played),
            events=len(session.floor.tickets) + len(results.fills) + len(results.equity),
            perf={"session_s": clock.monotonic_s() - began_s},
        )


def run_bot(session: Session, bot: Bot, place: Place, more: dict[str, str]) -> None:
    """Serve a session for as long as a bot runs, and raise if that ended badly.

    A bot that goes on after the last bar is ended: nothing trades any more.
    """
    steady = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}

    def ready(address: str, end: Callable[[], None]) -> None:
        bot.start(address, session.keys[0], end, steady | more)

    session.on_written = bot.dismiss
    with bot.ended():
        serve(session, place, ready)
    bot.check()


@lru_cache(maxsize=4)
def _recorded(source: str) -> Bars:
    """Return the bars of a file; a night reads it once in each process."""
    config = FileMarketConfig.model_validate_json(source)
    return FileMarket(config).bars(Seeds(0))
