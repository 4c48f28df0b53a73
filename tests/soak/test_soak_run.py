"""The soak itself, short: every kind of fault once on each database, and nothing is violated.

Nothing here depends on how fast the machine is. Faults go on for half a minute, and then until each
kind was done; a machine on which that cannot be had says which kinds are missing, and fails.
"""

import json
import subprocess
import sys

import pytest

from tests.rollouts.postgres import binaries
from tests.soak.actors import ROOT
from tests.soak.plan import KINDS

pytestmark = pytest.mark.alone
HALF_A_MINUTE_S = 30
PATIENCE_S = 400


def played(words):
    """Play the soak; if the test is cut short, it is told to end and clears up after itself."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.soak", *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            _, said = process.communicate()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(120)
    return process.returncode, said


@pytest.mark.timeout(1_200)  # most of it is the start of processes, and machines may be busy
@pytest.mark.parametrize("database", KINDS)
def test_a_minute_of_everything_at_once(tmp_path, database):
    if database == "postgres" and binaries() is None:
        pytest.skip("PostgreSQL is not installed")
    words = ["--database", database, "--seconds", str(HALF_A_MINUTE_S), "--seed", "1"]
    words += ["--patience", str(PATIENCE_S), "--desk", str(tmp_path / "d"), "--out", str(tmp_path)]
    code, said = played(words)
    assert (tmp_path / "soak.json").exists(), said[-3000:]
    (act,) = json.loads((tmp_path / "soak.json").read_text(encoding="utf-8"))["acts"]
    assert act["not_done"] == []
    assert act["violations"] == []
    assert act["problems"] == []
    assert set(act["faults"]) == set(KINDS[database])
    assert act["looks_at_database"] > 0
    assert act["looks_at_service"] > 0
    assert act["figures"]["acknowledged_steps"] > 0
    assert act["figures"]["ticks"] > 0
    assert code == 0
