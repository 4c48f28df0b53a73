"""The page of a walk: whole, honest, of its own, and the same every time."""

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from agent_gym.agents.umc.macro.labels import Regime
from agent_gym.reporting.canvas import PALETTE, inline_svg
from agent_gym.reporting.text import number
from agent_gym.reporting.umc import html_page
from agent_gym.reporting.umc.market import REGIMES, candles, generations
from agent_gym.reporting.umc.mind import curiosity
from agent_gym.reporting.umc.page import crowd_parts, lambda_note
from agent_gym.reporting.umc.tables import comparison
from agent_gym.reporting.umc.trails import means, thin
from tests.evaluation.umc_walk_samples import known_bars, small_run
from tests.reporting.colour_vision import apart, themed
from tests.reporting.page_rules import EVIL, RULES, Seen

SECTIONS = (
    "Where the bars come from",
    "What it earned",
    "Beside baselines",
    "The market",
    "What it believed",
    "Free energy",
    "Information and lambda",
    "Break-even",
    "Echoes",
    "Folds",
    "Trials and verdict",
    "Where this comes from",
)


@pytest.fixture(scope="module")
def page():
    run = small_run()
    told = run.evaluation.manifest
    evil = told.model_copy(update={"command": f"{told.command} {EVIL}"})
    return html_page(replace(run, evaluation=replace(run.evaluation, manifest=evil)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_it_wears_the_one_look(page, rule):
    rule(Seen("UMC", page))


def test_the_page_has_every_part(page):
    assert re.findall("<h2>(.*?)</h2>", page) == list(SECTIONS)
    for name in ("equity", "position", "candles", "heads", "outlook", "energy", "curiosity"):
        assert f'<figure id="{name}">' in page, name
    for arm in small_run().evaluation.arms:
        assert arm.label.replace("&", "&amp;") in page


def test_d31_the_bars_are_named_with_their_hash(page):
    assert known_bars().fingerprint in page
    assert "1,500 of 1h" in page
    assert "synthetic known/m1" in page


def test_the_command_that_makes_it_again_is_there(page):
    assert "agent-gym umc backtest --market known/m1" in page


def test_d49_a_lambda_at_its_bounds_confirms_nothing(page):
    assert small_run().lam.share_at_bounds == 1.0
    assert "at a bound for 100 % of the time. Where its bounds hold it" in page
    free = small_run().trace.columns | {"lambda": np.full(len(small_run().trace), 0.28)}
    inside = replace(small_run(), trace=replace(small_run().trace, columns=free))
    assert "at a bound for 0 % of the time. Recorded bars" in lambda_note(inside)


def test_f3_the_page_says_that_lambda_changed_no_trade(page):
    assert "no lambda changed a trade here" in page


def test_the_page_asks_nobody(page):
    assert "default-src 'none'" in page
    outside = re.findall(r"(?:src|href)=\"(?!#)([^\"]*)\"", page)
    assert outside == []
    assert not re.search(r"url\((?!#)", page)


def test_equal_runs_give_equal_pictures():
    one, other = (inline_svg(curiosity(small_run(), 350), "n", "l") for _ in range(2))
    assert one == other


def test_without_a_crowd_there_is_nothing_to_say_of_echoes():
    assert crowd_parts(replace(small_run(), echoes=None, leakage=None)) == []


def test_macrostates_colour_the_candles():
    run = small_run()
    names = np.where(np.arange(len(run.trace)) < 200, "TREND_UP", "RANGE").astype("U24")
    drawn = candles(replace(run, trace=replace(run.trace, regime=names)), 920)
    (panel,) = drawn.axes
    legend = panel.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["trend up", "range"]
    assert candles(run, 920).axes[0].get_legend() is None


def test_any_two_macrostates_can_be_told_apart_by_any_eyes():
    assert set(REGIMES) == set(Regime)
    for theme in themed(REGIMES.values()):
        assert all(apart(a, b) > 10.0 for a, b in combinations(theme, 2))
    assert min(apart(*pair) for pair in themed((PALETTE[0], PALETTE[6]))) < 5.0, "blue and purple"


def test_generations_are_counted_in_whole_numbers():
    crowd = small_run().echoes
    few = [row for row in crowd.generations if row.number <= 2]
    for rows in (few, crowd.generations):
        (panel,) = generations(replace(crowd, generations=rows), 920).axes
        assert {tick % 1.0 for tick in panel.get_xticks()} == {0.0}


def test_random_timing_is_a_row_of_its_own(page):
    found, bars = small_run().arm.random, len(small_run().trace) - 1
    assert found.low < found.mean < found.high
    assert "random timing<br>5-95 % of 5 draws" in page
    assert number(1e4 * found.mean / bars, 3) in page
    bare = replace(small_run().arm, random=None)
    arms = (bare, *small_run().evaluation.arms[1:])
    without = replace(small_run(), evaluation=replace(small_run().evaluation, arms=arms))
    assert "random timing" not in comparison(without)


def test_the_page_says_how_folds_learn(page):
    assert "learned anew" not in page
    assert "begins from the weights of the fold before" in page


def test_thinning_keeps_peaks_and_means_ignore_what_is_not_known():
    y = np.zeros(10_000)
    y[4_321] = 7.0
    _, kept = thin(np.arange(10_000.0), y, 100)
    assert kept.max() == 7.0
    assert kept.size <= 200
    assert means(np.array([1.0, np.nan, 3.0, np.nan]), 2).tolist() == [1.0, 3.0]
