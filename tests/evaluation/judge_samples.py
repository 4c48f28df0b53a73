"""Judges to test with: some that know, some that are biased, some that talk nonsense."""

import json
import math
import re
from dataclasses import dataclass, field
from hashlib import sha256

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.judge import Candidate, CandidateGroup, ChatMessage, Message

OPENING = re.compile(r"^<<<(?P<label>\S+) (?P<mark>[0-9a-f]{16})$")
QUALITY = re.compile(r"quality (\d+)")


def candidate(name, *texts, kind="did"):
    return Candidate(id=name, messages=tuple(Message(kind=kind, text=text) for text in texts))


def group_of(qualities, group_id="g", shared=("same news",)):
    """Return a group whose records tell their own quality, and what it is."""
    names = [f"id-{place}" for place in range(len(qualities))]
    made = [
        candidate(name, *shared, f"quality {quality}")
        for name, quality in zip(names, qualities, strict=True)
    ]
    truth = dict(zip(names, map(float, qualities), strict=True))
    return CandidateGroup(group_id=group_id, candidates=tuple(made)), truth


def quoted(request):
    """Read a prompt as strictly as possible: {label: quoted lines}, and all lines outside."""
    inside, outside, label, mark = {}, [], None, None
    for line in request.messages[1].content.split("\n"):
        opened = OPENING.match(line)
        if label is None and opened:
            label, mark = opened["label"], opened["mark"]
            inside[label] = []
            outside.append("<<<")
        elif label is not None and line == f"{label} {mark}>>>":
            label = None
            outside.append(">>>")
        elif label is not None:
            assert line.startswith(("|> ", "|  ")), line
            inside[label].append(line)
        else:
            outside.append(line)
    assert label is None
    return inside, outside


def records_in(request):
    """Return the labels of the records in the order shown, each with its text."""
    inside, _ = quoted(request)
    return {label: "\n".join(lines) for label, lines in inside.items() if label != "beginning"}


def answer_of(scores):
    rows = [{"id": name, "score": score, "explanation": "so"} for name, score in scores.items()]
    return json.dumps({"scores": rows})


@dataclass
class Scripted:
    """A judge made of a function that takes the request and returns text."""

    say: object
    model: str = "scripted"
    version: str = "1"
    reads: str = "messages"
    asked: list = field(default_factory=list)

    def answer(self, request):
        self.asked.append(request)
        return self.say(request)


def _rng(request):
    said = "".join(one.content for one in request.messages)
    return Seeds(int(sha256(said.encode()).hexdigest()[:8], 16)).child("judge").rng()


def oracle(noise=0.0, bias=0.0, top=10.0):
    """Knows the quality; ``bias`` is what the first place earns more than the last."""

    def say(request):
        shown, rng = records_in(request), _rng(request)
        n, scores = len(shown), {}
        for place, (label, text) in enumerate(shown.items()):
            value = float(QUALITY.search(text)[1]) / top
            value += noise * rng.standard_normal() + bias * (1 - place / max(n - 1, 1))
            scores[label] = min(max(value, 0.0), 1.0)
        return answer_of(scores)

    return Scripted(say)


def by_place():
    """Looks at nothing but the place: the first is the best."""
    return Scripted(
        lambda request: answer_of(
            {label: 1 - place / 10 for place, label in enumerate(records_in(request))}
        )
    )


def by_dice():
    """Throws dice, other ones for every prompt."""

    def say(request):
        rng = _rng(request)
        return answer_of({label: rng.random() for label in records_in(request)})

    return Scripted(say)


TRADE = re.compile(r"(?P<market>\S+) (?P<to>[+-][\d.]+) at move \S+ trusted \S+ gap (?P<gap>\S+)")


def reader():
    """Knows no outcome: likes trades that go the way which prices have not gone yet."""

    def say(request):
        scores = {}
        for label, text in records_in(request).items():
            held, liked = {}, 0.0
            for trade in TRADE.finditer(text.replace(",", "")):
                turned = float(trade["to"]) - held.get(trade["market"], 0.0)
                liked += turned * float(trade["gap"]) - 0.02 * abs(turned)
                held[trade["market"]] = float(trade["to"])
            scores[label] = 1 / (1 + math.exp(-liked))
        return answer_of(scores)

    return Scripted(say)


def constant(score=0.5):
    return Scripted(lambda request: answer_of(dict.fromkeys(records_in(request), score)))


def always(text):
    return Scripted(lambda request: text)


def chat(*pairs):
    return tuple(ChatMessage(role, text) for role, text in pairs)
