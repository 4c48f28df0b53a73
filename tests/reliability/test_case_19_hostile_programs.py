"""Cases 12 and 16 to 19: a program that wants to win by other means than trading achieves nothing.

Every folder it goes for is open to everybody by its rights: what holds it back is the cage alone.
"""

from __future__ import annotations

import json
import os
import socket
import sys

import numpy as np
import pytest

from agent_gym.agents.doors.probe import probe
from agent_gym.agents.team import Independent
from agent_gym.core import Seeds, make
from agent_gym.core.types import Role
from agent_gym.envs import ContinuousTargets, MarketConfig, MarketWorld
from agent_gym.rollouts import MemorySink, run_episode
from tests.doors.door_samples import alive, hostile, pipe_ref, played
from tests.samples import random_bars

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the cage is Linux's")
PATIENT = {"start_s": 300.0, "answer_s": 200.0}
SEALED = {"require": "sealed"} | PATIENT
TRY = """import ctypes, signal, socket
won = []
def attempt(name, deed):
    try:
        deed()
        won.append(name)
    except BaseException:
        pass
"""


@pytest.fixture(scope="module", autouse=True)
def _sealed():
    reached = probe()
    if reached.level != "sealed":
        pytest.skip(f"this system only reaches {reached.level}: {reached.escapes}")


