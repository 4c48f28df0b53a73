"""The order venue as plain Python: the kernel's source without its compiler, one order at a time.

It looks at every open order in every phase of every bar and keeps no list between bars, so it shows
what the compiled venue has to give without any of the ways in which that one is quick.
"""

import ast
import ctypes
from pathlib import Path

import numpy as np

from agent_gym.exchange.kernel import dealing, floor, margin, parts, triggers
from agent_gym.exchange.kernel import venue as kernel
from agent_gym.exchange.kernel.floor import CANCELLED, FLOOR, OPEN, TRADE, WITHDRAWN
from agent_gym.exchange.venue import Venue

SOURCES = (parts, floor, margin, triggers, dealing, kernel)
REPLACED = {"numba", "agent_gym.exchange.kernel.memory", *(module.__name__ for module in SOURCES)}
FIELDS = FLOOR.names


class Row:
    """One record whose fields are attributes, as they are in a kernel."""

    def __init__(self, record):
        object.__setattr__(self, "record", record)

    def __getattr__(self, name):
        return self.record[name]

    def __setattr__(self, name, value):
        self.record[name] = value


class Rows:
    """An array of records."""

    def __init__(self, records):
        self.records, self.size = records, records.size

    def __getitem__(self, place):
        return Row(self.records[place])


def view_at(address, shape, dtype):
    """Return the memory at an address as an array."""
    kind = np.dtype(dtype)
    memory = (ctypes.c_char * (int(np.prod(shape)) * kind.itemsize)).from_address(int(address))
    array = np.frombuffer(memory, dtype=kind).reshape(shape)
    return array if kind.names is None else Rows(array)


def interpret():
    """Return the names of the kernel's sources, with every function a plain Python one."""
    space = {"__name__": "interpreted"}
    for module in SOURCES:
        tree = ast.parse(Path(module.__file__).read_text())
        tree.body = [
            node
            for node in tree.body
            if not (isinstance(node, ast.ImportFrom) and node.module in REPLACED)
        ]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                node.decorator_list = []
        exec(compile(tree, module.__file__, "exec"), space)
    space["carray"], space["pointer"] = view_at, int
    space["reached"] = lambda *prices: True
    return space


PLAIN = interpret()


class PlainVenue(Venue):
    """A venue that applies its bars with the interpreted kernel."""

    def advance(self):
        self.t += 1
        records = self._ledger.records
        rows = [k for k in range(self._ledger.count) if records["status"][k] == OPEN]
        for k in list(rows):
            if 0 < records["cancels"][k] <= self.t:
                records["status"][k], records["why"][k] = CANCELLED, WITHDRAWN
                rows.remove(k)
        live, due = np.array(rows, dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        log = np.zeros(4 * len(rows) + 2 * self._holdings.size, dtype=TRADE)
        context = self._floor.copy()
        for name, value in {
            "live": live.ctypes.data,
            "due": due.ctypes.data,
            "trades": log.ctypes.data,
            "n_orders": len(rows),
            "touch": int(self.costs.limit_on_touch),
        }.items():
            context[FIELDS.index(name)] = value
        with np.errstate(all="ignore"):
            count = PLAIN["advance"](context.ctypes.data, self.t)
        still = [k for k in rows if records["status"][k] == OPEN]
        self._ledger.live[: len(still)] = still
        self._n_live = len(still)
        return [self._trade(row) for row in log[:count].tolist()]
