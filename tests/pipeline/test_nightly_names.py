"""Names that are paths, dates that are none, and what code is called."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightly_samples import asked, clock_at

from agent_gym.core.errors import ConfigError
from agent_gym.pipeline.nightly import Workspace, compare_runs, replay_seed
from agent_gym.pipeline.nightly.code_identity import code_identity, sources_hash
from agent_gym.pipeline.nightly.git_state import git_state
from agent_gym.pipeline.nightly.prepare import prepare
from agent_gym.pipeline.nightly.times import run_date
from agent_gym.pipeline.nightly.workspace import checked_id, inside

BAD = (
    "../x",
    "/etc/passwd",
    "%2e%2e",
    "a\0b",
    "a#/../b",
    "?..",
    "x" * 129,
    "\uff52un",
    "CON",
    "nul.json",
    "..",
    ".",
    "",
    "-rf",
    "a/b",
    "a\\b",
    "a\n",
    "a.",
)


@pytest.mark.parametrize("name", BAD)
def test_an_id_that_is_a_path_is_refused(tmp_path, name):
    for noun in ("run", "baseline"):
        with pytest.raises(ConfigError):
            inside(tmp_path, name, noun)
    with pytest.raises(ConfigError):
        replay_seed(Workspace(tmp_path), name, "s", 1)
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=40))
def test_whatever_passes_stays_inside(name):
    try:
        checked_id(name, "run")
    except ConfigError:
        return
    assert "/" not in name
    assert name.isascii()
    assert not name.startswith(".")


def test_a_link_out_of_the_workspace_is_refused(tmp_path):
    workspace = Workspace(tmp_path / "home")
    workspace.runs.mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (workspace.runs / "r1").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match="leads out"):
        workspace.run_folder("r1")


def test_a_run_that_does_not_exist_names_those_that_do(tmp_path):
    (tmp_path / "reports/runs/r7").mkdir(parents=True)
    with pytest.raises(ConfigError, match="r7"):
        compare_runs(Workspace(tmp_path), "r8", "r9", None)


@pytest.mark.parametrize("date", ["2026-02-30", "yesterday", "20260101", "2026-1-1", ""])
def test_a_date_that_is_none_is_refused(date):
    with pytest.raises(ConfigError, match="date"):
        run_date(0, date)


def test_code_is_known_by_every_byte(tmp_path, monkeypatch):
    package = tmp_path / "mine"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("x = 1\n")
    (package / "deep" / "config.json").write_text("{}")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = sources_hash("mine")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "a.pyc").write_text("cache")
    assert sources_hash("mine") == first
    (package / "deep" / "config.json").write_text("{ }")
    second = sources_hash("mine")
    (package / "deep" / "config.json").rename(package / "deep" / "other.json")
    assert len({first, second, sources_hash("mine")}) == 3
    with pytest.raises(ConfigError, match="cannot be found"):
        code_identity(("there_is_no_such_package",))


def git(folder, *words):
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def test_the_state_of_a_checkout_is_read_without_git(tmp_path):
    package = tmp_path / "repo" / "src" / "mine"
    package.mkdir(parents=True)
    assert git_state(package).commit is None
    (package / "a.py").write_text("a = 1\n")
    (package.parent / "b.txt").write_text("b\n")
    root = tmp_path / "repo"
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    state = git_state(package)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    )
    assert (state.commit, state.dirty) == (head.stdout.strip(), False)
    (package.parent / "b.txt").write_text("other\n")
    assert not git_state(package).dirty  # not a file of the package
    (package / "new.py").write_text("n = 1\n")
    assert git_state(package).dirty
    git(root, "add", ".")
    assert git_state(package).dirty  # staged is not committed
    git(root, "commit", "-q", "-m", "second")
    assert not git_state(package).dirty
    (package / "a.py").write_text("a = 2\n")
    assert git_state(package).dirty
    git(root, "checkout", "-q", "--", ".")
    git(root, "pack-refs", "--all")
    assert len(git_state(package).commit) == 40
    (package / "a.py").unlink()
    assert git_state(package).dirty
    (root / ".git" / "index").write_bytes(b"DIRC garbage")
    assert git_state(package).dirty


def test_two_runs_of_one_second_have_two_names():
    options, clock = asked(), clock_at()
    first = prepare(options, clock).run_id
    assert prepare(options, clock).run_id == first
    clock.sleep_s(0.001)
    assert prepare(options, clock).run_id != first
