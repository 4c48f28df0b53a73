"""How ``agent-gym desk`` shows what it found."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.output import table


def behavior_view(report: dict[str, Any]) -> RenderableType:
    """Return what the desk did, for a person."""
    rate = report["acceptance_rate"]
    shown = "-"
    if rate is not None:
        shown = f"{rate['estimate']:.1%} ({rate['low']:.1%} to {rate['high']:.1%})"
    missed = report["missed_value"]
    rows: list[tuple[object, ...]] = [
        (code, found["n"], f"{found['share']:.1%}", _p(found["trend_p"]), _missed(missed.get(code)))
        for code, found in report["rejections"].items()
    ]
    columns = ("code", "n", "share", "trend p", "would have earned")
    parts: list[RenderableType] = [Text(f"{report['n_signals']} signals, accepted {shown}")]
    if rows:
        parts.append(table("rejections", columns, rows))
    parts += [Text(f"- {item['text']}") for item in report["recommendations"]]
    return Group(*parts)


def training_view(result: dict[str, Any]) -> RenderableType:
    """Return how good a model is beside its baselines, or why there is none."""
    lines = [f"training: {result['status']}"]
    if result["reason"]:
        lines.append(result["reason"])
    rebuilt = result["dataset"]["notes"].get("rebuilt_features")
    if rebuilt:
        rows_there = result["dataset"]["counts"]["rows"]
        lines.append(f"{rebuilt} of {rows_there} rows: features rebuilt, not as the desk saw them")
    if not result["metrics"]:
        return Text("\n".join(lines))
    models = {"model": result["metrics"], **result["baselines"]}
    rows: list[tuple[object, ...]] = [
        (
            name,
            found["log_loss"],
            found["brier"]["score"],
            found["ece"],
            "-" if found["auc"] is None else f"{found['auc']['estimate']:.3f}",
            found["acceptance_rate"]["estimate"],
            found["utility"],
        )
        for name, found in models.items()
    ]
    columns = ("on the test part", "log loss", "Brier", "ECE", "AUC", "accepts", "utility")
    return Group(Text("\n".join(lines)), table(str(result["model"]), columns, rows))


def retraining_view(report: dict[str, Any]) -> RenderableType:
    """Return what the loop did, for a person."""
    sensors = sorted({alarm["sensor"] for alarm in report["drift"]})
    rows: list[tuple[object, ...]] = [
        ("status", report["status"]),
        ("reason", report["reason"]),
        ("champion", report["champion"] or "none"),
        ("challenger", report["challenger"] or "none"),
        ("triggers", "; ".join(report["triggers"]) or "none"),
        ("drift", ", ".join(sensors) or "none"),
    ]
    return table("retraining", ("what", "found"), rows)


def play_view(report: dict[str, Any]) -> RenderableType:
    """Return what a made-up desk did, and what may be tried with it."""
    rows: list[tuple[object, ...]] = [
        (name, report[name]) for name in ("signals", "accepted", "filled", "paper", "settled")
    ]
    rows += [("wins", report["wins"]), ("equity at the end", f"{report['equity']:.0f}")]
    rows += [(f"refused: {code}", n) for code, n in report["rejections"].items()]
    rows.append(("champion", report["champion"] or "none"))
    # A line of a terminal is short: a command goes on in the next, and can still be copied.
    steps = Text("\n".join(["", "try:", *(_folded(step) for step in report["try"])]))
    return Group(table(report["folder"], ("what", "found"), rows), steps)


def _folded(command: str) -> str:
    return command.replace(" --", " \\\n    --")


def _missed(found: dict[str, Any] | None) -> str:
    if found is None or found["mean"] is None:
        return "not known"
    return f"{found['mean']:+.3%} ({found['verdict']}, n {found['n']})"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
