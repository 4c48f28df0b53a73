from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from agent_gym.core.clock import MINUTE_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.figures import FIGURES, FORMULAS, SHORT_FIGURES, Figure
from agent_gym.evaluation.metrics import Metrics
from agent_gym.evaluation.statistics import Interval
from agent_gym.evaluation.tearsheet import (
    Sheet,
    Versus,
    format_of,
    page_of,
    payload_of,
    sheet_of,
    write_sheet,
)
from agent_gym.evaluation.tearsheet.export import tables_of
from agent_gym.evaluation.tearsheet.options import (
    MAX_BESIDE,
    candles_option,
    costs_option,
    equity_option,
    versus_option,
)
from agent_gym.evaluation.tearsheet.sections import MAX_TRIPS, NO_VERDICT
from agent_gym.evaluation.tearsheet.tables import Cost, Costs, figure_rows
from agent_gym.evaluation.tearsheet.thinning import candles
from agent_gym.markets import Bars, Instrument
from tests.evaluation.sheet_samples import (
    WILD,
    compared,
    data_of,
    full_sheet,
    parsed,
    said,
    sheet,
)
from tests.samples import START_NS, bars_of, random_bars, renamed, without_funding

FIVE_MB = 5_000_000
ECHARTS_SHA256 = "b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0"
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


@pytest.fixture(scope="module")
def usual() -> Sheet:
    return sheet(random_bars(2_400, kind="spot"))


@pytest.fixture(scope="module")
def full() -> Sheet:
    return full_sheet()


def half_a_million() -> Sheet:
    n = 500_000
    rng = Seeds(0).child("long").rng()
    close = 100.0 * np.exp(np.cumsum(rng.normal(0.0, 1e-3, n)))
    close[321_987] *= 3.0
    opened = np.append(100.0, close[:-1])
    prices = (opened, np.maximum(opened, close), np.minimum(opened, close), close)
    ts = START_NS + MINUTE_NS * np.arange(n)
    bars = Bars(Instrument(), MINUTE_NS, ts, *prices, np.full(n, 1e9))
    free = dict.fromkeys(("taker_bps", "slippage_bps", "half_spread_bps", "impact"), 0.0)
    return sheet(bars, WILD, **free)  # a hundred thousand trades would else ruin it


def test_the_page_is_whole_and_has_no_address(full):
    text = page_of(full)
    tags = parsed(text)
    assert tags.addresses == []
    assert tags.handlers == []
    assert not {"link", "iframe", "object", "base", "form", "img"} & set(tags.seen)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    assert "http" not in policy


def test_the_verdict_comes_first(full, usual):
    words = said(page_of(full))
    heads = [
        "No evidence of edge",
        "Key figures",
        "Equity and drawdown",
        "Price and trades",
        "Monthly returns",
        "Rolling Sharpe ratio",
        "Deepest drawdowns",
        "Round trips",
        "Costs",
        "Beside the baselines",
        "Where this comes from",
    ]
    places = [words.index(f" {head} ") for head in heads]
    assert places == sorted(places)
    assert NO_VERDICT[0] in said(page_of(usual))
    assert NO_VERDICT[0] not in words


@pytest.mark.parametrize(
    ("word", "tone"),
    [
        ("evidence of edge", "good"),
        ("promising", "hint"),
        ("no evidence of edge", "unsure"),
        ("worse than baseline", "bad"),
    ],
)
def test_each_verdict_has_its_look(usual, word, tone):
    assert f'class="banner {tone}"' in page_of(replace(usual, verdict=(word, "why")))


def test_everything_that_is_known_is_said(full):
    words = said(page_of(full))
    for part in (
        *full.equity,
        "run '<it>'",
        full.provenance["data fingerprint"],
        full.manifest["config_hash"],
        "Known regimes:",
        "calm",
        "wild",
        "0.500 to 2.000",
        "0.0300",
    ):
        assert part in words


