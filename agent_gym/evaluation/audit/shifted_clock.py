"""The wall clock, set to another time for as long as an agent is watched."""

from __future__ import annotations

import datetime as calendar
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from typing_extensions import override

from agent_gym.core.clock import SECOND_NS

ROUND_S = 10 * 365 * 86_400  # a clock that leaps begins anew after ten years
_real_ns, _real_datetime, _real_date = (
    time.time_ns,  # noqa: TID251 (this is the clock that is shifted)
    calendar.datetime,
    calendar.date,
)


class ShiftedClock:
    """A clock that is off, or that leaps ahead at every reading; counts its readings.

    Args:
        shift_s: Seconds by which it is ahead.
        leap_s: Seconds that it gains at every reading.
    """

    def __init__(self, shift_s: int = 0, leap_s: int = 0) -> None:
        self._shift_s, self._leap_s = shift_s, leap_s
        self.readings = 0

    def now_ns(self) -> int:
        """Return nanoseconds since 1970."""
        self.readings += 1
        gained = self._leap_s * self.readings % ROUND_S
        return _real_ns() + (self._shift_s + gained) * SECOND_NS

    def now_s(self) -> float:
        """Return seconds since 1970."""
        return self.now_ns() / SECOND_NS


@contextmanager
def shifted_clock(shift_s: int = 0, leap_s: int = 0) -> Iterator[ShiftedClock]:
    """Set the clock of this process to another time, and put it back afterwards.

    Reached are the functions of ``time`` that tell the date, and ``datetime`` and ``date`` in the
    modules that hold them now. Not reached are clocks inside compiled code, such as
    ``np.datetime64("now")``, and clocks that only measure durations. The module ``datetime`` itself
    stays as it is, for extensions that are loaded meanwhile rely on the layout of its classes.
    """
    clock = ShiftedClock(shift_s, leap_s)
    fakes: dict[Any, Any] = {getattr(time, name): fake for name, fake in _functions(clock).items()}
    classes = {"datetime": _datetime(clock), "date": _date(clock)}
    other = ModuleType("datetime", calendar.__doc__)
    vars(other).update(vars(calendar) | classes)
    fakes |= {getattr(calendar, name): fake for name, fake in classes.items()}
    fakes[calendar] = other
    _put(fakes)
    try:
        yield clock
    finally:
        _put({fake: real for real, fake in fakes.items()})


def _put(places: Mapping[Any, Any]) -> None:
    """Replace things in every module that holds them.

    The standard library, ``time`` apart, and compiled modules keep their own.
    """
    by_id = {id(old): new for old, new in places.items()}
    for name, module in list(sys.modules.items()):
        if name != "time" and not _is_reached(name, module):
            continue
        held = vars(module)
        for key, value in list(held.items()):
            if id(value) in by_id:
                held[key] = by_id[id(value)]


def _is_reached(name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
    if name in (__name__, "__main__") or file is None:
        return name == "__main__"
    return file.endswith(".py") and name.partition(".")[0] not in sys.stdlib_module_names


def _functions(clock: ShiftedClock) -> dict[str, Callable[..., Any]]:
    real = {name: getattr(time, name) for name in ("localtime", "gmtime", "ctime", "strftime")}
    asctime, gettime, gettime_ns = time.asctime, time.clock_gettime, time.clock_gettime_ns

    def at(name: str) -> Callable[..., Any]:
        def told(seconds: float | None = None) -> Any:
            return real[name](clock.now_s() if seconds is None else seconds)

        return told

    def strftime(form: str, moment: Any = None) -> Any:
        return real["strftime"](
            form, real["localtime"](clock.now_s()) if moment is None else moment
        )

    def told_asctime(moment: Any = None) -> str:
        return asctime(real["localtime"](clock.now_s()) if moment is None else moment)

    return {
        "time": clock.now_s,
        "time_ns": clock.now_ns,
        **{name: at(name) for name in ("localtime", "gmtime", "ctime")},
        "strftime": strftime,
        "asctime": told_asctime,
        "clock_gettime": lambda c: clock.now_s() if c == time.CLOCK_REALTIME else gettime(c),
        "clock_gettime_ns": lambda c: clock.now_ns() if c == time.CLOCK_REALTIME else gettime_ns(c),
    }


class _Kind(type):
    """Makes a stand-in pass for the class it stands in for; it has no instances of its own."""

    real: type

    @override
    def __instancecheck__(cls, instance: object) -> bool:
        own = "real" in vars(cls)
        return isinstance(instance, cls.real) if own else super().__instancecheck__(instance)

    @override
    def __subclasscheck__(cls, subclass: type) -> bool:
        own = "real" in vars(cls)
        return issubclass(subclass, cls.real) if own else super().__subclasscheck__(subclass)

    @override
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return (cls.real if "real" in vars(cls) else super().__call__)(*args, **kwargs)


def _datetime(clock: ShiftedClock) -> type:
    def now(cls: type, tz: calendar.tzinfo | None = None) -> calendar.datetime:
        return _real_datetime.fromtimestamp(clock.now_s(), tz)

    def utcnow(cls: type) -> calendar.datetime:
        return now(cls, calendar.UTC).replace(tzinfo=None)

    told = {"now": now, "utcnow": utcnow, "today": lambda cls: now(cls)}
    return _stand_in("datetime", _real_datetime, told)


def _date(clock: ShiftedClock) -> type:
    told = {"today": lambda cls: _real_date.fromtimestamp(clock.now_s())}
    return _stand_in("date", _real_date, told)


def _stand_in(name: str, real: type, told: Mapping[str, Callable[..., Any]]) -> type:
    methods = {key: classmethod(method) for key, method in told.items()}
    return _Kind(name, (real,), {"real": real, "__module__": "datetime", **methods})
