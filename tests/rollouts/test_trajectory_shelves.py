"""Judgments, models, deployments, outcomes, agents of the service and events, on both databases."""

from threading import Barrier, Thread

import pytest
from pydantic import ValidationError
from sqlalchemy import delete, update
from trajectory_samples import fill

from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.database import (
    AGENT_TICK,
    AgentRecord,
    DeploymentRecord,
    Event,
    JudgmentRecord,
    ModelRecord,
    OutcomeRecord,
    PlayedTick,
    TickTaken,
    TrajectoryFilter,
)


def judged(made, score, **more):
    fields = {"judge_model": "oracle", "judge_version": "1", "group_id": "g"} | more
    return JudgmentRecord(trajectory_id=made, overall_score=score, **fields)


def test_each_trajectory_gets_its_own_score(store):
    ids = fill(store, range(4))
    scores = [0.0, 0.25, 0.5, 1.0]
    store.judgments.add(
        judged(made, score, rank=n, reasoning=f"why {n}")
        for n, (made, score) in enumerate(zip(ids, scores, strict=True))
    )
    assert [store.get(made).judge_score for made in ids] == scores
    assert [store.get(made).judge_reasoning for made in ids] == [f"why {n}" for n in range(4)]
    assert store.count(TrajectoryFilter(judged=True)) == 4
    best = store.page(sort="judge_score", limit=1).rows[0]
    assert best.trajectory_id == ids[3]


def test_the_same_judgment_again_changes_nothing(store, clock):
    (made,) = fill(store, [0])
    store.judgments.add([judged(made, 0.5)])
    first = store.get(made).judged_ns
    clock.sleep_s(1.0)
    store.judgments.add([judged(made, 0.9)])
    assert (store.get(made).judge_score, store.get(made).judged_ns) == (0.5, first)
    store.judgments.add([judged(made, 0.9, judge_version="2")])
    assert store.get(made).judge_score == 0.9
    assert [one.overall_score for one in store.judgments.of(made)] == [0.5, 0.9]


def test_a_judgment_of_nothing_or_out_of_range_is_refused(store):
    (made,) = fill(store, [0])
    with pytest.raises(ConfigError, match="no such trajectory"):
        store.judgments.add([judged(made, 0.5), judged("stranger", 0.5)])
    assert store.get(made).judge_score is None
    assert store.judgments.of(made) == ()
    for wrong in (1.7, -0.1, float("nan"), "high"):
        with pytest.raises(ValidationError):
            judged(made, wrong)


def test_models_and_their_deployments(store, clock):
    record = ModelRecord(model_id="hash", version="v1.0.0", eval_metrics={"p": 0.01})
    model = store.models.add(record)
    assert (model.status, model.eval_metrics) == ("ready", {"p": 0.01})
    store.models.add(record.model_copy(update={"version": "other"}))
    assert store.models.get("hash").version == "v1.0.0"
    store.models.deploy(
        DeploymentRecord(deployment_id="d1", model_id="hash", stage="canary", traffic_share=0.1)
    )
    store.models.set_status("hash", "deployed")
    store.models.set_health("d1", "degraded")
    clock.sleep_s(1.0)
    store.models.end_deployment("d1", "rolled_back", "it lost money")
    store.models.end_deployment("d1", "rolled_back", "again")
    (found,) = store.models.deployments()
    assert (found.status, found.health, found.reason) == (
        "rolled_back",
        "degraded",
        "it lost money",
    )
    assert found.undeployed_ns - found.deployed_ns == 1_000_000_000
    assert store.models.deployments("active") == ()
    assert [model.model_id for model in store.models.newest("deployed")] == ["hash"]
    assert store.models.newest("archived") == ()
    with pytest.raises(StoreError, match="ended already"):
        store.models.end_deployment("d1", "replaced")


def test_what_does_not_exist_cannot_be_deployed(store):
    for call in (
        lambda: store.models.get("x"),
        lambda: store.models.set_status("x", "archived"),
        lambda: store.models.set_health("x", "healthy"),
        lambda: store.models.end_deployment("x", "replaced"),
    ):
        with pytest.raises(ConfigError, match="no such"):
            call()
    with pytest.raises(StoreError, match="refused"):
        store.models.deploy(DeploymentRecord(deployment_id="d", model_id="x", stage="full"))