def test_table_chart_and_json_have_the_same_numbers(full):
    text, found = page_of(full), payload_of(full)
    own, shown = found["figures"][full.subject], said(text)
    for figure in FIGURES:
        if any(known[figure.name] is not None for known in found["figures"].values()):
            assert figure.format(own[figure.name]) in shown
    charts = data_of(text)["charts"]
    months = {(m, row): v for m, row, v in charts["monthly"]["series"][0]["data"]}
    for row, year in enumerate(found["monthly"]):
        for month, value in year["months"].items():
            assert months[int(month) - 1, row] == round(100.0 * value, 2)
    rolled = [value for _, value in charts["rolling"]["series"][0]["data"]]
    assert rolled == [float(f"{value:.4g}") for value in found["rolling_sharpe"]["sharpe"]]
    falls = [row[1] for row in charts["equity"]["series"][len(full.equity)]["data"]]
    assert min(falls) == pytest.approx(-100.0 * found["drawdowns"][0]["depth"], rel=1e-5)
    assert min(falls) == pytest.approx(-100.0 * own["max_drawdown"], rel=1e-5)


def test_intervals_are_shown_in_the_unit_of_their_figure(usual):
    shown = replace(usual, intervals={"max_drawdown": Interval(0.2, 0.1234, 0.4567, 0.9)})
    assert "90 %: 12.34 to 45.67" in said(page_of(shown))


def test_every_name_explains_itself(usual):
    text = page_of(usual)
    assert text.count('class="tip"') >= len(FIGURES)
    assert "Mean / standard deviation of daily returns" in text
    assert [each.name for each in FIGURES if each.name not in FORMULAS] == []


def test_strings_from_outside_are_escaped():
    plain = sheet(renamed(random_bars(900), EVIL))
    curves = {EVIL + arm: curve for arm, curve in plain.equity.items()}
    shown = replace(
        plain,
        title=EVIL,
        subject=EVIL + plain.subject,
        equity=curves,
        figures={EVIL + arm: known for arm, known in plain.figures.items()},
        verdict=(EVIL, EVIL),
        notes=(EVIL,),
        command=EVIL,
        provenance={EVIL: EVIL},
        manifest={"command": EVIL},
        versus=[Versus(EVIL, Interval(0.0, -1.0, 1.0, 0.95), EVIL)],
    )
    text = page_of(shown)
    tags = parsed(text)
    assert tags.seen.count("script") == 4
    assert "img" not in tags.seen
    assert tags.handlers == []
    assert EVIL in said(text)  # shown as text, letter by letter
    assert data_of(text)["charts"]["equity"]["legend"]["data"][0] == shown.subject


def test_a_name_that_is_no_text_is_shown_as_its_bytes(usual, tmp_path):
    write_sheet(tmp_path / "a.html", replace(usual, command="run \udcff.csv"))
    assert r"run \udcff.csv" in (tmp_path / "a.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [".html", ".json", ".png", ".csv"])
def test_equal_runs_give_equal_bytes(kind, tmp_path):
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        write_sheet(folder / f"x{kind}", sheet(random_bars(900, kind="spot")))
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "ab"
    )
    assert first == second
    assert all(first.values())


def test_half_a_million_bars_fit_a_page():
    shown = half_a_million()
    text = page_of(shown)
    assert len(text.encode()) < FIVE_MB
    data = data_of(text)
    assert len(data["trips"]) == MAX_TRIPS < shown.trips.size
    highest = max(row[4] for row in data["charts"]["candles"]["series"][0]["data"])
    assert highest == pytest.approx(shown.bars.high.max(), rel=1e-5)
    line = data["charts"]["equity"]["series"][0]["data"]
    curve = 100.0 * shown.curve / shown.curve[0]
    assert max(value for _, value in line) == pytest.approx(curve.max(), rel=1e-5)
    assert min(value for _, value in line) == pytest.approx(curve.min(), rel=1e-5)


