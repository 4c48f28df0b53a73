"""Cases 21 and 47: neither the machine's settings nor its clock change a byte of a result."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_gym.core.clock import HOUR_NS
from agent_gym.pipeline.nightly.times import iso, nanoseconds, run_date
from tests.reliability.disk_points import FULL

ROOT = Path(__file__).parents[2]
SCRIPT = "from agent_gym.apps.cli.main import main; main()"
SETTINGS = {
    "hash seed": {"PYTHONHASHSEED": "1"},
    "another hash seed": {"PYTHONHASHSEED": "77"},
    "zone": {"TZ": "Pacific/Chatham"},
    "locale": {"LC_ALL": "C", "LANG": "tr_TR.UTF-8"},
    "threads": {"OMP_NUM_THREADS": "2", "NUMBA_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
}


def digest_under(folder, settings):
    """Run a backtest with these settings and return the hash of all that it wrote."""
    plain = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "TZ": "UTC", "LANG": "C.UTF-8"}
    words = ["backtest", "--agent", "rules/random", "--market", "synthetic/btc-1h"]
    words += ["--bars", "400", "--seed", "3", "--out", "out", "--report", "out/page.html"]
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        env=plain | {"HOME": str(folder)} | settings,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    files = sorted(path for path in (folder / "out").rglob("*") if path.is_file())
    assert len(files) >= 4
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.case(47)
def test_no_setting_of_the_machine_changes_a_byte(tmp_path):
    plain = digest_under(tmp_path / "plain", {})
    at_once = {name: value for settings in SETTINGS.values() for name, value in settings.items()}
    for name, settings in (SETTINGS if FULL else {"all at once": at_once}).items():
        assert digest_under(tmp_path / name, settings) == plain, name


@pytest.fixture
def zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.case(21)
@pytest.mark.parametrize("day", ["2024-02-29", "2023-12-31", "2024-03-31", "2024-10-27"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Apia"], indirect=True)
def test_a_night_has_its_date_in_utc_whatever_the_zone(zone, day):
    begin = nanoseconds(f"{day}T00:00:00Z")
    found = {run_date(begin + hours * HOUR_NS, None) for hours in range(24)}
    assert found == {day}
    assert iso(begin) == f"{day}T00:00:00Z"
