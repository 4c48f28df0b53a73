"""Signals of a recorded log as arrivals at the desk, at simulated time."""

from __future__ import annotations

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.core.clock import MINUTE_NS, SECOND_NS
from agent_gym.evaluation.scenarios.desk_market import START_NS
from agent_gym.evaluation.scenarios.recorded import RecordedLog
from agent_gym.evaluation.scenarios.signal_stream import Arrival

UNJUDGED = "unjudged"
_CODES = {code.value: code for code in RejectCode}


def recorded_arrivals(log: RecordedLog) -> list[Arrival]:
    """Return the log's signals, moved so that the first minute is the market's first.

    What the log says of a signal is taken as the truth about it: accepted, or refused with a code.
    Where it says nothing (or a code that the desk does not know) the signal is played, but it
    counts neither as good nor as bad.
    """
    if not log.signals:
        return []
    first_ns = log.signals[0].time_ns // MINUTE_NS * MINUTE_NS
    shift_ns = START_NS - first_ns
    arrivals = []
    for row, signal in enumerate(log.signals):
        raw = dict(signal.raw)
        stamp = raw.get("timestamp")
        if isinstance(stamp, float | int) and not isinstance(stamp, bool):
            raw["timestamp"] = stamp + shift_ns / SECOND_NS
        expected = None if signal.accepted else _CODES.get(signal.code or "")
        judged = signal.accepted is True or expected is not None
        flaw = ("recorded" if expected else "") if judged else UNJUDGED
        arrivals.append(Arrival(signal.time_ns + shift_ns, row, raw, expected, flaw))
    return arrivals
