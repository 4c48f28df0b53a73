"""What must hold at every moment, whatever goes wrong; each says in words what it found.

An invariant sees one look and what the observer remembers of the looks before it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tests.soak.look import Look, Rows

CASH = 10_000.0
CENT = 1e-6
MOST_MB = 2_000.0
MOST_FILES = 400
GRACE_S = 60.0


@dataclass
class Memory:
    """What was seen before.

    Attributes:
        life: The process of the service that the counters belong to.
        history: Hash of each entry of the registry's history.
        points: What each agent began with.
    """

    life: int = -1
    counters: dict[str, float] = field(default_factory=dict)
    history: dict[int, str] = field(default_factory=dict)
    points: dict[str, int] = field(default_factory=dict)


Invariant = Callable[[Look, Memory], Iterator[str]]


def steps_once(look: Look, _: Memory) -> Iterator[str]:
    """Every trajectory that a recorder acknowledged is there once, with all its steps."""
    if look.rows is None:
        return
    stored = Counter(row["trajectory_id"] for row in look.rows.trajectories)
    steps = {row["trajectory_id"]: row["n_steps"] for row in look.rows.trajectories}
    for name, count in stored.items():
        if count > 1:
            yield f"trajectory {name} is stored {count} times"
    for name, n in look.acknowledged.trajectories.items():
        there = {**look.waiting, **steps} if not look.final else steps
        if name not in there:
            yield f"trajectory {name} was acknowledged and is lost"
        elif there[name] != n:
            yield f"trajectory {name} has {there[name]} of {n} steps"


def steps_in_place(look: Look, _: Memory) -> Iterator[str]:
    """Every trajectory has rows of its own in a step file, and is complete or marked."""
    if look.rows is None:
        return
    taken: dict[str, list[tuple[int, int, str]]] = {}
    for row in look.rows.trajectories:
        name = row["trajectory_id"]
        if row["status"] == "completed" and not (row["terminated"] or row["truncated"]):
            yield f"trajectory {name} counts as complete and has no end"
        if not row["n_steps"]:
            continue
        if row["step_file"] not in look.rows.step_files:
            yield f"trajectory {name} names a step file that nobody knows"
            continue
        first = row["first_row"]
        taken.setdefault(row["step_file"], []).append((first, first + row["n_steps"], name))
    for file, places in taken.items():
        end = 0
        for first, last, name in sorted(places):
            if first < end or last > look.rows.step_files[file]["n_rows"]:
                yield f"the rows of trajectory {name} are not its own, or not there"
            end = last


def ticks_once(look: Look, _: Memory) -> Iterator[str]:
    """An agent has played each tick of its life once, and none is missing."""
    if look.rows is None:
        return
    for name, agent in look.rows.agents.items():
        calls, tick = look.rows.calls.get(name), agent["tick"]
        found = (
            (0, 0, 0, -1)
            if calls is None
            else (calls.count, calls.distinct, calls.lowest, calls.highest)
        )
        if found != (tick, tick, 0, tick - 1):
            yield f"agent {name} stands at {tick}; all, different, first, last are {found}"
    for name, tick in sorted(look.acknowledged.ticks - look.rows.ticks):
        yield f"tick {tick} of agent {name} was answered for and is lost"


def points_conserved(look: Look, memory: Memory) -> Iterator[str]:
    """Points are spent on ticks, one each, and given only to those they were given to."""
    if look.rows is None:
        return
    for name, agent in look.rows.agents.items():
        began = memory.points.get(name)
        if began is None:
            continue
        given = agent["points"] + agent["tick"] - began
        least = look.acknowledged.granted.get(name, 0)
        most = max(least, look.acknowledged.asked.get(name, 0))
        if not least <= given <= most or agent["points"] < 0:
            yield f"agent {name} was given {least} to {most} points and has got {given}"


def money_conserved(look: Look, _: Memory) -> Iterator[str]:
    """What an account ends with is what it began with and what its steps brought."""
    for row in [] if look.rows is None else look.rows.trajectories:
        balance, pnl, reward = row["final_balance"], row["final_pnl"], row["total_reward"]
        if balance is None or pnl is None:
            continue
        if abs(balance - pnl - CASH) > CENT * CASH:
            yield f"trajectory {row['trajectory_id']} began with {balance - pnl}, not {CASH}"
        if reward is None or abs(pnl - CASH * reward) > CENT * CASH:
            yield f"trajectory {row['trajectory_id']} won {pnl}, its steps say {reward} x {CASH}"


def one_champion(look: Look, _: Memory) -> Iterator[str]:
    """One model is champion, it is known, and no other is in full service."""
    rows = look.rows
    if rows is None:
        return
    if len(rows.pointers) != 1 or rows.pointers[0]["champion"] is None:
        yield f"the champion is {[row['champion'] for row in rows.pointers]}"
        return
    champion = rows.pointers[0]["champion"]
    deployed = sorted(name for name, status in rows.models.items() if status == "deployed")
    if deployed != [champion]:
        yield f"{champion[:12]} is champion, deployed are {[name[:12] for name in deployed]}"
    if rows.serving != [champion]:
        yield f"{champion[:12]} is champion, in full service are {rows.serving}"


def history_chained(look: Look, memory: Memory) -> Iterator[str]:
    """The registry's history is a chain that is only added to."""
    rows = look.rows
    if rows is None or len(rows.pointers) != 1:
        return
    last = ""
    for place, entry in enumerate(rows.history, start=1):
        lines = (str(place), last, str(entry["at_ns"]), entry["event"], entry["data"])
        digest = sha256(json.dumps(lines).encode()).hexdigest()
        if (entry["position"], entry["previous_hash"], entry["hash"]) != (place, last, digest):
            yield f"entry {place} of the history was changed"
            return
        if memory.history.setdefault(place, digest) != digest:
            yield f"entry {place} of the history is another one than before"
        last = digest
    pointer = rows.pointers[0]
    if (pointer["history_length"], pointer["history_hash"]) != (len(rows.history), last):
        yield f"the history should have {pointer['history_length']} entries"
    if len(rows.history) < len(memory.history):
        yield f"the history had {len(memory.history)} entries and has {len(rows.history)}"


