"""Case 5: no name leads out of its folder, whoever says it and by whichever door."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.apps.api import ServiceSettings, create_app
from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.core.errors import AgentGymError, ConfigError
from agent_gym.pipeline.automation.job import TrainingJob
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.rollouts.database.step_files import StepFiles
from tests.reliability.disk_points import FULL

pytestmark = pytest.mark.case(5)
NAMES = [
    "..",
    "../secret",
    "../../secret.json",
    "a/../../secret",
    "/etc/passwd",
    "~/secret",
    "file:///etc/passwd",
    "%2e%2e%2fsecret",
    "..%2fsecret",
    "..\\secret",
    "a\x00b",
    "a#/../secret",
    "a?/../secret",
    "a;../secret",
    "\u2024\u2024/secret",  # one dot leaders
    "\uff0e\uff0e\uff0fsecret",  # full width
    "a\u202ebc",
    "CON",
    "nul.json",
    "com1",
    ".hidden",
    "a.",
    " a",
    "a\n",
    "x" * 5_000,
    "",
]
CANARY = "canary-9c41"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of the service, with secrets all around it."""
    root = tmp_path_factory.mktemp("outside")
    for name in ("secret", "secret.json", "secret.lzma"):
        (root / name).write_text(CANARY)
    return root


@pytest.fixture(scope="module")
def client(place):
    folder = place / "home"
    folder.mkdir()
    _, text = TokenFile(folder / FILE).add("all", "admin")
    app = create_app(ServiceSettings(folder=folder))
    head = {"authorization": f"Bearer {text}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=head) as made:
        yield made


ROUTES = (
    "/api/training/{}",
    "/api/models/{}",
    "/api/trajectories/{}",
    "/api/trajectories/{}/steps",
    "/api/benchmarks/{}",
    "/api/agents/{}",
    "/a2a/sessions/{}",
)
WISHES = (
    ("/a2a/sessions", "snapshot"),
    ("/api/admin/models/deploy", "model"),
    ("/api/admin/agents", "agent_id"),
    ("/api/admin/training/trigger", "job_id"),
)


def around(place):
    return {str(path): path.read_bytes() for path in place.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", NAMES if FULL else NAMES[1::3], ids=ascii)
def test_no_name_of_a_request_leads_outside(client, place, name):
    before = around(place)
    for route in ROUTES:
        for said in {name, quote(name, safe="")}:
            answer = client.get(route.format(quote(said, safe="")))
            assert 400 <= answer.status_code < 500 or name == "", (route, said, answer.status_code)
            assert CANARY not in answer.text
    for route, field in WISHES:
        answer = client.post(route, json={field: name})
        assert answer.status_code < 500, (route, answer.text)
        assert CANARY not in answer.text
    assert around(place) == before
    assert sorted(path.name for path in place.iterdir()) == sorted(
        ["home", *(path.rpartition("/")[2] for path in before)]
    )


TAKERS = {
    "run": lambda root, name: Workspace(root).run_folder(name),
    "baseline": lambda root, name: Workspace(root).baseline_folder(name),
    "steps": lambda root, name: StepFiles.within(root).path(name),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_no_name_becomes_a_path_outside(tmp_path, taker, name):
    with pytest.raises(AgentGymError):
        TAKERS[taker](tmp_path / "home", name)
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "home"])


@settings(max_examples=100, deadline=None)
@given(name=st.text(max_size=30) | st.sampled_from(NAMES))
def test_what_is_taken_stays_inside(tmp_path_factory, name):
    root = tmp_path_factory.getbasetemp() / "inside"
    for taker in TAKERS.values():
        try:
            path = taker(root, name)
        except AgentGymError:
            continue
        assert path.resolve().is_relative_to(root.resolve())
        assert len(path.relative_to(root).parts) <= 4


@pytest.mark.parametrize("name", [one for one in NAMES if one not in ("CON", "com1")], ids=ascii)
def test_a_job_has_a_plain_name(name):
    with pytest.raises((ConfigError, ValueError)):
        TrainingJob(job_id=name)
