"""Figures of behaviour, on battles made by hand and on scripts whose ways are known."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core import ConfigError, Seeds
from agent_gym.envs.battle import MAPS
from agent_gym.envs.battle.contract import ATTACK, STOP
from agent_gym.envs.battle.layout import UNIT
from agent_gym.evaluation.battle import (
    METRICS,
    Film,
    ScriptPlayer,
    Start,
    behaviour,
    compare,
    lead_of_wins,
    measured,
    shots_of,
)
from agent_gym.evaluation.battle.behaviour import Fight, kiting_distance

RELOADING = 10.0


def staged(*, ticks=2, actions=None, **columns):
    """Return a film of 3m in which everybody stands still, but for some columns."""
    battle = MAPS["3m"]
    units = np.zeros((ticks + 1, 6), UNIT)
    units["x"] = [p.x for p in battle.units]
    units["y"] = [p.y for p in battle.units]
    units["hp"], units["target"], units["attacker"] = 45.0, -1, -1
    for name, values in columns.items():
        units[name] = values
    chosen = np.array(actions if actions is not None else [[STOP] * 3], np.int64)
    decisions = np.zeros(len(chosen), np.int64)
    return Film(battle, units, decisions, chosen, np.zeros(len(chosen)), won=False)


def test_what_a_target_did_not_have_is_overkill():
    reload = np.zeros((3, 6))
    reload[2, :3] = RELOADING
    hp = np.full((3, 6), 45.0)
    hp[:, 3], hp[2, 3] = 10.0, 0.0
    film = staged(cooldown=reload, hp=hp, target=[3, 3, 3, -1, -1, -1])
    assert [shot[:3] for shot in shots_of(film)] == [(2, 0, 3), (2, 1, 3), (2, 2, 3)]
    assert [shot.damage for shot in shots_of(film)] == [6.0, 4.0, 0.0]
    assert [shot.overkill for shot in shots_of(film)] == [0.0, 2.0, 6.0]
    found = behaviour(film)
    assert found["overkill"] == pytest.approx(8.0 / 18.0)
    assert found["damage_exchange"] == 1.0
    assert found["damage_sharing"] is None


def test_focus_fire_is_the_share_on_one_target():
    def focus(*actions, **columns):
        return behaviour(staged(actions=actions, **columns))["focus_fire"]

    same, split = [ATTACK, ATTACK, ATTACK], [ATTACK, ATTACK + 1, ATTACK + 2]
    assert focus(same) == 1.0
    assert focus(split) == pytest.approx(1 / 3)
    assert focus(same, split) == pytest.approx(2 / 3)
    assert focus([ATTACK, STOP, STOP]) is None
    last = np.full((3, 6), 45.0)
    last[:, 4:] = 0.0
    assert focus(same, hp=last) is None  # there was nobody else to shoot at


def test_kiting_is_the_own_way_back_while_reloading():
    def kited(dx_agent, dx_enemy=0.0, reload=RELOADING, gap=5.0):
        x = np.tile([9.0, 9.0, 9.0, 30.0, 30.0, 30.0], (2, 1))
        x[:, 3] = 9.0 + gap
        x[1, 0] += dx_agent
        x[1, 3] += dx_enemy
        y = np.tile([16.0, 30.0, 2.0, 16.0, 16.0, 16.0], (2, 1))
        return kiting_distance(Fight(staged(ticks=1, x=x, y=y, cooldown=reload)))

    assert kited(-1.5) == pytest.approx(0.5)  # a mean over three agents
    assert kited(1.5) == 0.0
    assert kited(0.0, dx_enemy=2.0) == 0.0
    assert kited(-1.5, reload=0.0) == 0.0
    assert kited(-1.5, gap=9.5) == 0.0  # out of sight: that is leaving


def test_hits_are_shared_until_the_first_dies():
    def shared(targets):
        ticks = len(targets)
        cooldown, target = np.zeros((ticks + 1, 6)), np.full((ticks + 1, 6), -1)
        for k, each in enumerate(targets, start=1):
            cooldown[k, 3] = k  # rises with every shot
            target[k, 3] = each
        found = behaviour(staged(ticks=ticks, cooldown=cooldown, target=target))
        return found["damage_sharing"], found["target_switches"]

    assert shared([0, 1, 2, 0, 1, 2]) == (pytest.approx(1.0), 1.0)
    assert shared([0, 0, 0, 0]) == (pytest.approx(0.0), 0.0)
    assert shared([0, 0, 1, 1]) == (pytest.approx(0.5), pytest.approx(1 / 3))


def means(script, name, episodes=20):
    rows = measured(ScriptPlayer(script), MAPS[name], [Start(5, k + 1) for k in range(episodes)])
    return {
        metric.name: np.mean(known)
        if (known := [row[metric.name] for row in rows if row[metric.name] is not None])
        else None
        for metric in METRICS
    }


def test_scripts_are_told_apart_by_what_they_do():
    focus, nearest, random = (means(script, "3m") for script in ("focus", "nearest", "random"))
    assert focus["focus_fire"] == 1.0 > nearest["focus_fire"] > 0.5
    assert focus["damage_exchange"] > nearest["damage_exchange"] > random["damage_exchange"]
    assert random["time_in_range"] < 0.5 < nearest["time_in_range"]
    kite, still = (means(script, "3s_vs_5z") for script in ("kite", "nearest"))
    assert kite["kiting_distance"] > 10.0 * still["kiting_distance"]
    assert kite["survival"] > 0.5 > still["survival"]
    sharing, alone = (means(script, "2s_vs_1sc") for script in ("hand-over", "nearest"))
    assert sharing["damage_sharing"] > alone["damage_sharing"] + 0.2
    assert sharing["target_switches"] > alone["target_switches"] + 0.2
    assert sharing["focus_fire"] is None


def test_a_lead_is_paired_and_has_an_interval():
    players = [ScriptPlayer(name) for name in ("focus", "random", "focus")]
    told = []
    found = compare(players, MAPS["3m"], 3, 100, lambda done, every: told.append((done, every)))
    first, random, same = found.teams
    assert first.lead is None
    assert random.figures["won"].interval.estimate == 0.0
    assert random.figures["won"].interval.high > 0.03
    assert random.lead["won"].interval.low > 0.4
    assert random.lead["damage_exchange"].interval.low > 0.25
    assert random.lead["focus_fire"].defined < 100
    # A team has no lead over itself, start by start; unpaired noise would show.
    zero = same.lead["total_reward"].interval
    assert (zero.low, zero.estimate, zero.high) == (0.0, 0.0, 0.0)
    assert same.lead["won"].interval.holds(0.0)
    assert told[-1] == (300, 300)
    with pytest.raises(ConfigError):
        compare(players, MAPS["3m"], 3, 1)


def test_figures_do_not_depend_on_how_many_are_played_at_once(monkeypatch):
    players = [ScriptPlayer("nearest"), ScriptPlayer("kite")]
    whole = compare(players, MAPS["3m"], 4, 24).as_dict()
    monkeypatch.setattr("agent_gym.evaluation.battle.comparison.CHUNK", 7)
    assert compare(players, MAPS["3m"], 4, 24).as_dict() == whole


def test_the_interval_of_a_lead_of_wins_holds_the_truth():
    rng, n, seen = Seeds(1).rng(), 50, 0
    tries = 400
    for _ in range(tries):
        luck = rng.random(n)  # shared, as a hard start is hard for both
        ours, theirs = luck < 0.95, (luck < 0.8) & (rng.random(n) < 0.9)
        seen += lead_of_wins(ours.tolist(), theirs.tolist()).holds(0.95 - 0.8 * 0.9)
    assert seen / tries > 0.92
    found = lead_of_wins([True] * 30 + [False] * 20, [True] * 10 + [False] * 40)
    back = lead_of_wins([True] * 10 + [False] * 40, [True] * 30 + [False] * 20)
    assert (found.low, found.high) == pytest.approx((-back.high, -back.low))
    every = lead_of_wins([True] * 50, [False] * 50)
    assert every.estimate == 1.0 > every.low > 0.85


def test_a_film_can_be_changed_and_is_then_measured_otherwise():
    film = staged()
    dead = film.units.copy()
    dead["hp"][-1, 0] = 0.0
    assert behaviour(film)["survival"] == 1.0
    assert behaviour(replace(film, units=dead))["survival"] == pytest.approx(2 / 3)
    assert behaviour(film)["points_left"] == 1.0
