"""The pipeline's door: when training begins, one job at a time, and what is told of it."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Barrier, Event, current_thread

import pytest
from dbos._dbos import _get_dbos_instance
from sqlalchemy import event

from agent_gym.apps.api.problems import status_of
from agent_gym.core.clock import HOUR_NS, ManualClock
from agent_gym.core.errors import ConfigError
from agent_gym.pipeline.automation.job import TrainingJob
from agent_gym.pipeline.automation.pipeline import NO_CHAMPION, AutomationPipeline
from agent_gym.pipeline.automation.readiness import Condition, Readiness
from agent_gym.pipeline.automation.workflow import running
from agent_gym.rollouts.database import BatchRequest, DatabaseDown
from tests.pipeline.automation_samples import record
from tests.pipeline.service_samples import Loop

READY = Readiness(True, (Condition("trajectories", True, 5, 5, "5 of 5 unused trajectories"),))
NOT_READY = Readiness(
    False, (Condition("trajectories", False, 1, 5, "4 more unused trajectories are needed"),)
)


class HeldStages:
    """The stages of a loop; readiness inside a job waits until it is let go."""

    def __init__(self, stages, ready=READY):
        self._stages, self.ready = stages, ready
        self.go, self.jobs, self.fail = Event(), [], False
        self.asked_by = SimpleQueue()
        self.clock = ManualClock(1_000 * HOUR_NS)

    def __getattr__(self, name):
        return getattr(self._stages, name)

    def readiness(self):
        return self.ready

    def champion(self):  # asked by the job in its first step
        self.asked_by.put(current_thread())
        assert self.go.wait(60)
        if self.fail:
            raise ConfigError("it broke on purpose")
        return self._stages.champion()

    def claim(self, job):
        self.jobs.append(job.job_id)
        return {"claimed": 0, "champion": self._stages.champion()}


@pytest.fixture
def loop(tmp_path):
    made = Loop(tmp_path, snapshots=1)
    yield made
    made.close()


@pytest.fixture
def held(loop):
    loop.install()
    stages = HeldStages(loop.stages)
    yield stages
    stages.go.set()


@pytest.fixture
def engine_log():
    """What the engine says; it hands nothing on to the loggers above its own."""
    heard, ear = [], logging.Handler()
    ear.emit = heard.append
    logging.getLogger("dbos").addHandler(ear)
    yield heard
    logging.getLogger("dbos").removeHandler(ear)


def ended_of(pipeline, told, stages):
    stages.go.set()
    pipeline._runtime.wait(told.job_id)
    return pipeline.monitor_training(told.job_id)


def test_not_ready_is_skipped_and_the_reason_is_in_the_log(loop, held, caplog):
    held.ready = NOT_READY
    with running(held, loop.folder.workflows(held.store)) as runtime, caplog.at_level(logging.INFO):
        pipeline = AutomationPipeline(held, runtime)
        assert pipeline.check_training_readiness() == NOT_READY
        told = pipeline.trigger_training()
        assert (told.job_id, told.started, told.status) == (None, False, "skipped")
        assert told.reason == "4 more unused trajectories are needed"
        assert "training skipped: 4 more unused" in caplog.text
        assert pipeline.training_under_way() is None
        forced = pipeline.trigger_training(force=True)
        assert forced.started
        assert "although" in forced.reason
        assert ended_of(pipeline, forced, held).outcome.ending == "skipped"


def test_without_a_champion_even_force_says_why_not(loop):
    with running(loop.stages, loop.folder.workflows(loop.stages.store)) as runtime:
        told = AutomationPipeline(loop.stages, runtime).trigger_training(force=True)
    assert (told.status, told.reason) == ("skipped", NO_CHAMPION)


def test_many_triggers_at_once_are_one_job(loop, held):
    with running(held, loop.folder.workflows(held.store)) as runtime, ThreadPoolExecutor(8) as pool:
        pipeline = AutomationPipeline(held, runtime)
        barrier = Barrier(8)

        def trigger(k):
            barrier.wait()
            return pipeline.trigger_training(job_id=f"mine-{k}" if k % 2 else None)

        told = list(pool.map(trigger, range(8)))
        assert sum(each.started for each in told) == 1
        assert len({each.job_id for each in told}) == 1
        assert {each.reason for each in told if not each.started} == {"a training is under way"}
        status = pipeline.monitor_training(told[0].job_id)
        assert (status.status, status.stuck, status.outcome) == ("running", False, None)
        assert status.progress < 1.0
        ended_of(pipeline, told[0], held)
        assert held.jobs == [told[0].job_id]


def test_the_same_id_again_is_the_same_job_also_after_its_end(loop, held):
    with running(held, loop.folder.workflows(held.store)) as runtime:
        pipeline = AutomationPipeline(held, runtime)
        first = pipeline.trigger_training(job_id="night-1")
        status = ended_of(pipeline, first, held)
        assert (status.status, status.progress, status.outcome.ending) == ("ended", 1.0, "skipped")
        again = pipeline.trigger_training(job_id="night-1")
        assert (again.job_id, again.started, again.status) == ("night-1", False, "ended")
        other = pipeline.trigger_training(job_id="night-2")
        assert other.started
        ended_of(pipeline, other, held)
        json.dumps(pipeline.monitor_training("night-2").as_dict())
    assert held.jobs == ["night-1", "night-2"]


def start_many(runtime):
    for n in range(1_000):
        runtime.start(TrainingJob(job_id=f"night-{n}", force=True))


def test_a_full_disk_is_a_database_that_is_down(loop, held):
    place = loop.folder.workflows(held.store)
    with running(held, place) as runtime:
        engine = _get_dbos_instance()._sys_db.engine

        @event.listens_for(engine, "connect")
        def grow_no_more(raw, _):
            raw.execute("pragma max_page_count = 1")  # as large as it is; what SQLite says is real

        engine.dispose()
        with pytest.raises(DatabaseDown, match=r"disk is full.*has room") as caught:
            start_many(runtime)
        assert status_of(caught.value) == 503


def test_a_job_that_outlives_its_engine_leaves_no_trace_and_is_taken_up(loop, held, engine_log):
    held.fail = True
    place = loop.folder.workflows(held.store)
    with running(held, place) as runtime:
        pipeline = AutomationPipeline(held, runtime)
        told = pipeline.trigger_training(job_id="night-1")
        thread = held.asked_by.get(timeout=60)
    held.go.set()  # as if its processes were killed: the job fails, and nobody is there to hear it
    thread.join(60)
    assert not thread.is_alive()
    assert [each for each in engine_log if each.exc_info] == []
    held.fail = False
    with running(held, place) as runtime:
        assert runtime.wait(told.job_id).ending == "skipped"


def test_a_job_that_fails_says_so(loop, held):
    held.fail = True
    told = []
    with running(held, loop.folder.workflows(held.store)) as runtime:
        pipeline = AutomationPipeline(held, runtime, told.append)
        first = pipeline.trigger_training(job_id="night-1")
        held.go.set()
        with pytest.raises(Exception, match="on purpose"):
            runtime.wait(first.job_id)
        status = pipeline.monitor_training("night-1")
        assert status.status == "failed"
        assert "on purpose" in status.error
        assert "night-1 failed" in status.words
        _until(lambda: told)
        assert told[0].status == "failed"
        assert pipeline.training_under_way() is None


def test_who_waits_is_told_of_the_end_once(loop, held):
    told, heard = [], Event()

    def hear(status):
        told.append(status)
        heard.set()

    with running(held, loop.folder.workflows(held.store)) as runtime:
        pipeline = AutomationPipeline(held, runtime, hear)
        first = pipeline.trigger_training()
        pipeline.trigger_training()
        held.go.set()
        assert heard.wait(60)
        assert [each.job_id for each in told] == [first.job_id]


def test_a_job_that_takes_too_long_is_called_stuck(loop, held):
    with running(held, loop.folder.workflows(held.store)) as runtime:
        pipeline = AutomationPipeline(held, runtime)
        told = pipeline.trigger_training()
        created = runtime.known(told.job_id).created_ms * 1_000_000
        held.clock = ManualClock(created + 3 * HOUR_NS)
        assert not pipeline.monitor_training(told.job_id).stuck
        held.clock = ManualClock(created + 5 * HOUR_NS)
        assert pipeline.monitor_training(told.job_id).stuck
        held.go.set()
        runtime.wait(told.job_id)


@pytest.mark.parametrize("name", ["../x", "", "A", "a" * 65])
def test_a_job_cannot_have_any_name(loop, held, name):
    with running(held, loop.folder.workflows(held.store)) as runtime:
        with pytest.raises(ConfigError, match="job_id"):
            AutomationPipeline(held, runtime).trigger_training(job_id=name)
        assert runtime.under_way() == ()


def test_an_unknown_job_is_unknown(loop, held):
    with (
        running(held, loop.folder.workflows(held.store)) as runtime,
        pytest.raises(ConfigError, match="no such"),
    ):
        AutomationPipeline(held, runtime).monitor_training("nobody")


def test_export_and_the_newest_model(loop, held, tmp_path):
    record(loop.store, groups=2, size=3)
    loop.store.batches.claim(BatchRequest(batch_id="b1"))
    with running(held, loop.folder.workflows(held.store)) as runtime:
        pipeline = AutomationPipeline(held, runtime)
        export = pipeline.export_grouped_for_grpo("b1", tmp_path / "out")
        assert (export.groups, export.trajectories) == (2, 6)
        assert pipeline.get_latest_rl_model() is None  # the first champion was not trained
        source = tmp_path / "made-2"
        loop.policy(2).save(source)
        trained = loop.stages.registry.add(source, batch_id="b1").model_hash
        assert pipeline.get_latest_rl_model().model_hash == trained


def _until(condition):
    waited = Event()
    for _ in range(600):
        if condition():
            return
        waited.wait(0.1)
    raise AssertionError("it did not come")
