"""What a battle promises: widths, names, and a hash over all that decides it."""

from dataclasses import fields, replace

import numpy as np
import pytest

from agent_gym.core import AgentError, ConfigError, Ref, Seeds, make, names
from agent_gym.envs.battle import MAPS, BattleBatch, RewardRule, TimeBase, battle_map, contract_of
from agent_gym.envs.battle import maps as maps_module
from tests.envs.battle_samples import staged

WIDTHS = {  # observation, state, actions, step limit; all but the first as in SMAC
    "1m_vs_1m": (10, 14, 7, 60),
    "3m": (30, 48, 9, 60),
    "8m": (80, 168, 14, 120),
    "2s_vs_1sc": (17, 27, 7, 300),
    "2s3z": (80, 120, 11, 120),
    "3s_vs_5z": (48, 68, 11, 250),
}
RAW_POINTS = {"3m": 365.0, "2s_vs_1sc": 510.0}


@pytest.mark.parametrize("name", WIDTHS)
def test_widths_are_those_of_smac(name):
    battle = battle_map(name)
    assert (*contract_of(battle).widths, battle.step_limit) == WIDTHS[name]
    seen, state, legal = BattleBatch(battle, 2).senses
    n = len(battle.agents)
    assert (seen.shape, state.shape, legal.shape) == (
        (2, n, WIDTHS[name][0]),
        (2, WIDTHS[name][1]),
        (2, n, WIDTHS[name][2]),
    )


def test_every_map_is_listed_and_every_name_is_there_once():
    assert MAPS.keys() == WIDTHS.keys()
    for battle in MAPS.values():
        contract = contract_of(battle)
        for named in (contract.actions, contract.observation, contract.state):
            assert len(set(named)) == len(named)


def test_kinds_are_told_apart_only_where_a_side_has_several():
    assert contract_of(MAPS["2s3z"]).kinds == ("stalker", "zealot")
    assert contract_of(MAPS["2s_vs_1sc"]).kinds == ()
    assert contract_of(MAPS["2s_vs_1sc"]).agent_shields
    assert not contract_of(MAPS["2s_vs_1sc"]).enemy_shields


@pytest.mark.parametrize("name", RAW_POINTS)
def test_a_raw_point_is_worth_its_share_of_twenty(name):
    scale = BattleBatch(MAPS[name], 1)._context["scale"][0]
    assert scale == pytest.approx(20.0 / RAW_POINTS[name])


def test_a_named_column_holds_what_its_name_says():
    batch = staged(MAPS["2s3z"], x=np.linspace(10, 16, 10), y=16.0)
    change = batch.capture(0)
    change.units["hp"][[0, 9]] = 20.0, 25.0
    change.units["shield"][0], change.units["cooldown"][1] = 40.0, 15.008
    batch.restore(0, change)
    contract = batch.contract
    seen = dict(zip(contract.observation, batch.senses.observations[0, 0], strict=True))
    state = dict(zip(contract.state, batch.senses.state[0], strict=True))
    gap = (batch.units["x"][0, 5] - batch.units["x"][0, 0]) / 9.0
    assert seen["own_hp"] == 0.25
    assert seen["own_shield"] == 0.5
    assert (seen["own_is_stalker"], seen["own_is_zealot"]) == (1.0, 0.0)
    assert seen["enemy_0_x"] == pytest.approx(gap)
    assert seen["enemy_0_distance"] == pytest.approx(gap)
    assert seen["enemy_4_hp"] == 0.25
    assert (seen["enemy_4_is_stalker"], seen["enemy_4_is_zealot"]) == (0.0, 1.0)
    assert (seen["ally_3_visible"], seen["ally_3_is_zealot"]) == (1.0, 1.0)
    assert state["agent_0_shield"] == 0.5
    assert state["agent_1_cooldown"] == pytest.approx(0.5)
    assert state["agent_0_x"] == pytest.approx((10 - 16) / 32)
    assert state["enemy_4_hp"] == 0.25
    assert state["enemy_4_is_zealot"] == 1.0
    assert sum(value for name, value in state.items() if "_did_" in name) == 0.0
    batch.step(np.array([[1, 1, 2, 1, 1]]))
    state = dict(zip(contract.state, batch.senses.state[0], strict=True))
    assert {name for name, value in state.items() if "_did_" in name and value} == {
        *(f"agent_{i}_did_stop" for i in (0, 1, 3, 4)),
        "agent_2_did_north",
    }


def test_every_number_of_a_map_is_in_its_hash():
    battle = MAPS["3m"]
    other = {
        "name": "4m",
        "agents": battle.agents[:2],
        "enemies": battle.enemies[:2],
        "time": TimeBase(16.0),
        "targeting": "sticky",
        "reward": RewardRule(kind="sparse"),
    }
    hashes = {battle.content_hash}
    for field in fields(battle):
        value = other.get(field.name)
        value = getattr(battle, field.name) * 2 if value is None else value
        hashes.add(replace(battle, **{field.name: value}).content_hash)
    kind = replace(battle.enemies[0].kind, damage=7)
    hashes.add(replace(battle, enemies=(replace(battle.enemies[0], kind=kind),)).content_hash)
    assert len(hashes) == len(fields(battle)) + 2
    assert len({one.content_hash for one in MAPS.values()}) == len(MAPS)


def test_the_engine_is_in_the_hash(monkeypatch):
    before = MAPS["3m"].content_hash
    monkeypatch.setattr(maps_module, "ENGINE_VERSION", maps_module.ENGINE_VERSION + 1)
    assert MAPS["3m"].content_hash != before


def test_the_world_is_made_by_name_and_takes_no_jitter():
    assert "battle" in names("world")
    world = make("world", Ref(use="battle", params={"map": "2s_vs_1sc", "reward": "kills"}))
    assert world.batch.map == MAPS["2s_vs_1sc"].paying("kills")
    assert len(world.start(world.roles[0], Seeds(0)).feature_names) == 17
    with pytest.raises(ConfigError, match="known: 1m_vs_1m, 3m"):
        make("world", Ref(use="battle", params={"map": "4m"}))
    with pytest.raises(ConfigError, match="start_jitter"):
        make("world", Ref(use="battle", params={"start_jitter": 0.0}))
    with pytest.raises(ConfigError, match="3m"):
        battle_map("3n")


def test_what_is_no_action_is_refused():
    batch = BattleBatch(MAPS["3m"], 2)
    ones = np.ones((2, 3), np.int64)
    with pytest.raises(AgentError, match="no battle has begun"):
        batch.step(ones)
    batch.reset(Seeds(0))
    for wrong in (ones[:1], ones.astype(float), ones * 9, ones * -1):
        with pytest.raises(AgentError):
            batch.step(wrong)
    with pytest.raises(ConfigError):
        BattleBatch(MAPS["3m"], 0)
