"""What is played is what is stored, on both databases."""

import json
import math

import numpy as np
import pytest
from rollout_samples import OTHER, TRADER, Dice, Faulty, Walk, WalkConfig, seeds
from trajectory_samples import START_NS, Sampler, context, fill, play_one, step_of

from agent_gym.agents.team import Independent
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.database import (
    EpisodeFigures,
    LlmCallRecord,
    TrajectoryContext,
    TrajectoryFilter,
    TrajectoryRecorder,
    tally,
)
from agent_gym.rollouts.play import EpisodeResult, play, run_episode
from agent_gym.rollouts.sinks import MemorySink


def recorded(store, steps, status="ok", **options):
    with TrajectoryRecorder(store, **options) as recorder:
        recorder.begin(context())
        for step in steps:
            recorder.write(step)
        recorder.finish_episode(EpisodeResult("e", len(steps), {}, status))
        return recorder.trajectory_ids("e")["trader"]


def test_every_step_comes_back_as_it_was_played(store):
    memory = MemorySink()
    with TrajectoryRecorder(store) as recorder:
        recorder.begin(context(3))
        team = Independent({TRADER: Sampler()})
        result = run_episode(Walk(WalkConfig(n=40)), team, "e", seeds(3), [recorder, memory])
        made = recorder.trajectory_ids("e")["trader"]
    row, steps = store.get(made), store.steps(made)
    assert steps.t.tolist() == list(range(40))
    assert steps.ts.tolist() == [step.before.ts for step in memory.steps]
    assert steps.reward.tolist() == [step.after.reward for step in memory.steps]
    assert steps.action[:, 0].tolist() == [step.decision.action for step in memory.steps]
    assert steps.observation.tolist() == [step.before.features.tolist() for step in memory.steps]
    assert steps.log_prob.tolist() == [s.decision.signals["log_prob"] for s in memory.steps]
    assert steps.signals["entropy"].tolist() == [1.0] * 40
    assert steps.truncated.tolist() == [False] * 39 + [True]
    assert set(steps.policy_version) == {"v1"}
    assert row.total_reward == result.total_reward[TRADER]
    assert (row.n_steps, row.status, row.truncated, row.terminated) == (
        40,
        "completed",
        True,
        False,
    )
    assert (row.agent, row.agent_version, row.seed) == ("sampler", "v1", 3)
    assert (row.scenario_id, row.group_key) == ("benchmark-s1", "s1/1/v1")
    assert (row.has_log_probs, row.trainable, row.used_in_training) == (True, True, False)
    assert (row.start_ns, row.end_ns, row.window_id) == (0, 40 * 60, "1970-01-01T00:00")
    assert row.n_policy_versions == 1


def test_the_same_thing_again_is_no_second_row(store):
    first = fill(store, range(3))
    assert fill(store, range(3)) == first
    assert store.count() == 3
    again = fill(store, range(3), run_id="second")
    assert not set(again) & set(first)
    assert store.count() == 6


