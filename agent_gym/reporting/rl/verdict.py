"""How good it came out, in one answer that the page, the table and the console share."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from agent_gym.reporting.canvas import steps_text
from agent_gym.reporting.rl.curves import Score, score_of
from agent_gym.reporting.rl.published import SOURCE, Published, published
from agent_gym.reporting.rl.runs import Arm
from agent_gym.reporting.text import many, number

Light: TypeAlias = Literal["good", "unsure", "bad", "same"]
LEAST_SEEDS = 5  # fewer are a smoke test: two handfuls of seeds of one algorithm can look different


class Verdict(NamedTuple):
    """The colour, its word, the figure, and why."""

    light: Light
    word: str
    headline: str
    why: tuple[str, ...]


def published_for(arm: Arm) -> Published | None:
    """Return the figure that was published for what an arm trained."""
    continuous = bool(arm.config.get("env_params", {}).get("continuous"))
    chosen = arm.config.get("continuous")
    return published(arm.algo, arm.env, continuous=continuous or chosen is True)


def verdict_of(arm: Arm) -> Verdict:
    """Return the answer for one arm; never good with a seed missing or too few of them."""
    score, known = score_of(arm), published_for(arm)
    missing = len(arm.runs) - len(arm.finished)
    if score is None:
        said = f"None of {many(len(arm.runs), 'seed')} has finished"
        return Verdict("bad", "No result", said, (missing_text(arm),))
    why = [beside_text(arm, known)] if known else []
    if missing:
        why.append(missing_text(arm))
    if score.seeds < LEAST_SEEDS:
        why.append(f"{many(score.seeds, 'seed')} can show that it runs, not how good it is.")
    sure = not missing and score.seeds >= LEAST_SEEDS
    light, word = _against(arm, score, known, sure=sure)
    return Verdict(light, word, score_text(score), tuple(why))


def score_text(score: Score) -> str:
    """Return the interquartile mean and its interval in words."""
    text = f"Return {number(score.iqm)}"
    if score.low is None or score.high is None:
        return f"{text} (one seed, no interval)"
    return f"{text}, 95 % interval {number(score.low)} to {number(score.high)}"


def beside_text(arm: Arm, known: Published) -> str:
    """Return the published figure in words."""
    return (
        f"Published: {known.mean:g} \N{PLUS-MINUS SIGN} {known.deviation:g} at "
        f"{steps_text(known.steps)} steps ({SOURCE}); here {steps_text(arm.steps)} steps."
    )


def missing_text(arm: Arm) -> str:
    """Return which seeds do not count."""
    left = [run for run in arm.runs if not run.finished]
    names = ", ".join(
        f"{'?' if run.seed is None else run.seed} ({run.status})" for run in left[:10]
    )
    more = f" and {len(left) - 10} more" if len(left) > 10 else ""
    return f"{len(left)} of {many(len(arm.runs), 'seed')} not counted: {names}{more}."


def _against(arm: Arm, score: Score, known: Published | None, *, sure: bool) -> tuple[Light, str]:
    if known is None:
        return ("same", "Measured") if sure else ("unsure", "Measured, not yet sure")
    if score.low is None or score.high is None:
        return "unsure", "Not yet sure"
    if score.high < known.mean:
        return "bad", "Below the published figure"
    if score.low <= known.mean:
        return ("same" if sure else "unsure"), "Not told apart from the published figure"
    if arm.steps > known.steps:
        return "unsure", "Above the published figure, with more steps"
    return ("good" if sure else "unsure"), "Above the published figure"
