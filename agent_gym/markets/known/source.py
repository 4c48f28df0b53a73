"""The known markets by name, and how one is drawn with its truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent_gym.core.registry import Ref, configure, register, unknown
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars, Provenance
from agent_gym.markets.known import processes as law
from agent_gym.markets.known.config import (
    BreakConfig,
    GarchConfig,
    HiddenDriftConfig,
    KnownMarketConfig,
    MispricingConfig,
    RegimesConfig,
    ResampledConfig,
    SignalConfig,
    VolatilityConfig,
    WalkConfig,
)
from agent_gym.markets.known.printing import print_bars

PREFIX = "known/"


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A market and its truth, one value a bar; the truth is never in the bars.

    ``truth["drift"]`` is the expected return of each bar for one who knows the hidden state.
    """

    bars: Bars
    truth: Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class Law:
    """How a market is drawn."""

    about: str
    config: type[KnownMarketConfig]
    draw: Callable[[Any, Seeds], law.Path]
    flow: bool = False


LAWS = {
    "known/m1": Law("hidden drift", HiddenDriftConfig, law.hidden_drift),
    "known/m2": Law("mispricing, shown", MispricingConfig, partial(law.mispricing, shown=True)),
    "known/m2-hidden": Law(
        "mispricing, hidden", MispricingConfig, partial(law.mispricing, shown=False)
    ),
    "known/m3": Law("regimes that switch the sign", RegimesConfig, law.regimes),
    "known/m4": Law("one signal among decoys", SignalConfig, law.feature_signal),
    "known/m5": Law("volatility regimes only", VolatilityConfig, law.volatility_regimes),
    "known/b1": Law("hidden drift that ends", BreakConfig, law.hidden_drift),
    "known/n1": Law("null: Gaussian walk", WalkConfig, law.walk),
    "known/n2": Law("null: GARCH with heavy tails", GarchConfig, law.garch),
    "known/n3": Law("null: resampled returns", ResampledConfig, law.resampled),
    "known/n4": Law("null: order flow that follows", WalkConfig, law.followed_walk, flow=True),
}
KNOWN: tuple[str, ...] = tuple(LAWS)
NULLS: tuple[str, ...] = tuple(name for name in KNOWN if name.startswith(PREFIX + "n"))


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A known market that is drawn anew for each seed."""

    name: str
    config: KnownMarketConfig

    def draw(self, seeds: Seeds) -> Drawn:
        """Return bars and truth."""
        known = LAWS[self.name]
        path = known.draw(self.config, seeds)
        provenance = Provenance(
            source="synthetic",
            origin=self.name,
            details={
                "config": self.config.model_dump(mode="json"),
                "seed": seeds.root,
                "seed_path": list(seeds.path),
            },
        )
        return Drawn(print_bars(path, seeds, provenance, flow=known.flow), path.truth)

    def bars(self, seeds: Seeds) -> Bars:
        """Return the bars alone, which is all that a world hands on."""
        return self.draw(seeds).bars


def full_name(name: str) -> str:
    """Return the name of a known market, also for its short form; another one is a ConfigError.

    Example:
        >>> full_name("m1")
        'known/m1'
    """
    for known in (name, PREFIX + name):
        if known in LAWS:
            return known
    raise unknown("known market", name, KNOWN)


def known_config(ref: Ref) -> KnownMarketConfig:
    """Return the checked parameters of the known market that a Ref names."""
    name = full_name(ref.use)
    return configure(LAWS[name].config, ref.params, where=f"market {name}")


def draw(ref: Ref, seeds: Seeds) -> Drawn:
    """Draw a known market with its truth; its bars are those of ``open_market(ref, seeds)``.

    Example:
        >>> drawn = draw(Ref(use="known/m1", params={"n_bars": 3}), Seeds(1))
        >>> len(drawn.bars), sorted(drawn.truth), sorted(drawn.bars.extra)
        (3, ['drift', 'regime'], [])
    """
    return KnownSource(full_name(ref.use), known_config(ref)).draw(seeds)


for _name, _law in LAWS.items():
    register("market", _name, _law.config)(partial(KnownSource, _name))
