"""What is said to the commands of ``agent-gym desk``: where a desk's memory lies, how to play."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agent_gym.agents.desk import DeskView, Holdings, Quote, RecentContext
from agent_gym.agents.desk.log import replay
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config
from agent_gym.markets.bars import Bars
from agent_gym.markets.readers import ReadRequest, read_bars
from agent_gym.markets.readers.request import UNKNOWN_INSTRUMENT

MOST_RECORDS = 1_000_000  # of each kind that are read from a memory or a log
DEMO_TIME = 1_700_000_000.0


class Memory(Config):
    """Where what the desk did is read from."""

    log: Path | None = Field(
        default=None, description="log of the desk: core_agent.jsonl or its folder"
    )
    db: Path | None = Field(default=None, description="memory of the desk, a SQLite file")
    data: Path | None = Field(
        default=None, description="file of bars by which signals are settled on paper"
    )
    horizon: str = Field(default="24h", description="over which a signal is judged")

    def context(self) -> RecentContext:
        """Return the memory that was named."""
        if (self.log is None) == (self.db is None):
            raise ConfigError(
                "one memory of the desk is needed",
                found="neither" if self.log is None else "both --log and --db",
                expected="--log FILE or --db FILE",
                remedy="The desk writes its log to logs/core_agent.jsonl",
            )
        if self.log is not None:
            must_exist(self.log)
            return replay(self.log, maxlen=MOST_RECORDS)
        if self.db is not None:
            must_exist(self.db)
        return RecentContext(MOST_RECORDS, self.db)

    def bars(self, request: ReadRequest) -> Bars | None:
        """Return the bars that were named, None if none were."""
        if self.data is None:
            return None
        bars = read_bars(self.data, request=request)
        if bars.instrument.symbol == UNKNOWN_INSTRUMENT.symbol:
            raise ConfigError(
                "the file does not say what it holds",
                where=str(self.data),
                remedy="Say it with --symbol BTC/USDT",
            )
        return bars


class LoopOptions(Config):
    """How the loop is run."""

    store: Path | None = Field(
        default=None, description="folder of the models (default models/desk in the workspace)"
    )
    now: float | None = Field(
        default=None, description="epoch seconds; nothing known later is used"
    )
    reason: str | None = Field(default=None, description="train now, for this reason")
    dry_run: bool = Field(default=False, description="say what would be done, change nothing")


class PlayOptions(Config):
    """How long a made-up desk works."""

    hours: float = Field(
        default=72.0, gt=0.0, le=5000.0, description="simulated; a signal every 10 minutes or so"
    )
    seed: int = Field(default=0, ge=0, description="of the market and the signals")
    model_store: Path | None = Field(
        default=None, description="folder of models; the champion in it may veto signals"
    )


class DemoSignal(Config):
    """A signal, and the market and account that it meets."""

    strategy: str = Field(default="momentum", description="who sends it")
    amount: float = Field(default=0.01, description="units of the base")
    side: Literal["buy", "sell"] = Field(default="buy", description="buy or sell")
    age_s: float = Field(default=0.0, description="how old the signal is")
    price: float = Field(default=50_000.0, gt=0.0, description="middle of the market")
    equity: float = Field(default=10_000.0, gt=0.0, description="what the account holds")
    drawdown: float = Field(default=0.0, ge=0.0, description="of the account, from its peak")

    def raw(self) -> dict[str, Any]:
        """Return the signal as it is sent."""
        params = {"amount": self.amount, "base": "BTC", "quote": "USDT", "side": self.side}
        return {
            "signal_id": "signal1",
            "strategy": self.strategy,
            "params": params,
            "timestamp": DEMO_TIME - self.age_s,
        }

    def view(self) -> DeskView:
        """Return what the desk sees."""
        half = 0.5e-4 * self.price
        quote = Quote(DEMO_TIME, self.price - half, self.price + half, 500.0, 0.005)
        account = Holdings(self.equity, self.equity, {}, 0.0, self.drawdown)
        return DeskView(DEMO_TIME, {"BTC/USDT": quote}, account)


def must_exist(path: Path) -> None:
    """Raise ConfigError unless there is such a file or folder."""
    if not path.exists():
        raise ConfigError("there is no such file", where=str(path), remedy="Check the name")
