"""UMC as an agent: it learns, decides the same at every door, and sees nothing that is to come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agent_gym.agents.gate import ProvenanceError, Source, Tagged, Tags, concat
from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    ActionSpec,
    EpisodeStart,
    FloatArray,
    Inspectable,
    Learner,
    Observation,
    Role,
    Saveable,
    SeriesAgent,
    Successor,
    Tuned,
)
from agent_gym.evaluation.backtest import columns_for
from agent_gym.markets.known import draw

PAST, WHOLE = 3_000, 4_000
BOTH = ActionSpec(low=-1.0, high=1.0)


def closes(seed: int = 1, market: str = "known/m1", **params: float) -> FloatArray:
    return draw(Ref(use=market, params={"n_bars": WHOLE, **params}), Seeds(seed)).bars.close


def start(actions: ActionSpec = BOTH, names: tuple[str, ...] = ("close",)) -> EpisodeStart:
    return EpisodeStart(Role("trader"), names, actions, Seeds(3))


def taught(close: FloatArray, **params: object) -> UMCAgent:
    agent = make("agent", Ref(use="umc", params=params))
    assert isinstance(agent, UMCAgent)
    agent.fit(start(), {"close": close[:PAST]})
    return agent


@pytest.fixture(scope="module")
def close() -> FloatArray:
    return closes()


@pytest.fixture(scope="module")
def agent(close: FloatArray) -> UMCAgent:
    return taught(close)


def decided(agent: UMCAgent, close: FloatArray, actions: ActionSpec = BOTH) -> FloatArray:
    agent.reset(start(actions))
    made = [agent.act(Observation(i, close[i : i + 1])).action for i in range(close.size)]
    return np.array(made)


def test_it_keeps_every_contract(agent: UMCAgent) -> None:
    for contract in (SeriesAgent, Learner, Tuned, Successor, Inspectable, Saveable):
        assert isinstance(agent, contract)


def test_d3_positions_change_and_free_energy_decides_them(
    agent: UMCAgent, close: FloatArray
) -> None:
    targets = agent.targets(start(), {"close": close})
    assert {-1.0, 1.0} <= set(np.round(targets, 6))
    trace = agent.trace({"close": close})
    held = np.sign(np.round(targets[PAST:], 6))
    assert np.corrcoef(held, trace.edge[PAST:])[0, 1] > 0.6


def test_both_doors_decide_the_same_bit_for_bit(agent: UMCAgent, close: FloatArray) -> None:
    part = close[:600]
    assert decided(agent, part).tobytes() == agent.targets(start(), {"close": part}).tobytes()


def test_d23_d37_a_prefix_is_decided_the_same_and_later_bars_change_nothing(
    agent: UMCAgent, close: FloatArray
) -> None:
    whole = agent.targets(start(), {"close": close})
    for cut in (1, 2, 500, 3_100, 3_999):
        assert agent.targets(start(), {"close": close[:cut]}).tobytes() == whole[:cut].tobytes()
        poisoned = close.copy()
        poisoned[cut:] *= 1e6
        again = agent.targets(start(), {"close": poisoned})
        assert again[:cut].tobytes() == whole[:cut].tobytes()


def test_d37_learning_sees_the_past_it_is_given_and_no_more(close: FloatArray) -> None:
    other = close.copy()
    other[PAST:] = other[PAST:][::-1]
    for name, array in taught(close).weights().items():
        assert array.tobytes() == taught(other).weights()[name].tobytes(), name


@pytest.mark.parametrize("budget", [0.0, 5.0])
def test_f3_lambda_changes_no_trade_where_orders_reveal_nothing(
    close: FloatArray, budget: float
) -> None:
    curious = {"lambda_base": 0.46, "lambda_max": 0.46, "regret_budget_bp": budget}
    none = {"lambda_base": 0.0, "lambda_min": 0.0, "lambda_max": 0.0}
    one, other = taught(close, lam=curious), taught(close, lam=none)
    wanted = one.targets(start(), {"close": close})
    assert wanted.tobytes() == other.targets(start(), {"close": close}).tobytes()
    part = close[:400]
    assert decided(one, part).tobytes() == decided(other, part).tobytes()


def test_d4_d48_every_signal_is_written_and_lambda_moves(
    agent: UMCAgent, close: FloatArray
) -> None:
    agent.reset(start())
    made = [agent.act(Observation(i, close[i : i + 1])).signals or {} for i in range(500)]
    names = set(made[0])
    assert {"expected_return", "expected_return_se", "lambda", "information_gain"} <= names
    assert {"risk", "ambiguity", "free_energy", "surprise"} <= names
    for name in names:
        values = np.array([signals[name] for signals in made])
        assert np.isfinite(values).all(), name
        assert np.unique(values).size > 1, name


def test_d11_acting_is_deterministic(agent: UMCAgent, close: FloatArray) -> None:
    part = close[:200]
    assert decided(agent, part).tobytes() == decided(agent, part).tobytes()


def test_it_may_not_short_where_the_world_forbids_it(agent: UMCAgent, close: FloatArray) -> None:
    long_only = ActionSpec(low=0.0, high=1.0)
    targets = agent.targets(start(long_only), {"close": close})
    assert targets.min() >= 0.0 < targets.max()
    three = ActionSpec(n=3, levels=(-1.0, 0.0, 1.0))
    held = agent.targets(start(three), {"close": close})
    assert set(held) <= {-1.0, 0.0, 1.0}
    part = close[:300]
    codes = decided(agent, part, three)
    assert [(-1.0, 0.0, 1.0)[int(code)] for code in codes] == held[:300].tolist()


def test_it_sits_out_where_nothing_can_be_known() -> None:
    traded = []
    for seed in range(6):
        walk = closes(seed, "known/n1")
        targets = taught(walk).targets(start(), {"close": walk})[PAST:]
        traded.append(np.abs(np.diff(np.round(targets, 6))).mean())
    moving = closes(1)
    active = taught(moving).targets(start(), {"close": moving})[PAST:]
    assert np.mean(traded) < 0.3 * np.abs(np.diff(np.round(active, 6))).mean()


def test_a_leading_input_is_found_and_used() -> None:
    bars = draw(Ref(use="known/m4", params={"n_bars": WHOLE, "correlation": 0.15}), Seeds(2)).bars
    inputs = tuple(f"signal_{i:02d}" for i in range(1, 12))
    config = UMCConfig(inputs=inputs)
    columns = columns_for(bars, config.needs)
    agent = UMCAgent(config)
    agent.fit(start(names=config.needs), {name: col[:PAST] for name, col in columns.items()})
    targets = agent.targets(start(names=config.needs), columns)[PAST:-1]
    ahead = bars.close[PAST + 1 :] / bars.close[PAST:-1] - 1.0
    assert (targets * ahead).mean() > 2.0 * (targets * ahead).std() / np.sqrt(ahead.size)
    shuffled = dict(columns) | {inputs[3]: Seeds(5).rng().permutation(columns[inputs[3]])}
    blind = agent.targets(start(names=config.needs), shuffled)[PAST:-1]
    assert (blind * ahead).mean() < 0.5 * (targets * ahead).mean()


def test_it_is_saved_and_read_back_to_the_bit(
    agent: UMCAgent, close: FloatArray, tmp_path: Path
) -> None:
    agent.save(tmp_path / "kept")
    back = make("agent", Ref(use="umc", params={"folder": str(tmp_path / "kept")}))
    assert isinstance(back, UMCAgent)
    wanted = agent.targets(start(), {"close": close})
    assert back.targets(start(), {"close": close}).tobytes() == wanted.tobytes()
    dearer = make("agent", Ref(use="umc", params={"folder": str(tmp_path / "kept"), "cost_bp": 40}))
    assert isinstance(dearer, UMCAgent)
    few = dearer.targets(start(), {"close": close})
    assert np.abs(np.diff(few)).sum() < np.abs(np.diff(wanted)).sum()
    weights = tmp_path / "kept" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(DataError, match="damaged"):
        make("agent", Ref(use="umc", params={"folder": str(tmp_path / "kept")}))


def test_it_says_what_is_missing(close: FloatArray) -> None:
    fresh = UMCAgent(UMCConfig())
    with pytest.raises(AgentError, match="learned nothing yet"):
        fresh.reset(start())
    with pytest.raises(AgentError, match="a column is missing"):
        fresh.fit(start(), {"open": close})
    with pytest.raises(DataError, match="stands still"):
        fresh.fit(start(), {"close": np.ones(500)})
    bad = close[:PAST].copy()
    bad[7] = np.nan
    with pytest.raises(AgentError, match="not a price"):
        fresh.fit(start(), {"close": bad})


def test_the_model_is_chosen_again_by_later_bars(close: FloatArray) -> None:
    agent = taught(close[: PAST - 500])
    assert agent.mind.model.report.bars == 500
    agent.tune(start(), {"close": close[PAST - 500 : PAST - 100]})
    assert agent.mind.model.report.bars == 400


def test_macrostates_reach_the_model() -> None:
    bars = draw(Ref(use="known/m5", params={"n_bars": WHOLE}), Seeds(4)).bars
    config = UMCConfig(macro={"max_states": 3})  # type: ignore[arg-type]
    columns = columns_for(bars, config.needs)
    agent = UMCAgent(config)
    agent.fit(start(names=config.needs), {name: col[:PAST] for name, col in columns.items()})
    trace = agent.trace(columns)
    assert trace.regimes.shape == (WHOLE, 3)
    assert np.allclose(trace.regimes.sum(axis=1), 1.0)
    assert [name for name in agent.mind.model.inputs if name.startswith("macro_")]
    whole = agent.targets(start(names=config.needs), columns)
    part = {name: column[:3_500] for name, column in columns.items()}
    assert agent.targets(start(names=config.needs), part).tobytes() == whole[:3_500].tobytes()


def test_d34_what_a_crowd_made_cannot_teach_the_model(close: FloatArray) -> None:
    met = Tagged(close[:PAST], Tags.of(Source.PRIMARY, "met", np.arange(PAST)))
    made = Tagged(close[PAST:], Tags.of(Source.ECHO, "crowd", np.arange(WHOLE - PAST)))
    agent = UMCAgent(UMCConfig())
    with pytest.raises(ProvenanceError):
        agent.fit(start(), {"close": concat([met, made])})  # type: ignore[dict-item]
    assert agent.gate.counts.refused_batches == 1
    agent.fit(start(), {"close": met})  # type: ignore[dict-item]
    plain = taught(close)
    for name, array in agent.weights().items():
        assert array.tobytes() == plain.weights()[name].tobytes(), name
    assert agent.gate.counts.admitted == PAST
