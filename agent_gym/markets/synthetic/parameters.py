"""The parameters of a generated market, in sections; a preset is one file with all of them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, configure
from agent_gym.markets.instrument import Instrument

PresetName = Literal["btc-1m", "btc-1h"]
PRESETS: tuple[str, ...] = get_args(PresetName)

_LEAST_TICKS = 1000  # a price of few ticks would not move like a market

Positive = Annotated[float, Field(gt=0.0)]
Natural = Annotated[float, Field(ge=0.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Four = tuple[float, float, float, float]
Hours = Annotated[tuple[float, ...], Field(min_length=24, max_length=24)]
Minutes = Annotated[tuple[float, ...], Field(min_length=60, max_length=60)]


class Season(Config):
    """A daily pattern in log units: hours of weekdays, hours of weekends, minutes of the hour."""

    weekday: Hours
    weekend: Hours
    minute: Minutes


class Volatility(Config):
    """The log standard deviation of a bar: a sum of mean-reverting parts at many time scales."""

    level: float = Field(description="log of a bar's standard deviation where all parts are 0")
    season: Season
    tau_min: tuple[Positive, ...] = Field(description="time scale of each part, fastest first")
    variance: tuple[Natural, ...]
    shot_share: tuple[Share, ...] = Field(description="share of the variance that comes as shots")
    shots_per_tau: Positive = Field(description="shots in one time scale; fewer are larger")
    responsive: int = Field(ge=0, description="how many of the fastest parts feel the returns")
    leverage: float
    leverage_drift: Natural
    leverage_square: float = Field(description="extra leverage of large moves")
    arch: float
    response_heat: Natural = Field(description="how leverage and arch grow with the log volatility")

    @model_validator(mode="after")
    def _equal_lengths(self) -> Volatility:
        if not len(self.tau_min) == len(self.variance) == len(self.shot_share):
            raise ValueError("tau_min, variance and shot_share must be equally long")
        return self


class Activity(Config):
    """Segments of quiet, normal, active and shocked trade, drawn without looking at the price."""

    probability: tuple[Share, Share, Share, Share]
    offset: Four = Field(description="added to the log volatility")
    duration_min: tuple[Positive, Positive, Positive, Positive]
    shock_tau_min: Positive = Field(description="how fast the offset of a shock fades")


class Moves(Config):
    """The path inside a bar: a random number of price moves."""

    mean: Positive = Field(description="mean number at mean volatility")
    elasticity: float = Field(description="how it grows with the log volatility")
    drift: Natural = Field(description="how much it differs from time to time")
    noise: Natural = Field(description="how much it differs from bar to bar")
    most: int = Field(ge=8, le=120)
    clock_share: Share = Field(description="0: variance is the bar's own; 1: it goes with moves")
    kurtosis: Natural
    least: Natural = Field(description="size that every move has at least, in its scale")
    return_share: Natural = Field(description="chance of a bar of one move to end where it began")
    return_power: Natural = Field(description="how fast that chance falls with more moves")
    wick: Natural = Field(description="extra reach of high and low in standard deviations")
    wick_chance: Share = Field(description="chance that they reach further than the moves")


class Overshoot(Config):
    """The part of a move that is given back; the only predictable part of the price."""

    slow: Natural
    slow_drift: Natural
    slow_heat: Natural = Field(description="how it grows with the log volatility")
    slow_memory: Share = Field(description="what is left of it after a bar")
    fast: Natural
    fast_memory: Share = Field(description="what is left of it after a move")
    at_jump: Natural
    extension: Natural = Field(description="extra overshoot of moves that reach far from the open")
    extension_from: Natural
    tilt: Share = Field(
        description="how much more upward than downward reaches overshoot, at times"
    )
    slow_cap: Natural = Field(description="largest log price that can be given back slowly")
    fast_cap: Natural


class Jumps(Config):
    """Rare large moves that excite each other and lift the volatility after them."""

    rate_per_min: Natural
    heat: float = Field(description="how the rate grows with the log volatility")
    excitation: Natural = Field(description="rise of the chance a bar after a jump")
    memory_min: Positive
    scale: Natural = Field(description="smallest jump in standard deviations")
    cap: Positive = Field(description="largest log move of one jump without skew")
    skew: Share = Field(description="how much larger falls are than rises, and how much rarer")
    kick: Natural = Field(description="rise of the log volatility after a jump")
    kick_power: Natural = Field(description="how the rise grows with the size of the jump")
    kick_tilt: float = Field(description="how much more a fall lifts it than a rise")
    kick_cap: Natural


class Prints(Config):
    """How a price becomes prints on the grid of ticks."""

    end_print: Share = Field(description="chance that an extreme at an end reaches the far quote")
    flip: Share = Field(description="chance that the open prints on the other side of the close")
    gap_rate: Natural
    gap_elasticity: float
    gap_drift: Natural
    gap_ticks: Natural
    gap_ticks_elasticity: float


class Trades(Config):
    """Number of trades of a bar, in logs."""

    level: float
    season: Season
    heat: float = Field(description="load on the log volatility without season")
    heat_square: float
    burst_share: Share = Field(description="share of trades that come with the bar's own range")
    burst_power: float
    burst_noise: Natural
    burst_memory: Share
    echo: float = Field(description="load on the surprise of the bar before")
    echo_drift: Natural
    busy: float = Field(description="load on the log number of price moves over the usual one")
    body: float
    body_range: float
    kurtosis: Natural
    skew: float
    tau: tuple[Positive, ...] = Field(description="time scales of the noise in bars")
    variance: tuple[Natural, ...]


class Sizes(Config):
    """Mean size of a trade of a bar, in logs; volume is trades times size."""

    level: float
    season: Season
    trades: float
    trades_square: float
    range: float
    trades_noise: float
    calm: float = Field(description="how much less noisy the mean size of many trades is")
    past: Four = Field(description="loads on past trades")
    past_tau: tuple[Positive, Positive, Positive, Positive] = Field(description="in bars")
    kurtosis: Natural
    skew: float
    drift: Natural
    variance: tuple[Natural, ...]


class Takers(Config):
    """Who was the aggressor: the imbalance of taker volume, before a hyperbolic tangent."""

    level: float
    body: float
    body_trades: float
    body_range: float
    body_drift: Natural
    move: float
    move_trades: float
    wick: float
    past_body: tuple[float, float, float]
    noise: float = Field(description="log scale of the noise")
    noise_trades: float
    noise_trades_drift: Natural
    noise_size: float
    noise_size_drift: Natural
    noise_range: float
    noise_drift: Natural
    range_tau: Positive = Field(description="bars over which the usual range is taken")
    variance: tuple[Natural, ...]


class Spread(Config):
    """Best ask less best bid at the close, in ticks: mostly one, sometimes wide."""

    wide_rate: Natural
    wide_elasticity: float
    wide_ticks: Natural
    wide_ticks_elasticity: float


class Funding(Config):
    """Eight-hourly funding from past prices and its own memory, mapped to a real distribution."""

    price_share: Share
    price_memory_periods: Positive
    slow_share: Share
    slow_periods: Positive
    quick_share: Share
    quick_periods: Positive
    probability: tuple[float, ...]
    rate_bp: tuple[float, ...]


class Parameters(Config):
    """Everything that makes one market."""

    instrument: Instrument
    period: str
    start_price: Positive
    character_tau_min: Positive = Field(description="how slowly the habits of the market drift")
    volatility: Volatility
    activity: Activity
    moves: Moves
    overshoot: Overshoot
    jumps: Jumps
    prints: Prints
    trades: Trades
    sizes: Sizes
    takers: Takers
    spread: Spread
    funding: Funding

    @model_validator(mode="after")
    def _price_on_the_grid(self) -> Parameters:
        if self.instrument.tick <= 0.0 or self.instrument.lot <= 0.0:
            raise ValueError("a generated market needs a tick and a lot")
        if self.start_price < _LEAST_TICKS * self.instrument.tick:
            raise ValueError(f"start_price must be at least {_LEAST_TICKS} ticks")
        return self


@cache
def _preset(name: str) -> dict[str, Any]:
    path = files("agent_gym.markets.synthetic").joinpath("presets", f"{name}.json")
    loaded: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return loaded


def load_parameters(preset: str, overrides: dict[str, Any]) -> Parameters:
    """Return the parameters of a preset with some of them replaced.

    Args:
        preset: One of PRESETS.
        overrides: Dotted names and new values, such as ``{"volatility.level": -8.0}``.
    """
    values = json.loads(json.dumps(_preset(preset)))
    for name, value in overrides.items():
        *sections, field = name.split(".")
        place = values
        for section in sections:
            place = place.get(section) if isinstance(place, dict) else None
        if not isinstance(place, dict) or field not in place:
            raise ConfigError(
                f"no parameter is named {name!r}",
                where=f"overrides of {preset}",
                expected="a dotted name such as volatility.level",
            )
        place[field] = value
    return configure(Parameters, values, where=f"preset {preset}")
