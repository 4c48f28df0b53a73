"""The cage of a user without rights: built by user namespaces, tried by the same prober."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from agent_gym.agents.doors import cage, probe_program
from agent_gym.agents.doors.isolation import NEEDS, SYSTEM, Limits
from agent_gym.agents.doors.probe import MOST_DISK_MB, MOST_PROCESSES, probe_words, reached_level

PYTHON, NOBODY = "/usr/bin/python3", 65_534


@pytest.fixture
def place():
    """A folder that everybody may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="agent-gym-nobody-"))
    folder.chmod(0o755)
    for module in (cage, probe_program):
        shutil.copy(str(module.__file__), folder)
    (folder / "secret").write_text("planted")
    own = folder / "own"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(not Path(PYTHON).exists(), reason="nobody may run the interpreter of the tests")
@pytest.mark.parametrize("namespaces", [True, False])
def test_a_user_without_rights_builds_a_cage(place, namespaces):
    status_r, status_w = os.pipe()
    life_r, life_w = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as server:
        tried = [PYTHON, str(place / "probe_program.py")]
        spec = {
            "argv": [*tried, *probe_words(server.getsockname()[1], str(place))],
            "env": {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
            "disk_mb": MOST_DISK_MB,
            "folder": str(place / "own"),
            "readable": [*SYSTEM, str(place / "probe_program.py")],
            "limits": Limits(processes=MOST_PROCESSES, memory_mb=512).as_rlimits(),
            "needs": NEEDS["limits"],
            "namespaces": namespaces,
            "number": 1,
            "status": status_w,
            "life": life_r,
        }
        done = subprocess.run(
            [PYTHON, "-I", "-S", str(place / "cage.py"), json.dumps(spec)],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            env={},
            pass_fds=(status_w, life_r),
            capture_output=True,
            timeout=60,
            check=False,
        )
    for handle in (status_w, life_r, life_w):
        os.close(handle)
    told = json.loads(os.read(status_r, 65_536).splitlines()[0])["parts"]
    os.close(status_r)
    attempts = json.loads(done.stdout)
    if namespaces and told.get("user") != "ok":
        pytest.skip(f"this system gives users no namespaces: {told['user']}")
    walls = all(told.get(part) == "ok" for part in NEEDS["sealed"])
    assert (reached_level(attempts) == "sealed") == walls, (told, attempts)
    if namespaces:
        assert told["network"] == "ok"
        assert attempts["loopback"] == attempts["interfaces"] == "held"
    else:
        assert attempts["loopback"] != "held"
    assert attempts["environment"] == attempts["memory"] == attempts["processes"] == "held"
