"""What a guard can become: a call that guards nothing, or a limit that limits nothing."""

import ast
import re
from contextlib import contextmanager

_SHAPE = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)


def plant(module, place, becomes):
    """Replace an attribute of a module, or of a class in it."""
    owner = module
    *way, name = place.split(".")
    for step in way:
        owner = getattr(owner, step)
    plain = vars(owner)[name]
    inner = getattr(plain, "__func__", plain)
    kind, said = _SHAPE.fullmatch(becomes).groups()
    value = None if said is None else ast.literal_eval(said)
    new = MUTANTS[kind](inner, value)
    if isinstance(plain, (staticmethod, classmethod)):
        new = type(plain)(new)
    setattr(owner, name, new)


def nothing(_plain, _value):
    return lambda *_, **__: None


def returns(_plain, value):
    return lambda *_, **__: value


def argument(_plain, value):
    """Return what was given, unchecked: argument number ``value``."""
    return lambda *args, **_: args[value]


def is_now(_plain, value):
    return value


def pattern(_plain, value):
    return re.compile(value, re.DOTALL)


def quiet(plain, _value):
    """Do it, but swallow the refusal."""

    def tried(*args, **named):
        try:
            return plain(*args, **named)
        except Exception:  # noqa: BLE001 - that is the point
            return None

    return tried


def without(plain, value):
    """Call it with these keywords set."""
    return lambda *args, **named: plain(*args, **{**named, **value})


def answers_later(_plain, value):
    async def done(*_, **__):
        return value

    return done


def open_door(_plain, _value):
    """A context that lets everybody in."""

    @contextmanager
    def free(*_, **__):
        yield

    return free


def in_place(_plain, _value):
    """Write into the file itself instead of beside it."""

    @contextmanager
    def straight(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        yield target

    return straight


def edited(plain, value):
    """Return a copy of a file, a piece of its text replaced: ``[old, new]``."""
    import hashlib  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    old, new = value
    text = plain.read_text(encoding="utf-8")
    if old not in text:
        raise ValueError(f"{plain} does not say {old!r}")
    name = hashlib.sha256((old + new).encode()).hexdigest()[:12]
    copy = type(plain)(tempfile.gettempdir()) / f"planted-{name}-{plain.name}"
    copy.write_text(text.replace(old, new), encoding="utf-8")
    return copy


MUTANTS = {
    "nothing": nothing,
    "returns": returns,
    "argument": argument,
    "is_now": is_now,
    "pattern": pattern,
    "quiet": quiet,
    "without": without,
    "answers_later": answers_later,
    "open_door": open_door,
    "in_place": in_place,
    "edited": edited,
}
