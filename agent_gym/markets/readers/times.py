"""Times of every sort become integer UTC nanoseconds; a doubtful one is an error with its row."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import polars as pl

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.faults import Indices, Mask
from agent_gym.markets.readers.layout import TIME
from agent_gym.markets.readers.tables import Table

_UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
# From 2000-01-01 to the year 5138, counted in each unit: the four ranges do not touch.
_EARLIEST_S, _LATEST_S = 946_684_800, 100_000_000_000
_LAST_NS = np.iinfo(np.int64).max
_ZONE = r"\s*(Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)$"
_HAS_ZONE = r":\d{2}(?:\.\d+)?" + _ZONE
_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")


def to_nanos(table: Table, *, time_unit: str, naive: str) -> tuple[Indices, dict[str, Any]]:
    """Return the time column in UTC nanoseconds and how it was understood.

    Args:
        table: The file; its time column may hold numbers, texts, dates or timestamps.
        time_unit: ``auto``, ``mixed`` or one of s, ms, us, ns, for numbers.
        naive: The zone of times that name none, or ``refuse``.
    """
    if naive != "refuse":
        _zone(naive)  # a wrong name is an error even where every time names its own zone
    series = table.frame[TIME]
    if series.dtype == pl.String:
        series = series.str.strip_chars()
    absent = series.is_null() | (series == "" if series.dtype == pl.String else False)
    if absent.any():
        raise _error(
            table,
            "a row has no time",
            absent,
            found="an empty cell",
            expected="a time in every row",
            remedy="Correct the row or remove it",
        )
    if series.dtype == pl.String and series[0][:1].isdigit() and _is_number(series[0]):
        series = _numeric(table, series)
    hint = table.columns[TIME].time_unit
    unit = hint if time_unit == "auto" and hint is not None else time_unit
    if series.dtype.is_integer():
        ts, how = _from_integers(table, series.to_numpy(), unit)
    elif series.dtype.is_float():
        ts, how = _from_floats(table, series.to_numpy(), unit)
    elif series.dtype == pl.String:
        ts, how = _from_texts(table, series, naive)
    elif series.dtype in (pl.Datetime, pl.Date):
        ts, how = _from_stamps(table, series, naive)
    else:
        raise _error(
            table,
            "the time column holds no times",
            None,
            found=series.dtype,
            expected="numbers, ISO texts, dates or timestamps",
            remedy="Store the column as one of these",
        )
    return ts, {"column": table.columns[TIME].name, **how}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numeric(table: Table, series: pl.Series) -> pl.Series:
    whole = series.cast(pl.Int64, strict=False)
    if not whole.has_nulls():
        return whole
    broken = series.cast(pl.Float64, strict=False)
    if broken.has_nulls():
        raise _error(
            table,
            "the times above are numbers, this one is not",
            broken.is_null(),
            found=repr(series[int(broken.is_null().arg_true()[0])]),
            expected="a number, as in the first row",
            remedy="Correct the row",
        )
    return broken


def _units(table: Table, values: Any, unit: str) -> tuple[Any, str]:
    """Return the nanoseconds per unit of each number (or of all) and the name of the unit."""
    if unit in _UNIT_NS:
        return _UNIT_NS[unit], unit
    factors = np.zeros(values.size, dtype=np.int64)
    for name, nanos in _UNIT_NS.items():
        per_second = _UNIT_NS["s"] // nanos
        inside = (values >= _EARLIEST_S * per_second) & (values < _LATEST_S * per_second)
        factors[inside] = _UNIT_NS[name]
    if (factors == 0).any():
        raise _error(
            table,
            "a number is not a time since 1970 in any usual unit",
            factors == 0,
            found=values[np.argmax(factors == 0)],
            expected="seconds, ms, us or ns of the year 2000 or later",
            remedy="Say time_unit='s' (--time-unit s, or ms, us, ns), or write ISO times",
        )
    names = {nanos: name for name, nanos in _UNIT_NS.items()}
    other = factors != factors[0]
    if unit != "mixed" and other.any():
        raise _error(
            table,
            "times change their unit",
            other,
            found=f"{names[int(factors[np.argmax(other)])]} after {names[int(factors[0])]}",
            remedy="If each row is right in its unit, say time_unit='mixed' (--time-unit mixed)",
        )
    return factors, unit if unit == "mixed" else names[int(factors[0])]


def _from_integers(table: Table, values: Any, unit: str) -> tuple[Indices, dict[str, str]]:
    factors, name = _units(table, values, unit)
    outside = (values < 0) | (values > _LAST_NS // factors)
    _refuse_outside(table, values, outside)
    return values.astype(np.int64) * factors, {"kind": "epoch", "unit": name}


def _from_floats(table: Table, values: Any, unit: str) -> tuple[Indices, dict[str, str]]:
    """Round to microseconds: a float64 cannot say today's time more exactly."""
    _refuse_outside(table, values, ~np.isfinite(values))
    factors, name = _units(table, values, unit)
    micros = np.rint(values * (factors / 1_000))
    _refuse_outside(table, values, (micros < 0) | (micros > _LAST_NS / 1_001))
    return micros.astype(np.int64) * 1_000, {"kind": "epoch", "unit": name}


