"""The arithmetic of ticks, computed by hand."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.envs.battle import MAPS
from agent_gym.envs.battle.maps import BattleMap, Placed
from agent_gym.envs.battle.units import MARINE, SPINE_CRAWLER, STALKER, ZEALOT
from tests.envs.battle_samples import calm, change, go, staged

NO_OP, STOP, NORTH, SOUTH, EAST, WEST, ATTACK = range(7)
DUEL = calm(MAPS["1m_vs_1m"])
FORTRESS = calm(MAPS["2s_vs_1sc"])


def two(agent, enemy, *, ticks=1, gap=5.0):
    """Return a map with one unit on each side."""
    sides = (Placed(agent, 10.0, 16.0),), (Placed(enemy, 10.0 + gap, 16.0),)
    return calm(BattleMap("two", *sides, 50), ticks=ticks)


def of(batch, name, u=None):
    values = batch.units[name][0]
    return values.tolist() if u is None else float(values[u])


def test_a_marine_deals_six_and_shoots_every_fourteenth_tick():
    batch = staged(DUEL, x=[10, 15], y=16)
    lost = []
    for _ in range(30):
        before = of(batch, "hp", 1)
        go(batch, ATTACK)
        lost.append(before - of(batch, "hp", 1))
    assert [t for t, points in enumerate(lost) if points] == [0, 14, 28]  # .61 s are 13.664 ticks
    assert {points for points in lost if points} == {6.0}
    assert of(batch, "cooldown", 0) == pytest.approx(0.61 * 22.4 - 2)


def test_a_reload_lasts_a_tick_more_or_less():
    batch = staged(replace(DUEL, cooldown_jitter_ticks=1.0), x=[10, 15], y=16)
    go(batch, ATTACK)
    drawn = np.array(of(batch, "cooldown")) + 1 - 0.61 * 22.4
    assert 0 < abs(drawn).max() < 1.0
    assert drawn[0] != drawn[1]


def test_a_shield_takes_damage_without_armour_and_then_hit_points_with_it():
    batch = staged(FORTRESS, x=[13.92, 5, 13.92], y=[12.04, 2, 20.04])
    taken, before = [], 160.0
    while of(batch, "hp", 0) > 0:
        go(batch, STOP, STOP)
        now = of(batch, "hp", 0) + of(batch, "shield", 0)
        taken += [before - now] if now != before else []
        before = now
    assert taken == pytest.approx([30, 30, 29, 29, 29, 13])  # 29 of which 13 were left


def test_a_stalker_takes_sixteen_from_a_crawler_that_grows_back():
    batch = staged(FORTRESS, x=[13.92, 5, 13.92], y=[14.5, 2, 20.04])
    go(batch, ATTACK, STOP)
    assert of(batch, "hp", 2) == pytest.approx(300 - 16 + 0.38 / 22.4)
    assert of(batch, "cooldown", 0) == pytest.approx(1.34 * 22.4 - 1)
    assert of(batch, "cooldown", 2) == pytest.approx(1.32 * 22.4 - 1)
    go(batch, STOP, STOP, n=10)
    assert of(batch, "hp", 2) == pytest.approx(300 - 16 + 11 * 0.38 / 22.4)
    change(batch, hp=[80, 80, 299.99])
    go(batch, STOP, STOP)
    assert of(batch, "hp", 2) == 300.0


def test_a_zealot_hits_twice_each_time_less_the_armour():
    batch = staged(two(STALKER, ZEALOT, gap=1.2))
    go(batch, STOP)
    assert (of(batch, "shield", 0), of(batch, "hp", 0)) == (80 - 16, 80)
    batch = staged(two(STALKER, ZEALOT, gap=1.2), shield=[10, 50])
    go(batch, STOP)
    assert (of(batch, "shield", 0), of(batch, "hp", 0)) == (0, 80 - (6 - 1))
    batch = staged(two(STALKER, ZEALOT, gap=1.2), shield=[0, 50])
    go(batch, STOP)
    assert of(batch, "hp", 0) == 80 - 2 * 7


def test_armour_leaves_half_a_point():
    weak = replace(MARINE, name="weak", damage=1)
    batch = staged(two(weak, SPINE_CRAWLER))
    go(batch, ATTACK)
    assert of(batch, "hp", 1) == pytest.approx(300 - 0.5 + 0.38 / 22.4)


@pytest.mark.parametrize(("kind", "length"), [(MARINE, 1.125), (ZEALOT, 1.125), (STALKER, 1.475)])
def test_a_step_covers_what_the_speed_allows(kind, length):
    ways = {NORTH: (0, 1), SOUTH: (0, -1), EAST: (1, 0), WEST: (-1, 0), STOP: (0, 0)}
    for action, (dx, dy) in ways.items():
        batch = staged(two(kind, SPINE_CRAWLER, ticks=8, gap=20.0))
        go(batch, action)
        assert of(batch, "x", 0) == pytest.approx(10 + dx * length)
        assert of(batch, "y", 0) == pytest.approx(16 + dy * length)


def test_an_attacker_goes_into_reach_and_no_further():
    batch = staged(two(MARINE, SPINE_CRAWLER, gap=7.0))
    change(batch, x=[10, 15.99])
    go(batch, ATTACK)  # 5 + .375 + 1.125 reach 6.5: it can shoot
    assert of(batch, "hp", 1) < 300
    batch = staged(DUEL, x=[10, 15.99], y=16)
    change(batch, hp=[45, 45], cooldown=[0, 1000])
    go(batch, ATTACK)  # 5.75 reach, 5.99 apart: it has to come nearer
    assert of(batch, "hp", 1) == 45
    assert of(batch, "x", 0) == pytest.approx(10 + 3.15 / 22.4)


def test_shields_come_back_after_160_ticks_without_a_hit():
    batch = staged(two(STALKER, SPINE_CRAWLER, gap=20.0), shield=[10, 0])
    go(batch, STOP, n=49)
    change(batch, unhit=[158, 0])
    go(batch, STOP)
    assert of(batch, "shield", 0) == 10  # 159 of 159.936
    batch = staged(two(STALKER, SPINE_CRAWLER, gap=20.0), shield=[10, 0])
    change(batch, unhit=[159, 0])
    go(batch, STOP)
    assert of(batch, "shield", 0) == pytest.approx(10 + 2.8 / 22.4)
    go(batch, STOP)
    assert of(batch, "shield", 0) == pytest.approx(10 + 2 * 2.8 / 22.4)


def test_two_that_kill_each_other_have_won():
    batch = staged(DUEL, x=[10, 15], y=16, hp=6)
    rewards = go(batch, ATTACK)
    assert of(batch, "hp") == [0, 0]
    assert batch.results.ended[0]
    assert batch.results.won[0]
    assert rewards == pytest.approx([(6 + 10 + 200) * 20 / 255])


def test_dying_alone_is_a_defeat():
    batch = staged(DUEL, x=[10, 15], y=16, hp=[6, 45])
    assert go(batch, STOP) == [0.0]
    assert batch.results.ended[0]
    assert not batch.results.won[0]


def test_running_out_of_time_is_a_defeat():
    for reward, last in (("dense", 0.0), ("kills", 0.0), ("sparse", -1.0)):
        batch = staged(calm(MAPS["2s_vs_1sc"], ticks=8).paying(reward))
        rewards = go(batch, STOP, STOP, n=299)
        assert not batch.results.ended[0]
        assert go(batch, STOP, STOP) == [last]
        assert set(rewards) == {0.0}
        assert batch.results.ended[0]
        assert not batch.results.won[0]
        assert go(batch, STOP, STOP) == [0.0]  # it stays as it ended
        assert batch.clocks["steps"][0] == 300


def test_a_step_stops_with_the_last_of_a_side():
    batch = staged(calm(MAPS["3m"], ticks=8), hp=[45, 45, 45, 6, 0, 0], x=[10, 9, 9, 15, 30, 30])
    change(batch, y=[16, 10, 4, 16, 30, 30])
    go(batch, ATTACK, NORTH, STOP)
    assert batch.results.won[0]
    assert of(batch, "y", 1) == pytest.approx(10 + 3.15 / 22.4)  # one tick of eight


def test_the_dead_may_do_nothing_and_see_nothing():
    batch = staged(calm(MAPS["3m"]), hp=[45, 0, 45, 45, 0, 45], x=[10, 10, 10, 15, 15, 15])
    seen, state, legal = batch.senses
    assert legal[0, 1].tolist() == [True] + [False] * 8
    assert not seen[0, 1].any()
    assert legal[0, 0].tolist() == [False] + [True] * 6 + [False, True]
    names = batch.contract
    dead = [i for i, name in enumerate(names.state) if name.startswith(("agent_1_", "enemy_1_"))]
    assert not state[0, dead].any()
    ally = [i for i, n in enumerate(names.observation) if n.startswith(("ally_0", "enemy_1"))]
    assert not seen[0, 0, ally].any()
    go(batch, STOP, NORTH, STOP)
    assert batch.actions[0].tolist() == [STOP, NO_OP, STOP]
    assert of(batch, "y", 1) == 16


def test_an_illegal_action_is_played_as_stop():
    far = staged(calm(MAPS["3m"], ticks=8))
    before = far.capture(0)
    go(far, ATTACK, NO_OP, ATTACK + 2)
    illegal = far.digest(0)
    far.restore(0, before)
    go(far, STOP, STOP, STOP)
    assert far.digest(0) == illegal
    far.restore(0, before)
    go(far, STOP, STOP, NORTH)
    assert far.digest(0) != illegal


def test_moves_are_legal_up_to_the_margin():
    batch = staged(DUEL, x=[29.9, 5], y=[2.1, 5])
    assert batch.senses.legal[0, 0].tolist() == [False, True, True, True, True, True, False]
    change(batch, x=[30.1, 5], y=[1.9, 5])
    assert batch.senses.legal[0, 0].tolist() == [False, True, True, False, False, True, False]


def test_regeneration_pays_nothing_and_costs_nothing():
    batch = staged(FORTRESS, hp=[80, 80, 100], x=[5, 7, 13.92], y=[2, 2, 20.04])
    assert go(batch, STOP, STOP, n=20) == [0.0] * 20
    assert of(batch, "hp", 2) == pytest.approx(100 + 20 * 0.38 / 22.4)
    change(batch, x=[13.92, 7, 13.92], y=[14.5, 2, 20.04])
    (paid,) = go(batch, ATTACK, STOP)
    assert paid == pytest.approx((16 - 0.38 / 22.4) * 20 / 510)


def test_kills_and_the_win_can_be_all_that_is_paid():
    ready = {"hp": [45, 45, 45, 6, 6, 6], "x": [10, 10, 10, 15, 15, 15]}
    for reward, expected in (("kills", 20 / 230), ("dense", 20 / 365), ("sparse", 0.0)):
        batch = staged(calm(MAPS["3m"]).paying(reward), **ready)
        lost = 6 if reward == "dense" else 0
        assert go(batch, ATTACK, STOP, STOP) == pytest.approx([(lost + 10) * expected])
        change(batch, cooldown=0)
        last = 1.0 if reward == "sparse" else (2 * (lost + 10) + 200) * expected
        assert go(batch, STOP, ATTACK + 1, ATTACK + 2) == pytest.approx([last])


def test_a_reloaded_enemy_takes_the_nearest_and_a_reloading_one_keeps_its_target():
    def hits(targeting):
        near, far = 14.0, 12.5
        batch = staged(
            calm(MAPS["2s_vs_1sc"], targeting=targeting), x=[13, 15, 13.92], y=[near, far, 20.04]
        )
        go(batch, STOP, STOP)
        assert of(batch, "shield")[:2] == [50, 80]
        change(batch, y=[far, near, 20.04])
        go(batch, STOP, STOP)
        assert of(batch, "target", 2) == 0  # it reloads
        go(batch, STOP, STOP, n=30)
        return of(batch, "shield")[:2]

    assert hits("nearest") == [50, 50]
    assert hits("sticky") == [20, 80]


def test_enemies_march_notice_chase_and_let_go():
    batch = staged(DUEL)
    go(batch, STOP)
    stride = 3.15 / 22.4
    assert of(batch, "x", 1) == pytest.approx(23 - stride)  # towards where agents started
    change(batch, x=[23, 23], y=[21.7, 16])
    go(batch, NORTH)
    assert of(batch, "target", 1) == 0  # it notices within 5.75 and can shoot as far
    change(batch, x=[23, 23], y=[22.5, 16], cooldown=[0, 50])
    go(batch, STOP)
    assert of(batch, "y", 1) == pytest.approx(16 + stride)  # reloading, it chases what it has
    change(batch, x=[23, 23], y=[25.1, 16])
    go(batch, STOP)
    assert of(batch, "target", 1) == -1  # 9 is too far
    change(batch, x=[23, 23], y=[24.5, 16], attacker=[-1, 0], target=-1)
    go(batch, STOP)
    assert of(batch, "target", 1) == 0  # it does not notice who is 8.5 away, but it was hit by it


def test_units_that_overlap_are_pushed_apart_half_each():
    batch = staged(calm(MAPS["3m"]), x=[10, 10.5, 10, 25, 25, 25], y=[16, 16, 4, 4, 20, 28])
    change(batch, cooldown=100)
    go(batch, STOP, STOP, STOP)
    assert of(batch, "x")[:2] == pytest.approx([9.875, 10.625])
    batch = staged(FORTRESS, x=[14.92, 5, 13.92], y=[20.04, 2, 20.04])
    go(batch, STOP, STOP)
    assert of(batch, "x", 2) == 13.92  # a building stays
    assert of(batch, "x", 0) == pytest.approx(13.92 + 0.625 + 1.125)
    batch = staged(calm(MAPS["3m"]), x=[10, 10, 10, 25, 25, 25], y=[16, 16, 4, 4, 20, 28])
    go(batch, STOP, STOP, STOP)
    assert of(batch, "x")[:2] == pytest.approx([9.625, 10.375])  # on the same spot