@pytest.fixture
def workspace(tmp_path):
    """What an evaluation leaves about, open to everybody."""
    root = tmp_path / "workspace"
    files = {
        "reports/latest.json": '{"status": "ok"}',
        "reports/baseline/current.json": '{"id": "b1"}',
        "snapshots/s1.sealed": "the truth",
        "trajectories/trajectories.db": "rows",
        "other/agent.py": "answer = 42",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in (tmp_path, root, *root.rglob("*")):
        path.chmod(0o777)
    return root


def seen(root):
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def won(tmp_path, deeds, n=3, **params):
    """Play a program that tries these deeds and trades as nobody would notice; return its luck."""
    lines = [f"attempt({name!r}, lambda: {deed})" for name, deed in deeds.items()]
    told = "answer(question, target=0.0, rationale=json.dumps(won))"
    script = hostile(tmp_path, "\n".join([TRY, *lines, told]))
    sink = MemorySink()
    result = played(pipe_ref(script, **(SEALED | params)), n, (sink,))
    assert result.status == "ok", result.error
    assert alive(script) == []
    said = [json.loads(step.decision.rationale) for step in sink.steps]
    return sorted({name for one in said for name in one}), result


@pytest.mark.case(19)
def test_what_is_judged_by_cannot_be_touched(tmp_path, workspace):
    before = seen(workspace)
    root = str(workspace)
    deeds = {
        "report": f"open({root + '/reports/latest.json'!r}, 'w').write('great')",
        "baseline": f"os.unlink({root + '/reports/baseline/current.json'!r})",
        "baseline moved": f"os.rename({root + '/reports/baseline'!r}, {root + '/gone'!r})",
        "truncated": f"os.truncate({root + '/trajectories/trajectories.db'!r}, 0)",
        "rights": f"os.chmod({root!r}, 0)",
        "link": f"os.symlink('/etc/passwd', {root + '/reports/link'!r})",
        "hard link": f"os.link({root + '/snapshots/s1.sealed'!r}, os.environ['TMPDIR'] + '/s')",
        "new file": f"open({root + '/reports/new'!r}, 'w')",
        "times": f"os.utime({root + '/reports/latest.json'!r}, (0, 0))",
    }
    succeeded, _ = won(tmp_path, deeds)
    # Landlock knows nothing of rights and times; they change no byte, and both are its owner's.
    assert set(succeeded) <= {"rights", "times"}
    if "rights" in succeeded:
        workspace.chmod(0o777)
    assert seen(workspace) == before


@pytest.mark.case(19)
def test_who_judges_cannot_be_touched(tmp_path, workspace):
    ours = os.getpid()
    deeds = {
        "signal": f"os.kill({ours}, 0)",
        "signal to the parent": "os.kill(os.getppid(), signal.SIGSTOP)",
        "signal to all": "os.kill(-1, 0)",
        "trace": f"1 / (ctypes.CDLL(None).ptrace(16, {ours}, None, None) == 0)",
        "trace the parent": "1 / (ctypes.CDLL(None).ptrace(16, os.getppid(), None, None) == 0)",
        "memory": f"open('/proc/{ours}/mem', 'r+b')",
        "memory of the parent": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
        "priority": f"os.setpriority(os.PRIO_PROCESS, {ours}, 19)",
        "limits": "__import__('resource').setrlimit(7, (4096, 4096))",
        "root": "os.setuid(0)",
        "mount": "1 / (ctypes.CDLL(None).mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0)",
        "host name": "socket.sethostname('won')",
        "clock": "__import__('time').clock_settime(0, 0)",
        "new root": "os.chroot('/tmp')",
    }
    succeeded, result = won(tmp_path, deeds)
    # The first process of its own namespace ignores what would stop it; nothing else is there.
    assert set(succeeded) <= {"signal to the parent", "signal to all"}
    nothing, plain = won(tmp_path, {})
    assert nothing == []
    assert result.total_reward == plain.total_reward


@pytest.mark.case(18)
def test_nothing_of_others_can_be_looked_at(tmp_path, workspace, monkeypatch):
    monkeypatch.setenv("PLANTED_API_KEY", "canary-5d1f")
    root = str(workspace)
    home = os.path.expanduser("~")  # noqa: PTH111
    deeds = {
        "sealed": f"open({root + '/snapshots/s1.sealed'!r}).read()",
        "another run": f"os.listdir({root!r})",
        "another agent": f"open({root + '/other/agent.py'!r}).read()",
        "home": f"os.listdir({home!r})",
        "accounts": "open('/etc/shadow').read()",
        "names": "open('/etc/passwd').read()",
        "environment": "os.environ['PLANTED_API_KEY']",
        "environment of the gym": f"open('/proc/{os.getpid()}/environ').read()",
        "files of the gym": f"os.listdir('/proc/{os.getpid()}/fd')",
        "inherited": "(os.fstat(3), os.fstat(4))",
        "kernel": "open('/proc/kallsyms').read()",
        "disks": "open('/dev/vda', 'rb').read(1)",
    }
    assert won(tmp_path, deeds)[0] == []


@pytest.mark.case(18)
def test_nobody_can_be_spoken_to(tmp_path):
    name = f"\0agent-gym-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as local,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        local.bind(name)
        local.listen()
        port, other = tcp.getsockname()[1], udp.getsockname()[1]
        deeds = {
            "tcp": f"socket.create_connection(('127.0.0.1', {port}), 1)",
            "udp": f"socket.socket(2, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {other}))",
            "names": "socket.getaddrinfo('example.org', 80)",
            "abstract": f"socket.socket(socket.AF_UNIX).connect({name!r})",
            "metadata": "socket.create_connection(('169.254.169.254', 80), 1)",
            "six": "socket.create_connection(('::1', 80), 1)",
            "raw": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
            "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        }
        assert won(tmp_path, deeds)[0] == []
        with pytest.raises(BlockingIOError):
            udp.recv(1)


@pytest.mark.case(17)
def test_its_disk_ends(tmp_path):
    deeds = {
        "many files": (
            "[open(os.environ['TMPDIR'] + f'/{k}', 'wb').write(b'x' * (1 << 20)) for k in range(9)]"
        ),
        "many names": "[open(os.environ['TMPDIR'] + f'/n{k}', 'wb').close() for k in range(9_000)]",
        "open files": "held.extend(open('/dev/null') for _ in range(1_000))",
    }
    deeds = {"hold": "globals().__setitem__('held', [])"} | deeds
    limits = {"disk_mb": 8, "file_mb": 4, "open_files": 32}
    assert won(tmp_path, deeds, 1, limits=limits)[0] == ["hold"]


@pytest.mark.case(16)
@pytest.mark.parametrize(
    "deed",
    [
        "answer(question, target=0.0, rationale='x' * 60_000_000)",
        "answer(question, target=[0.0] * 1_000_000)",
        "sys.stderr.write('y' * 30_000_000); answer(question)",
    ],
    ids=["words", "orders", "notes"],
)
def test_a_flood_ends_the_episode_and_is_not_kept(tmp_path, deed):
    sink = MemorySink()
    result = played(pipe_ref(hostile(tmp_path, deed), **PATIENT), 5, (sink,))
    assert (result.status, result.error["error"]) == ("error", "DoorError")
    assert len(json.dumps(result.error)) < 4_000
    assert sink.steps == []


@pytest.mark.case(12)
def test_what_comes_later_changes_no_decision_of_a_program(tmp_path):
    """It is sent one row at a time, so what has not happened is nowhere in its process."""
    deed = """
    global kept
    seen = sum((k + 1) * (f or 0.0) for k, f in enumerate(question["features"]))
    kept = globals().get("kept", 0.0) + seen
    answer(question, target=1_000.0 * kept % 2.0 - 1.0)
    """
    script, n, cut = hostile(tmp_path, deed), 20, 12

    def decided(bars):
        config = MarketConfig(
            actions=ContinuousTargets(), episode_bars=n, random_start=False, warmup_bars=0
        )
        sink, team = MemorySink(), {Role("trader"): make("agent", pipe_ref(script, **PATIENT))}
        result = run_episode(MarketWorld(config, bars), Independent(team), "e", Seeds(3), (sink,))
        assert result.status == "ok", result.error
        return [float(step.decision.action) for step in sink.steps]

    plain, other = random_bars(n + 20, 1), random_bars(n + 20, 1)
    for name in ("open", "high", "low", "close"):
        column = getattr(other, name).copy()
        column[cut:] *= 3.0
        object.__setattr__(other, name, column)
    first, second = decided(plain), decided(other)
    assert first[:cut] == second[:cut]
    assert first[cut:] != second[cut:]
    assert len(set(np.round(first, 6))) > 3
