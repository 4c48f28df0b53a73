"""The service from inside: what its routes do, what they say, and what they never say."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from agent_gym.apps.api import ServiceSettings, create_app
from agent_gym.apps.api.metrics import ServiceMetrics
from agent_gym.apps.api.routes.common import WRITTEN_DOWN
from agent_gym.apps.api.routes.records import TrajectoryQuery
from agent_gym.apps.api.service import opened
from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.apps.api.tracking import journal, tracker_state
from agent_gym.core.errors import AgentGymError, StoreError
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.job import JobOutcome
from agent_gym.pipeline.automation.pipeline import TrainingStatus
from agent_gym.pipeline.automation.readiness import ReadinessPolicy
from agent_gym.pipeline.runtime import RuntimeConfig
from agent_gym.rollouts.database import SORTS, DatabaseDown
from agent_gym.training.rl.folder_lock import at_work
from tests.pipeline.registry_samples import QUICK
from tests.pipeline.service_samples import TICKS, Loop


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with a champion and a challenger that the gate has let through, as it was made."""
    path = tmp_path_factory.mktemp("loop")
    loop = Loop(path)
    old, new = loop.install(1), loop.judged(2)
    loop.close()
    return SimpleNamespace(path=path, old=old, new=new, snapshots=loop.paths)


@pytest.fixture(scope="module")
def settings(site):
    return ServiceSettings(
        folder=site.path,
        rollout=QUICK,
        automation=AutomationConfig(readiness=ReadinessPolicy(min_trajectories=10_000), workers=1),
        runtime=RuntimeConfig(timeout_s=100.0, start_timeout_s=200.0, explore=1.0),
    )


@pytest.fixture(scope="module")
def client(site, settings):
    _, text = TokenFile(site.path / FILE).add("tests", "admin")
    with TestClient(
        create_app(settings),
        base_url="http://127.0.0.1",
        headers={"authorization": f"Bearer {text}"},
        raise_server_exceptions=False,
    ) as made:
        for name in ("ann", "ben"):
            made.post("/api/admin/agents", json={"agent_id": name, "points": 200})
        for _ in range(TICKS):
            made.post("/api/cron/agent-tick").raise_for_status()
        yield made


def get(client, path, **params):
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert set(told) == {
        "type",
        "title",
        "status",
        "what",
        "where",
        "found",
        "expected",
        "remedy",
    }
    assert "Traceback" not in answer.text
    return told


def test_ticks_move_agents_and_are_answered_by_the_champion(client, site):
    before = {row["agent_id"]: row for row in get(client, "/api/agents")["agents"]}
    told = client.post("/api/cron/agent-tick", json={"call_id": "noon:1"}).json()
    assert {row["status"] for row in told["rows"]} == {"played"}
    assert {row["model"] for row in told["rows"]} == {site.old}
    again = client.post("/api/cron/agent-tick", json={"call_id": "noon:1"}).json()
    assert {row["status"] for row in again["rows"]} == {"repeated"}
    ann = get(client, "/api/agents/ann")
    assert ann["tick"] == before["ann"]["tick"] + 1
    assert ann["points"] == before["ann"]["points"] - 1
    assert before["ann"]["served"] == site.old
    assert get(client, "/api/verify")["ok"]
    assert get(client, "/api/verify", since_ns=2**62)["checked"] == 0


def test_points_pause_and_go_on(client):
    client.post("/api/admin/agents", json={"agent_id": "poor", "points": 1, "name": "Poor"})
    client.post("/api/cron/agent-tick")
    assert get(client, "/api/agents/poor")["status"] == "paused"
    resume = {"status": "active"}
    refused(client.post("/api/admin/agents/poor/status", json=resume), 400)
    assert client.post("/api/admin/agents/poor/points", json={"points": 5}).json()["points"] == 5
    assert client.post("/api/admin/agents/poor/status", json=resume).json()["status"] == "active"
    paused = client.post("/api/admin/agents/poor/status", json={"status": "paused"})
    assert paused.json()["status"] == "paused"
    for path in ("points", "status"):
        body = {"points": 1} if path == "points" else resume
        refused(client.post(f"/api/admin/agents/nobody/{path}", json=body), 404)
    refused(client.get("/api/agents/nobody"), 404)


def test_a_training_that_is_skipped_says_why(client):
    told = client.post("/api/cron/training").json()
    assert (told["status"], told["job_id"], told["started"]) == ("skipped", None, False)
    assert "more unused trajectories are needed (" in told["reason"]
    check = get(client, "/api/cron/training-check")
    assert not check["ready"]
    assert check["reason"] == told["reason"]
    assert {each["name"] for each in check["conditions"]} >= {"trajectories", "groups", "quality"}


