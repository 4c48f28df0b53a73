"""The cron wrapper keeps the exit code, logs, works from anywhere and runs once at a time."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_gym.core.clock import SystemClock

ROOT = Path(__file__).resolve().parents[2]
WRAPPER = ROOT / "scripts" / "run_nightly_agent_gym.sh"
CRON = ROOT / "infrastructure" / "cron" / "nightly_agent_gym.cron"
pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")


@pytest.fixture
def night(tmp_path):
    """Return a function that runs the wrapper with a stand-in for the interpreter."""

    def environment(body: str) -> dict[str, str]:
        stand_in = tmp_path / "python with space"
        stand_in.write_text(f'#!/bin/sh\necho "ran: $*"\n{body}\n')
        stand_in.chmod(0o755)
        return os.environ | {
            "AGENT_GYM_HOME": str(tmp_path / "my results"),
            "AGENT_GYM_PYTHON": str(stand_in),
        }

    def run(body: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [WRAPPER, *words], env=environment(body), cwd=tmp_path, check=False, timeout=60
        )

    run.environment = environment
    run.log = tmp_path / "my results" / "logs" / "agent_gym_nightly.log"
    return run


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 130])
def test_the_exit_code_is_kept_and_logged(night, code):
    assert night(f"exit {code}").returncode == code
    assert f"finished: exit {code}" in night.log.read_text()


def test_words_are_handed_on_as_they_are(night):
    night('for w in "$@"; do echo "<$w>"; done', "--update-baseline", "--reason", "two words; $x")
    text = night.log.read_text()
    assert "<two words; $x>" in text
    assert "<--fail-on-regression>" in text
    assert f"<{ROOT}/scripts/run_agent_gym_nightly.py>" in text


def test_paths_are_those_of_the_caller(night, tmp_path):
    (tmp_path / "mine.json").write_text("found it")
    night('cat "$5"', "--scenarios", "mine.json")
    assert "found it" in night.log.read_text()


def test_what_the_night_says_is_in_the_log_and_logs_are_kept(night):
    night("echo out; echo err >&2")
    night("echo again")
    text = night.log.read_text()
    assert re.search(r"^out$.*^err$.*^again$", text, re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ started", text, re.MULTILINE)) == 2


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock is not installed")
def test_two_at_once_give_5_to_the_second(night, tmp_path):
    gate = tmp_path / "gate"
    body = f'touch "{tmp_path}/up"; while [ ! -e "{gate}" ]; do sleep 0.05; done'
    first = subprocess.Popen([WRAPPER], env=night.environment(body), cwd=tmp_path)
    try:
        wait_for(tmp_path / "up")
        second = subprocess.run(
            [WRAPPER], env=night.environment(body), cwd=tmp_path, check=False, timeout=60
        )
        assert second.returncode == 5
        assert "another nightly is running" in night.log.read_text()
    finally:
        gate.touch()
        assert first.wait(timeout=60) == 0
    assert night("exit 0").returncode == 0  # and the lock is free again


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 77), (signal.SIGINT, 130)])
def test_a_signal_reaches_the_night(night, tmp_path, sent, code):
    body = f"trap 'exit 77' TERM\ntouch '{tmp_path}/up'\nwhile :; do sleep 0.05; done"
    running = subprocess.Popen([WRAPPER], env=night.environment(body), cwd=tmp_path)
    wait_for(tmp_path / "up")
    running.send_signal(sent)
    assert running.wait(timeout=60) == code
    assert f"finished: exit {code}" in night.log.read_text()


def wait_for(path: Path) -> None:
    clock = SystemClock()
    for _ in range(600):
        if path.exists():
            return
        clock.sleep_s(0.05)
    raise AssertionError(f"{path} did not appear")


def test_a_full_log_makes_room(night):
    night.log.parent.mkdir(parents=True)
    night.log.write_bytes(b"x" * 10_485_761)
    night("exit 0")
    assert night.log.stat().st_size < 10_000
    assert night.log.with_name("agent_gym_nightly.log.1").stat().st_size == 10_485_761


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_wrapper_is_plain_shell(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n", WRAPPER], check=False).returncode == 0
    assert os.access(WRAPPER, os.X_OK)
    if shutil.which("shellcheck"):
        assert subprocess.run(["shellcheck", WRAPPER], check=False).returncode == 0


def test_cron_runs_it_at_half_past_one():
    lines = [
        line
        for line in CRON.read_text().splitlines()
        if line and not line.startswith(("#", "S", "A"))
    ]
    assert lines == ['30 1 * * * "$AGENT_GYM/scripts/run_nightly_agent_gym.sh"']


@pytest.mark.parametrize("script", ["run_agent_gym.py", "run_agent_gym_nightly.py"])
def test_the_scripts_are_doors_to_the_commands(script, tmp_path):
    found = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    assert "--scenarios" in re.sub(r"\x1b\[[0-9;]*m", "", found.stdout)
