"""Workers that cannot start: a row for every job, and nothing that was done is lost."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from importlib import import_module
from multiprocessing import forkserver
from pathlib import Path
from threading import Timer

import pytest
from rollout_samples import PidJob

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.rollouts import executor as executor_module
from agent_gym.rollouts import hands
from agent_gym.rollouts.executor import START_ATTEMPTS, LocalExecutor
from agent_gym.rollouts.jobs import EpisodeJob

HERE = Path(__file__).parent

MODULE = textwrap.dedent(
    """
    import os, signal
    from multiprocessing import parent_process
    from pathlib import Path
    from agent_gym.core.clock import SystemClock
    from agent_gym.rollouts.jobs import Job

    LOG = Path({log!r})
    if parent_process() is not None:
        with LOG.open("a") as log:
            log.write("started\\n")
        start = len(LOG.read_text().splitlines())
        if start in range({first}, {last} + 1):
            Path({log!r} + ".bad").touch()
            {fault}

    class BadJob(Job):
        end: bool = False

        def run(self):
            if self.end:
                os._exit(9)
            return {{"status": "ok"}}
    """
)
FAULTS = {
    "raise": 'raise RuntimeError("no such card")',
    "exit": "os._exit(3)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "sleep": "SystemClock().sleep_s(600.0)",
}
STATUS = {"raise": "error", "exit": "crashed", "killed": "crashed", "sleep": "timeout"}
WHAT = {
    "raise": "no such card",
    "exit": "exit code 3",
    "killed": "killed by signal 9",
    "sleep": "within",
}


class Module:
    """A module that does something bad when the n-th worker imports it."""

    def __init__(self, folder, name, fault, first=1, last=99):
        self.log = folder / f"{name}.log"
        text = MODULE.format(log=str(self.log), fault=FAULTS[fault], first=first, last=last)
        (folder / f"{name}.py").write_text(text)
        self.name = name

    @property
    def starts(self):
        return len(self.log.read_text().splitlines())

    def job(self, **fields):
        return import_module(self.name).BadJob(**fields)


class Impatient(SystemClock):
    """A clock that leaps a day whenever the module has come to its bad place."""

    def __init__(self, module):
        self._mark = Path(f"{module.log}.bad")
        self._leap = 0.0

    def monotonic_s(self):
        if self._mark.exists():
            self._mark.unlink()
            self._leap += 86_400.0
        return super().monotonic_s() + self._leap


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    monkeypatch.syspath_prepend(str(tmp_path))

    def build(fault, **more):
        return Module(tmp_path, f"bad_{request.node.name.translate(ODD)}", fault, **more)

    return build


ODD = str.maketrans("[]-.", "____")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_job_whose_module_cannot_be_imported_costs_itself_alone(module, fault):
    bad = module(fault)
    jobs = [PidJob(), bad.job(), PidJob()]
    clock = Impatient(bad) if fault == "sleep" else None
    batch = LocalExecutor(1, timeout_s=3_600.0, clock=clock).run(jobs)
    assert [row["status"] for row in batch.rows] == ["ok", STATUS[fault], "ok"]
    assert batch.status == "complete"
    assert WHAT[fault] in batch.rows[1]["error"]["what"]
    if fault != "raise":
        assert batch.rows[1]["error"]["remedy"]


@pytest.fixture
def two_attempts(monkeypatch):
    monkeypatch.setattr(executor_module, "START_ATTEMPTS", 2)  # saves the time of a start


@pytest.mark.parametrize("fault", ["exit", "killed", "sleep"])
@pytest.mark.usefixtures("two_attempts")
def test_workers_that_never_start_give_a_row_for_each_job(module, fault):
    bad = module(fault)
    clock = Impatient(bad) if fault == "sleep" else None
    seen = []
    batch = LocalExecutor(1, start_timeout_s=3_600.0, imports=(bad.name,), clock=clock).run(
        [PidJob()] * 5, lambda done, total, row: seen.append((done, total, row["status"]))
    )
    assert [row["status"] for row in batch.rows] == [STATUS[fault]] * 5
    assert WHAT[fault] in batch.rows[0]["error"]["what"]
    assert batch.rows[0]["error"]["remedy"]
    assert seen == [(n + 1, 5, STATUS[fault]) for n in range(5)]
    assert bad.starts == 2


@pytest.mark.parametrize("fault", ["raise", "exit", "sleep"])
@pytest.mark.usefixtures("two_attempts")
def test_what_was_done_is_kept_when_no_new_worker_starts(module, fault):
    bad = module(fault, first=2)
    jobs = [PidJob(), PidJob(), bad.job(end=True), PidJob(), PidJob()]
    clock = Impatient(bad) if fault == "sleep" else None
    batch = LocalExecutor(1, start_timeout_s=3_600.0, imports=(bad.name,), clock=clock).run(jobs)
    lost = STATUS[fault]
    assert [row["status"] for row in batch.rows] == ["ok", "ok", "crashed", lost, lost]
    assert batch.rows[2]["error"]["what"] == "exit code 9"
    assert WHAT[fault] in batch.rows[4]["error"]["what"]
    assert batch.rows[4]["error"]["remedy"]
    assert bad.starts == 1 + 2


def test_a_start_that_fails_now_and_then_costs_no_job(module):
    bad = module("killed", last=START_ATTEMPTS - 1)
    batch = LocalExecutor(1, imports=(bad.name,)).run([PidJob()] * 3)
    assert [row["status"] for row in batch.rows] == ["ok"] * 3
    assert bad.starts == START_ATTEMPTS


def test_a_module_that_raises_in_every_worker_is_the_users_fault(module):
    bad = module("raise")
    with pytest.raises(ConfigError, match="could not import") as caught:
        LocalExecutor(1, imports=(bad.name,)).run([PidJob()])
    assert "no such card" in str(caught.value)
    assert caught.value.remedy


def test_a_system_that_gives_no_process_gives_rows(monkeypatch):
    class Exhausted:
        def Pipe(self):
            raise OSError(24, "Too many open files")

    monkeypatch.setattr(hands, "get_context", lambda kind: Exhausted())
    batch = LocalExecutor(2).run([PidJob()] * 3)
    assert [row["status"] for row in batch.rows] == ["crashed"] * 3
    assert "Too many open files" in batch.rows[0]["error"]["what"]
    assert "fewer workers" in batch.rows[0]["error"]["remedy"]


@pytest.mark.parametrize("name", ["timeout_s", "start_timeout_s"])
@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_a_limit_that_is_none_is_refused(name, limit):
    with pytest.raises(ConfigError, match="time limit"):
        LocalExecutor(1, **{name: limit})
    with pytest.raises(ConfigError, match="time limit"):
        LocalExecutor(1).run([PidJob()], timeout_s=limit)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], object(), {(1, 2): 3}])
def test_a_job_that_json_cannot_say_is_refused_before_anything_starts(value):
    agents = {"trader": Ref(use="sample/dice", params={"at": value})}
    job = EpisodeJob(world=Ref(use="sample/walk"), agents=agents, episode="e", seed=0)
    with pytest.raises(ConfigError, match="JSON cannot say"):
        LocalExecutor(1).run([PidJob(), job])


TWICE = textwrap.dedent(
    """
    import os, signal, sys
    from rollout_samples import MarkJob, PidJob
    from agent_gym.core.files import to_json
    from agent_gym.rollouts import hands
    from agent_gym.rollouts.executor import LocalExecutor

    real = hands.Worker.kill

    def kill(self):
        os.kill(os.getpid(), signal.SIGINT)  # the second Ctrl-C, while the workers are ended
        ending = real(self)
        os.kill(os.getpid(), signal.SIGINT)
        return ending

    if __name__ == "__main__":
        hands.Worker.kill = kill
        jobs = [PidJob(), MarkJob(path=sys.argv[1]), PidJob()]
        batch = LocalExecutor(1, imports=("rollout_samples",)).run(jobs)
        print(to_json({"status": batch.status, "rows": [row["status"] for row in batch.rows]}))
    """
)


def test_a_second_ctrl_c_loses_no_rows(tmp_path):
    mark, script, clock = tmp_path / "mark", tmp_path / "suite.py", SystemClock()
    script.write_text(TWICE)
    process = subprocess.Popen(
        [sys.executable, str(script), str(mark)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(HERE)},
        text=True,
    )
    for _ in range(1_200):
        if mark.exists() and mark.read_text().endswith("\n"):
            break
        clock.sleep_s(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out) == {"status": "partial", "rows": ["ok", "interrupted", "cancelled"]}
    assert not Path(f"/proc/{int(mark.read_text())}").exists()


def test_a_killed_fork_server_costs_no_job():
    assert LocalExecutor(1).run([PidJob()]).rows[0]["status"] == "ok"
    server = forkserver._forkserver._forkserver_pid
    os.kill(server, signal.SIGSTOP)  # so that the next start waits for it
    killer = Timer(0.5, os.kill, (server, signal.SIGKILL))
    killer.start()
    rows = LocalExecutor(1).run([PidJob(), PidJob()]).rows
    killer.join()
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert forkserver._forkserver._forkserver_pid != server


def test_a_worker_whose_parent_is_gone_ends_without_a_word():
    script = """if True:
        import os
        from multiprocessing import Pipe
        from agent_gym.rollouts.worker import _say
        os.setsid()
        ours, theirs = Pipe()
        theirs.close()
        _say(ours, b"done")
        """
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
