"""The tables of the page: who earned what, what a trade must earn, what leaked, what was asked."""

from __future__ import annotations

from html import escape

from agent_gym.evaluation.leakage import LeakageReport
from agent_gym.evaluation.page import chip, table
from agent_gym.evaluation.protocol.permutation import RandomDraws
from agent_gym.evaluation.protocol.report import ArmReport
from agent_gym.evaluation.statistics import Interval
from agent_gym.evaluation.umc_walk import UmcRun
from agent_gym.markets.quality import format_time
from agent_gym.reporting.text import many, number, one_line

DASH = "-"
IN_BP = 1e4
LEAKS = {
    "g1_purity": ("G1 purity", "rows of others that the model learned from"),
    "g2_non_interference": ("G2 non-interference", "largest change of a parameter"),
    "g3_predictive_leakage": ("G3 predictive leakage", "nats, prices given"),
    "g3_predictive_leakage_live": ("G3 where orders move prices", "nats"),
    "g4_policy_influence": ("G4 policy influence", "nats, after projection"),
}


def passed(found: bool, yes: str = "yes", no: str = "no") -> str:
    """Return a word in the colour of good or bad."""
    return chip("good", yes) if found else chip("bad", no)


def comparison(run: UmcRun) -> str:
    """Return UMC, every baseline and random timing: net with its interval, and what it took."""
    heads = (
        "Arm",
        "Net, bp a bar",
        "95 %",
        "Gross",
        "Sharpe",
        "Drawdown",
        "Exposure",
        "Turnover a bar",
    )
    return table(heads, [*(_arm(arm) for arm in run.evaluation.arms), *_random(run)])


def differences(run: UmcRun) -> str:
    """Return how far every arm can be trusted, and by how much UMC is ahead of it."""
    heads = ("Arm", "PSR", "DSR", "umc less it, bp a bar", "Interval")
    rows = []
    for arm in run.evaluation.arms:
        gap = run.arm.versus.get(arm.label)
        known = (arm.standing.psr, arm.standing.dsr, None if gap is None else gap.estimate)
        cells = [number(value, 3) for value in known]
        rows.append([_label(arm), *cells, DASH if gap is None else _band(gap)])
    return table(heads, rows)


def _label(arm: ArmReport) -> str:
    return escape(arm.label) if arm.baseline else f"<b>{escape(arm.label)}</b>"


def _arm(arm: ArmReport) -> list[str]:
    figures = arm.run.metrics if arm.run is not None else None
    return [
        _label(arm),
        number(arm.net.estimate, 3),
        _band(arm.net),
        number(arm.gross.estimate, 3),
        number(arm.standing.sharpe, 3),
        DASH if figures is None else f"{100 * figures.max_drawdown:.1f} %",
        DASH if figures is None else number(figures.exposure, 2),
        DASH if figures is None else number(figures.turnover_per_bar, 2),
    ]


def _random(run: UmcRun) -> list[list[str]]:
    """Return the row of random positions: the mean of the draws and where most of them lie."""
    found = run.arm.random
    if found is None:
        return []
    mean, low, high = (IN_BP * value / (len(run.trace) - 1) for value in growths(found))
    label = f"random timing<br>5-95 % of {many(found.draws, 'draw')}"
    return [[label, number(mean, 3), f"[{number(low, 3)}, {number(high, 3)}]", *[DASH] * 5]]


def growths(found: RandomDraws) -> tuple[float, float, float]:
    """Return the mean log growth of the draws and the ends of their range."""
    return found.mean, found.low, found.high


def break_even(run: UmcRun) -> str:
    """Return how far prices move against what a round trip costs."""
    heads = (
        "Horizon, bars",
        "Mean move, bp",
        "Round trip, bp",
        "Move / cost",
        "Correlation to break even",
        "Trades a day at most",
    )
    rows = [
        [
            f"{row.bars}",
            number(row.move_bp),
            number(row.round_trip_bp),
            number(row.move_bp / row.round_trip_bp, 3) if row.round_trip_bp else DASH,
            "beyond anyone" if row.skill >= 1.0 else number(row.skill, 2),
            number(row.trades_per_day, 3),
        ]
        for row in run.sheet
    ]
    return table(heads, rows)


def leakage(found: LeakageReport) -> str:
    """Return the four numbers, their bounds, and the control with the gate held open."""
    control = found.control
    opened = {
        "g1_purity": control.purity,
        "g2_non_interference": control.non_interference,
        "g3_predictive_leakage": control.predictive,
    }
    rows = []
    for name, figure in found.figures.items():
        title, unit = LEAKS[name]
        broken = opened.get(name)
        rows.append(
            [
                escape(title),
                escape(unit),
                number(figure.value),
                number(figure.bound),
                passed(figure.passed, "held", "broken"),
                DASH if broken is None else number(broken.value),
            ]
        )
    heads = ("Number", "What it counts", "Found", "Bound", "", "With the gate open")
    return table(heads, rows, words={1})


def checks(arm: ArmReport) -> str:
    """Return what the verdict rests on."""
    if arm.verdict is None:
        return ""
    rows = [
        [
            escape(check.name),
            number(check.found),
            escape(check.asked),
            passed(check.holds),
            escape(one_line(check.unknown or "", 300)),
        ]
        for check in arm.verdict.checks
    ]
    return table(("Condition", "Found", "Asked", "Holds", ""), rows, words={2, 4})


def folds(run: UmcRun) -> str:
    """Return each fold: when it was tested, what it followed, what it earned."""
    tiers = {row["fold"]: row for row in run.tiers()}
    rows = []
    for number_of, tested in enumerate(run.arm.folds, start=1):
        tier = tiers[number_of]
        rows.append(
            [
                str(number_of),
                escape(format_time(int(tested["first_ns"]))[:10]),
                number(tested["net_bp_per_bar"], 3),
                escape(tier["tier"]),
            ]
        )
    return table(("Fold", "Tested from", "Net, bp a bar", "Model"), rows)


def _band(interval: Interval) -> str:
    return f"[{number(interval.low, 3)}, {number(interval.high, 3)}]"
