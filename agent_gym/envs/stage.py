"""What is played: the tape and the rows that observations are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import unknown
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Nanos
from agent_gym.envs.config import MarketConfig, refuse_fields
from agent_gym.exchange.kernel.layout import PRIVATE_FEATURES
from agent_gym.exchange.tape import Tape
from agent_gym.markets.bars import PRICE_COLUMNS, Bars
from agent_gym.markets.features import compute_features
from agent_gym.markets.source import open_market


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A tape with its observation rows; learners see ``slim`` rows, agents in words ``full`` ones.

    A slim row holds the causal features (float32). A full row holds the bar itself before them
    (float64), so that a rule can read the exact close. The account's own columns come last in both;
    ``own`` are those of them that a slim row shows.
    """

    tape: Tape
    learned: tuple[str, ...]
    rows: NDArray[np.float64]
    own: tuple[str, ...] = PRIVATE_FEATURES

    @property
    def period_ns(self) -> Nanos:
        """Return the time from one observation to the next."""
        return Nanos(self.tape.bars.period_ns)

    @property
    def slim_names(self) -> tuple[str, ...]:
        """Return the columns of a slim observation."""
        return (*self.learned, *self.own)

    @property
    def slim_columns(self) -> NDArray[np.intp] | None:
        """Return where they stand in what lanes show; None: all of it, in order."""
        if self.own == PRIVATE_FEATURES:
            return None
        width = len(self.learned)
        places = [*range(width), *(width + PRIVATE_FEATURES.index(name) for name in self.own)]
        return np.array(places, dtype=np.intp)

    @property
    def full_names(self) -> tuple[str, ...]:
        """Return the columns of a full observation."""
        return (*PRICE_COLUMNS, *self.learned, *PRIVATE_FEATURES)

    def slim(self) -> NDArray[np.float32]:
        """Return the rows for learners."""
        return self.rows.astype(np.float32)

    def full(self) -> NDArray[np.float64]:
        """Return the rows for agents that read bars."""
        bars = self.tape.bars
        return np.column_stack([*(getattr(bars, name) for name in PRICE_COLUMNS), self.rows])


def build_stage(config: MarketConfig, bars: Bars | None = None) -> Stage:
    """Lay out the given bars, or the market that the config names; not both can be meant."""
    if bars is None:
        bars = open_market(config.market, Seeds(config.market_seed))
    elif not config.fresh_market:  # a world that draws anew hands over what it drew
        refuse_fields(
            config,
            ("market", "market_seed"),
            what="bars were given, so no market is opened",
            remedy="Leave out the bars, or the market",
        )
    tape = Tape.of(bars, config.costs)
    _check_features(config.features or ())
    own = _own_features(config.account_features)
    if config.features == ():
        return Stage(tape, (), np.empty((len(bars), 0)), own)
    names, rows = compute_features(bars).observations(np.float64)
    if config.features is None:
        return Stage(tape, names, rows, own)
    for name in config.features:
        if name not in names:
            raise unknown("feature", name, names)
    places = [names.index(name) for name in config.features]
    return Stage(tape, config.features, rows[:, places], own)


def _own_features(wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    if wanted is None:
        return PRIVATE_FEATURES
    _check_features(wanted, "account_features")
    for name in wanted:
        if name not in PRIVATE_FEATURES:
            raise unknown("column of an account", name, PRIVATE_FEATURES)
    return wanted


def _check_features(wanted: tuple[str, ...], where: str = "features") -> None:
    repeated = sorted({name for name in wanted if wanted.count(name) > 1})
    if repeated:
        raise ConfigError(
            "a feature is asked for more than once",
            where=where,
            found=", ".join(repeated),
            remedy="Name each feature once; every column of an observation has its own name",
        )