def test_outcomes_are_said_once(store):
    perp = OutcomeRecord(
        window_id="w", snapshot_id="s", market="perp-1", kind="perpetual", change_percent=1.5
    )
    asked = OutcomeRecord(
        window_id="w", snapshot_id="s", market="pm-1", kind="prediction", outcome=True
    )
    store.outcomes.add([perp, asked])
    store.outcomes.add([perp.model_copy(update={"change_percent": 9.0})])
    found = store.outcomes.of("w")
    assert [(one.market, one.change_percent, one.outcome) for one in found] == [
        ("perp-1", 1.5, None),
        ("pm-1", None, True),
    ]
    assert store.outcomes.of("other") == ()


def tick(store, at, **more):
    fields = {"tick": at, "cost_points": 1, "policy_version": "m"} | more
    return store.agents.advance("a", PlayedTick(**fields))


def test_a_tick_costs_points_and_the_last_one_pauses(store):
    store.agents.add(AgentRecord(agent_id="a", name="Ann", points=2))
    store.agents.add(AgentRecord(agent_id="a", name="Again", points=99))
    first = tick(store, 0, state={"cash": 1.5})
    assert (first.tick, first.points, first.status, first.state) == (1, 1, "active", {"cash": 1.5})
    second = tick(store, 1)
    assert (second.tick, second.points, second.status, second.name) == (2, 0, "paused", "Ann")
    assert (second.state, second.policy_version) == ({"cash": 1.5}, "m")
    with pytest.raises(StoreError, match="not where this tick begins"):
        tick(store, 2)
    with pytest.raises(ConfigError, match="without points"):
        store.agents.set_status("a", "active")
    store.agents.add_points("a", 5)
    assert store.agents.set_status("a", "active").points == 5
    assert tick(store, 2, cost_points=100).points == 0
    assert [agent.agent_id for agent in store.agents.all("paused")] == ["a"]
    assert store.agents.all("active") == ()


def test_the_same_tick_counts_once(store):
    store.agents.add(AgentRecord(agent_id="a", name="Ann", points=50))
    barrier, refused = Barrier(6), []

    def once():
        barrier.wait()
        try:
            tick(store, 0)
        except StoreError as error:
            refused.append(error)

    threads = [Thread(target=once) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agent = store.agents.get("a")
    assert (agent.tick, agent.points, len(refused)) == (1, 49, 5)


def test_a_tick_and_its_call_are_kept_together_or_not_at_all(store):
    store.agents.add(AgentRecord(agent_id="a", name="Ann", points=5))
    tick(store, 0, call={"tick": 0, "bad": float("nan")}, snapshot_id="s1")
    assert store.agents.get("a").snapshot_id == "s1"
    with pytest.raises(TickTaken):
        tick(store, 0, call={"tick": 0, "twice": True})
    (event,) = store.events.after(kind=AGENT_TICK, subject="a")
    assert event.data == {"tick": 0, "bad": None}


def test_points_cannot_be_taken_by_the_back_door(store):
    store.agents.add(AgentRecord(agent_id="a", name="Ann", points=5))
    with pytest.raises(ConfigError, match="points"):
        tick(store, 0, cost_points=-1)
    with pytest.raises(ConfigError, match="points"):
        store.agents.add_points("a", -1)
    with pytest.raises(ConfigError, match="no such agent"):
        store.agents.get("b")
    with pytest.raises(ConfigError, match="no such agent"):
        store.agents.advance("b", PlayedTick(tick=0, cost_points=1, policy_version=None))
    assert store.agents.get("a").points == 5


def test_events_come_in_order_and_are_never_changed(store):
    ids = [
        store.events.append("tick", f"a{n % 2}", {"n": n, "bad": float("nan")}) for n in range(6)
    ]
    assert ids == sorted(ids)
    assert [event.data["n"] for event in store.events.after(ids[1], limit=2)] == [2, 3]
    assert [event.data["n"] for event in store.events.after(subject="a1")] == [1, 3, 5]
    assert store.events.after(kind="other") == ()
    for change in (update(Event).values(kind="x"), delete(Event).where(Event.id == ids[0])):
        with (
            pytest.raises(StoreError, match="never changed"),
            store.database.writing() as connection,
        ):
            connection.execute(change)
    assert [event.kind for event in store.events.after()] == ["tick"] * 6
    assert store.events.after()[0].data == {"n": 0, "bad": None}
