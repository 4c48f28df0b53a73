"""Living agents: ticks, points, markets one after another, and the model that answers."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from agent_gym.pipeline.automation.stock import CHECKS
from agent_gym.pipeline.runtime import stored_calls, verify_served
from agent_gym.pipeline.runtime.calls import KEPT_CALLS
from agent_gym.pipeline.runtime.market import Market, Snapshots
from agent_gym.rollouts.database import AGENT_TICK, TrajectoryFilter
from tests.pipeline.service_samples import TICKS, Loop


@pytest.fixture
def loop(tmp_path):
    made = Loop(tmp_path)
    yield made
    made.close()


def told(loop, agent_id):
    """What is stored of an agent's life, without what differs between equal lives."""
    return [
        (call.tick, call.episode, call.t, call.snapshot_id, call.action, call.reward, call.model)
        for call in (each.call for each in stored_calls(loop.store, agent_id=agent_id))
    ]


def statuses(round_):
    return [row.status for row in round_.rows]


def test_a_life_tick_by_tick(loop):
    champion = loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=TICKS + 2)
        rounds = [runtime.tick() for _ in range(TICKS + 3)]
    rows = [row for each in rounds for row in each.rows]
    assert [row.status for row in rows] == ["played"] * (TICKS + 2)
    assert {row.model for row in rows} == {champion}
    assert [row.points for row in rows] == list(range(TICKS + 1, -1, -1))
    assert [row.t for row in rows] == [*range(TICKS), 0, 1]
    first, second = Snapshots(loop.folder.snapshots("train")).ids()
    assert [row.snapshot_id for row in rows] == [first] * TICKS + [second] * 2
    assert rows[-1].agent_status == "paused"
    assert rounds[-1].rows == ()
    agent = loop.store.agents.get("ann")
    assert (agent.tick, agent.points, agent.policy_version) == (TICKS + 2, 0, champion)


def test_a_market_that_has_ended_is_a_trajectory_to_learn_from(loop):
    champion = loop.install()
    with loop.runtime() as runtime:
        for name in ("ann", "ben"):
            runtime.add(name, points=TICKS)
        for _ in range(TICKS):
            runtime.tick()
    rows = loop.store.page(TrajectoryFilter(trainable=True)).rows
    assert sorted(row.agent for row in rows) == ["ann", "ben"]
    assert len({row.group_key for row in rows}) == 1
    for one in loop.store.read([row.trajectory_id for row in rows]):
        assert all(check(one) for check in CHECKS.values())
        assert set(one.steps.policy_version) == {champion}
        assert one.row.has_log_probs
        played = told(loop, one.row.agent)
        assert np.array_equal(one.steps.action, np.array([call[4] for call in played]))
        assert one.row.total_reward == pytest.approx(sum(call[5] for call in played))
        assert one.row.final_pnl == pytest.approx(one.row.total_reward * 10_000.0)
    ann, ben = told(loop, "ann"), told(loop, "ben")
    assert [call[4] for call in ann] != [call[4] for call in ben]


def test_without_exploring_agents_do_their_best_and_that_is_not_learned_from(loop):
    loop.install()
    with loop.runtime(explore=0.0) as runtime:
        runtime.add("ann", points=TICKS)
        for _ in range(TICKS):
            runtime.tick()
    calls = [each.call for each in stored_calls(loop.store, agent_id="ann")]
    assert not any("log_prob" in call.signals for call in calls)
    (row,) = loop.store.page().rows
    assert (row.purpose, row.trainable) == ("evaluation", False)


def test_a_life_is_the_same_whoever_goes_on_with_it(loop, tmp_path_factory):
    loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=TICKS + 5)
        for _ in range(TICKS + 5):
            runtime.tick()
    other = Loop(tmp_path_factory.mktemp("other"))
    other.install()
    for k in range(TICKS + 5):
        if k in (0, 1, TICKS - 1, TICKS):  # a new process each time, also over the end of a market
            with other.runtime() as runtime:
                runtime.add("ann", points=TICKS + 5)
                runtime.tick()
        else:
            runtime.tick()  # the last one was closed and starts what it needs again
    runtime.close()
    assert told(other, "ann") == told(loop, "ann")
    same = [
        [row.trajectory_id for row in each.store.page().rows if row.agent == "ann"]
        for each in (loop, other)
    ]
    assert same[0] == same[1]
    assert len(same[0]) == 1
    other.close()


def test_what_was_cut_off_at_the_end_of_a_market_is_recorded_at_the_next_start(loop, monkeypatch):
    loop.install()
    runtime = loop.runtime()
    runtime.add("ann", points=TICKS)
    monkeypatch.setattr(runtime, "_end", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    for _ in range(TICKS):
        runtime.tick()
    runtime.close()
    assert loop.store.agents.get("ann").status == "paused"
    assert loop.store.count() == 0
    with loop.runtime() as again:
        assert again.recover() == again.recover()
    assert loop.store.count() == 1
    assert loop.store.counts().steps == TICKS
    assert len([path for path in loop.store.files.folder.rglob("*") if path.is_file()]) == 1


def test_the_next_tick_after_a_promotion_is_answered_by_the_new_model(loop):
    old = loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=TICKS)
        before = [runtime.tick().rows[0].model for _ in range(3)]
        new = loop.promote(2)
        after = [runtime.tick().rows[0].model for _ in range(TICKS - 3)]
    assert set(before) == {old}
    assert set(after) == {new} != {old}
    report = verify_served(loop.store, loop.deployments)
    assert report.ok
    assert report.models == {old: 3, new: TICKS - 3}
    (row,) = loop.store.page().rows
    assert row.n_policy_versions == 2
    assert not row.trainable


