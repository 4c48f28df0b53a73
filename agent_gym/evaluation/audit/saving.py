"""Check: does an agent that was saved and read back do the same?"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from agent_gym.core.registry import register
from agent_gym.core.types import Agent, Decision, EpisodeStart, Inspectable, Learner, Saveable
from agent_gym.evaluation.audit.changed_bars import lesson
from agent_gym.evaluation.audit.finding import Finding, error, fine, note, unchecked
from agent_gym.evaluation.audit.run import Plain
from agent_gym.evaluation.audit.stream import Stream, differing, record
from agent_gym.evaluation.audit.subject import Greedy, Subject, weights_of
from agent_gym.rollouts.play import attempt

PICKLE_PROTOCOLS = tuple(bytes([0x80, n]) for n in range(2, 6))
LESSON_BARS = 240


@register("check", "save-load", Plain)
class SaveLoad:
    """Saves an agent that has learned, reads it into a fresh one, and plays both."""

    looks_for = "an agent that is not the same after it was saved and read back"
    wants_agent = True

    def __init__(self, config: Plain) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Let it learn a little first: two untrained agents would agree by themselves."""
        agent = _taught(subject)
        if not isinstance(agent, Saveable):
            learns = isinstance(agent, Learner | Inspectable)
            why = (
                "It learns but cannot be saved (core.types.Saveable), so what it learns is lost."
                if learns
                else "It has nothing to save: it is made anew from its config."
            )
            yield unchecked(why)
            return
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            agent.save(folder)
            yield from _pickles(folder)
            yield from _compare(subject, agent, folder)


def _taught(subject: Subject) -> Agent:
    agent = subject.ready()
    if not isinstance(agent, Learner) and isinstance(agent, Inspectable):
        agent = subject.agent()
        bars = lesson(subject.bars, LESSON_BARS, subject.seed)
        record(subject.world(bars), agent, subject.seed)
        if isinstance(agent, Greedy):
            agent.act_greedily()
    return agent


def _compare(subject: Subject, agent: Agent, folder: Path) -> Iterator[Finding]:
    stream = subject.stream
    expected = _decide(agent, stream)
    outcomes = [_read_back(subject, folder, stream, first) for first in ("load", "reset")]
    agreed = [made for made in outcomes if made is not None and not differing(expected, made)]
    if agreed:
        yield fine("Saved and read back it decides the same.", decisions=len(expected))
        if isinstance(agent, Learner):  # a fresh one could not act at all
            return
        if not differing(expected, _decide(subject.agent(), stream)):
            yield note(
                "An untrained agent decides the same as well, so this proves little.",
                decisions=len(expected),
            )
        return
    made = next((each for each in outcomes if each is not None), None)
    if made is None:
        yield error(
            "What it has saved cannot be read back into a fresh agent.",
            "Let load() build what it needs from the folder alone",
        )
        return
    changed = differing(expected, made)
    lost = _lost_weights(subject, agent, folder, stream.start)
    yield error(
        "Saved and read back it decides differently"
        + (f": {', '.join(lost[:3])} did not come back." if lost else "."),
        "Save every weight, scaler and counter that a decision depends on, and read all of it back",
        different=len(changed),
        of=len(expected),
        first_at=changed[0],
        weights_lost=len(lost),
    )


def _decide(agent: Agent, stream: Stream) -> list[Decision]:
    """Return decisions without learning, so that two agents can be compared."""
    agent.reset(stream.start)
    return [agent.act(step.before) for step in stream.steps]


def _read_back(subject: Subject, folder: Path, stream: Stream, first: str) -> list[Decision] | None:
    """Read into a fresh agent before or after its reset; None if it refuses."""
    done: list[Decision] = []

    def work() -> None:
        agent = _loaded(subject, folder, stream.start, first)
        done.extend(agent.act(step.before) for step in stream.steps)

    status, _ = attempt(work)
    if status == "interrupted":
        raise KeyboardInterrupt
    return done if status == "ok" else None


def _loaded(subject: Subject, folder: Path, start: EpisodeStart, first: str) -> Agent:
    agent = subject.agent()
    if isinstance(agent, Greedy):
        agent.act_greedily()
    if first == "reset":
        agent.reset(start)
    if isinstance(agent, Saveable):
        agent.load(folder)
    if first == "load":
        agent.reset(start)
    return agent


def _lost_weights(subject: Subject, agent: Agent, folder: Path, start: EpisodeStart) -> list[str]:
    lost: list[str] = []

    def work() -> None:
        kept, back = weights_of(agent), weights_of(_loaded(subject, folder, start, "load"))
        lost.extend(
            name
            for name, value in kept.items()
            if name not in back or value.tobytes() != back[name].tobytes()
        )

    attempt(work)
    return lost


def _pickles(folder: Path) -> Iterator[Finding]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    bad = [str(path.relative_to(folder)) for path in files if _is_pickle(path)]
    if bad:
        yield error(
            f"What it saves holds pickles ({', '.join(bad[:3])}): reading them runs whatever "
            "code is in them.",
            "Use safetensors, npz without objects, or JSON",
            files=len(bad),
        )
    elif not files:
        yield error("save() left nothing in the folder.", "Write what load() needs", files=0)


def _is_pickle(path: Path) -> bool:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith(".pkl") for name in archive.namelist())
    with path.open("rb") as file:
        head = file.read(3)
    # The length that a safetensors file begins with may look like a protocol, but no pickle goes on
    # with a zero byte: that is no instruction.
    return head[:2] in PICKLE_PROTOCOLS and head[2:] != b"\0"
