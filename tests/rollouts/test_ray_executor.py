"""The executor of a cluster: the same rows as on one machine, whatever is lost on the way."""

import os
import signal
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from executor_samples import IMPORTS, ExecutorContract
from rollout_samples import HeavyJob, MarkJob, NodeKiller, PidJob, ReadJob, SlowJob

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import to_json
from agent_gym.rollouts.executor import LocalExecutor

pytest.importorskip("ray", reason="Ray is not installed: pip install 'agent-gym[ray]'")
from agent_gym.rollouts.cluster import connection, shift
from agent_gym.rollouts.cluster import executor as adapter
from agent_gym.rollouts.cluster.executor import RayExecutor

pytestmark = pytest.mark.alone


@pytest.fixture(autouse=True)
def _two_processors(cluster):
    """Every test has a head and a node, and leaves no other."""
    cluster.add()
    yield
    cluster.shrink()


@pytest.mark.usefixtures("_address")
class TestRay(ExecutorContract):
    @pytest.fixture
    def _address(self, cluster):
        self.address = cluster.address

    def make(self, workers, **options):
        return RayExecutor(workers, address=self.address, **options)


def made(cluster, workers=2, **options):
    return RayExecutor(workers, address=cluster.address, imports=IMPORTS, **options)


def test_a_node_that_is_killed_costs_nothing(cluster):
    cluster.add()
    jobs = [SlowJob(seconds=0.02 * (i % 3), seed=i) for i in range(120)]
    seen = []

    def progress(done, total, row):
        seen.append(row["seed"])
        if done == 40:
            cluster.kill()

    batch = made(cluster, 3).run(jobs, progress)
    assert batch.status == "complete"
    assert sorted(seen) == list(range(120))  # nothing lost, nothing twice
    assert to_json(batch.rows) == to_json(LocalExecutor(1, imports=IMPORTS).run(jobs).rows)


def test_who_kills_its_node_is_given_up_and_the_others_are_not(cluster, tmp_path):
    folders = [tmp_path / name for name in ("once", "always")]
    for folder in folders:
        folder.mkdir()
    once, always = (
        NodeKiller(marks=folder, times=times) for folder, times in zip(folders, (1, 9), strict=True)
    )
    batch = made(cluster).run([PidJob(), once, PidJob(), always, PidJob()])
    assert [row["status"] for row in batch.rows] == ["ok", "ok", "ok", "crashed", "ok"]
    assert f"lost {shift.ATTEMPTS} times" in batch.rows[3]["error"]["what"]
    assert len(list(folders[1].iterdir())) == shift.ATTEMPTS


def test_what_jobs_share_is_sent_once(cluster, monkeypatch):
    put = []
    real = shift.ray.put
    monkeypatch.setattr(shift.ray, "put", lambda value: put.append(len(value)) or real(value))
    numbers = tuple(range(20_000))
    jobs = [HeavyJob(numbers=numbers, own=i) for i in range(6)]
    rows = made(cluster).run(jobs).rows
    assert [row["sum"] for row in rows] == [sum(numbers) + i for i in range(6)]
    assert len(put) == 1


def test_a_file_that_a_node_does_not_see_is_sent_to_it(cluster):
    path = Path("/proc/self/cmdline")  # every process sees another one there
    (row,) = made(cluster, 1).run([ReadJob(path=path)]).rows
    assert row == {"status": "ok", "path": str(path), "size": len(path.read_bytes())}
    assert not list(Path("/tmp").glob(f"agent-gym-{os.getuid()}-{os.getpid()}-*"))


def test_a_file_that_nobody_has_is_an_error_before_anything_starts(cluster, tmp_path):
    with pytest.raises(DataError, match="not there"):
        made(cluster).run([ReadJob(path=tmp_path / "absent")])


def test_a_node_with_other_code_is_refused(cluster, monkeypatch):
    real = adapter.identity
    monkeypatch.setattr(adapter, "identity", lambda names: real(names) | {"numpy": "0.0"})
    with pytest.raises(ConfigError, match="other code") as caught:
        made(cluster).run([PidJob()])
    assert "numpy is" in str(caught.value)


def test_a_node_that_does_not_share_the_folder_of_results_is_refused(cluster, monkeypatch):
    @contextmanager
    def elsewhere(jobs, clock):
        yield ["/nowhere/results/token"]

    monkeypatch.setattr(adapter, "tokens", elsewhere)
    with pytest.raises(ConfigError, match="does not see a folder") as caught:
        made(cluster).run([PidJob()])
    assert "/nowhere/results" in str(caught.value)


def test_a_cluster_that_has_no_station_in_time_says_so(cluster):
    with pytest.raises(ConfigError, match="no station could start") as caught:
        made(cluster, start_timeout_s=0.001).run([PidJob()])
    assert "ray status" in str(caught.value)


def test_ctrl_c_keeps_what_is_done_and_marks_the_rest(cluster, tmp_path):
    mark = tmp_path / "mark"
    jobs = [PidJob(), MarkJob(path=str(mark)), PidJob(), PidJob()]

    def interrupt():
        clock = SystemClock()
        while not (mark.exists() and mark.read_text().endswith("\n")):
            clock.sleep_s(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    thread = Thread(target=interrupt)
    thread.start()
    try:
        batch = made(cluster, 1).run(jobs)
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
    assert batch.status == "partial"
    assert [row["status"] for row in batch.rows] == ["ok", "interrupted", "cancelled", "cancelled"]
    wait_until_gone(int(mark.read_text()))


def wait_until_gone(pid):
    clock = SystemClock()
    end_s = clock.monotonic_s() + 60.0
    while Path(f"/proc/{pid}").exists():
        assert clock.monotonic_s() < end_s, "the process of a job was left behind"
        clock.sleep_s(0.05)


def test_an_address_of_ray_client_is_refused(monkeypatch):
    monkeypatch.setattr(connection.ray, "is_initialized", lambda: False)
    with pytest.raises(ConfigError, match="Ray Client"):
        connection.connect("ray://127.0.0.1:10001", 1)