def test_a_canary_answers_for_its_share_and_for_nobody_else(loop):
    old = loop.install()
    new = loop.judged(2)
    loop.deployments.deploy(new)
    rollout = loop.deployments.advance("canary")
    names = [f"agent-{k}" for k in range(60)]
    chosen = [name for name in names if loop.deployments.served(name) == new]
    some = [*chosen[:2], *[name for name in names if name not in chosen][:2]]
    assert len(some) == 4, rollout.salt
    with loop.runtime() as runtime:
        for name in some:
            runtime.add(name, points=5)
        rows = {row.agent_id: row.model for row in runtime.tick().rows}
        assert rows == {name: new if name in chosen else old for name in some}
        loop.deployments.rollback("drill")
        assert {row.model for row in runtime.tick().rows} == {old}
    report = verify_served(loop.store, loop.deployments)
    assert report.ok
    assert report.models == {old: 6, new: 2}


def test_the_same_call_moves_each_agent_once(loop):
    loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=50)
        assert statuses(runtime.tick("noon")) == ["played"]
        assert statuses(runtime.tick("noon")) == ["repeated"]
        assert statuses(runtime.tick("one")) == ["played"]
        assert statuses(runtime.tick("noon")) == ["repeated"]
    with loop.runtime() as again:
        assert statuses(again.tick("one")) == ["repeated"]
        assert loop.store.agents.get("ann").tick == 2
        for _ in range(TICKS):  # into the next market
            again.tick()
        assert statuses(again.tick("noon")) == ["repeated"]
        for k in range(KEPT_CALLS):
            again.tick(f"call-{k}")
            if k == 0:
                loop.store.agents.add_points("ann", 200)
        assert len(loop.store.agents.get("ann").state["call_ids"]) == KEPT_CALLS


def test_calls_at_the_same_time_are_one_call(loop):
    loop.install()
    with loop.runtime() as runtime, ThreadPoolExecutor(6) as pool:
        runtime.add("ann", points=50)
        barrier = Barrier(6)

        def call(_):
            barrier.wait()
            return runtime.tick("noon")

        rounds = list(pool.map(call, range(6)))
    assert sum(row.status == "played" for row in {each.rows for each in rounds}.pop()) <= 1
    assert loop.store.agents.get("ann").tick == 1
    assert loop.store.agents.get("ann").points == 49


def test_two_services_on_one_database_play_each_tick_once(loop):
    loop.install()
    with loop.runtime() as one, loop.runtime() as two, ThreadPoolExecutor(2) as pool:
        for name in ("ann", "ben"):
            one.add(name, points=100)
        for _ in range(6):
            list(pool.map(lambda runtime: runtime.tick(), (one, two)))
    for name in ("ann", "ben"):
        agent = loop.store.agents.get(name)
        ticks = [each.call.tick for each in stored_calls(loop.store, agent_id=name)]
        assert ticks == list(range(agent.tick))
        assert agent.points == 100 - agent.tick
        assert 6 <= agent.tick <= 12
    assert verify_served(loop.store, loop.deployments).ok


def test_a_tick_can_be_free(loop):
    loop.install()
    with loop.runtime(cost_points=0) as runtime:
        runtime.add("ann", points=1)
        assert [runtime.tick().rows[0].points for _ in range(3)] == [1, 1, 1]


def test_the_seed_decides_what_agents_draw(loop, tmp_path_factory):
    other = Loop(tmp_path_factory.mktemp("other"))
    lives = []
    for each, seed in ((loop, 5), (other, 6)):
        each.install()
        with each.runtime(seed=seed) as runtime:
            runtime.add("ann", points=50)
            for _ in range(3):
                runtime.tick()
        lives.append([call[4] for call in told(each, "ann")])
    other.close()
    assert lives[0] != lives[1]


def test_words_are_shown_when_asked_for(loop):
    assert Market(loop.paths[0], text=True).seen.text
    assert Market(loop.paths[0], text=False).seen.text is None


def test_no_more_processes_than_agreed(loop):
    loop.install()
    with loop.runtime(processes=2) as runtime:
        for k in range(4):
            runtime.add(f"agent-{k}", points=50)
        for _ in range(2):
            assert statuses(runtime.tick()) == ["played"] * 4
        assert len(runtime._crew.pids()) <= 2
    assert runtime._crew.pids() == {}


def test_without_a_champion_nothing_moves_and_it_is_said_why(loop):
    with loop.runtime() as runtime:
        runtime.add("ann", points=5)
        (row,) = runtime.tick().rows
    assert row.status == "failed"
    assert "no model serves" in row.error["what"]
    assert loop.store.agents.get("ann").points == 5
    assert loop.store.events.after(kind=AGENT_TICK) == ()
    (event,) = loop.store.events.after(kind="agent-failure", subject="ann")
    assert "no model serves" in event.data["error"]["what"]


def test_a_missing_market_costs_nothing_and_comes_back(loop):
    loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=9)
        first = runtime.tick().rows[0]
    path = Snapshots(loop.folder.snapshots("train")).path(first.snapshot_id)
    away = path.rename(path.with_suffix(".away"))
    with loop.runtime() as runtime:
        assert statuses(runtime.tick()) == ["failed"]
        assert loop.store.agents.get("ann").points == 8
        away.rename(path)
        assert statuses(runtime.tick()) == ["played"]
    assert [call[0] for call in told(loop, "ann")] == [0, 1]