def test_a_buffer_that_is_filled_again_changes_nothing(store):
    features, action, said = np.zeros(2), np.zeros(3), {"log_prob": -1.0, "mood": 0.0}
    with TrajectoryRecorder(store) as recorder:
        recorder.begin(context())
        for t in range(4):
            features[:], action[:], said["mood"] = t, t, float(t)
            step = step_of(t, action, signals=said)
            seen = type(step.before)(step.before.ts, features)
            recorder.write(type(step)("e", t, step.role, "a", seen, step.decision, step.after))
        features[:], action[:] = 99, 99
        recorder.finish_episode(EpisodeResult("e"))
        steps = store.steps(recorder.trajectory_ids("e")["trader"])
    assert steps.observation.tolist() == [[t, t] for t in range(4)]
    assert steps.action.tolist() == [[t] * 3 for t in range(4)]
    assert steps.signals["mood"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_each_role_is_a_trajectory_of_its_own(store):
    config = WalkConfig(n=10, roles=("trader", "other"))
    with TrajectoryRecorder(store) as recorder:
        recorder.begin({"trader": context(1), "other": context(1, agent="second")})
        team = Independent({TRADER: Sampler(), OTHER: Dice()})
        result = run_episode(Walk(config), team, "e", seeds(), [recorder])
        ids = recorder.trajectory_ids("e")
    rows = {role: store.get(made) for role, made in ids.items()}
    assert (rows["trader"].n_steps, rows["other"].n_steps) == (10, 5)
    assert (rows["trader"].agent, rows["other"].agent) == ("sampler", "second")
    assert {role: row.total_reward for role, row in rows.items()} == result.total_reward
    assert (rows["trader"].has_log_probs, rows["other"].has_log_probs) == (True, False)
    assert store.steps(ids["other"]).t.tolist() == [0, 1, 2, 3, 4]


def test_episodes_of_different_shapes_share_a_recorder(store):
    with TrajectoryRecorder(store) as recorder:
        for n, action in enumerate((1.0, np.array([0.5, -0.5]), np.array([1.0, 2.0, 3.0]), 2)):
            recorder.begin(context(n))
            for t in range(3):
                recorder.write(step_of(t, action, f"e{n}", end=t == 2))
            recorder.finish_episode(EpisodeResult(f"e{n}"))
        actions = [
            store.steps(recorder.trajectory_ids(f"e{n}")["trader"]).action[2].tolist()
            for n in range(4)
        ]
    assert actions == [[1.0], [0.5, -0.5], [1.0, 2.0, 3.0], [2.0]]


def test_words_and_infos_come_back_cleaned(store):
    steps = [
        step_of(
            0, rationale="a\x00b\ud800 ü", text="seen", info={"bad": math.nan, "n": np.int64(3)}
        ),
        step_of(1),
        step_of(2, signals={"mood": 1.0}, info={"x": {1, 2}}),
    ]
    found = store.steps(recorded(store, steps))
    assert found.rationale == ("a?b? ü", None, None)
    assert found.text == ("seen", None, None)
    assert json.loads(found.info[0]) == {"bad": None, "n": 3}
    assert json.loads(found.info[2]) == {"x": "{1, 2}"}
    assert found.signals["mood"].tolist()[2] == 1.0
    assert np.isnan(found.signals["mood"][:2]).all()


def test_without_observations_none_are_kept(store):
    assert store.steps(recorded(store, [step_of()], observations=False)).observation is None


def test_a_garbage_action_loses_its_log_probability(store):
    said = {"log_prob": -1.0}
    good = np.array([0.5, 0.5])
    steps = [
        step_of(t, action, signals=said)
        for t, action in enumerate((good, np.zeros(5), "buy", None, np.array(["x"]), good))
    ]
    made = recorded(store, steps)
    found, row = store.steps(made), store.get(made)
    assert found.action[[0, 5]].tolist() == [[0.5, 0.5]] * 2
    assert np.isnan(found.action[1:5]).all()
    assert np.isnan(found.log_prob[1:5]).all()
    assert found.log_prob[[0, 5]].tolist() == [-1.0, -1.0]
    assert not row.has_log_probs


def test_a_log_probability_that_is_no_number_does_not_count(store):
    said = [{"log_prob": value} for value in (-1.0, math.nan, math.inf, -math.inf, 0.5)]
    made = recorded(store, [step_of(t, signals=s) for t, s in enumerate(said)])
    assert not store.get(made).has_log_probs
    assert np.isnan(store.steps(made).log_prob).tolist() == [False, True, True, True, False]


def test_steps_that_fit_no_column_cost_only_their_own_episode(store):
    with TrajectoryRecorder(store) as recorder:
        for n in range(3):
            recorder.begin(context(n))
            mood = "gloomy" if n == 1 else 1.0
            recorder.write(step_of(0, 1.0, f"e{n}", signals={"mood": mood}))
            recorder.finish_episode(EpisodeResult(f"e{n}"))
    rows = store.page(sort="id", descending=False).rows
    assert [(row.status, row.n_steps) for row in rows] == [
        ("completed", 1),
        ("error", 0),
        ("completed", 1),
    ]
    assert rows[1].error["error"] == "StoreError"
    assert [row.trainable for row in rows] == [True, False, True]


def test_an_episode_without_steps_is_marked_and_never_trained_on(store):
    class Closed(Walk):
        def reset(self, seeds):
            super().reset(seeds)
            return {}

    class Broken(Walk):
        def reset(self, seeds):
            raise ValueError("no market today")

    with TrajectoryRecorder(store) as recorder:
        for n, world in enumerate((Closed, Broken)):
            recorder.begin(context(n))
            team = Independent({TRADER: Sampler()})
            run_episode(world(WalkConfig()), team, f"e{n}", seeds(), [recorder])
    empty, broken = store.page(descending=False).rows
    assert (empty.status, empty.n_steps, empty.trainable) == ("empty", 0, False)
    assert (broken.status, broken.n_steps, broken.trainable) == ("error", 0, False)
    assert "no market" in broken.error["what"]
    counts = store.counts()
    assert (counts.total, counts.with_steps, counts.trainable, counts.unused) == (2, 0, 0, 0)
    with pytest.raises(StoreError, match="no steps"):
        store.steps(empty.trajectory_id)


def test_a_failed_episode_is_a_row_with_what_was_played(store):
    def fault():
        raise ValueError("a plain mistake")

    with TrajectoryRecorder(store) as recorder:
        result = play_one(recorder, 0, Faulty(fault, at=4), steps=9)
    (row,) = store.page().rows
    assert (result.status, row.status, row.n_steps) == ("error", "error", 4)
    assert row.error["what"] == "a plain mistake"
    assert not row.trainable
    assert len(store.steps(row.trajectory_id)) == 4


def test_what_is_only_for_evaluation_is_not_trainable(store):
    (made,) = fill(store, [0], purpose="evaluation")
    assert not store.get(made).trainable
    assert store.count(TrajectoryFilter(purpose="evaluation", trainable=False)) == 1


def test_a_policy_that_changes_within_an_episode_is_seen(store):
    with TrajectoryRecorder(store) as recorder:
        recorder.begin(context(agent_version="v1"))
        for t in range(4):
            recorder.write(step_of(t, signals={"log_prob": -1.0}))
            if t == 1:
                recorder.use_version("v2")
        recorder.finish_episode(EpisodeResult("e"))
        made = recorder.trajectory_ids("e")["trader"]
    assert store.steps(made).policy_version == ("v1", "v1", "v2", "v2")
    assert (store.get(made).n_policy_versions, store.get(made).trainable) == (2, False)


def test_play_without_run_episode_is_recorded_too(store):
    team = Independent({TRADER: Sampler()})
    with TrajectoryRecorder(store) as recorder:
        for n in range(2):
            recorder.begin(context(n))
            play(Walk(WalkConfig(n=5)), team, f"e{n}", seeds(), [recorder])
        recorder.begin(context(2))
        recorder.write(step_of(0, episode="cut"))
    assert [(row.episode_id, row.status) for row in store.page(descending=False).rows] == [
        ("e0", "completed"),
        ("e1", "completed"),
        ("cut", "interrupted"),
    ]


def test_a_block_left_by_an_exception_keeps_what_ended(store):
    def interrupted():
        with TrajectoryRecorder(store) as recorder:
            play_one(recorder, 0)
            recorder.begin(context(1))
            recorder.write(step_of(0, episode="cut"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    rows = store.page(descending=False).rows
    assert [(row.status, row.n_steps) for row in rows] == [("completed", 6), ("interrupted", 1)]
    assert rows[1].error == {"what": "ended by KeyboardInterrupt"}


def test_figures_and_calls_belong_to_their_trajectory(store):
    with TrajectoryRecorder(store) as recorder:
        for n in range(2):
            play_one(recorder, n)
            recorder.annotate(
                EpisodeFigures(final_pnl=n / 2, trades_executed=n, metrics={"x": math.nan})
            )
            calls = [LlmCallRecord(t=t, model="m", response=f"{n}\x00{t}") for t in range(2)]
            recorder.add_calls(calls)
        ids = [recorder.trajectory_ids(f"e{n}")["trader"] for n in range(2)]
    assert [store.get(made).final_pnl for made in ids] == [0.0, 0.5]
    assert [store.get(made).metrics for made in ids] == [{"x": None}] * 2
    assert [[call.response for call in store.calls(made)] for made in ids] == [
        ["0?0", "0?1"],
        ["1?0", "1?1"],
    ]
    assert len({call.call_id for made in ids for call in store.calls(made)}) == 4


def test_calls_during_an_episode_are_kept(store):
    with TrajectoryRecorder(store) as recorder:
        recorder.begin(context())
        recorder.write(step_of())
        recorder.add_calls([LlmCallRecord(t=0, model="m", model_version="hash", log_prob=-0.5)])
        recorder.finish_episode(EpisodeResult("e"))
        (call,) = store.calls(recorder.trajectory_ids("e")["trader"])
    assert (call.model_version, call.log_prob) == ("hash", -0.5)


def test_what_was_not_announced_is_refused(store):
    with TrajectoryRecorder(store) as recorder:
        play_one(recorder, 0)
        recorder.flush()
        with pytest.raises(ConfigError, match="which trajectory"):
            recorder.annotate(EpisodeFigures())
        with pytest.raises(ConfigError, match="nothing was said"):
            recorder.write(step_of(0, episode="unannounced"))
        recorder.begin({"trader": context(1)})
        with pytest.raises(ConfigError, match="nothing was said"):
            recorder.write(step_of(0, role="stranger"))
        with pytest.raises(ConfigError, match="no such role"):
            recorder.use_version("v2")
    with pytest.raises(StoreError, match="closed"):
        recorder.begin(context())


def test_a_long_trajectory_is_one_trajectory(store, monkeypatch):
    whole = recorded(store, [step_of(t, signals={"log_prob": -0.1 * t}) for t in range(25)])
    want = store.steps(whole)
    monkeypatch.setattr(tally, "MOST_RAW_STEPS", 8)
    with TrajectoryRecorder(store) as recorder:
        for n in range(3):
            recorder.begin(context(n, run_id="cut"))
            for t in range(25 if n == 1 else 3):
                recorder.write(step_of(t, 1.0, f"e{n}", signals={"log_prob": -0.1 * t}))
            recorder.finish_episode(EpisodeResult(f"e{n}"))
        ids = [recorder.trajectory_ids(f"e{n}")["trader"] for n in range(3)]
    row, found = store.get(ids[1]), store.steps(ids[1])
    assert (row.n_steps, row.start_ns, row.end_ns) == (25, START_NS, START_NS + 25)
    assert row.total_reward == store.get(whole).total_reward
    for name in ("t", "ts", "reward", "log_prob", "observation", "action"):
        assert np.array_equal(getattr(found, name), getattr(want, name))
    assert [len(store.steps(made)) for made in ids] == [3, 25, 3]


def test_the_context_alone_gives_group_and_window():
    assert TrajectoryContext().group is None
    assert TrajectoryContext(snapshot_id="s").group is None
    assert TrajectoryContext(snapshot_id="s", agent_version="v", rules_version="2").group == "s/2/v"
    assert TrajectoryContext(snapshot_id="s", scenario_id="x").scenario == "x"