def test_many_arms_fit_a_page(usual):
    arms = {f"arm {at}": usual.curve for at in range(60)} | {usual.subject: usual.curve}
    figures = {arm: usual.figures[usual.subject] for arm in arms}
    text = page_of(replace(usual, equity=arms, figures=figures))
    assert len(text.encode()) < FIVE_MB
    selected = data_of(text)["charts"]["equity"]["legend"]["selected"]
    assert len(selected) == len(arms) - 1 - MAX_BESIDE
    assert not any(selected.values())


def test_a_sheet_of_the_least_has_no_empty_charts():
    ts = START_NS + np.arange(1, 4)
    bare = Sheet("t", "a", ts, {"a": np.array([1.0, 2.0, 1.5])}, {"a": {}}, "run")
    text = page_of(bare)
    charts = data_of(text)["charts"]
    assert set(charts) == {"equity", "monthly"}
    for name in ("candles", "rolling", "costs", "versus"):
        assert f'id="{name}"' not in text
    assert "No round trip was closed" in said(text)


def test_a_ruined_account_can_be_shown():
    price = np.concatenate([np.full(40, 100.0), np.full(40, 1e-6)])
    bars = bars_of(price, price, price, price, kind="perpetual")
    found = compared(
        bars,
        WILD.model_copy(update={"use": "rules/buy-hold", "params": {}}),
        max_leverage=5.0,
        position_size=5.0,
    )
    shown = sheet_of(found.main, found.baselines)
    assert shown.curve[-1] <= 1.0
    text = page_of(shown)
    assert ('id="log"' in text) == (shown.curve.min() > 0.0)
    json.dumps(payload_of(shown), allow_nan=False)


def test_funding_and_risk_parts_are_said():
    bars = random_bars(300, funding=1e-4)
    assert "charged at the rates of the bars" in said(page_of(sheet(bars)))
    free = sheet(without_funding(bars), missing_funding="zero")
    assert "none charged: no rates are known" in said(page_of(free))
    held = said(page_of(sheet(bars, var_limit=0.01, max_drawdown=0.05)))
    assert "held back by var" in held
    assert "held back by drawdown" in held
    assert "risk parts" not in said(page_of(free))


def test_options_are_plain_values_and_their_own(full):
    level = candles(full.bars, 100)
    for make in (lambda: equity_option(full), lambda: candles_option(full, level)):
        first, second = make(), make()
        assert first == second
        assert json.loads(json.dumps(first, allow_nan=False)) == first
        first["series"].clear()
        assert make() == second
    areas = [equity_option(full), candles_option(full, level)]
    assert all(option["series"][0]["markArea"]["data"] for option in areas)
    spans = {(a["min"], a["max"]) for option in areas for a in option["xAxis"]}
    assert len(spans) == 1  # so that the same zoom is the same time
    assert equity_option(full, log=True)["yAxis"][0]["type"] == "log"


def test_marks_are_where_the_side_changes(usual):
    bought, sold = candles_option(usual, candles(usual.bars, 100))["series"][1:]
    assert len(bought["data"]) + len(sold["data"]) == len(usual.fills) > 4
    assert bought["symbol"] != sold["symbol"]
    assert "symbolRotate" not in sold  # the legend would show it upright
    first = usual.fills[0]
    assert bought["data"][0][0] == usual.bars.ts[first["bar"]] // 1_000_000
    assert bought["data"][0][1] == pytest.approx(first["price"], rel=1e-5)


def test_a_waterfall_ends_where_it_should():
    parts = (Cost("fees", 30.0, None, None), Cost("funding", -5.0, None, None))
    costs = Costs(10.0, (*parts, Cost("all costs", 25.0, None, None)), -15.0)
    feet, tops, lows, falls = (each["data"] for each in costs_option(costs, "USDT")["series"])
    spans = [
        (low + fall["value"], foot + top["value"])
        for foot, top, low, fall in zip(feet, tops, lows, falls, strict=True)
    ]
    # before: 0 to 10; fees: 10 down to -20; funding: -20 up to -15; after: -15 to 0
    assert spans == [(0.0, 10.0), (-20.0, 10.0), (-20.0, 0.0), (-15.0, 0.0)]
    assert lows == [0.0, 0.0, -15.0, 0.0]


