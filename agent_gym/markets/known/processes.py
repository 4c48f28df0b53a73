"""The laws of the known markets: returns, and the truth behind them.

Returns are simple ones, so that the gain of a position is exactly position times return, and a
return of mean zero makes the price a fair game. Every stream of random numbers has a name of its
own, and a longer series begins with the shorter one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from agent_gym.core.errors import ConfigError
from agent_gym.core.kernels import door
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.markets.known.config import (
    BP,
    PCT,
    BreakConfig,
    GarchConfig,
    HiddenDriftConfig,
    MispricingConfig,
    RegimesConfig,
    ResampledConfig,
    SignalConfig,
    VolatilityConfig,
    WalkConfig,
)
from agent_gym.markets.source import open_market

MISPRICING_SIGNAL = "signal_mispricing"
LARGEST_RETURN = 0.5  # returns are cut here on both sides, so a fair game stays one
FEWEST_RETURNS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """One drawn path: simple returns, the noise of each bar, the truth and the shown signals."""

    returns: FloatArray
    sigma: FloatArray
    truth: dict[str, FloatArray]
    signals: dict[str, FloatArray] = field(default_factory=dict)


def hidden_drift(config: HiddenDriftConfig, seeds: Seeds) -> Path:
    """Draw M1, or B1 if the config knows a break."""
    regime = _two_states(config.n_bars, config.stay, seeds)
    drift = config.mean * (2.0 * regime - 1.0)
    truth = {"regime": regime, "drift": drift}
    if isinstance(config, BreakConfig):
        broken = (np.arange(config.n_bars) >= config.break_bar).astype(np.float64)
        truth |= {"drift": drift * (1.0 - broken), "broken": broken}
    noise = config.sigma * _normal(config.n_bars, seeds, "noise")
    return Path(truth["drift"] + noise, np.full(config.n_bars, config.sigma), truth)


def mispricing(config: MispricingConfig, seeds: Seeds, *, shown: bool) -> Path:
    """Draw M2; only if ``shown``, agents see the mispricing, in its usual deviations."""
    n = config.n_bars
    shocks = config.shock * _normal(n, seeds, "mispricing")
    start = config.deviation * float(seeds.child("start").rng().standard_normal())
    level = autoregression(start, config.memory, shocks)
    drift = -config.reversion * np.concatenate([[start], level[:-1]])
    returns = drift + shocks + config.sigma * _normal(n, seeds, "noise")
    sigma = np.full(n, np.hypot(config.shock, config.sigma))
    signals = {MISPRICING_SIGNAL: level / config.deviation} if shown else {}
    return Path(returns, sigma, {"mispricing": level, "drift": drift}, signals)


def regimes(config: RegimesConfig, seeds: Seeds) -> Path:
    """Draw M3."""
    regime = _two_states(config.n_bars, config.stay, seeds)
    share = config.autocorrelation * (2.0 * regime - 1.0)
    returns = switching(share, config.sigma * _normal(config.n_bars, seeds, "noise"))
    drift = share * np.concatenate([[0.0], returns[:-1]])
    sigma = np.full(config.n_bars, config.sigma)
    return Path(returns, sigma, {"regime": regime, "drift": drift})


def feature_signal(config: SignalConfig, seeds: Seeds) -> Path:
    """Draw M4; the signal at a close leads the return of the bar after it."""
    n, spread = config.n_bars, (1.0 - config.memory**2) ** 0.5
    signals = {}
    for place in range(1, config.decoys + 2):
        own = seeds.child("signal", place)
        start = float(own.child("start").rng().standard_normal())
        signals[signal_name(place)] = autoregression(
            start, config.memory, spread * _normal(n, own, "shocks")
        )
    leading = signals[signal_name(config.place)]
    drift = config.slope * np.concatenate([[0.0], leading[:-1]])
    returns = drift + config.noise * _normal(n, seeds, "noise")
    truth = {"signal": leading, "drift": drift}
    return Path(returns, np.full(n, config.noise), truth, signals)


def signal_name(place: int) -> str:
    """Return the column of one of M4's signals."""
    return f"signal_{place:02d}"


def volatility_regimes(config: VolatilityConfig, seeds: Seeds) -> Path:
    """Draw M5."""
    regime = _two_states(config.n_bars, config.stay, seeds)
    sigma = PCT * np.where(regime > 0.0, config.wild_sigma_pct, config.calm_sigma_pct)
    drift = np.full(config.n_bars, config.drift_bp * BP)
    returns = drift + sigma * _normal(config.n_bars, seeds, "noise")
    return Path(returns, sigma, {"regime": regime, "sigma": sigma, "drift": drift})


