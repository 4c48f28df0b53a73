"""Settings that all tests share."""

import multiprocessing
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.reliability.registry import key_of, numbers_of_tests

settings.register_profile(
    "shared",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("shared")

# The server from which worker processes are forked has these ready; each would import them anew.
multiprocessing.set_forkserver_preload(
    [
        "agent_gym.pipeline.automation.recording",
        "agent_gym.pipeline.nightly.crew",
        "agent_gym.training.rl.jobs",
    ]
)

# Read as doctests they would be imported a second time, under another name, and register twice.
collect_ignore_glob = ["*_samples.py", "*/tiny_scenarios.py"]

HEAVY = frozenset((Path(__file__).parent / "heavy.txt").read_text().split())
CASES = numbers_of_tests()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what takes long, and what shows a case of docs/reliability.md."""
    for item in items:
        key = key_of(item.nodeid)
        if key in HEAVY:
            item.add_marker("heavy")
        for number in CASES.get(key, ()):
            item.add_marker(pytest.mark.case(number))


CLUSTER = "scripts.ray_cluster"
os.environ.setdefault("RAY_AUTH_MODE", "token")  # must be said before Ray is imported
os.environ.setdefault("RAY_AUTH_TOKEN", "of-the-tests-alone-" + "0" * 32)


@pytest.fixture(scope="session")
def cluster():
    """Return one Ray cluster for all tests in a process."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'agent-gym[ray]'")
    made = import_module(CLUSTER).SmallCluster()
    yield made
    made.close()


DASHBOARD = "tests.apps.dashboard_samples"  # loads much, so only those who need it do so


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Return one seeded service for all tests of the dashboard in a process."""
    made = import_module(DASHBOARD).Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def reader(site, tmp_path_factory):
    """Return one browser that has shown its token, for all tests of the dashboard."""
    made = import_module(DASHBOARD).Reader(site, tmp_path_factory.mktemp("browser"))
    made.login()
    yield made
    made.close()
