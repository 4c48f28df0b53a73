"""Plots at both widths, whatever is missing; in a page they bring no style, script or address."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from agent_gym.reporting.canvas import NARROW, WIDE, inline_svg, png_of, steps_text, svg_of
from agent_gym.reporting.rl.compare_plots import comparison, distributions, profiles, survival
from agent_gym.reporting.rl.plots import Mark, final_distribution, learning_curves, losses
from agent_gym.reporting.rl.runs import read_arms
from agent_gym.training.rl.config import TrainerConfig
from tests.reporting.run_samples import write_arm, write_run

MARKS = (Mark(242.1, "published"), Mark(200.0, "solved"))


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arms")
    write_arm(folder / "low", 3, 190.0)
    write_arm(folder / "high $x$", 3, 255.0)
    write_run(folder / "failed", 1, status="error")
    return read_arms(folder)


def figures(arms, width):
    return {
        "curves": learning_curves(arms, width=width, marks=MARKS),
        "losses": losses(arms, width=width),
        "final": final_distribution(arms[1], width=width, marks=MARKS),
        "comparison": comparison(arms, width=width, marks=MARKS),
        "distributions": distributions(arms, width=width, marks=MARKS),
        "profiles": profiles(arms, width=width),
        "survival": survival(arms, 200.0, width=width),
    }


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_plot_is_plain_svg(arms, width):
    ids: list[str] = []
    for name, figure in figures(arms, width).items():
        svg = inline_svg(figure, name, f"plot <{name}>")
        root = ElementTree.fromstring(svg)
        assert root.get("viewBox") == f"0 0 {width} {root.get('viewBox').split()[3]}"
        assert root.get("aria-label") == f"plot <{name}>"
        for word in ("style", "<script", "xmlns", "http", "metadata", "#0072b2"):
            assert word not in svg, (name, word)
        assert "var(--ink)" in svg
        own = re.findall(r' id="([^"]+)"', svg)
        asked = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
        assert asked == set(own)
        ids += own
    assert len(ids) == len(set(ids))


def test_equal_runs_give_equal_bytes(arms):
    assert svg_of(learning_curves(arms)) == svg_of(learning_curves(arms))
    assert png_of(learning_curves(arms)) == png_of(learning_curves(arms))
    assert png_of(learning_curves(arms)).startswith(b"\x89PNG")


def test_names_are_no_formulas(arms):
    assert "high $x$" in inline_svg(comparison(arms), "c", "c")


def test_the_curve_draws_what_it_says(arms):
    lines = learning_curves(arms[1:2]).axes[0].lines
    curve = next(line for line in lines if line.get_label() == "high \\$x\\$")
    assert curve.get_xdata()[-1] == 250_000
    assert 200.0 < curve.get_ydata()[-1] < 300.0


def test_a_run_that_has_nothing_yet_can_be_drawn(tmp_path):
    path = write_run(tmp_path, 1, status=None, config=TrainerConfig(steps=100))
    for name in ("evaluations.csv", "episodes.csv"):
        (path / name).unlink()
    (path / "metrics.csv").write_text("step,loss\n")
    arms = read_arms(tmp_path)
    assert losses(arms) is None
    for figure in (learning_curves(arms), final_distribution(arms[0]), survival(arms, 200.0)):
        assert png_of(figure)
    for figure in (comparison(arms), profiles(arms), distributions(arms)):
        assert png_of(figure)


def test_equal_returns_have_a_histogram(tmp_path):
    path = write_run(tmp_path, 1)
    rows = "\n".join(f"1,{at},-100.0,9" for at in range(5))
    (path / "final_episodes.csv").write_text(f"step,seed,reward,length\n{rows}\n")
    assert png_of(final_distribution(read_arms(tmp_path)[0]))


def test_steps_are_short():
    assert [steps_text(value) for value in (0, 999, 1500, 204_800)] == [
        "0",
        "999",
        "1.5k",
        "204.8k",
    ]
