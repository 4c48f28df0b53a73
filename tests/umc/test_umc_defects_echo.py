"""Traps of echoes and macrostates: deeds without effect, a search that never runs, idle labels."""

import numpy as np

from agent_gym.agents.echo import EchoConfig
from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec, EpisodeStart, Role
from agent_gym.envs.reflexive import LinearImpact, simulate
from agent_gym.evaluation.backtest import columns_for
from agent_gym.markets.known import draw
from tests.agents.echo_samples import led, walk, waves
from tests.envs.reflexive_samples import small

FEW = {"size": 12, "window_bars": 100, "candidates": 6}
PAST = 1_500


def crowded(strength):
    crowd = Ref(use="echo", params={"size": 20})
    return simulate(small(crowd=crowd, impact=LinearImpact(strength=strength)), Seeds(2)).bars.close


def test_d32_what_echoes_do_moves_the_price_and_without_impact_it_does_not():
    gaps = np.abs(np.log(crowded(0.3) / crowded(0.0)))
    assert gaps[-50:].min() > 0.0
    assert crowded(0.0).tobytes() == crowded(0.0).tobytes()


def test_d32_echoes_are_paid_by_what_they_did():
    """A reward that is the same for all, such as a constant 0, selects nobody."""
    fitness = led(EchoConfig(**FEW), waves(300, 1)).fitness
    assert np.isfinite(fitness).all()
    assert fitness.std() > 1e-4
    constant = np.zeros(fitness.size)  # the defect
    assert constant.std() == 0.0


def runs_by_remainder(first, last, every):
    """The defect: a period longer than the run, asked of the bar's own number."""
    return [bar for bar in range(first, last) if bar % every == 0]


def test_d33_generations_come_as_often_as_asked_and_see_the_latest_bars():
    config = EchoConfig(**FEW, evolve_every_bars=50, evolution="cma")
    path = walk(351, 3)
    assert led(config, path).generations == 7
    assert runs_by_remainder(100, 1_000, 1_000) == []
    late = path.copy()
    late[300:] = path[300] + 3.0 * (path[300:] - path[300])
    points = [
        np.concatenate([part.ravel() for part in led(config, each).points.values()])
        for each in (path, late)
    ]
    assert not np.array_equal(*points)  # the last bars count; the first are not seen for ever


def test_d38_macrostates_are_inputs_of_the_model_and_not_only_counted():
    bars = draw(Ref(use="known/m5", params={"n_bars": 2_000}), Seeds(4)).bars
    config = UMCConfig(macro={"max_states": 2})
    columns = columns_for(bars, config.needs)
    spec = ActionSpec(low=-1.0, high=1.0)
    start = EpisodeStart(Role("trader"), config.needs, spec, Seeds(3))
    agent = UMCAgent(config)
    agent.fit(start, {name: column[:PAST] for name, column in columns.items()})
    named = [name for name in agent.mind.model.inputs if name.startswith("macro_")]
    assert named
    trace = agent.trace(columns)
    assert trace.regimes[PAST:].std(axis=0).max() > 0.0  # they change while trading
    assert not [name for name in UMCAgent(UMCConfig()).needs if name.startswith("macro_")]
