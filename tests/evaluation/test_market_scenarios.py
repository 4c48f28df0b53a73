from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from agent_gym.core.registry import Ref, make, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, Observation, SeriesAgent
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.shocks import Shock
from tests.evaluation.market_samples import (
    FLAT,
    RANDOM,
    TYPES,
    AnyConfig,
    Diary,
    Plain,
    plain,
    scenario,
)


@pytest.mark.parametrize("kind", TYPES)
def test_the_figures_are_those_announced_and_many_gate(kind: str) -> None:
    made = scenario(kind)
    episode = made.play(Seeds(1), Subject())
    names = [metric.name for metric in made.figures()]
    assert set(episode.metrics) == set(names)
    assert len(names) == len(set(names))
    assert sum(metric.gates for metric in made.figures()) >= 12
    assert all(value is None or math.isfinite(value) for value in episode.metrics.values())
    assert all(type(value) in (float, type(None)) for value in episode.metrics.values())
    assert set(episode.perf) == {"market_s", "trade_s", "judge_s"}


@pytest.mark.parametrize("kind", TYPES)
def test_a_flat_agent_has_zero_everywhere(kind: str) -> None:
    figures = scenario(kind).play(Seeds(2), FLAT).metrics
    undefined = {"cost_bp", "fill_lag_bars"}
    assert {name for name, value in figures.items() if value is None} == undefined
    assert {value for value in figures.values() if value is not None} == {0.0}


@pytest.mark.parametrize("kind", TYPES)
def test_a_random_agent_does_not_look_good(kind: str) -> None:
    made = scenario(kind)
    played = [made.play(Seeds(seed), RANDOM).metrics for seed in range(12)]
    assert np.mean([figures["net_return"] for figures in played]) < 0.0
    assert all((figures["costs_paid"] or 0.0) > 0.005 for figures in played)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("agent", ["rules/sma-cross", "rules/random"])
def test_step_by_step_and_whole_series_are_one_run(kind: str, agent: str) -> None:
    made = scenario(kind)
    whole = made.play(Seeds(3), Subject(agent=Ref(use=agent)))
    steps = made.play(Seeds(3), plain(use=agent))
    assert not isinstance(make("agent", Ref(use="test/scenario-plain")), SeriesAgent)
    assert steps.trajectory_hash == whole.trajectory_hash
    assert steps.metrics == whole.metrics


def test_a_stale_feed_gives_the_same_run_by_both_doors() -> None:
    made = scenario("feed_outage", feed="stale")
    whole, steps = made.play(Seeds(3), Subject()), made.play(Seeds(3), plain())
    assert steps.trajectory_hash == whole.trajectory_hash
    blind = scenario("feed_outage").play(Seeds(3), Subject())
    assert whole.trajectory_hash != blind.trajectory_hash
    assert (whole.metrics["trades_in_outage"] or 0.0) > 0.0


def test_the_hash_is_the_same_in_other_processes() -> None:
    code = (
        "from agent_gym.core.registry import Ref, make\n"
        "from agent_gym.core.seeds import Seeds\n"
        "from agent_gym.evaluation.scenarios.scenario import Subject\n"
        "for kind in ('flash_crash', 'feed_outage', 'thin_book'):\n"
        "    print(make('scenario', Ref(use=kind)).play(Seeds(5), Subject()).trajectory_hash)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    here = [
        scenario(kind).play(Seeds(5), Subject()).trajectory_hash
        for kind in ("flash_crash", "feed_outage", "thin_book")
    ]
    assert out.split() == here
    assert len(set(here)) == 3


def test_the_market_does_not_depend_on_the_agent_or_the_plant() -> None:
    made = scenario("flash_crash")
    before = made.market(Seeds(8))[0].fingerprint
    made.play(Seeds(8), RANDOM)
    made.play(Seeds(8), Subject(plant="market_sign_flipped"))
    assert made.market(Seeds(8))[0].fingerprint == before
    assert made.market(Seeds(9))[0].fingerprint != before


def diary(feed: str, plant: str | None = None) -> tuple[Any, tuple[Shock, ...]]:
    made = scenario("feed_outage", feed=feed)
    bars, shocks = made.market(Seeds(6))
    Diary.runs.clear()
    made.play(Seeds(6), Subject(agent=Ref(use="test/scenario-diary"), plant=plant))
    first = Diary.runs[0]  # the ones after it were shown another future
    return (bars, first.shown, first.learned), shocks


def test_a_missing_feed_asks_nothing_and_teaches_nothing() -> None:
    (bars, shown, learned), shocks = diary("missing")
    closes = (bars.ts + bars.period_ns).tolist()
    hidden = {closes[t] for start, end, _ in shocks for t in range(start, end)}
    assert {ts for ts, _ in shown} == set(closes[:-1]) - hidden
    assert hidden
    assert not hidden & {ts for pair in learned for ts in pair}


def test_a_stale_feed_repeats_the_last_row_with_its_old_time() -> None:
    (bars, shown, _), shocks = diary("stale")
    start, end, _ = shocks[0]
    closes = (bars.ts + bars.period_ns).tolist()
    assert len(shown) == len(bars) - 1
    assert {shown[t] for t in range(start, end)} == {(closes[start - 1], bars.close[start - 1])}
    assert shown[end] == (closes[end], bars.close[end])


def test_the_plant_puts_the_present_time_on_the_old_row() -> None:
    (bars, shown, _), shocks = diary("missing", "market_stale_as_fresh")
    start, end, _ = shocks[0]
    assert [ts for ts, _ in shown] == (bars.ts + bars.period_ns).tolist()[:-1]
    assert {price for _, price in shown[start:end]} == {bars.close[start - 1]}


def test_actions_that_cannot_be_taken_are_counted() -> None:
    made = scenario("price_gap")
    beyond = made.play(Seeds(1), plain(action=5.0)).metrics
    assert beyond["rejected_actions"] == made.setting.n_bars - 1
    assert 1.5 < (beyond["gross_exposure"] or 0.0) < 2.6  # cut down to the leverage of 2


def test_no_number_leaves_the_last_target_standing() -> None:
    class Lost(Plain):
        count = 0

        def act(self, obs: Observation) -> Decision:
            self.count += 1
            return Decision(1.0 if self.count == 5 else math.nan)

    register("agent", "test/scenario-lost", AnyConfig)(Lost)
    made = scenario("price_gap")
    figures = made.play(Seeds(1), Subject(agent=Ref(use="test/scenario-lost"))).metrics
    assert figures["rejected_actions"] == made.setting.n_bars - 2
    assert (figures["time_in_market"] or 0.0) > 0.98


def test_an_agent_that_does_not_repeat_itself_is_not_blamed_for_seeing_the_future() -> None:
    made, moody = scenario("price_gap"), Subject(agent=Ref(use="test/scenario-moody"))
    one, other = made.play(Seeds(1), moody), made.play(Seeds(1), moody)
    assert one.trajectory_hash != other.trajectory_hash
    assert one.metrics["causality_breaks"] == 0.0


def test_a_venue_with_risk_parts_is_played_step_by_step() -> None:
    held = {"max_leverage": 2.0, "max_drawdown": 0.02}
    figures = scenario("flash_crash", venue=held).play(Seeds(1), Subject()).metrics
    free = scenario("flash_crash").play(Seeds(1), Subject()).metrics
    assert (figures["max_drawdown"] or 0.0) < (free["max_drawdown"] or 0.0)
    assert figures["ledger_gap_bp"] == 0.0
    assert figures["causality_breaks"] == 0.0