def test_only_a_clear_difference_has_a_colour():
    clear, unclear = Interval(2.0, 1.0, 3.0, 0.95), Interval(2.0, -1.0, 5.0, 0.95)
    worse = Interval(-2.0, -3.0, -1.0, 0.95)
    option = versus_option([Versus("a", clear), Versus("b", unclear), Versus("c", worse)])
    colours = [each["itemStyle"]["color"] for each in option["series"][1::2]]
    assert len(set(colours)) == 3
    assert colours[1] == "#8a8a8a"


def test_other_charts_are_plain_values(full):
    data = data_of(page_of(full))["charts"]
    assert set(data) == {"equity", "candles", "monthly", "rolling", "costs", "versus"}
    assert {"heatmap"} == {each["type"] for each in data["monthly"]["series"]}


def test_formats_go_by_the_name(full, tmp_path):
    assert format_of(Path("a/b.HTML")) == ".html"
    for name in ("report", "report.pdf", "report.html.gz"):
        with pytest.raises(ConfigError, match="format"):
            format_of(Path(name))
    write_sheet(tmp_path / "x.json", full)
    assert json.loads((tmp_path / "x.json").read_text()) == json.loads(json.dumps(payload_of(full)))
    write_sheet(tmp_path / "x.png", full)
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_tables_can_be_read_back(full, tmp_path):
    write_sheet(tmp_path / "x.csv", full)
    names = sorted(path.name for path in tmp_path.iterdir())
    kinds = ("csv", "drawdowns.csv", "figures.csv", "monthly.csv", "round_trips.csv")
    assert names == [f"x.{kind}" for kind in kinds]
    curves = pl.read_csv(tmp_path / "x.csv")
    assert np.array_equal(curves[f"equity {full.subject}"].to_numpy(), full.curve)
    trips = pl.read_csv(tmp_path / "x.round_trips.csv")
    assert trips["net"].sum() == pytest.approx(full.trips["net_pnl"].sum())
    figures = pl.read_csv(tmp_path / "x.figures.csv")
    assert figures["figure"].to_list() == [each.name for each in FIGURES]


def test_a_label_is_no_formula_in_a_spreadsheet(usual):
    evil = "=cmd()"
    shown = replace(usual, figures=dict(usual.figures) | {evil: usual.figures[usual.subject]})
    assert "'=cmd()" in tables_of(shown)["figures"].columns


def test_the_library_is_the_published_file():
    assets = files("agent_gym.evaluation.tearsheet") / "assets"
    library = (assets / "echarts.min.js").read_bytes()
    assert sha256(library).hexdigest() == ECHARTS_SHA256
    assert b"</script" not in library
    assert b"<!--" not in library
    assert b"\r" not in library
    for name in ("LICENSE", "NOTICE", "LICENSE-d3"):
        assert (assets / f"echarts-{name}.txt").read_text()


def test_every_figure_of_a_table_is_a_metric(usual):
    for figure in (*FIGURES, *SHORT_FIGURES):
        assert figure.name in Metrics.__dataclass_fields__
        assert figure.format(usual.figures[usual.subject][figure.name])
    rest = set(Metrics.__dataclass_fields__) - {"bars", "years"}
    assert {figure.name for figure in FIGURES} >= rest


def test_a_figure_that_is_listed_twice_is_shown_once(usual):
    twice = replace(usual, shown=(Figure("sharpe", "Sharpe"), *FIGURES))
    names = [name for name, _ in figure_rows(twice)]
    assert names[0] == "sharpe"
    assert len(names) == len(set(names)) == len(FIGURES)


def test_figures_as_text():
    percent = Figure("x", "x", "%", 100.0)
    assert percent.format(None) == "-"
    assert percent.format(-0.1234) == "-12.34"
    assert percent.format(-1e-9) == "0.00"
    assert percent.format(1_234) == "1,234"
