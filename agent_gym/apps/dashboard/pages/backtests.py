"""Backtests: candles with trades, equity and drawdown on one zoom, figures beside baselines."""

from __future__ import annotations

from agent_gym.apps.dashboard.charts import spoken
from agent_gym.apps.dashboard.figures.backtests import (
    BacktestFigures,
    backtest_figures,
    backtest_list,
)
from agent_gym.apps.dashboard.markup import Part, Safe, el, link, text
from agent_gym.apps.dashboard.parts import colour, facts, table
from agent_gym.apps.dashboard.query import place
from agent_gym.apps.dashboard.view import Block, Chart, Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.evaluation.figures import SHORT_FIGURES
from agent_gym.evaluation.saved import SavedBacktest
from agent_gym.markets.bars import source_words
from agent_gym.reporting.text import number, percent

COMMAND = "agent-gym backtest --agent rules/momentum --market synthetic/btc-1h --plot"
HERE = "/dashboard/agents"


def view(visit: Visit) -> View:
    """Return the list of backtests, or the one that was asked for."""
    words, name = visit.words, visit.query.get("name")
    if name:
        return _one(words, backtest_figures(visit.service, name))
    saved = backtest_list(visit.service)
    if saved:
        return View(words("nav.agents"), (Markup("list", _list(words, saved), wide=True),))
    none = empty(words, "agents.none", visit.command(COMMAND))
    return View(words("nav.agents"), (Markup("none", card(words("nav.agents"), none)),))


def _list(words: Words, saved: tuple[SavedBacktest, ...]) -> Safe:
    rows: list[list[Part]] = []
    for each in saved:
        metrics, data = each.results["metrics"], each.results["provenance"]
        rows.append(
            [
                link(place(HERE, [("name", each.name)]), each.name),
                str(each.results.get("label", each.results["agent"])),
                source_words(data),
                *(
                    words.grouped(figure.format(metrics.get(figure.name)))
                    for figure in SHORT_FIGURES
                ),
            ]
        )
    heads = [
        words("agents.folder"),
        words("agents.agent"),
        words("agents.market"),
        *(words.head(words.said(figure.heading)) for figure in SHORT_FIGURES),
    ]
    return table(words("nav.agents"), heads, rows, numbers=range(3, len(heads)))


def _one(words: Words, found: BacktestFigures) -> View:
    results = found.saved.results
    subject = str(results.get("label", results["agent"]))
    charts = found.saved.charts
    blocks: list[Block] = [Markup("about", _about(words, found))]
    if "linked" in charts:
        drawn = spoken(charts["linked"], words.said)
        blocks.append(Chart("linked", drawn, words("agents.chart", name=subject), 720))
        if found.saved.regimes:
            blocks.append(Markup("regimes", _regimes(words, found), wide=True))
    else:
        blocks.append(Markup("nochart", el("p", words("agents.no_chart"), class_="faint")))
    if "versus" in charts:
        height = 90 + 34 * max(1, len(found.arms) - 1)
        drawn = spoken(charts["versus"], words.said)
        blocks.append(Chart("versus", drawn, words("agents.versus"), height))
    blocks += [
        Markup("figures", _figures(words, found), wide=True),
        Markup("fills", _fills(words, found), wide=True),
    ]
    return View(words("agents.one", name=subject), tuple(blocks))


def _about(words: Words, found: BacktestFigures) -> Safe:
    results, last = found.saved.results, found.last
    data, made = results["provenance"], results["manifest"]
    rows: list[tuple[str, Part]] = [
        (words("agents.equity"), words.grouped(number(last["equity"], 8))),
        (words("agents.position"), number(last["position"])),
        (words("agents.cash"), words.grouped(number(last["cash"], 8))),
        (
            words("agents.market"),
            f"{source_words(data)}, {words.count(data['rows'])} x {data['period']}",
        ),
        (words("agents.hash"), el("code", results["equity_hash"])),
        (words("agents.command"), el("code", str(made.get("command", "-")))),
    ]
    return card(found.saved.name, facts(rows))


def _figures(words: Words, found: BacktestFigures) -> Safe:
    rows: list[list[Part]] = [
        [
            _with_formula(words.said(figure.heading), figure.formula),
            *(
                words.grouped(figure.format(metrics.get(figure.name)))
                for metrics in found.arms.values()
            ),
        ]
        for figure in found.shown
    ]
    heads = [words("metric.name"), *found.arms]
    return table(words("agents.figures"), heads, rows, numbers=range(1, len(heads)))


def _with_formula(name: str, formula: str) -> Safe:
    """Return the name of a figure that shows its formula when pressed, also by key and by touch."""
    told = el("p", formula, class_="small", lang="en")  # formulas are English in every language
    return el("details", el("summary", name), told, class_="formula")


def _regimes(words: Words, found: BacktestFigures) -> Safe:
    """Return what was earned in each state of the market; its colour is that of the chart."""
    rows: list[list[Part]] = [
        [
            el(
                "span",
                el("i", class_="swatch", style=f"background: {colour(each['colour'])}"),
                words.said(str(each["name"])),
                class_="state",
            ),
            f"{100.0 * each['share']:.1f} %",
            percent(each["market"]),
            *(percent(each["arms"].get(label)) for label in found.arms),
        ]
        for each in found.saved.regimes
    ]
    heads = [words("agents.regime"), words("agents.share"), words("agents.market"), *found.arms]
    made = table(words("agents.regimes"), heads, rows, numbers=range(1, len(heads)))
    return text(made, el("p", words("agents.regimes_about"), class_="small faint note"))


def _fills(words: Words, found: BacktestFigures) -> Safe:
    rows: list[list[Part]] = [
        [
            each["ts"].strftime("%Y-%m-%d %H:%M"),
            words("agents.bought") if each["qty"] > 0 else words("agents.sold"),
            number(abs(each["qty"])),
            words.grouped(number(each["price"], 7)),
            number(each["fee"]),
        ]
        for each in found.fills
    ]
    heads = [words(f"agents.{name}") for name in ("time", "side", "quantity", "price", "fee")]
    return table(words("agents.fills", n=len(rows)), heads, rows, numbers=(2, 3, 4))


PAGE = Page("/agents", "agents", view, live=False)
