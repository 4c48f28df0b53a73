"""A film shows the battle of the engine, and its shots account for everything that was lost."""

import numpy as np
import pytest

from agent_gym.core import VenueError
from agent_gym.envs.battle import MAPS
from agent_gym.envs.battle.layout import facts_of
from agent_gym.evaluation.battle import ScriptPlayer, Start, film_of, films, play, shots_of
from agent_gym.evaluation.battle import film as filming
from tests.evaluation.battle_replay_samples import scripted


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("script", ["random", "hand-over", "kite"])
def test_shots_account_for_every_point(name, script):
    film = film_of(scripted(name, script))
    facts, units = facts_of(film.battle), film.units
    points = units["hp"] + units["shield"]
    lost = np.zeros_like(points)
    for shot in shots_of(film):
        lost[shot.tick, shot.target] += shot.damage
        assert shot.damage + shot.overkill > 0.0
        assert min(shot.damage, shot.overkill) >= 0.0
    # What grew back is at most what the rules allow, and nothing else changes.
    grown = np.diff(points, axis=0) + lost[1:]
    assert grown.min() > -1e-9
    assert (grown <= facts["heal"] + facts["recharge"] + 1e-9).all()
    assert lost.sum() > 0.0
    assert (lost[1:][~film.alive[:-1]] == 0.0).all()


def test_who_shoots_aims_at_a_living_foe_in_reach():
    film = film_of(scripted("2s3z", "hand-over"))
    for shot in shots_of(film):
        before = film.units[shot.tick - 1]
        assert before["hp"][shot.shooter] > 0.0
        assert before["hp"][shot.target] > 0.0
        assert (shot.shooter < film.agents) != (shot.target < film.agents)


def test_films_side_by_side_are_those_one_by_one():
    starts = [Start(1, k) for k in range(1, 5)]
    played = play(ScriptPlayer("nearest"), MAPS["3m"], starts)
    shown = films(MAPS["3m"], starts, [each.actions for each in played])
    assert len({film.ticks for film in shown}) > 1
    for start, episode, film in zip(starts, played, shown, strict=True):
        (alone,) = films(MAPS["3m"], [start], [episode.actions])
        assert alone.units.tobytes() == film.units.tobytes()
        assert film.rewards.tolist() == episode.rewards.tolist()
        assert film.won == episode.won


def test_ticks_that_go_another_way_are_noticed(monkeypatch):
    real = filming._in_ticks

    def shifted(steps):
        ticks = real(steps)
        ticks.units["x"] += 1e-9
        return ticks

    monkeypatch.setattr(filming, "_in_ticks", shifted)
    with pytest.raises(VenueError, match="disagree"):
        film_of(scripted())
