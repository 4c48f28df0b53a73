"""Whatever goes wrong costs one agent one tick, and is written down."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS, SystemClock
from agent_gym.pipeline.automation.stock import CHECKS
from agent_gym.pipeline.runtime import stored_calls, verify_served
from agent_gym.rollouts.database import AGENT_TICK, DatabaseDown, TrajectoryFilter
from agent_gym.rollouts.database.events import event_row
from tests.pipeline.service_samples import MOODS, TICKS, Loop
from tests.rollouts import postgres

ROOT = Path(__file__).resolve().parents[2]
WORDS = {
    "hang": "took too long",
    "die": "process is gone",
    "exit": "process is gone",
    "raise": "ZeroDivisionError",
    "words": "says too much",
    "numbers": "says too much",
    "nan": "failed",
    "shape": "no target for each market",
    "none": "no decision",
    "text": "failed",
    "lie": "another model answered",
    "grow": "MemoryError",
}


@pytest.fixture
def loop(tmp_path):
    made = Loop(tmp_path)
    yield made
    made.close()


@pytest.fixture
def moody(loop, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("AGENT_GYM_DATABASE", "postgresql://user:secret@nowhere/db")
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    loop.install_moody()
    return loop


def test_a_bad_agent_costs_only_its_own_tick(moody):
    with moody.runtime(imports=(MOODS,), timeout_s=12.0, memory_mb=2048, processes=4) as runtime:
        for name in WORDS:
            runtime.add(f"{name}-1", points=3)
        for k in range(3):
            runtime.add(f"calm-{k}", points=3)
        told = runtime.tick()
    rows = {row.agent_id: row for row in told.rows}
    assert len(rows) == len(WORDS) + 3
    for k in range(3):
        assert rows[f"calm-{k}"].status == "played"
        assert rows[f"calm-{k}"].error is None
    for name, words in WORDS.items():
        row = rows[f"{name}-1"]
        assert row.status == "lost", name
        assert words in " ".join(str(part) for part in row.error.values()), name
        assert (row.points, row.t) == (2, 0)
        (call,) = stored_calls(moody.store, agent_id=f"{name}-1")
        assert call.call.action is None
        assert call.call.error is not None
    report = verify_served(moody.store, moody.deployments)
    assert (report.answered, report.lost) == (3, len(WORDS))


def test_an_agent_knows_nothing_of_the_service(moody):
    with moody.runtime(imports=(MOODS,)) as runtime:
        runtime.add("spy-1", points=3)
        assert runtime.tick().rows[0].status == "played"
    (call,) = stored_calls(moody.store)
    assert call.call.rationale == "saw []"


def test_lost_ticks_are_kept_but_not_to_train_on(moody):
    with moody.runtime(imports=(MOODS,)) as runtime:
        runtime.add("raise-1", points=TICKS)
        runtime.add("calm-1", points=TICKS)
        for _ in range(TICKS):
            runtime.tick()
    rows = {row.agent: row for row in moody.store.page().rows}
    assert (rows["raise-1"].n_steps, rows["raise-1"].details["lost_ticks"]) == (TICKS, TICKS)
    assert not rows["raise-1"].trainable
    assert rows["calm-1"].trainable
    (one,) = moody.store.read([rows["calm-1"].trajectory_id])
    assert all(check(one) for check in CHECKS.values())
    chosen = TrajectoryFilter(purpose="training", used_in_training=False)
    assert [row.agent for row in moody.store.page(chosen).rows] == ["calm-1"]


def test_modules_that_cannot_be_imported_are_named(loop):
    loop.install()
    with loop.runtime(imports=("no_such_module",)) as runtime:
        runtime.add("ann", points=3)
        (row,) = runtime.tick().rows
    assert row.status == "lost"
    assert "no_such_module" in str(row.error)


def test_an_agent_that_dies_between_ticks_is_started_again(loop):
    loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=9)
        runtime.tick()
        os.killpg(runtime._crew.pids()["ann"], signal.SIGKILL)
        rows = [runtime.tick().rows[0] for _ in range(2)]
    assert "played" in [row.status for row in rows]
    assert [row.tick for row in rows] == [2, 3]


def test_a_model_that_was_changed_decides_nothing(loop):
    model = loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=9)
        assert runtime.tick().rows[0].status == "played"
        (weights,) = loop.folder.path.glob(f"models/artifacts/{model}/**/policy.safetensors")
        weights.chmod(0o644)
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(bytes(content))
    with loop.runtime() as runtime:  # a new process checks before anything is loaded
        (row,) = runtime.tick().rows
        assert row.status == "failed"
        assert loop.store.agents.get("ann").points == 8
    assert "artifact refused" in [entry.event for entry in loop.deployments.history()]


def test_a_model_that_is_changed_after_it_was_checked_decides_nothing(loop):
    model = loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=9)
        runtime.tick()
        (folder,) = loop.folder.path.glob(f"models/artifacts/{model}/artifact")
        other = loop.register(2)
        (foreign,) = loop.folder.path.glob(f"models/artifacts/{other}/artifact")
        folder.rename(folder.with_name("away"))
        foreign.rename(folder)
        os.killpg(runtime._crew.pids()["ann"], signal.SIGKILL)
        rows = [runtime.tick().rows[0] for _ in range(2)]
    assert [row.status for row in rows] == ["lost", "lost"]
    assert "another model answered" in str(rows[1].error)


# Verification: each planted fault is found.


def forge(loop, **changes):
    """Store a call like the last one, changed."""
    last = list(stored_calls(loop.store))[-1]
    data = last.call.model_dump(mode="json") | {"tick": last.call.tick + 1} | changes
    row = event_row(AGENT_TICK, last.agent_id, data, last.at_ns + 1)
    loop.store.events.append(AGENT_TICK, row["subject"], row["data"])


@pytest.fixture
def lived(loop):
    loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=9)
        runtime.tick()
    assert verify_served(loop.store, loop.deployments).ok
    return loop


def test_an_answer_of_another_model_is_found(lived):
    other = lived.register(7)
    forge(lived, model=other)
    report = verify_served(lived.store, lived.deployments)
    assert not report.ok
    assert report.wrong[0].startswith("agent ann, tick 1: ")
    assert other[:12] in report.words


def test_a_challenger_that_was_not_deployed_is_found(lived):
    new = lived.judged(2)
    lived.deployments.deploy(new)
    forge(lived, model=new, position=len(lived.deployments.history()))
    assert not verify_served(lived.store, lived.deployments).ok


def test_an_entry_that_does_not_exist_is_found(lived):
    forge(lived, position=99)
    assert "no entry 99" in verify_served(lived.store, lived.deployments).words


def test_going_by_an_old_entry_is_found(lived):
    last = list(stored_calls(lived.store))[-1]
    lived.promote(2)
    forge(lived, asked_ns=last.call.asked_ns)
    assert verify_served(lived.store, lived.deployments).ok
    late = lived.deployments.history()[-1].at_ns + 10**12
    forge(lived, asked_ns=late)
    assert "entry" in verify_served(lived.store, lived.deployments).words


def test_a_clock_that_was_set_is_no_wrong_answer_and_hides_none(loop, monkeypatch):
    """A day ahead, back again, and an hour behind; models change meanwhile."""
    real, off = SystemClock.now_ns, [0]
    monkeypatch.setattr(SystemClock, "now_ns", lambda self: real(self) + off[0])
    loop.install()
    with loop.runtime() as runtime:
        runtime.add("ann", points=99)
        runtime.tick()
        for seed, off[0] in ((2, DAY_NS), (3, 0), (4, -HOUR_NS), (5, 0)):
            loop.promote(seed)
            runtime.tick()
        off[0] = DAY_NS
        runtime.tick()
        advance, off[0] = loop.store.agents.advance, DAY_NS + 10 * MINUTE_NS

        def set_back_meanwhile(*played):
            off[0] = 10 * MINUTE_NS
            return advance(*played)

        monkeypatch.setattr(loop.store.agents, "advance", set_back_meanwhile)
        runtime.tick()
    report = verify_served(loop.store, loop.deployments)
    assert (report.wrong, report.checked) == ((), 7)
    last = list(stored_calls(loop.store))[-1]
    forge(loop, asked_ns=last.call.asked_ns + 2 * DAY_NS)
    assert "entry" in verify_served(loop.store, loop.deployments).words


def test_calls_before_a_moment_can_be_left_out(lived):
    (only,) = stored_calls(lived.store)
    assert verify_served(lived.store, lived.deployments, only.at_ns).checked == 1
    assert verify_served(lived.store, lived.deployments, only.at_ns + 1).checked == 0


# A database that fails.


@pytest.mark.parametrize("kept", [True, False])
def test_a_tick_whose_end_was_not_heard_is_played_once(loop, monkeypatch, kept):
    """The answer of the database is lost, after it has kept the tick or before."""
    loop.install()
    agents, real = loop.store.agents, loop.store.agents.advance

    def lossy(agent_id, played):
        if played.tick in (2, TICKS - 1, TICKS) and played.tick not in lost:
            lost.append(played.tick)
            if kept:
                real(agent_id, played)
            raise DatabaseDown("the database went away")
        return real(agent_id, played)

    lost = []
    monkeypatch.setattr(agents, "advance", lossy)
    with loop.runtime() as runtime:
        runtime.add("ann", points=100)
        rounds = [runtime.tick().rows[0].status for _ in range(TICKS + 6)]
    assert rounds.count("failed") == len(lost) == 3
    agent = agents.get("ann")
    calls = [each.call for each in stored_calls(loop.store)]
    assert [call.tick for call in calls] == list(range(agent.tick))
    assert agent.tick == TICKS + (6 if kept else 3)
    assert agent.points == 100 - agent.tick
    (row,) = loop.store.page().rows
    assert (row.n_steps, row.trainable) == (TICKS, True)


def test_the_same_life_on_postgresql(tmp_path):
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = postgres.new_server()
    lives = []
    for name, url in (("a", server.url(server.new_database())), ("b", None)):
        loop = Loop(tmp_path / name, url=url)
        loop.install()
        with loop.runtime() as runtime:
            runtime.add("ann", points=50)
            for _ in range(TICKS + 2):
                runtime.tick("noon" if _ == 0 else None)
        lives.append([(each.call.action, each.call.reward) for each in stored_calls(loop.store)])
        assert verify_served(loop.store, loop.deployments).ok
        assert loop.store.count() == 1
        loop.close()
    postgres.end(server)
    assert lives[0] == lives[1]


# kill -9

DRIVER = """
import sys
from pathlib import Path
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.runtime import AgentRuntime, RuntimeConfig