def _from_texts(table: Table, text: pl.Series, naive: str) -> tuple[Indices, dict[str, str]]:
    zoned = text.str.contains(_HAS_ZONE)
    if zoned.any() and not zoned.all():
        first = bool(zoned[0])
        raise _error(
            table,
            "some times name a zone and some do not",
            ~zoned if first else zoned,
            found=repr(text[int((~zoned if first else zoned).arg_true()[0])]),
            expected=f"a time like the first, {text[0]!r}",
            remedy="Write the zone in every row, or in none",
        )
    if not zoned.all():
        return _localised(table, _parsed(table, text, text), naive, kind="text")
    local = _parsed(table, text.str.replace(_ZONE, ""), text).to_physical().to_numpy()
    zones = text.str.extract(_ZONE, 1)
    shifts = {zone: _shift_ns(zone) for zone in zones.unique().to_list()}
    offsets = zones.replace_strict(shifts, return_dtype=pl.Int64).to_numpy()
    ts = local - offsets
    _refuse_outside(table, text, ts < 0)
    return ts, {"kind": "text", "zone": "in the file"}


def _shift_ns(zone: str) -> int:
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-1 if zone[0] == "-" else 1) * minutes * 60 * _UNIT_NS["s"]


def _parsed(table: Table, body: pl.Series, text: pl.Series) -> pl.Series:
    """Parse year-first local times; anything else would be a guess at the order of the parts."""
    plain = body.str.replace("[Tt]", " ").str.replace_all("/", "-", literal=True)
    plain = (
        plain.to_frame("t")
        .select(pl.when(pl.col("t").str.contains(r"^(19|20|21|22)\d\d-")).then(pl.col("t")))
        .to_series()
    )
    times = pl.Series([None] * len(plain), dtype=pl.Datetime("ns"))
    for form in _FORMATS:
        found = plain.str.to_datetime(form, time_unit="ns", strict=False)
        times = times.zip_with(times.is_not_null(), found)
        if not times.has_nulls():
            return times
    raise _error(
        table,
        "not a time",
        times.is_null(),
        found=repr(text[int(times.is_null().arg_true()[0])]),
        expected="ISO 8601 with the year first, or a number",
        remedy="Write for example 2024-01-31 08:00:00+00:00",
    )


def _from_stamps(table: Table, series: pl.Series, naive: str) -> tuple[Indices, dict[str, str]]:
    if series.dtype == pl.Date:
        series = series.cast(pl.Datetime("us"))
    assert isinstance(series.dtype, pl.Datetime)
    unit = series.dtype.time_unit
    values = series.to_physical().to_numpy()
    _refuse_outside(table, values, (values < 0) | (values > _LAST_NS // _UNIT_NS[unit]))
    if series.dtype.time_zone is None:
        return _localised(table, series.dt.cast_time_unit("ns"), naive, kind="timestamp")
    return values * _UNIT_NS[unit], {"kind": "timestamp", "zone": "in the file"}


def _localised(
    table: Table, local: pl.Series, naive: str, *, kind: str
) -> tuple[Indices, dict[str, str]]:
    if naive == "refuse":
        raise DataError(
            "the times name no zone",
            where=table.cell(1),
            remedy="Say naive='utc' (--naive utc) if they are UTC, or name their zone",
        )
    zone = _zone(naive)
    if zone != "UTC":
        stamped = local.dt.replace_time_zone(zone, ambiguous="null", non_existent="null")
        if stamped.has_nulls():
            lost = stamped.is_null()
            raise _error(
                table,
                f"this local time is skipped or happens twice in {naive}",
                lost,
                found=local[int(lost.arg_true()[0])],
                remedy="Write the times in UTC or with their offset",
            )
        local = stamped
    ts = local.to_physical().to_numpy()
    _refuse_outside(table, ts, ts < 0)
    return ts, {"kind": kind, "zone": f"{zone} assumed"}


def _zone(naive: str) -> str:
    if naive.upper() == "UTC":
        return "UTC"
    try:
        return ZoneInfo(naive).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            "no such time zone",
            where="option --naive",
            found=repr(naive),
            expected="utc, refuse or a name like Asia/Tokyo",
            remedy="Leave it out if the times are UTC",
        ) from error


def _refuse_outside(table: Table, values: Any, outside: Mask) -> None:
    if outside.any():
        raise _error(
            table,
            "a time is before 1970 or after 2261",
            outside,
            found=values[int(np.argmax(outside))],
            remedy="Correct the row, or say the right unit (--time-unit)",
        )


def _error(
    table: Table,
    what: str,
    rows: Any,
    *,
    found: object = None,
    expected: object = None,
    remedy: str | None = None,
) -> DataError:
    """Return the error for the first of the marked rows."""
    mask = np.ones(1, dtype=np.bool_) if rows is None else np.asarray(rows)
    many = f"; {int(mask.sum())} rows in all" if rows is not None else ""
    return DataError(
        what,
        where=table.cell(int(np.argmax(mask)) + 1),
        found=f"{found}{many}",
        expected=expected,
        remedy=remedy,
    )
