"""The loop on a real PostgreSQL, and what happens when it is switched off in the middle."""

import pytest

from agent_gym.core.errors import AgentGymError, DataError, StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.pipeline.automation import learners, recording, stages
from agent_gym.pipeline.automation.pipeline import AutomationPipeline
from agent_gym.pipeline.automation.recording import Recording
from agent_gym.pipeline.automation.stages import Stages
from agent_gym.pipeline.automation.workflow import running
from agent_gym.pipeline.harness import workspace
from agent_gym.pipeline.harness.first_champion import untrained
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry import ModelDeploymentService
from agent_gym.rollouts.database import DatabaseDown
from tests.pipeline import kill_points
from tests.pipeline.kill_points import JOB, Inline, opened, prepare
from tests.rollouts import postgres

# Where the database goes away, by the number of the call. An examination that was cut off is done
# again, so the duel of the rehearsal is the third.
OUTAGES = (
    (Stages, "claim", 1),
    (learners, "learn", 1),
    (Recording, "play", 1),
    (stages, "duel", 1),
    (stages, "judge_promotion", 1),
    (stages, "duel", 3),
    (ModelDeploymentService, "advance", 1),
)


@pytest.fixture(scope="module")
def server():
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    made = postgres.new_server()
    yield made
    postgres.end(made)


@pytest.fixture
def url(server):
    name = server.new_database()
    yield server.url(name)
    server.drop(name)


@pytest.fixture(autouse=True, scope="module")
def _short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workspace, "make_executor", Inline)
        patch.setattr(stages, "duel", kill_points.fixed_duel(0.1))
        patch.setattr(stages, "replay_equal", lambda model, snapshot: True)
        yield


@pytest.fixture(scope="module")
def quiet(_short, tmp_path_factory):
    """What a job on SQLite leaves if nothing goes wrong."""
    place = tmp_path_factory.mktemp("quiet")
    prepare(place)
    with opened(place) as work, running(work, LoopFolder(place).workflows(work.store)) as runtime:
        return runtime.run(JOB), left(place)


def left(place, url=None):
    """Return what a job left, without what is drawn anew in every folder (keys and salts)."""
    found = kill_points.state(place, url)
    events = [event for event, _ in found.pop("history")]
    return found | {"events": events}


def call(monkeypatch, owner, name, number, happens):
    """Let something happen before a call of that number."""
    plain, calls = getattr(owner, name), []

    def counted(*args, **kwargs):
        calls.append(1)
        if len(calls) == number:
            happens()
        return plain(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)


def ids_of(store):
    return {row.trajectory_id: row.total_reward for row in store.page(limit=1_000).rows}


def test_a_job_comes_to_the_same_on_postgresql(url, tmp_path, quiet):
    prepare(tmp_path, url)
    with (
        opened(tmp_path, url) as work,
        running(work, LoopFolder(tmp_path).workflows(work.store)) as runtime,
    ):
        outcome = runtime.run(JOB)
    assert outcome.ending == "promoted"
    assert outcome == quiet[0]
    assert left(tmp_path, url) == quiet[1]
    assert len(quiet[1]["batches"]) == 2


def test_a_database_that_goes_away_in_every_stage(server, url, tmp_path, quiet, monkeypatch):
    prepare(tmp_path, url)
    for owner, name, number in OUTAGES:
        call(monkeypatch, owner, name, number, server.stop)
    with (
        opened(tmp_path, url) as work,
        running(work, LoopFolder(tmp_path).workflows(work.store)) as runtime,
    ):
        for _ in OUTAGES:
            with pytest.raises(AgentGymError, match=r"the database .*goes on with the step"):
                runtime.run(JOB)
            assert runtime.status(JOB.job_id) == "ERROR"
            server.start()
        outcome = runtime.run(JOB)
        assert work.store.outbox.waiting() == ()
        assert runtime.run(JOB) == outcome
    assert outcome == quiet[0]
    assert left(tmp_path, url) == quiet[1]


@pytest.mark.parametrize("back", ["during the last snapshot", "after the last", "later"])
def test_agents_play_on_while_the_database_is_away(server, url, tmp_path, monkeypatch, back):
    paths = kill_points.make_snapshots(tmp_path / "snapshots", 4)
    untrained(paths, Seeds(0)).save(tmp_path / "first")
    with opened(tmp_path / "quiet") as work:
        Recording(work.store, work.executor, ("a", "b"), 2).play(tmp_path / "first", paths, "run")
        want = ids_of(work.store)
    assert len(want) == 16

    class Executor(Inline):
        def run(self, jobs, progress=None, *, timeout_s=None):
            done = super().run(jobs, progress)
            if back == "after the last":
                server.start()
            return done

    monkeypatch.setattr(workspace, "make_executor", Executor)
    call(monkeypatch, recording, "run_episode", 6, server.stop)
    if back == "during the last snapshot":
        call(monkeypatch, recording, "run_episode", 15, server.start)
    with opened(tmp_path / "shaken", url) as work:
        rows = Recording(work.store, work.executor, ("a", "b"), 2).play(
            tmp_path / "first", paths, "run"
        )
        assert [(row["status"], row["failed"]) for row in rows] == [("ok", 0)] * 4
        if back == "later":
            with pytest.raises(DatabaseDown):
                work.store.count()
            assert len(work.store.outbox.waiting()) == 3  # those of all snapshots but the first
            server.start()
            assert work.store.deliver().delivered == 3
        assert work.store.outbox.waiting() == ()
        assert ids_of(work.store) == want
        assert work.store.deliver().delivered == 0
        assert work.store.check().whole


def broken(place, monkeypatch, error):
    """Prepare a loop whose first learning fails."""
    prepare(place)

    def fails():
        raise error

    call(monkeypatch, learners, "learn", 1, fails)


@pytest.mark.parametrize("error", [DatabaseDown, StoreError])
def test_what_may_pass_costs_no_batch(tmp_path, quiet, monkeypatch, error):
    """The database or the disk is back before the failed step can say so: the batch stays."""
    broken(tmp_path, monkeypatch, error("the database cannot be used now"))
    with (
        opened(tmp_path) as work,
        running(work, LoopFolder(tmp_path).workflows(work.store)) as runtime,
    ):
        pipeline = AutomationPipeline(work, runtime)
        assert pipeline.trigger_training(job_id=JOB.job_id).started
        with pytest.raises(AgentGymError, match="cannot be used now"):
            runtime.wait(JOB.job_id)
        assert work.store.batches.get(JOB.job_id).status == "pending"
        assert not work.readiness().ready  # a new job would find nothing
        again = pipeline.trigger_training(job_id=JOB.job_id)
        assert (again.started, again.status) == (True, "running")
        assert runtime.wait(JOB.job_id) == quiet[0]
        assert pipeline.trigger_training(job_id=JOB.job_id).started is False
    assert left(tmp_path) == quiet[1]


def test_what_cannot_be_learned_from_goes_back(tmp_path, monkeypatch):
    broken(tmp_path, monkeypatch, DataError("nothing to learn"))
    with (
        opened(tmp_path) as work,
        running(work, LoopFolder(tmp_path).workflows(work.store)) as runtime,
    ):
        before = work.store.counts().unused
        found = runtime.run(JOB)
        assert (found.ending, found.reason) == ("not learnable", "nothing to learn")
        batch = work.store.batches.get(JOB.job_id)
        assert (batch.status, batch.error) == ("failed", "nothing to learn")
        assert work.store.counts().unused == before > 0
        assert runtime.failed() == ()  # nobody tries it again
        assert runtime.run(JOB) == found
