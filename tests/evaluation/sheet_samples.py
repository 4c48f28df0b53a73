"""Sheets of small runs, and a reader of pages, for the tests of the tear sheet."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from typing import Any

import numpy as np

from agent_gym.core import Ref
from agent_gym.core.clock import DAY_NS
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.evaluation.baselines import Comparison, compare
from agent_gym.evaluation.statistics import Interval
from agent_gym.evaluation.tearsheet import Regime, Sheet, Versus, regime_spans, sheet_of
from agent_gym.markets import Bars
from tests.samples import START_NS, random_bars

for module in ("baselines", "sma_cross"):
    import_module(f"agent_gym.agents.rules.{module}")

VOID = {"meta", "img", "br"}
CROSS = Ref(use="rules/sma-cross", params={"fast": 5, "slow": 20})
WILD = Ref(use="rules/random", params={"hold_bars": 1})


class Tags(HTMLParser):
    """Checks that tags are closed in order, and keeps text, addresses and handlers."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.scripts if "script" in self.open else self.text
        inside.append(data)


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return tags


def said(text: str) -> str:
    return " ".join(parsed(text).text)


def data_of(text: str) -> dict[str, Any]:
    """Return the numbers that a page carries."""
    start = text.index('id="data">') + len('id="data">')
    return json.loads(text[start : text.index("</script>", start)])


def compared(bars: Bars, agent: Any = CROSS, **fields: Any) -> Comparison:
    engine = BacktestEngine(BacktestConfig(**fields), command=["run", "<it>"])
    return compare(engine, bars, agent)


def sheet(bars: Bars | None = None, agent: Any = CROSS, **fields: Any) -> Sheet:
    found = compared(random_bars(300, kind="spot") if bars is None else bars, agent, **fields)
    return sheet_of(found.main, found.baselines, label=found.subject)


def full_sheet(**changes: Any) -> Sheet:
    """Return a sheet with everything that a sheet can hold."""
    plain = sheet(random_bars(2_400, kind="spot"))
    names = np.where(np.arange(2_400) % 500 < 250, "calm", "wild")
    made = {
        "verdict": ("no evidence of edge", "The interval contains 0."),
        "regimes": regime_spans(plain.ts, plain.period_ns, names.tolist()),
        "versus": (
            Versus("rules/flat", Interval(1.0, 0.5, 2.0, 0.9), "bp a day", 0.03),
            Versus("rules/buy-hold", Interval(-1.0, -4.0, 2.0, 0.9), "bp a day"),
        ),
    }
    return replace(plain, **(made | changes))


def stretches(n: int) -> list[Regime]:
    return [
        Regime(START_NS + at * DAY_NS, START_NS + (at + 1) * DAY_NS, "ab"[at % 3 == 0])
        for at in range(n)
    ]
