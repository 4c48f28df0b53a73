"""The generated markets that a config can name: ``synthetic/btc-1m`` and ``synthetic/btc-1h``."""

from __future__ import annotations

from dataclasses import dataclass

from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars
from agent_gym.markets.synthetic.config import GeneratorConfig, SourceConfig
from agent_gym.markets.synthetic.market import SyntheticMarket, generate
from agent_gym.markets.synthetic.parameters import PresetName


@dataclass(frozen=True, slots=True)
class SyntheticSource:
    """A market that is made anew for each seed."""

    config: GeneratorConfig

    def generate(self, seeds: Seeds) -> SyntheticMarket:
        """Return bars and truth."""
        return generate(self.config, seeds)

    def bars(self, seeds: Seeds) -> Bars:
        """Return the bars alone, which is all that a world hands on."""
        return self.generate(seeds).bars


@register("market", "synthetic/btc-1m", SourceConfig)
def minute_market(config: SourceConfig) -> SyntheticSource:
    """Return minutes like those of a BTC perpetual."""
    return _source("btc-1m", config)


@register("market", "synthetic/btc-1h", SourceConfig)
def hour_market(config: SourceConfig) -> SyntheticSource:
    """Return hours like those of BTC spot over many years."""
    return _source("btc-1h", config)


def _source(preset: PresetName, config: SourceConfig) -> SyntheticSource:
    return SyntheticSource(GeneratorConfig(preset=preset, **config.model_dump()))
