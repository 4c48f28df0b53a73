"""What a guard can become: a call that guards nothing, a limit that limits nothing, other code."""

import ast
import hashlib
import inspect
import re
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[3])
_SHAPE = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)


def plant(module, place, becomes):
    """Replace an attribute of a module, or of a class in it, wherever it has been taken to."""
    owner = module
    *way, name = place.split(".")
    for step in way:
        owner = getattr(owner, step)
    plain = vars(owner)[name]
    inner = getattr(plain, "__func__", plain)
    kind, said = _SHAPE.fullmatch(becomes).groups()
    new = MUTANTS[kind](inner, None if said is None else ast.literal_eval(said))
    if isinstance(plain, (staticmethod, classmethod)):
        new = type(plain)(new)
    if new is plain:
        return
    setattr(owner, name, new)
    if owner is module and callable(plain):
        _everywhere(plain, new)


def _everywhere(plain, new):
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()) if hasattr(module, "__dict__") else ():
            if value is plain and str(getattr(module, "__file__", "")).startswith(ROOT):
                setattr(module, name, new)


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


def source(plain, value):
    """Swap the code of a function for the same text with a piece replaced: ``[old, new]``."""
    old, new = value
    function = inspect.unwrap(plain.fget if isinstance(plain, property) else plain)
    text, own = Path(function.__code__.co_filename).read_text("utf-8"), inspect.getsource(function)
    if own.count(old) != 1 or text.count(own) != 1:
        raise ValueError(f"{function.__qualname__} does not say {old!r} once")
    code = compile(text.replace(own, own.replace(old, new)), function.__code__.co_filename, "exec")
    function.__code__ = _find(code, function.__qualname__)
    return plain


def _find(code, qualname):
    waiting = [code]
    while waiting:
        one = waiting.pop()
        if one.co_qualname == qualname:
            return one
        waiting += [each for each in one.co_consts if inspect.iscode(each)]
    raise ValueError(f"there is no {qualname}")


def edited(plain, value):
    """Return a copy of a file, a piece of its text replaced: ``[old, new]``."""
    old, new = value
    text = plain.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise ValueError(f"{plain} does not say {old!r} once")
    name = hashlib.sha256((old + new).encode()).hexdigest()[:12]
    copy = Path(tempfile.gettempdir()) / f"planted-{name}-{plain.name}"
    copy.write_text(text.replace(old, new), encoding="utf-8")
    return copy


MUTANTS = {
    "nothing": nothing,
    "returns": returns,
    "argument": argument,
    "is_now": is_now,
    "pattern": pattern,
    "open_door": open_door,
    "in_place": in_place,
    "source": source,
    "edited": edited,
}
