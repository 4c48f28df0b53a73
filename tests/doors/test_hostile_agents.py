"""Agents that mean harm end as recorded failures: nothing hangs, leaks or stays behind."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from agent_gym.agents.doors.isolation import Isolation, start_caged
from agent_gym.agents.doors.probe import probe
from agent_gym.agents.doors.words import DoorError
from agent_gym.core import Ref, make
from agent_gym.core.errors import ConfigError
from tests.doors.door_samples import alive, hostile, pipe_ref, played, start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the cage is Linux's")


@pytest.fixture(scope="module")
def reached():
    return probe().level


def cages():
    return set(Path(tempfile.gettempdir()).glob("agent-gym-cage-*"))


DEEDS = {
    "fork bomb": ("while True: os.fork()", ("in time", "no longer", "ended", "more than", "JSON")),
    "detached child": (
        """
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(600)
                os._exit(0)
        sys.exit(7)
        """,
        ("process ended",),
    ),
    "memory bomb": ("held = [bytearray(1 << 28) for _ in range(1000)]", ("process ended",)),
    "endless output": (
        "while True: sys.stdout.write('x' * 65536 + chr(10))",
        ("more than", "long"),
    ),
    "a line of 100 MB": ("sys.stdout.write('x' * 100_000_000)", ("too long",)),
    "endless notes": ("while True: sys.stderr.write('y' * 65536)", ("in time",)),
    "hang": ("time.sleep(600)", ("in time",)),
    "busy hang": ("while True: pass", ("in time",)),
    "death": ("os.kill(os.getpid(), 9)", ("process ended",)),
    "quiet end": ("sys.exit(0)", ("process ended",)),
    "closed output": ("os.close(1); time.sleep(600)", ("process ended",)),
    "nonsense": ("print('buy!', flush=True)", ("JSON",)),
    "deep nonsense": ("print('[' * 50000, flush=True)", ("JSON",)),
    "another id": ("print(json.dumps({'id': 99, 'target': 1}), flush=True)", ("another question",)),
    "two answers": (
        """
        one = json.dumps({"id": question["id"], "target": 0.0}) + chr(10)
        sys.stdout.write(one + one)
        sys.stdout.flush()
        """,
        ("more than",),
    ),
    "not a number": ("answer(question, target='NaN')", ("no number",)),
    "true is no number": ("answer(question, target=True)", ("no number",)),
    "infinite": ("answer(question, target=float('inf'))", ("JSON",)),
    "too large": (
        "print('{\"id\": %d, \"target\": 1%s}' % (question['id'], '0' * 400), flush=True)",
        ("no number", "JSON"),
    ),
    "no decision": ("answer(question)", ("either a target",)),
    "an error of its own": ("answer(question, error='I am lost')", ("gave up",)),
    "exception": ("raise ValueError('planted')", ("process ended",)),
}


@pytest.mark.parametrize("name", DEEDS)
def test_harm_ends_as_a_recorded_failure(name, tmp_path):
    deed, expected = DEEDS[name]
    script, before = hostile(tmp_path, deed), cages()
    result = played(pipe_ref(script, limits={"memory_mb": 512, "processes": 16}))
    assert result.status == "error"
    assert result.error is not None
    assert result.error["error"] == "DoorError"
    assert any(word in str(result.error["what"]) for word in expected), result.error
    assert "door/pipe, decision 0" in str(result.error["where"])
    assert alive(script) == []
    assert cages() <= before


def test_a_second_answer_is_not_taken_for_the_next(tmp_path):
    deed = "answer(question, target=0.0); time.sleep(0.2); answer(question, target=1.0)"
    result = played(pipe_ref(hostile(tmp_path, deed)))
    assert (result.status, result.error["error"]) == ("error", "DoorError")
    told = ("another question", "before it has been asked", "more than it was asked")
    assert any(word in str(result.error["what"]) for word in told), result.error
    assert "decision 1" in str(result.error["where"])


def test_what_it_said_last_is_told(tmp_path):
    result = played(pipe_ref(hostile(tmp_path, "raise ValueError('planted')")))
    assert "ValueError: planted" in str(result.error["found"])
    assert "exit status 1" in str(result.error["found"])


def test_memory_is_limited_by_the_system(tmp_path):
    script = hostile(tmp_path, "held = [bytearray(1 << 28) for _ in range(1000)]")
    result = played(pipe_ref(script, limits={"memory_mb": 512}))
    assert "MemoryError" in str(result.error["found"])


def test_processor_time_is_limited(tmp_path):
    script = hostile(tmp_path, "while True: pass")
    result = played(pipe_ref(script, limits={"cpu_s": 1}, answer_s=60))
    assert "process ended" in str(result.error["what"])
    assert "signal" in str(result.error["found"]) or "killed" in str(result.error["found"])


def test_a_large_file_is_cut_off(tmp_path):
    deed = "open(os.environ['TMPDIR'] + '/f', 'wb').write(b'x' * (3 << 20))"
    result = played(pipe_ref(hostile(tmp_path, deed), limits={"file_mb": 1}))
    assert result.status == "error"
    assert "process ended" in str(result.error["what"])


def test_forks_are_bounded(tmp_path):
    deed = """
    n = 0
    try:
        while n < 500:
            if os.fork() == 0:
                time.sleep(600)
            n += 1
    except BlockingIOError:
        pass
    answer(question, error=f"forked {n}")
    """
    script = hostile(tmp_path, deed)
    result = played(pipe_ref(script, limits={"processes": 16}))
    count = int(str(result.error["found"]).strip("'").split()[-1])
    assert 0 < count <= 16
    assert alive(script) == []


def test_the_environment_holds_no_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "planted-secret")
    deed = """
    seen = json.dumps(dict(os.environ))
    for pid in ["self", "1", str(os.getppid()), *range(2, 5000)]:
        try:
            seen += open(f"/proc/{pid}/environ", errors="replace").read()
        except OSError:
            pass
    answer(question, error="leaked" if "planted-secret" in seen else "clean")
    """
    result = played(pipe_ref(hostile(tmp_path, deed), answer_s=20))
    assert "clean" in str(result.error["found"])


def test_loopback_cannot_be_reached(tmp_path, reached):
    if reached not in {"no-network", "sealed"}:
        pytest.skip(f"this system only reaches {reached}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        deed = f"""
        import socket
        socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), timeout=1)
        """
        result = played(pipe_ref(hostile(tmp_path, deed)))
        with pytest.raises(TimeoutError):
            server.accept()
    assert result.status == "error"
    assert "Error" in str(result.error["found"])


@pytest.mark.parametrize("inside", [True, False])
def test_it_writes_in_its_own_folder_alone(tmp_path, reached, inside):
    if reached != "sealed":
        pytest.skip(f"this system only reaches {reached}")
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    where = "os.environ['TMPDIR']" if inside else repr(str(outside))
    deed = f"open({where} + '/mark', 'w').write('x'); answer(question, error='written')"
    result = played(pipe_ref(hostile(tmp_path, deed)))
    if inside:
        assert "written" in str(result.error["found"])
    else:
        assert "PermissionError" in str(result.error["found"])
        assert list(outside.iterdir()) == []


def test_it_cannot_read_files_of_others(tmp_path, reached):
    if reached != "sealed":
        pytest.skip(f"this system only reaches {reached}")
    secret = tmp_path / "secret"
    secret.write_text("planted")
    deed = f"open({str(secret)!r}).read()"
    result = played(pipe_ref(hostile(tmp_path, deed)))
    assert "PermissionError" in str(result.error["found"])
    script = hostile(tmp_path, deed, answers=True)
    allowed = played(pipe_ref(script, reads=[str(secret)]))
    assert allowed.status == "ok"


def test_below_the_required_level_nothing_runs(tmp_path):
    mark = tmp_path / "ran"
    script = tmp_path / "agent.py"
    script.write_text(f"open({str(mark)!r}, 'w')")
    tmp_path.chmod(0o777)
    with pytest.raises(DoorError) as refused:
        start_caged(("python", str(script)), Isolation(require="sealed"), namespaces=False)
    assert "must not run" in str(refused.value)
    assert "expected level sealed" in str(refused.value)
    assert not mark.exists()
    assert alive(script) == []


def test_the_required_level_is_asked_of_every_start(tmp_path, reached):
    script = hostile(tmp_path, "pass", answers=True)
    result = played(pipe_ref(script, require="sealed"))
    assert result.status == ("ok" if reached == "sealed" else "error")


def test_without_namespaces_nothing_stays_either(tmp_path):
    script = tmp_path / "agent.py"
    script.write_text(
        "import os, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid(); time.sleep(600)\n"
        "time.sleep(600)\n"
    )
    caged = start_caged(("python", str(script)), Isolation(require="limits"), namespaces=False)
    caged.end()
    assert alive(script) == []
    assert not caged.folder.exists()


def test_programs_die_with_the_gym(tmp_path):
    script = hostile(tmp_path, "time.sleep(600)")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        start_caged(("python", str(script)), Isolation())
        os.write(writer, b"x")
        os.kill(os.getpid(), 9)
    os.read(reader, 1)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    assert alive(script) == []


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"command": ""}, "name a program"),
        ({"command": "no-such-program-anywhere x"}, "no such program"),
        ({"command": "python x.py", "require": "perfect"}, "require"),
    ],
)
def test_a_wrong_command_is_told(params, said):
    with pytest.raises(ConfigError, match=said):
        make("agent", Ref(use="door/pipe", params=params)).reset(start())
