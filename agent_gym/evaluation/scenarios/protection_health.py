"""Are open positions always protected, and do the protections work under stress?

The desk opens positions on a venue whose prices jump and gap, and keeps a stop and a profit target
for each. Cancels fail, the venue loses guards, the price feed goes silent. What is measured is read
from the venue: which stops really stood there, and what they really traded at.
"""

from __future__ import annotations

from typing_extensions import override

from agent_gym.core.clock import SystemClock
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.evaluation.scenarios.protection_figures import METRICS, measure
from agent_gym.evaluation.scenarios.protection_floor import ProtectionFloor
from agent_gym.evaluation.scenarios.protection_market import (
    ENTRY_SHARE,
    Entry,
    ProtectionHealthConfig,
    draw_entries,
    recorded_entries,
)
from agent_gym.evaluation.scenarios.recorded import (
    RecordedLog,
    read_log,
    recorded_metrics,
    with_recorded,
)
from agent_gym.evaluation.scenarios.scenario import Episode, Scenario, Subject
from agent_gym.evaluation.scenarios.signal_replay import replay_hours

TYPE = "protection_health"


@register("scenario", TYPE, ProtectionHealthConfig)
class ProtectionHealth(Scenario):
    """Plays positions and their guards on a venue under stress."""

    version = 1
    metrics = METRICS

    def __init__(self, config: ProtectionHealthConfig) -> None:
        self.config = config

    @override
    def figures(self) -> tuple[Metric, ...]:
        return METRICS if self.config.source is None else with_recorded(TYPE, METRICS)

    @override
    def data_hash(self) -> str:
        log = self._log()
        return "" if log is None else log.data_hash

    @override
    def play(self, seeds: Seeds, subject: Subject) -> Episode:
        begun_s = SystemClock().monotonic_s()
        log = self._log()
        config = self._config(log)
        floor = ProtectionFloor.open(config, seeds, subject, _entries(config, seeds, log))
        while floor.step():
            pass
        metrics = measure(floor.watch, floor.keeper.counts, floor.finish())
        if log is not None:
            metrics |= recorded_metrics(TYPE, log)
        wall_s = SystemClock().monotonic_s() - begun_s
        return Episode(
            metrics,
            floor.trace.digest(),
            len(floor.trace),
            () if log is None else log.notes,
            {"wall_s": wall_s, "bars_per_s": floor.venue.t / wall_s},
        )

    def _config(self, log: RecordedLog | None) -> ProtectionHealthConfig:
        """Return the terms; with a log they last for its window and a tenth for what is open."""
        if log is None:
            return self.config
        return self.config.model_copy(update={"hours": replay_hours(log, TYPE) / ENTRY_SHARE})

    def _log(self) -> RecordedLog | None:
        source = self.config.source
        # The default is for generated entries; a log is played whole unless someone says otherwise.
        hours = self.config.hours if "hours" in self.config.model_fields_set else None
        return None if source is None else read_log(source, hours)


def _entries(config: ProtectionHealthConfig, seeds: Seeds, log: RecordedLog | None) -> list[Entry]:
    if log is not None:
        return recorded_entries(log)
    return draw_entries(config.positions, config.hours, config.long_share, seeds)
