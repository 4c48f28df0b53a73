from __future__ import annotations

from html.parser import HTMLParser
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.evaluation.baselines import Comparison, compare
from agent_gym.evaluation.charts import MAX_MARKS, draw, envelope, png, write_png
from agent_gym.evaluation.figures import FIGURES, SHORT_FIGURES, Figure
from agent_gym.evaluation.metrics import Metrics
from agent_gym.evaluation.report import page, write_report
from agent_gym.markets import Bars
from tests.samples import bars_of, random_bars, renamed, without_funding

for module in ("baselines", "sma_cross"):
    import_module(f"agent_gym.agents.rules.{module}")

VOID = {"meta", "img", "br"}


class Tags(HTMLParser):
    """Checks that tags are closed in order, and keeps text and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def compared(bars: Bars, agent: Any = None, **fields: Any) -> Comparison:
    ref = agent or Ref(use="rules/sma-cross", params={"fast": 5, "slow": 20})
    return compare(BacktestEngine(BacktestConfig(**fields), command=["run", "<it>"]), bars, ref)


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return tags


@pytest.fixture(scope="module")
def usual() -> Comparison:
    return compared(random_bars(300, kind="spot"))


def test_four_panels_with_units_and_every_curve(usual):
    figure = draw(usual)
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    for title, word in zip(titles, ("Price (", "start = 100", "(%)", "% of equity"), strict=True):
        assert word in title
    labels = [line.get_label() for line in figure.axes[1].get_lines()]
    assert labels == list(usual.runs)


def test_nothing_overlaps(usual):
    long_name = Ref(
        use="rules/sma-cross", params={"fast": 5, "slow": 20, "size": 0.75, "allow_short": False}
    )
    for comparison in (usual, compared(random_bars(300), long_name)):
        figure = draw(comparison)
        figure.draw_without_rendering()
        boxes = []
        for panel in figure.axes:
            legend = panel.get_legend()
            artists = [panel._left_title, *([legend] if legend else [])]
            boxes += [panel.get_window_extent(), *(each.get_window_extent() for each in artists)]
        page_box = figure.bbox
        for i, one in enumerate(boxes):
            assert page_box.x0 <= one.x0 + 1
            assert one.x1 <= page_box.x1 + 1
            for other in boxes[i + 1 :]:
                wide = min(one.x1, other.x1) - max(one.x0, other.x0)
                high = min(one.y1, other.y1) - max(one.y0, other.y0)
                assert wide <= 1 or high <= 1


def test_equal_runs_give_equal_pictures(usual, tmp_path):
    again = compared(random_bars(300, kind="spot"))
    write_png(tmp_path / "a.png", usual)
    assert (tmp_path / "a.png").read_bytes() == png(again)
    assert png(again).startswith(b"\x89PNG")


def test_trades_are_marked_where_the_side_changes(usual):
    marks = draw(usual).axes[0].collections
    turns = sum(len(each.get_offsets()) for each in marks)
    assert turns == len(usual.main.fills) > 4


def test_too_many_trades_are_said_and_not_drawn():
    wild = Ref(use="rules/random", params={"hold_bars": 1})
    comparison = compared(random_bars(600, kind="spot"), wild)
    panel = draw(comparison).axes[0]
    assert len(comparison.main.fills) > MAX_MARKS
    assert not panel.collections
    assert "too many to mark" in panel.get_title(loc="left")


@pytest.mark.parametrize(
    ("factor", "scale"), [(1.001, "linear"), (1.02, "log")], ids=["calm", "steep"]
)
def test_steep_curves_get_a_log_scale(factor, scale):
    price = 100.0 * factor ** np.arange(120.0)
    comparison = compared(bars_of(price, price, price, price))
    axes = draw(comparison).axes
    assert axes[0].get_yscale() == axes[1].get_yscale() == scale


def test_a_ruined_account_can_be_drawn():
    price = np.concatenate([np.full(40, 100.0), np.full(40, 1e-6)])
    bars = bars_of(price, price, price, price, kind="perpetual")
    comparison = compared(bars, Ref(use="rules/buy-hold"), max_leverage=5.0, position_size=5.0)
    assert comparison.main.equity[-1] <= 1.0
    assert png(comparison)
    assert "Final" not in parsed(page(comparison, picture=b"x")).text


@given(st.integers(1, 3_000), st.integers(1, 300), st.integers(0, 50))
def test_an_envelope_keeps_every_extreme_and_both_ends(n, buckets, seed):
    values = Seeds(seed).child("line").rng().normal(size=n)
    at = envelope(values, buckets)
    assert at[0] == 0
    assert at[-1] == n - 1
    assert (np.diff(at) > 0).all()
    assert values[at].max() == values.max()
    assert values[at].min() == values.min()
    assert at.size <= max(2 * buckets + 2, 1)


def test_the_page_is_whole_and_needs_no_network(usual, tmp_path):
    write_report(tmp_path / "report.html", usual)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    tags = parsed(text)
    assert all(address.startswith("data:image/png;base64,") for address in tags.addresses)
    assert not {"script", "link", "iframe", "object"} & set(tags.seen)
    assert "default-src 'none'" in text
    said = " ".join(tags.text)
    for words in (
        *usual.runs,
        usual.main.equity_hash,
        usual.main.manifest.data["fingerprint"],
        "run '<it>'",
        usual.main.manifest.config_hash,
    ):
        assert words in said


def test_the_page_says_which_funding_was_charged():
    bars = random_bars(60, funding=1e-4)
    paid = page(compared(bars), picture=b"x")
    assert "charged at the rates of the bars" in parsed(paid).text
    free = compared(without_funding(bars), missing_funding="zero")
    said = parsed(page(free, picture=b"x")).text
    assert "none charged: no rates are known, and zero was asked for" in said


def test_strings_from_outside_are_escaped():
    bars = random_bars(60)
    evil = "<script>alert(1)</script>"
    text = page(compared(renamed(bars, evil)), title=evil + '"', picture=b"x")
    assert evil not in text
    assert "script" not in parsed(text).seen


def test_the_page_says_what_risk_parts_did():
    comparison = compared(random_bars(300), var_limit=0.01, max_drawdown=0.05)
    said = " ".join(parsed(page(comparison, picture=b"x")).text)
    assert "held back by var" in said
    assert "held back by drawdown" in said
    assert "risk parts" not in " ".join(parsed(page(compared(random_bars(60)))).text)


def test_every_figure_of_a_table_is_a_metric(usual):
    for figure in (*FIGURES, *SHORT_FIGURES):
        assert figure.name in Metrics.__dataclass_fields__
        assert figure.text(usual.main.metrics)
    assert {figure.name for figure in FIGURES} >= set(Metrics.__dataclass_fields__) - {
        "bars",
        "years",
    }


def test_figures_as_text():
    percent = Figure("x", "x", "%", 100.0)
    assert percent.format(None) == "-"
    assert percent.format(-0.1234) == "-12.34"
    assert percent.format(-1e-9) == "0.00"
    assert percent.format(1_234) == "1,234"
