import json
from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from agent_gym.agents.desk import Outcome, PnLSnapshot, RecentContext, RejectCode
from agent_gym.agents.desk.agent_io import AgentIO, ScriptedAgent
from agent_gym.agents.desk.core_agent import DeskPlan
from agent_gym.agents.desk.flow import FlowState, Transition
from agent_gym.agents.desk.log import CoreAgentLogger, entries, replay, verify
from agent_gym.agents.desk.log_chain import opened, sealed
from agent_gym.agents.desk.redaction import Redactor
from agent_gym.core.clock import ManualClock
from agent_gym.core.errors import StoreError
from agent_gym.core.seeds import Seeds
from tests.agents.desk_samples import NOW, RAW, VIEW

CANARY = "canary-9f8e7d6c5b"
C, S = RejectCode, FlowState


def step(number):
    return Transition(f"s{number}", f"t{number}", S.NEW, S.FILTERED, None, number * 10**9)


def written(folder, lines=8, **more):
    """Write a log of so many lines and return its file."""
    with CoreAgentLogger(folder, ManualClock(), **more) as logger:
        for number in range(lines):
            logger.transition(step(number))
    return logger.path


def played(folder, signals=30, redactor=None, db=None, **more):
    """Let a desk with all kinds of luck handle signals; return its context and its steps."""
    clock, context = ManualClock(int(NOW) * 10**9), RecentContext(db=db)
    io = AgentIO(redactor=redactor)
    leak = {"status": "ok", "payload": {"api_secret": CANARY, "note": f"with {CANARY}"}}
    io.register("strategy", ScriptedAgent([leak, ValueError(f"login {CANARY} failed")] * 9))
    io.register("risk", ScriptedAgent(latency=[20.0, 9_000.0, 20.0, 20.0]))
    io.register("execution", ScriptedAgent())
    with CoreAgentLogger(folder, clock, **more) as logger:
        desk = DeskPlan().open(io=io, context=context, seeds=Seeds(3), logger=logger)
        handled = []
        for number in range(signals):
            clock.sleep_s(7.0)
            now = clock.now_ns() / 1e9
            quotes = {s: msgspec.structs.replace(q, timestamp=now) for s, q in VIEW.quotes.items()}
            view = msgspec.structs.replace(VIEW, now=now, quotes=quotes)
            raw = RAW | {
                "signal_id": f"s{number % 25}",
                "timestamp": now,
                "source": f"bus {CANARY}",
            }
            if number % 6 == 5:
                raw = raw | {"params": {"amount": f"bearer {CANARY}"}}
            if number % 7 == 6:
                raw = raw | {"params": {"amount": 0.1, "api_key": CANARY}}
            handled.append(desk.handle(raw, view, clock))
        desk.note_pnl(PnLSnapshot(now, 1e5, 1e5, 0.0, 0.0), clock)
        desk.settle(Outcome("s1", "win", 0.1, pnl_horizon={"1h": 3.0}, closed_at=now), clock)
    return context, handled


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


# the chain


def test_a_log_as_it_was_written_is_in_order(tmp_path):
    path = written(tmp_path)
    report = verify(tmp_path)
    assert (report.ok, report.lines, report.findings, report.unsealed) == (True, 8, (), 0)
    assert verify(path) == report
    rows = [json.loads(line) for line in lines_of(path)]
    assert [row["seq"] for row in rows] == list(range(8))
    assert all(b["prev_hash"] == a["hash"] for a, b in pairwise(rows))


def test_an_empty_log_is_in_order(tmp_path):
    written(tmp_path, 0)
    assert verify(tmp_path).ok


def changed(lines, at):
    return [*lines[:at], lines[at].replace(b'"signal_id":"s', b'"signal_id":"z'), *lines[at + 1 :]]


def blank_changed(lines, at):
    return [*lines[:at], lines[at].replace(b'":', b'": ', 1), *lines[at + 1 :]]


def payload_changed(lines, at):
    return [*lines[:at], lines[at].replace(b'"before":"new"', b'"before":"old"'), *lines[at + 1 :]]


def hash_changed(lines, at):
    body = lines[at][:-4] + (b"0" if lines[at][-4:-3] != b"0" else b"1") + lines[at][-3:]
    return [*lines[:at], body, *lines[at + 1 :]]


def resealed(lines, at):
    """Change a line and give it a true hash; only the next line, or the head, can tell."""
    entry, _, _ = opened(lines[at][:-1], b"")
    entry = msgspec.structs.replace(entry, signal_id="forged")
    return [*lines[:at], sealed(entry, b"")[0], *lines[at + 1 :]]


def removed(lines, at):
    return [*lines[:at], *lines[at + 1 :]]


def doubled(lines, at):
    return [*lines[: at + 1], *lines[at:]]


def swapped(lines, at):
    if at + 1 == len(lines):
        at -= 1
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


def garbage(lines, at):
    return [*lines[:at], b"hello\n", *lines[at:]]


def cut_after(lines, at):
    return lines[:at]