def test_duplicate_triggers_give_one_job(client):
    with ThreadPoolExecutor(6) as pool:
        told = list(
            pool.map(
                lambda _: client.post(
                    "/api/admin/training/trigger", json={"force": True, "job_id": "night-1"}
                ).json(),
                range(6),
            )
        )
    assert sum(each["started"] for each in told) == 1
    assert {each["job_id"] for each in told} == {"night-1"}
    for _ in range(600):
        status = get(client, "/api/training/night-1")
        if status["status"] != "running":
            break
    assert (status["status"], status["outcome"]["ending"]) == ("ended", "skipped")
    refused(client.get("/api/training/nobody"), 404)
    refused(client.post("/api/admin/training/trigger", json={"job_id": "../x"}), 422)


def test_trajectories_page_by_page(client):
    first = get(client, "/api/trajectories", limit=1, sort="total_reward")
    second = get(client, "/api/trajectories", limit=1, sort="total_reward", after=first["next"])
    (one,), (two,) = first["trajectories"], second["trajectories"]
    assert one["total_reward"] >= two["total_reward"]
    assert one["trajectory_id"] != two["trajectory_id"]
    only = get(client, "/api/trajectories", agent="ann")["trajectories"]
    assert {row["agent"] for row in only} == {"ann"}
    shown = get(client, f"/api/trajectories/{one['trajectory_id']}")
    assert shown["n_steps"] == TICKS
    steps = get(client, f"/api/trajectories/{one['trajectory_id']}/steps", first=3, count=4)
    assert steps["t"] == [3, 4, 5, 6]
    assert len(steps["observation"]) == 4
    assert all(value < 0 for value in steps["log_prob"])
    refused(client.get("/api/trajectories", params={"after": "nonsense"}), 400)
    refused(client.get("/api/trajectories", params={"sort": "id; drop table"}), 422)
    refused(client.get("/api/trajectories", params={"colour": "red"}), 422)
    refused(client.get(f"/api/trajectories/{'0' * 32}"), 404)
    refused(client.get(f"/api/trajectories/{'0' * 32}/steps"), 404)


def test_every_order_of_the_store_can_be_asked_for():
    assert set(TrajectoryQuery.model_fields["sort"].annotation.__args__) == set(SORTS)


def test_benchmarks_show_what_is_public(client, site):
    found = get(client, "/api/benchmarks", limit=1)
    rest = get(client, "/api/benchmarks", after=found["next"])
    ids = [row["id"] for row in found["benchmarks"] + rest["benchmarks"]]
    assert len(ids) == len(site.snapshots) == 2
    assert rest["next"] is None
    shown = get(client, f"/api/benchmarks/{ids[0]}")
    assert shown["ticks"] == TICKS
    assert shown["best"]
    text = json.dumps(shown)
    assert "truth" not in text
    assert "outcome" not in text
    refused(client.get(f"/api/benchmarks/{'0' * 32}"), 404)
    refused(client.get("/api/benchmarks/..%2fsealed"), 404)


def test_a_bot_plays_over_the_same_door(client, site):
    snapshot = get(client, "/api/benchmarks")["benchmarks"][0]["id"]
    session = client.post("/a2a/sessions", json={"snapshot": snapshot})
    assert session.status_code == 201
    asked = {"jsonrpc": "2.0", "id": 1, "method": "a2a.getBalance", "params": {}}
    path = f"/a2a/sessions/{session.json()['session']}"
    assert client.post(f"{path}/rpc", json=asked).json()["result"]
    deep = client.post(f"{path}/rpc", content=b"[" * 60_000)
    assert deep.json()["error"]
    assert client.delete(path).status_code == 204
    refused(client.get(path), 404)


def test_state_and_figures(client, site):
    told = get(client, "/api/status")
    assert told["models"]["deployed"] in (site.old, site.new)
    assert told["data_collection"]["total"] >= 2
    assert told["training"]["current_job"] is None
    assert told["agents"]["active"] >= 2
    assert get(client, "/api/health") == {
        "status": "healthy",
        "database": "ok",
        "storage": "ok",
        "wandb": "offline",
    }
    page = client.get("/metrics").text
    assert 'agent_gym_agent_ticks_total{status="played"}' in page
    assert "agent_gym_up 1.0" in page
    assert "ann" not in page


