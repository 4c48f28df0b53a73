"""A replay is the battle it says it is, and nothing in it can be changed unseen."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import ConfigError, DataError
from agent_gym.envs.battle import MAPS, BattleConfig, BattleParallelEnv
from agent_gym.evaluation.battle import (
    PolicyPlayer,
    ScriptPlayer,
    Start,
    film_of,
    open_team,
    play,
    read_replay,
    record,
    verify,
    verify_player,
    write_replay,
)
from tests.evaluation.battle_replay_samples import critic, scripted, team, thought

SAMPLE = scripted()
STEPS = SAMPLE.header.steps


def written(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def refused(path):
    with pytest.raises(DataError) as error:
        verify(read_replay(path))
    return error.value


def values(content):
    """Return what lines say, whatever signs they say it in; None if they are no JSON."""
    try:
        return [json.loads(line) for line in content.split(b"\n") if line]
    except ValueError:
        return None


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("script", ["random", "hand-over"])
def test_every_map_plays_again_to_the_same_hashes(tmp_path, name, script):
    replay = scripted(name, script)
    write_replay(tmp_path / "one", replay)
    again = read_replay(tmp_path / "one")
    assert verify(again) == MAPS[name]
    assert (again.header, again.rows, again.seal) == (replay.header, replay.rows, replay.seal)
    assert again.text == replay.text
    assert record(ScriptPlayer(script), MAPS[name], Start(7, 1)).text == replay.text


def test_another_seed_or_episode_is_another_battle():
    starts = {scripted(seed=seed, episode=k).header.start for seed in (7, 8) for k in (1, 2)}
    assert len(starts) == 4


def test_episodes_are_those_of_the_parallel_environment():
    env = BattleParallelEnv(BattleConfig(map="3m"))
    for k in (1, 2):
        env.reset(seed=7 if k == 1 else None)
        assert env.world.batch.digest(0) == scripted(episode=k).header.start


def test_battles_side_by_side_are_those_one_by_one():
    starts = [Start(7, k) for k in range(1, 6)]
    for player in (ScriptPlayer("focus"), PolicyPlayer(team())):
        together = play(player, MAPS["3m"], starts)
        for start, episode in zip(starts, together, strict=True):
            (alone,) = play(player, MAPS["3m"], [start])
            assert episode.actions.tolist() == alone.actions.tolist()
            assert (episode.total_reward, episode.won) == (alone.total_reward, alone.won)


def test_what_is_paid_is_part_of_it():
    sparse = record(ScriptPlayer("focus"), MAPS["3m"].paying("sparse"), Start(7, 1))
    assert verify(sparse).reward.kind == "sparse"
    assert abs(sparse.header.total_reward) == 1.0
    other = replace(sparse, header=sparse.header.model_copy(update={"reward": "dense"})).sealed()
    with pytest.raises(DataError, match="map has changed"):
        verify(other)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, STEPS - 1), st.integers(0, 2), st.integers(-3, 12))
def test_a_changed_action_is_refused_at_its_step(tmp_path_factory, step, agent, action):
    lines = SAMPLE.text.splitlines()
    row = json.loads(lines[1 + step])
    if row["actions"][agent] == action:
        return
    row["actions"][agent] = action
    lines[1 + step] = json.dumps(row)
    path = written(tmp_path_factory.mktemp("a") / "r", lines)
    assert refused(path).where == f"{path}, step {step + 1}"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, STEPS), st.integers(0, 63), st.sampled_from("0123456789abcdef"))
def test_a_changed_hash_is_refused_at_its_step(tmp_path_factory, step, place, sign):
    lines = SAMPLE.text.splitlines()
    name = "state" if step else "start"
    row = json.loads(lines[step])
    if row[name][place] == sign:
        return
    row[name] = row[name][:place] + sign + row[name][place + 1 :]
    lines[step] = json.dumps(row)
    path = written(tmp_path_factory.mktemp("h") / "r", lines)
    assert refused(path).where == f"{path}, step {step}"


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_no_changed_byte_goes_unseen(tmp_path_factory, data):
    content = bytearray(thought().text.encode())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("b") / "r"
    path.write_bytes(bytes(content))
    found = values(content)
    if found is not None and found == values(thought().text.encode()):
        return  # the same number in other signs, such as 1E-05, is the same replay
    assert str(path) in str(refused(path).where)


def test_steps_that_are_missing_are_named(tmp_path):
    lines = SAMPLE.text.splitlines()
    short = written(tmp_path / "short", [*lines[:5], lines[-1]])
    assert refused(short).where == f"{short}, step 5"
    gap = written(tmp_path / "gap", [*lines[:5], *lines[6:]])
    assert refused(gap).where == f"{gap}, step 5"
    swapped = written(tmp_path / "swap", [*lines[:5], lines[6], lines[5], *lines[7:]])
    assert refused(swapped).where == f"{swapped}, step 5"
    longer = written(tmp_path / "long", [*lines[:-1], lines[-2], lines[-1]])
    assert refused(longer).where == f"{longer}, step {STEPS + 1}"
    assert "beginning" in refused(written(tmp_path / "head", lines[:1])).what
    assert refused(written(tmp_path / "unsealed", lines[:-1])).where.endswith(f"step {STEPS}")


def test_a_battle_cut_short_is_refused_even_if_sealed():
    cut = replace(
        SAMPLE,
        header=SAMPLE.header.model_copy(update={"steps": 5}),
        rows=SAMPLE.rows[:5],
    ).sealed()
    with pytest.raises(DataError, match="ends before the battle does") as error:
        verify(cut)
    assert error.value.where == "replay, step 5"


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("engine", 99, "another version of the engine"),
        ("map", "4m", "no map has this name"),
        ("map", "8m", "the map has changed"),
        ("map_hash", "0" * 32, "the map has changed"),
        ("seed", 8, "begins elsewhere"),
        ("episode", 2, "begins elsewhere"),
        ("won", not SAMPLE.header.won, "ended in another way"),
        ("total_reward", 0.5, "ended in another way"),
        ("agents", 2, "another team"),
    ],
)
def test_a_foreign_header_is_refused_even_if_sealed(field, value, what):
    header = SAMPLE.header.model_copy(update={field: value})
    with pytest.raises(DataError, match=what):
        verify(replace(SAMPLE, header=header).sealed())


@pytest.mark.parametrize(("field", "value"), [("player", "me"), ("checkpoint", "f" * 64)])
def test_what_the_engine_cannot_know_is_under_the_seal(field, value):
    header = SAMPLE.header.model_copy(update={field: value})
    with pytest.raises(DataError, match="changed since it was recorded"):
        verify(replace(SAMPLE, header=header))


def test_signals_are_kept_by_step_and_by_agent():
    replay = thought()
    assert dict(replay.header.signals) == {
        "entropy": "agents",
        "value": "agents",
        "information_bonus": "team",
    }
    entropy, bonus = replay.signal("entropy"), replay.signal("information_bonus")
    assert entropy.shape == (replay.header.steps, 3)
    assert (entropy >= 0.0).all()
    assert entropy.max() > 1.0
    assert bonus.shape == (replay.header.steps, 1)
    assert (bonus == 0.25).all()
    assert SAMPLE.signal("value") is None
    film = film_of(replay)
    dead = ~film.alive[film.decisions][:, :3]
    assert dead.any()
    assert np.abs(entropy[dead]).max() == 0.0


def test_a_team_is_opened_with_the_critic_beside_it(tmp_path):
    policy = team()
    policy.save(tmp_path / "run" / "policy")
    plain = open_team(tmp_path / "run")
    assert (plain.critic, plain.name, plain.version) == (None, "run", policy.version)
    critic(policy, ("team", "information")).save(tmp_path / "run" / "critic")
    player = open_team(tmp_path / "run" / "policy")
    replay = record(player, MAPS["3m"], Start(1, 1))
    assert set(replay.header.signals) == {"entropy", "value", "value_information"}
    assert replay.signal("value").std() > 0.0
    critic(team(seed=1)).save(tmp_path / "run" / "critic")
    with pytest.raises(DataError, match="belongs to another"):
        open_team(tmp_path / "run")
    with pytest.raises(ConfigError, match="another map"):
        record(plain, MAPS["8m"], Start(1, 1))


def test_teams_below_a_folder_are_named_and_not_guessed(tmp_path):
    for seed in range(4):
        for name in ("best", "policy"):
            team(seed=seed).save(tmp_path / "runs" / f"seed_{seed}" / name)
    with pytest.raises(DataError, match="below") as error:
        open_team(tmp_path / "runs")
    assert error.value.found.startswith("seed_0/best, seed_0/policy, seed_1/best, ")
    assert error.value.found.endswith(" and 2 more")
    assert str(tmp_path / "runs" / "seed_0" / "best") in error.value.remedy
    assert open_team(tmp_path / "runs" / "seed_2").version == team(seed=2).version
    with pytest.raises(DataError, match="below"):
        open_team(tmp_path)
    # Without any team, or with a damaged one, the file that is missed is told.
    (tmp_path / "none" / "some").mkdir(parents=True)
    (tmp_path / "runs" / "seed_3" / "policy" / "manifest.json").unlink()
    for place in (tmp_path / "none", tmp_path / "runs" / "seed_3"):
        with pytest.raises(DataError, match="cannot be read") as error:
            open_team(place)
        assert error.value.where.endswith("manifest.json")


def test_a_player_must_decide_again_as_it_did():
    for greedy in (True, False):
        player = PolicyPlayer(team(recurrent=True), greedy=greedy)
        replay = record(player, MAPS["3m"], Start(2, 1))
        verify_player(replay, player)
        with pytest.raises(DataError, match="somebody else"):
            verify_player(replay, PolicyPlayer(team(seed=1), greedy=greedy))
        forged = replay.header.model_copy(update={"checkpoint": team(seed=1).version})
        with pytest.raises(DataError, match="decides otherwise") as error:
            verify_player(replace(replay, header=forged), PolicyPlayer(team(seed=1), greedy=greedy))
        assert "step" in error.value.where


def test_a_file_that_is_no_replay_is_refused(tmp_path):
    for name, content in {"empty": b"", "bytes": b"\xff\xfe\x00", "json": b"{}\n{}\n{}\n"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError):
            read_replay(tmp_path / name)
    with pytest.raises(DataError, match="cannot be read"):
        read_replay(tmp_path / "absent")