def torn(lines, at):
    return [*lines[:at], lines[at][:-20]]


TAMPERS = [
    changed, blank_changed, payload_changed, hash_changed, resealed, removed, doubled, swapped,
    garbage, cut_after, torn,
]  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERS, ids=lambda tamper: tamper.__name__)
@pytest.mark.parametrize("at", [0, 3, 7])
def test_every_tampering_is_found(tmp_path, tamper, at):
    path = written(tmp_path)
    path.write_bytes(b"".join(tamper(lines_of(path), at)))
    report = verify(tmp_path)
    assert not report.ok, tamper.__name__
    with pytest.raises(StoreError):
        replay(tmp_path)


@pytest.mark.parametrize(
    ("tamper", "what"),
    [(changed, "changed"), (removed, "removed"), (swapped, "removed"), (garbage, "garbage"),
     (cut_after, "truncated"), (torn, "truncated"), (doubled, "swapped"), (resealed, "changed")],
)  # fmt: skip
def test_what_is_found_is_named_with_its_place(tmp_path, tamper, what):
    path = written(tmp_path)
    path.write_bytes(b"".join(tamper(lines_of(path), 3)))
    first = verify(tmp_path).findings[0]
    assert first.what == what
    assert first.line in {3, 4, 5}


def test_swapped_lines_are_called_so(tmp_path):
    path = written(tmp_path)
    path.write_bytes(b"".join(swapped(lines_of(path), 3)))
    assert "swapped" in {finding.what for finding in verify(tmp_path).findings}


def test_without_its_head_a_log_is_not_trusted(tmp_path):
    path = written(tmp_path)
    path.with_suffix(".head").unlink()
    assert [finding.what for finding in verify(tmp_path).findings] == ["head"]


def test_with_a_key_not_even_a_whole_forgery_passes(tmp_path):
    honest, forged = tmp_path / "a", tmp_path / "b"
    written(honest, key=b"desk")
    written(forged, key=b"guess")
    assert verify(honest, b"desk").ok
    assert not verify(forged, b"desk").ok
    assert not verify(honest).ok


# files


def test_rotation_goes_on_with_the_chain(tmp_path):
    path = written(tmp_path, 50, max_bytes=2_000)
    parts = sorted(tmp_path.glob("core_agent.*.jsonl"))
    assert len(parts) >= 5
    assert verify(tmp_path).ok
    assert verify(tmp_path).lines == 50
    assert [entry.seq for entry in entries(tmp_path)] == list(range(50))
    words = sorted(tmp_path.glob("core_agent*.log"))
    assert sum(len(file.read_text().splitlines()) for file in words) == 50
    parts[2].unlink()
    assert verify(tmp_path).findings[0].what == "removed"
    assert path.exists()


def test_a_log_is_carried_on_when_opened_again(tmp_path):
    written(tmp_path, 5)
    written(tmp_path, 5, max_bytes=1_000)
    written(tmp_path, 5)
    assert verify(tmp_path).ok
    assert verify(tmp_path).lines == 15


def test_a_line_that_a_crash_tore_is_put_aside_and_told(tmp_path):
    path = written(tmp_path, 5)
    last = lines_of(path)[-1]
    with path.open("ab") as file:
        file.write(last[:40])
    assert not verify(tmp_path).ok
    written(tmp_path, 1)
    assert verify(tmp_path).ok
    assert [entry.event for entry in entries(tmp_path)][-2:] == ["log.recovered", "flow.filtered"]
    (aside,) = tmp_path.glob("*.torn*")
    assert aside.read_bytes() == last[:40]


def test_a_crash_before_the_head_is_no_forgery(tmp_path):
    path = written(tmp_path, 5)
    old = path.with_suffix(".head").read_bytes()
    written(tmp_path, 2)
    path.with_suffix(".head").write_bytes(old)
    report = verify(tmp_path)
    assert (report.ok, report.unsealed) == (True, 2)


@pytest.mark.parametrize("tamper", [cut_after, hash_changed, removed])
def test_a_log_whose_end_is_wrong_is_not_written_over(tmp_path, tamper):
    path = written(tmp_path)
    path.write_bytes(b"".join(tamper(lines_of(path), 7)))
    before = path.read_bytes()
    with pytest.raises(StoreError):
        CoreAgentLogger(tmp_path, ManualClock())
    assert path.read_bytes() == before


def test_a_whole_log_that_vanished_is_noticed(tmp_path):
    written(tmp_path).unlink()
    with pytest.raises(StoreError):
        CoreAgentLogger(tmp_path, ManualClock())


def test_two_desks_do_not_share_a_log(tmp_path):
    with (
        CoreAgentLogger(tmp_path, ManualClock()),
        pytest.raises(StoreError, match="another desk"),
    ):
        CoreAgentLogger(tmp_path, ManualClock())
    written(tmp_path, 1)