def test_models_forward_and_back(client, site):
    told = get(client, "/api/models")
    assert told["champion"] == site.old
    assert get(client, f"/api/models/{site.new[:10]}")["verdict"]["promoted"]
    refused(client.get("/api/models/v9.9.9"), 404)
    wish = {"model": site.new}
    early = client.post("/api/admin/models/deploy", json=wish | {"stage": "full"})
    assert "not on its way" in refused(early, 409)["what"]
    for stage in ("shadow", "canary", "full"):
        state = client.post("/api/admin/models/deploy", json=wish | {"stage": stage}).json()
        assert state["rollout"]["stage"] == stage
    rows = client.post("/api/cron/agent-tick").json()["rows"]
    assert {row["model"] for row in rows} == {site.new}
    refused(client.post("/api/admin/models/rollback", json={"reason": ""}), 422)
    back = client.post("/api/admin/models/rollback", json={"reason": "drill"})
    assert back.json()["champion"] == site.old
    rows = client.post("/api/cron/agent-tick").json()["rows"]
    assert {row["model"] for row in rows} == {site.old}
    refused(client.post("/api/admin/models/deploy", json=wish), 409)
    assert get(client, "/api/verify")["ok"]


def test_who_asks_for_a_change_is_written_down(client, site):
    client.post("/api/admin/agents", json={"agent_id": "eve", "points": 0})
    client.post("/api/admin/models/deploy", json={"model": "v9.9.9"})  # refused, and written down
    events = client.app.state.service.stages.store.events.after(kind="admin-request", limit=1_000)
    paths = [event.data["path"] for event in events]
    assert paths[-2:] == ["/api/admin/agents", "/api/admin/models/deploy"]
    assert events[-1].data["name"] == "tests"
    assert {event.subject for event in events} == {
        token.id for token in TokenFile(site.path / FILE).all()
    }
    for method, path, route in routes_of(client.app):
        if path.startswith("/api/admin/"):
            assert WRITTEN_DOWN[0] in route.dependencies, (method, path)


def routes_of(app):
    for included in app.routes:
        for route in getattr(getattr(included, "original_router", None), "routes", ()):
            for method in route.methods:
                yield method, route.path, route


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[" * 60_000, b"null", b'{"reason": "\\ud800"}', b"\xff\xfe", b"1e999"]
)
def test_bodies_that_are_none_are_refused_in_words(client, content):
    answer = client.post("/api/admin/models/rollback", content=content)
    assert answer.status_code in (400, 409, 422), answer.text
    assert "Traceback" not in answer.text


def test_what_nobody_foresaw_says_nothing_of_the_inside(client, monkeypatch):
    def broken(*_args):
        raise ZeroDivisionError("secret inside")

    monkeypatch.setattr(ServiceMetrics, "page", broken)
    told = refused(client.get("/metrics"), 500)
    assert told["what"] == "an unforeseen error"
    assert "secret inside" not in json.dumps(told)


def test_a_database_that_is_away_is_said_to_be(client, monkeypatch):
    def away(*_args, **_given):
        raise DatabaseDown("the database cannot be used now")

    monkeypatch.setattr("agent_gym.rollouts.database.store.TrajectoryStore.page", away)
    refused(client.get("/api/trajectories"), 503)
    monkeypatch.setattr("agent_gym.pipeline.registry.deployment.ModelDeploymentService.state", away)
    unwell = client.get("/api/health")
    assert (unwell.status_code, unwell.json()["status"]) == (503, "unhealthy")
    assert "agent_gym_up 0.0" in client.get("/metrics").text


def test_a_second_service_in_the_same_folder_is_refused(client, settings):
    with pytest.raises(AgentGymError, match="at work here"), at_work(settings.folder / "jobs"):
        pass
    with pytest.raises(StoreError, match="runs in this process"), opened(settings):
        pass


def test_weights_and_biases_hears_only_when_its_key_is_set(tmp_path, monkeypatch, caplog):
    assert tracker_state({}) == "offline"
    assert journal(tmp_path, {}) is None
    assert journal(tmp_path, {"WANDB_API_KEY": "k"}) is None  # it is not installed here
    assert "not installed" in caplog.text
    told = []

    class Run:
        summary = SimpleNamespace(update=lambda values: told.append(("summary", values)))

        def log(self, values, step):
            told.append((step, values))

        def finish(self):
            told.append("end")

    fake = SimpleNamespace(init=lambda **given: told.append(given["id"]) or Run(), __spec__=None)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.setattr("agent_gym.apps.api.tracking.find_spec", lambda _: object())
    tracker = journal(tmp_path, {"WANDB_API_KEY": "k"})
    outcome = JobOutcome(
        job_id="j1",
        ending="promoted",
        reason="it won",
        champion="a",
        stages={"training": {"rounds": [{"loss": 0.5, "changed": True, "model_after": "b"}]}},
    )
    tracker.tell(TrainingStatus("j1", "ended", "roll_out", 1.0, False, outcome, None))
    assert told == [
        "j1",
        (0, {"train/loss": 0.5}),
        ("summary", {"ending": "promoted", "reason": "it won"}),
        "end",
    ]
