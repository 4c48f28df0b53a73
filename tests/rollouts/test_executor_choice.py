"""Which executor is made, and what is said if it cannot be."""

import subprocess
import sys

import pytest
from executor_samples import episode
from rollout_samples import HeavyJob, PidJob, ReadJob

from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.choice import ADAPTER, chosen, executing, make_executor
from agent_gym.rollouts.cluster.code import difference, identity
from agent_gym.rollouts.cluster.parcels import LARGE, Parcels, files_of, whole
from agent_gym.rollouts.cluster.shelf import Shelf, clear
from agent_gym.rollouts.executor import LocalExecutor
from agent_gym.rollouts.hands import job_environment


def test_this_machine_unless_something_else_is_said(monkeypatch):
    monkeypatch.delenv("AGENT_GYM_EXECUTOR", raising=False)
    assert chosen() == "local"
    assert isinstance(make_executor(1), LocalExecutor)
    monkeypatch.setenv("AGENT_GYM_EXECUTOR", "rai")
    with pytest.raises(ConfigError, match="rai"):
        make_executor(1)


def test_a_choice_holds_for_a_while(monkeypatch):
    monkeypatch.setenv("AGENT_GYM_EXECUTOR", "local")
    with executing("ray", "head:6379"):
        assert chosen() == "ray"
        assert "AGENT_GYM_EXECUTOR" not in job_environment()  # a job within a job stays there
    assert chosen() == "local"
    with pytest.raises(ConfigError, match="only a cluster has an address"), executing(None, "h:1"):
        pass
    with pytest.raises(ConfigError, match="dask"), executing("dask", None):
        pass


def test_without_ray_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    for name in [each for each in sys.modules if each.startswith(ADAPTER.rpartition(".")[0])]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match="not installed") as caught:
        make_executor(1, kind="ray")
    assert "agent-gym[ray]" in str(caught.value)


def test_ray_is_not_loaded_unless_it_is_asked_for():
    asked = "import sys, agent_gym.rollouts, agent_gym.apps.cli.run; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


def test_secrets_of_a_cluster_do_not_reach_jobs(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    assert "secret" not in job_environment().values()


def test_large_common_fields_are_taken_out_and_put_back():
    numbers = tuple(range(LARGE))
    jobs = [HeavyJob(numbers=numbers, own=1), HeavyJob(numbers=numbers, own=2), PidJob()]
    parcels = Parcels(jobs)
    assert len(parcels.shared) == 1
    assert len(parcels.message(0)) < 200
    assert parcels.missing(2) == {}
    alone = Parcels(jobs[:1])
    assert alone.shared == {}
    assert whole(parcels.message(0), {"numbers": list(numbers)}) == alone.message(0)


def test_files_keep_their_neighbours_and_rows_their_paths(tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(name)
    files = files_of([ReadJob(path=folder / "a"), ReadJob(path=folder / "b")])
    message = Parcels([ReadJob(path=folder / "a")]).message(0)
    assert Shelf("seen", files).missing() == []
    assert Shelf("seen", files).here(message) == message
    contents = {files[str(folder / name)][""]: name.encode() for name in "ab"}
    for name in ("a", "b"):
        (folder / name).unlink()
    shelf = Shelf("choice-test", files)
    assert sorted(shelf.missing()) == sorted(contents)
    for key, content in contents.items():
        shelf.put(key, content)
    shelf.ready()
    assert Shelf("choice-test", files).missing() == []  # once on a node
    there = shelf.here(message)
    assert there != message
    assert shelf.as_sent(there) == message
    place = shelf._place(str(folder / "a"))
    assert place.read_text() == "a"
    assert (place.parent / "b").read_text() == "b"
    clear("choice-test")
    assert not place.exists()


def test_a_difference_of_code_is_named():
    here = identity(["rollout_samples", "no_such_module"])
    assert here["module no_such_module"] == "absent"
    assert len(here["module rollout_samples"]) == 32
    assert difference(here, here) is None
    assert "agent_gym source" in difference(here, here | {"agent_gym source": "0"})


def test_an_episode_that_is_played_again_replaces_its_store(tmp_path):
    job = episode("e", record=tmp_path)
    first = job.run()
    with pytest.raises(StoreError, match="already"):
        job.run()
    assert job.again().run() == first
