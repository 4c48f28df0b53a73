from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.market_config import (
    FlashCrashConfig,
)
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.shocks import Shock, draw_shocks
from tests.evaluation.market_samples import CONFIGS, TYPES, scenario

OTHERS: dict[str, dict[str, Any]] = {
    "": {
        "hours": 96.0,
        "bar_minutes": 15,
        "warmup_hours": 20.0,
        "shocks": 1,
        "spread_of_size": 0.1,
        "venue": {"max_leverage": 2.0, "capital": 12_345.0, "taker_bps": 7.0},
    },
    "flash_crash": {
        "depth": 0.2,
        "fall_minutes": 60.0,
        "recovered_share": 0.9,
        "recovery_minutes": 60.0,
        "volume_factor": 0.001,
        "spread_factor": 1.0,
    },
    "price_gap": {
        "gap": 0.1,
        "down_share": 0.0,
        "retraced_share": 1.0,
        "retrace_minutes": 600.0,
        "spread_factor": 1.0,
    },
    "funding_spike": {
        "rate_bps": 50.0,
        "settle_minutes": 30.0,
        "spike_minutes": 300.0,
        "longs_pay_share": 0.0,
    },
    "feed_outage": {"outage_minutes": 60.0, "feed": "stale", "move": 0.0, "down_share": 0.0},
    "thin_book": {"volume_share": 0.1, "spread_factor": 1.0, "thin_minutes": 60.0},
}


@pytest.mark.parametrize("kind", TYPES)
def test_every_parameter_changes_something(kind: str) -> None:
    others = OTHERS[""] | OTHERS[kind]
    # train_bars acts on agents that learn alone; tests of UMC in scenarios show that it does.
    assert set(others) == set(CONFIGS[kind].model_fields) - {"train_bars"}
    hold = Subject(agent=Ref(use="rules/random", params={"hold_bars": 3}))
    usual = [scenario(kind).play(Seeds(seed), hold).trajectory_hash for seed in (1, 2, 3)]
    for name, value in others.items():
        other = scenario(kind, **{name: value})
        assert any(
            other.play(Seeds(seed), hold).trajectory_hash != known
            for seed, known in enumerate(usual, start=1)
        ), name


def test_what_cannot_be_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'depth'"):
        scenario("flash_crash", dept=0.1)
    with pytest.raises(ConfigError, match="do not fit"):
        scenario("flash_crash", shocks=50)
    with pytest.raises(ConfigError, match="flash_crash"):
        scenario("flash_cras")
    with pytest.raises(ValidationError):
        FlashCrashConfig(depth=1.5)


@given(
    kind=st.sampled_from(TYPES),
    seed=st.integers(0, 2**40),
    shocks=st.integers(1, 4),
    size=st.floats(0.001, 0.5),
)
@settings(max_examples=60, deadline=None)
def test_shocks_lie_apart_behind_the_warmup(kind: str, seed: int, shocks: int, size: float) -> None:
    setting = CONFIGS[kind].model_validate({"shocks": shocks, "hours": 72.0})
    drawn = draw_shocks(setting, Seeds(seed), size, 0.5)
    assert len(drawn) == shocks
    assert drawn[0].start >= setting.first_bar
    assert drawn[-1].end <= setting.n_bars - 2
    assert all(one.end <= other.start for one, other in pairwise(drawn))
    assert all(0.7 * size <= abs(shock.size) <= 1.3 * size for shock in drawn)
    larger = draw_shocks(setting, Seeds(seed), 2.0 * size, 0.5)
    assert [shock[:2] for shock in larger] == [shock[:2] for shock in drawn]


def calm_and_struck(kind: str, **params: Any) -> tuple[Any, Any, tuple[Shock, ...]]:
    made = scenario(kind, **params)
    struck, shocks = made.market(Seeds(4))
    made.strike = lambda bars, shocks: bars  # type: ignore[method-assign]
    return made.market(Seeds(4))[0], struck, shocks


def test_a_crash_has_the_stated_shape() -> None:
    calm, struck, shocks = calm_and_struck("flash_crash", shocks=1)
    (start, end, size), falling = shocks[0], 6
    ratio = struck.close / calm.close
    assert np.array_equal(struck.close[:start], calm.close[:start])
    assert ratio[start + falling - 1] == pytest.approx(1.0 + size, abs=1e-5)
    assert ratio.min() == pytest.approx(1.0 + size, abs=1e-5)
    assert ratio[end - 1] == pytest.approx((1.0 + size) ** 0.4, abs=1e-5)
    assert ratio[end:] == pytest.approx(ratio[end - 1], abs=1e-5)
    half = (start + falling + end) // 2
    assert np.log(ratio[half]) > 0.5 * np.log1p(size)  # a straight way back would be at 0.7
    assert struck.volume[start] == pytest.approx(4.0 * calm.volume[start])
    assert struck.volume[start + falling] == calm.volume[start + falling]


def test_a_gap_leaves_no_chance_to_trade_in_it() -> None:
    calm, struck, shocks = calm_and_struck("price_gap")
    for start, _, size in shocks:
        seam = calm.open[start] / calm.close[start - 1]
        assert struck.open[start] / struck.close[start - 1] == pytest.approx(
            (1.0 + size) * seam, abs=1e-5
        )
    assert {size < 0.0 for _, _, size in shocks}


def test_an_outage_goes_on_at_the_venue_and_a_thin_book_has_no_volume() -> None:
    calm, struck, shocks = calm_and_struck("feed_outage")
    start, end, size = shocks[0]
    ratio = struck.close / calm.close
    assert ratio[end] == pytest.approx(1.0 + size, abs=1e-5)
    assert len(np.unique(struck.close[start:end])) > (end - start) // 2
    calm, struck, shocks = calm_and_struck("thin_book")
    start, end, size = shocks[0]
    assert struck.volume[start:end] == pytest.approx(size * calm.volume[start:end])
    assert struck.extra["spread"][start] == pytest.approx(50.0 * calm.extra["spread"][start])
    assert np.array_equal(struck.close, calm.close)


def test_a_funding_spike_moves_no_price() -> None:
    calm, struck, shocks = calm_and_struck("funding_spike")
    assert np.array_equal(struck.close, calm.close)
    for start, end, size in shocks:
        due = np.flatnonzero(struck.extra["funding"][start:end])
        assert due.tolist() == list(range(0, end - start, 12))
        assert struck.extra["funding"][start] == pytest.approx(-size * 1e-4)


@pytest.mark.parametrize("kind", TYPES)
def test_struck_bars_are_whole_bars(kind: str) -> None:
    bars, _ = scenario(kind).market(Seeds(11))
    top, bottom = np.maximum(bars.open, bars.close), np.minimum(bars.open, bars.close)
    assert (bars.high >= top).all()
    assert (bars.low <= bottom).all()
    assert (bars.low > 0.0).all()