folder = LoopFolder(Path(sys.argv[1]))
with folder.opened(AutomationConfig(workers=1)) as stages:
    with AgentRuntime(stages.store, stages.deployments, folder.snapshots("train")) as runtime:
        while True:
            told = runtime.tick()
            print(len(told.rows), flush=True)
"""


def test_killed_again_and_again_nothing_is_lost_or_played_twice(loop):
    loop.install()
    with loop.runtime() as runtime:
        for name in ("ann", "ben"):
            runtime.add(name, points=10_000)
    for k in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(loop.folder.path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        for _ in range(11 + 9 * k):  # some of the kills come near the end of a market
            assert child.stdout.readline()
        child.kill()
        child.wait()
        child.stdout.close()
    with loop.runtime() as runtime:
        runtime.tick()
    for name in ("ann", "ben"):
        agent = loop.store.agents.get(name)
        calls = [each.call for each in stored_calls(loop.store, agent_id=name)]
        assert [call.tick for call in calls] == list(range(agent.tick))
        assert agent.points == 10_000 - agent.tick
        assert all(call.status == "answered" for call in calls)
        whole = agent.tick // TICKS
        assert whole >= 3
        rows = loop.store.page(TrajectoryFilter(agent=name), limit=100).rows
        assert sorted(row.seed for row in rows) == list(range(whole))
        assert {row.n_steps for row in rows} == {TICKS}
    assert verify_served(loop.store, loop.deployments).ok
