"""From what was asked for to a session that can be served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_gym.apps.sandbox.journal import Keeping
from agent_gym.apps.sandbox.keys import AccountKey
from agent_gym.apps.sandbox.recording import Recording
from agent_gym.apps.sandbox.session import Session
from agent_gym.apps.sandbox.settings import POLL, SandboxSettings
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.evaluation.session import SessionOrigin
from agent_gym.exchange.spot import SpotFloor
from agent_gym.markets.bars import Bars


def open_session(
    markets: Sequence[Bars],
    keys: Sequence[AccountKey],
    settings: SandboxSettings,
    keeping: Keeping | None = None,
    origin: SessionOrigin | None = None,
    wall: Clock | None = None,
) -> Session:
    """Return a session over markets.

    Args:
        markets: What is traded, made spot.
        keys: Who trades.
        settings: Money, costs, clock.
        keeping: Where it is kept; None keeps nothing.
        origin: What the manifest says.
        wall: The machine's clock.
    """
    wall = wall or SystemClock()
    spot = [as_spot(bars) for bars in markets]
    if settings.rebase and spot:
        spot = _rebased(spot, settings.history, wall)
    floor = SpotFloor(
        spot, settings.costs(), settings.capital, [key.name for key in keys], settings.history
    )
    session = Session(floor, keys, settings.pace(), wall, settings.weight)
    session.begins_now, session.together = settings.rebase, settings.together
    session.polled = settings.speed == POLL
    if keeping is not None:
        said = origin or SessionOrigin(settings.backtest())
        session.witness = Recording(session, keeping, said)
    return session


def as_spot(bars: Bars) -> Bars:
    """Return bars of the thing itself, on a grid of prices and sizes; no funding is paid on it."""
    instrument = bars.instrument.as_spot().with_grid(float(bars.open[0]))
    return replace(bars, instrument=instrument)


def _rebased(markets: Sequence[Bars], history: int, wall: Clock) -> list[Bars]:
    """Return the markets at such times that the session begins in the bar of this moment."""
    period_ns = markets[0].period_ns
    start_ns = int(markets[0].ts[history - 1]) + period_ns
    delta_ns = (wall.now_ns() - start_ns) // period_ns * period_ns
    return [bars.shifted(delta_ns) for bars in markets]