def models_signed(look: Look, _: Memory) -> Iterator[str]:
    """Every model has the files that were signed."""
    yield from look.unsigned


def files_whole(look: Look, _: Memory) -> Iterator[str]:
    """Every file with a final name can be read, and is what its name or manifest says."""
    yield from look.broken


def counters_grow(look: Look, memory: Memory) -> Iterator[str]:
    """Counters never fall while the process lives."""
    service = look.service
    if service is None:
        return
    if service.life != memory.life:
        memory.life, memory.counters = service.life, {}
    for name, before in memory.counters.items():
        if (now := service.counters.get(name, 0.0)) < before:
            yield f"{name} fell from {before:g} to {now:g}"
    memory.counters = {**memory.counters, **service.counters}


def right_model_answered(look: Look, _: Memory) -> Iterator[str]:
    """The service itself finds that the model that served was the one that answered."""
    said = None if look.service is None else look.service.answers
    if said is not None and not said["ok"]:
        yield str(said["words"])


def memory_bounded(look: Look, _: Memory) -> Iterator[str]:
    """The service does not grow without end."""
    service = look.service
    if service is not None and service.rss_mb > MOST_MB:
        yield f"the service has {service.rss_mb:.0f} MB"
    if service is not None and service.files > MOST_FILES:
        yield f"the service has {service.files} open files"


def answers_told(look: Look, _: Memory) -> Iterator[str]:
    """No request is answered with a trace or an unforeseen error."""
    yield from look.acknowledged.wrong


def nobody_left(look: Look, _: Memory) -> Iterator[str]:
    """No process outlives the command that started it."""
    for name, age_s in look.orphans.items():
        if age_s > GRACE_S or look.final:
            yield f"{name} is left, {age_s:.0f} s after its parent"


def jobs_end(look: Look, _: Memory) -> Iterator[str]:
    """After recovery no training is under way for ever, and nothing waits for the database."""
    if not look.final:
        return
    for name, status in look.jobs.items():
        yield f"job {name} is {status}"
    rows = look.rows or Rows()
    for name in rows.batches:
        yield f"batch {name} is under way, and no job is"
    if look.waiting:
        yield f"{len(look.waiting)} trajectories wait in the outbox"


INVARIANTS: dict[str, Invariant] = {
    check.__name__.replace("_", " "): check
    for check in (
        steps_once,
        steps_in_place,
        ticks_once,
        points_conserved,
        money_conserved,
        one_champion,
        history_chained,
        models_signed,
        files_whole,
        counters_grow,
        right_model_answered,
        memory_bounded,
        answers_told,
        nobody_left,
        jobs_end,
    )
}


def violations(look: Look, memory: Memory) -> list[dict[str, Any]]:
    """Return what does not hold."""
    return [
        {"invariant": name, "words": words}
        for name, check in INVARIANTS.items()
        for words in check(look, memory)
    ]