def walk(config: WalkConfig, seeds: Seeds) -> Path:
    """Draw N1."""
    sigma = np.full(config.n_bars, PCT * config.sigma_pct)
    returns = sigma * _normal(config.n_bars, seeds, "noise")
    return Path(returns, sigma, {"drift": np.zeros(config.n_bars)})


def followed_walk(config: WalkConfig, seeds: Seeds) -> Path:
    """Draw the prices of N4: a walk of its own, or it would be no fourth null beside N1."""
    return walk(config, seeds.child("followed"))


def garch(config: GarchConfig, seeds: Seeds) -> Path:
    """Draw N2."""
    heavy = seeds.child("noise").rng().standard_t(config.freedom, config.n_bars)
    unit = heavy * (1.0 - 2.0 / config.freedom) ** 0.5
    weights = np.array([(PCT * config.sigma_pct) ** 2, config.reaction, config.persistence])
    returns, sigma = clustered(unit, weights, LARGEST_RETURN)
    return Path(returns, sigma, {"sigma": sigma, "drift": np.zeros(config.n_bars)})


def resampled(config: ResampledConfig, seeds: Seeds) -> Path:
    """Draw N3: blocks of the source's returns, joined end to end; the source wraps around."""
    close = open_market(config.source, seeds.child("source")).close
    if close.size <= FEWEST_RETURNS:
        raise ConfigError(
            "the source of returns is too short to be drawn from",
            where=f"market {config.source.use}",
            found=f"{close.size} bars",
            expected=f"more than {FEWEST_RETURNS}",
        )
    changes = close[1:] / close[:-1] - 1.0
    pool = np.clip(changes - float(changes.mean()), -LARGEST_RETURN, LARGEST_RETURN)
    begins = seeds.child("blocks").rng().random(config.n_bars) < 1.0 / config.block_bars
    begins[0] = True
    starts = seeds.child("starts").rng().integers(0, pool.size, config.n_bars)
    bar = np.arange(config.n_bars)
    first = np.maximum.accumulate(np.where(begins, bar, 0))
    returns = pool[(starts[first] + bar - first) % pool.size]
    if config.flip_signs:
        returns = returns * np.where(seeds.child("signs").rng().random(config.n_bars) < 0.5, -1, 1)
    sigma = np.full(config.n_bars, float(pool.std()))
    return Path(returns, sigma, {"drift": np.zeros(config.n_bars)})


def _normal(n: int, seeds: Seeds, name: str) -> FloatArray:
    drawn: FloatArray = seeds.child(name).rng().standard_normal(n)
    return drawn


def _two_states(n: int, stay: float, seeds: Seeds) -> FloatArray:
    """Return 0 or 1 for each bar; the first is drawn evenly."""
    turns = seeds.child("regime").rng().random(n) >= stay
    turns[0] = seeds.child("start").rng().random() < 0.5
    return np.asarray(np.cumsum(turns) % 2.0, dtype=np.float64)


@door("float64[::1](float64, float64, float64[::1])")
def autoregression(start: float, memory: float, shocks: FloatArray) -> FloatArray:
    """Return a level that keeps a share of itself and takes in one shock a bar."""
    level = np.empty_like(shocks)
    last = start
    for t in range(shocks.size):
        last = memory * last + shocks[t]
        level[t] = last
    return level


@door("float64[::1](float64[::1], float64[::1])")
def switching(share: FloatArray, shocks: FloatArray) -> FloatArray:
    """Return an autoregression whose memory is another one at every bar."""
    level = np.empty_like(shocks)
    last = 0.0
    for t in range(shocks.size):
        last = share[t] * last + shocks[t]
        level[t] = last
    return level


@door("UniTuple(float64[::1], 2)(float64[::1], float64[::1], float64)")
def clustered(
    unit: FloatArray, weights: FloatArray, largest: float
) -> tuple[FloatArray, FloatArray]:
    """Return GARCH(1,1) returns and the deviation each was drawn with."""
    usual, reaction, persistence = weights[0], weights[1], weights[2]
    returns, sigma = np.empty_like(unit), np.empty_like(unit)
    variance = usual
    for t in range(unit.size):
        sigma[t] = np.sqrt(variance)
        returns[t] = min(max(sigma[t] * unit[t], -largest), largest)
        variance = (
            (1.0 - reaction - persistence) * usual
            + reaction * returns[t] * returns[t]
            + persistence * variance
        )
    return returns, sigma