class FullDisk:
    """A file that takes the first bytes of a line and then no more."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data):
        if self.room < 0:
            raise OSError(28, "No space left on device")
        return self.file.write(data[: self.room])


@pytest.mark.parametrize("room", [-1, 0, 1, 100])
def test_a_full_disk_leaves_whole_lines(tmp_path, room):
    logger = CoreAgentLogger(tmp_path, ManualClock())
    logger.transition(step(0))
    whole, logger._lines = logger._lines, FullDisk(logger._lines, room)
    with pytest.raises(StoreError, match="cannot be written"):
        logger.transition(step(1))
    assert verify(tmp_path).ok
    logger._lines = whole
    logger.transition(step(2))
    logger.close()
    assert [entry.signal_id for entry in entries(tmp_path)] == ["s0", "s2"]
    assert verify(tmp_path).ok


def test_no_name_can_forge_a_line_for_people(tmp_path):
    with CoreAgentLogger(tmp_path, ManualClock()) as logger:
        name = "a\n2026-01-01 #9 flow.filled\x1b[31m"
        logger.transition(Transition(name, "t", S.NEW, S.FILTERED, None, 0))
    (line,) = (tmp_path / "core_agent.log").read_text().splitlines()
    assert "\x1b" not in line
    assert line.startswith("1970-01-01T00:00:00.000+00:00 #0 flow.filtered a\\n2026")
    assert verify(tmp_path).ok


# what a desk writes


def test_replaying_the_log_gives_the_same_context(tmp_path):
    context, _ = played(tmp_path / "log", redactor=Redactor([CANARY]))
    again = replay(tmp_path / "log")
    assert again.digest() == context.digest()
    assert len(again.get_recent_signals()) > 20
    assert again.get_recent_rejections() == context.get_recent_rejections()
    assert again.get_pnl_snapshots() == context.get_pnl_snapshots()
    middle = NOW + 100.0
    assert again.as_of(middle).digest() == context.as_of(middle).digest()


def test_a_context_with_one_record_less_has_another_digest(tmp_path):
    context, _ = played(tmp_path / "log", redactor=Redactor([CANARY]))
    context.store_pnl(PnLSnapshot(NOW, 1.0, 1.0, 0.0, 0.0), NOW)
    assert replay(tmp_path / "log").digest() != context.digest()


def test_a_rotated_log_replays_too(tmp_path):
    context, _ = played(tmp_path / "log", redactor=Redactor([CANARY]), max_bytes=20_000)
    assert len(list((tmp_path / "log").glob("*.jsonl"))) > 1
    assert replay(tmp_path / "log").digest() == context.digest()


def test_every_step_of_every_signal_is_in_the_log_precisely_once(tmp_path):
    _, handled = played(tmp_path, redactor=Redactor([CANARY]))
    told = [e for e in entries(tmp_path) if e.event.startswith("flow.")]
    assert all(e.event == "flow." + json.loads(bytes(e.payload))["after"] for e in told)
    begun = Counter(e.signal_id for e in told if json.loads(bytes(e.payload))["before"] == "new")
    assert begun == Counter(h.signal_id for h in handled)
    ends = Counter(e.signal_id for e in told if S(e.event[5:]).is_end)
    assert ends == begun
    for name in set(begun):
        path = [json.loads(bytes(e.payload)) for e in told if e.signal_id == name]
        for a, b in pairwise(path):
            assert b["before"] == ("new" if S(a["after"]).is_end else a["after"])
    codes = Counter(e.code for e in told if S(e.event[5:]).is_end)
    assert codes == Counter(None if h.code is None else h.code.value for h in handled)
    assert {h.state for h in handled} >= {S.FILLED, S.FAILED, S.REJECTED}


def test_the_canary_is_in_no_file(tmp_path):
    db = tmp_path / "context.db"
    context, handled = played(tmp_path / "log", redactor=Redactor([CANARY]), db=db)
    context.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 4
    for path in files:
        assert CANARY.encode() not in path.read_bytes(), path
    assert CANARY not in repr(handled)


def test_without_redaction_the_canary_would_be_found(tmp_path):
    class Open(Redactor):
        """Planted: takes nothing out."""

        def text(self, text):
            return text

        def value(self, value):
            return value

        def payload(self, payload):
            return payload

    played(tmp_path, redactor=Open())
    assert any(CANARY.encode() in path.read_bytes() for path in tmp_path.iterdir())


def test_secrets_given_to_the_logger_count_for_the_desk(tmp_path):
    clock, io = ManualClock(int(NOW) * 10**9), AgentIO()
    for name in ("strategy", "risk", "execution"):
        io.register(name, ScriptedAgent([{"status": "ok", "payload": {"note": CANARY}}]))
    context = RecentContext()
    with CoreAgentLogger(tmp_path, clock) as logger:
        logger.redactor.add(CANARY)
        DeskPlan().open(io=io, context=context, seeds=Seeds(1), logger=logger).handle(
            RAW, VIEW, clock
        )
    assert CANARY not in repr(context.get_responses())
    assert replay(tmp_path).digest() == context.digest()
