from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core import Ref
from agent_gym.evaluation.tearsheet import Sheet
from agent_gym.evaluation.tearsheet.picture import MAX_ARMS, MAX_MARKS, draw, png_of
from tests.evaluation.sheet_samples import WILD, sheet
from tests.samples import bars_of, random_bars, renamed


@pytest.fixture(scope="module")
def usual() -> Sheet:
    return sheet()


def test_four_panels_with_units_and_every_curve(usual):
    figure = draw(usual)
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    for title, word in zip(titles, ("Price (", "start = 100", "(%)", "% of equity"), strict=True):
        assert word in title
    labels = [line.get_label() for line in figure.axes[1].get_lines()]
    assert labels == list(usual.equity)


def test_nothing_overlaps(usual):
    long_name = Ref(
        use="rules/sma-cross", params={"fast": 5, "slow": 20, "size": 0.75, "allow_short": False}
    )
    for shown in (usual, sheet(random_bars(300), long_name)):
        figure = draw(shown)
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


def test_trades_are_marked_where_the_side_changes(usual):
    marks = draw(usual).axes[0].collections
    turns = sum(len(each.get_offsets()) for each in marks)
    assert turns == len(usual.fills) > 4


def test_too_many_trades_are_said_and_not_drawn():
    shown = sheet(random_bars(600, kind="spot"), WILD)
    panel = draw(shown).axes[0]
    assert len(shown.fills) > MAX_MARKS
    assert not panel.collections
    assert "too many to mark" in panel.get_title(loc="left")


@pytest.mark.parametrize(
    ("factor", "scale"), [(1.001, "linear"), (1.02, "log")], ids=["calm", "steep"]
)
def test_steep_curves_get_a_log_scale(factor, scale):
    price = 100.0 * factor ** np.arange(120.0)
    axes = draw(sheet(bars_of(price, price, price, price))).axes
    assert axes[0].get_yscale() == axes[1].get_yscale() == scale


def test_a_ruined_account_can_be_drawn():
    price = np.concatenate([np.full(40, 100.0), np.full(40, 1e-6)])
    bars = bars_of(price, price, price, price, kind="perpetual")
    shown = sheet(bars, Ref(use="rules/buy-hold"), max_leverage=5.0, position_size=5.0)
    assert shown.curve[-1] <= 1.0
    assert png_of(shown)


def test_what_is_not_known_has_no_panel(usual):
    bare = replace(usual, bars=None, fills=None, trips=None, position=None)
    assert len(draw(bare).axes) == 2


def test_many_arms_are_cut_and_names_are_no_formulas():
    plain = sheet(renamed(random_bars(300), "$\\frac{1}$"))
    arms = {f"$\\broken{{{at}$": plain.curve for at in range(12)}
    many = replace(plain, equity={plain.subject: plain.curve} | arms)
    figure = draw(many)
    assert len(figure.axes[1].get_lines()) == MAX_ARMS
    figure.draw_without_rendering()
