"""The viewer: one page that plays a battle, with everything in it and nothing from elsewhere."""

from __future__ import annotations

import shlex
from functools import cache
from html import escape
from importlib.resources import files

from agent_gym.evaluation.battle import ENTROPY, INFORMATION, VALUE, Film, Header, Replay, film_of
from agent_gym.evaluation.page import (
    SIGNS,
    Answer,
    Light,
    Origin,
    Own,
    Page,
    Theme,
    paragraph,
    whole_page,
)
from agent_gym.reporting.battle.payload import payload
from agent_gym.reporting.text import number, one_line

NO_SCRIPT = ".stage, .charts, #reveal { display: none; }"
SPEEDS = ("0.25", "0.5", "1", "2", "4", "8")
SIGNALS = {
    VALUE: "Value: rewards to come",
    INFORMATION: "Information bonus",
    ENTROPY: "Action entropy, nats",
}
LACKING = {
    VALUE: "of the value (no critic/ lay beside the policy)",
    INFORMATION: "of the information bonus (no foresight/ lay beside the policy; AMAL leaves one)",
    ENTROPY: "of the action entropy (it was not recorded)",
}
SCRIPTED = (
    "No charts of value, information bonus and entropy: a script has no critic, no model of the "
    "world and no chances to choose by."
)
KEYS = (
    ("Space", "play or pause"),
    ("← →", "one step back or forward"),
    (", .", "one tick back or forward"),
    ("Home End", "start and end"),
    ("- +", "slower, faster"),
    ("1 to 9", "highlight an agent"),
    ("Esc", "no highlight"),
    ("r", "show or hide the result"),
)


def viewer_page(replay: Replay, file: str = "FILE", theme: Theme = "auto") -> str:
    """Return the page of a replay; one that does not play again as it was recorded is refused."""
    return film_page(film_of(replay), replay, file, theme)


def film_page(film: Film, replay: Replay, file: str = "FILE", theme: Theme = "auto") -> str:
    """Return the page of a film and of what was recorded beside it.

    Args:
        film: The battle, played again.
        replay: Its record.
        file: Where that lies, for the command that makes the page again.
        theme: Light, dark, or as the system has it.
    """
    told = replay.header
    page = Page(
        kind="Battle",
        about=f"{told.map}, {told.player}",
        title=f"{told.map}, {told.player}: seed {told.seed}, episode {told.episode}",
        answer=_answer(told),
        sections=(_stage(), _charts(told)),
        origin=_origin(replay, file),
    )
    own = Own(
        scripts=(_asset("viewer.js"),),
        style=_asset("viewer.css"),
        no_script=NO_SCRIPT,
        data={"battle": payload(film, replay) | {"result": _result(told)}},
        theme=theme,
    )
    return whole_page(page, own)


def outcome(told: Header) -> str:
    """Return how a battle ended, in words."""
    steps = f"{told.steps} step{'' if told.steps == 1 else 's'}"
    return f"won in {steps}" if told.won else f"lost after {steps}"


def _answer(told: Header) -> Answer:
    """Return who fights where; the end is told by the script when it has been seen or asked for."""
    who = {"script": "A script", "greedy": "A trained team, greedy", "drawn": "A trained team"}
    line = f"{who[told.mode]}; seed {told.seed}, episode {told.episode}, reward {told.reward}."
    result = _result(told)
    more = (
        f"<noscript><p>{result['headline']}. {result['why']}</p></noscript>"
        '<button type="button" id="reveal" aria-pressed="false">Show the result</button>'
    )
    return Answer("same", "Battle", f"{one_line(told.player, 80)} on {told.map}", (line,), more)


def _result(told: Header) -> dict[str, str]:
    light: Light = "good" if told.won else "bad"
    return {
        "light": light,
        "sign": SIGNS[light],
        "word": "Won" if told.won else "Lost",
        "headline": outcome(told).capitalize(),
        "why": f"Return {number(told.total_reward)}.",
    }


def _stage() -> str:
    speeds = "".join(
        f'<option value="{each}"{" selected" if each == "1" else ""}>{each}&times;</option>'
        for each in SPEEDS
    )
    keys = "".join(f"<li><kbd>{escape(key)}</kbd> {escape(what)}</li>" for key, what in KEYS)
    return f"""<section class="stage" aria-label="The battle">
<div class="view">
<canvas id="field" role="img" aria-label="The field" tabindex="0"></canvas>
<div class="controls" role="group" aria-label="Playback">
<button type="button" id="first" aria-label="To the start">|◀</button>
<button type="button" id="back" aria-label="One step back">◁</button>
<button type="button" id="play" aria-label="Play">▶ Play</button>
<button type="button" id="next" aria-label="One step forward">▷</button>
<label class="speed">Speed <select id="speed">{speeds}</select></label>
<output id="clock" for="scrub"></output>
</div>
<input type="range" id="scrub" min="0" value="0" step="1" aria-label="Time">
<details class="keys"><summary>Keys</summary><ul>{keys}</ul></details>
</div>
<div class="side"><h2>Units</h2><p class="faint small">Click one to highlight it.</p>
<div id="units"></div></div>
</section>"""


def _charts(told: Header) -> str:
    """Return a chart of all that was recorded, and a line about what was not."""
    others = [name for name in told.signals if name not in SIGNALS]
    names = [*(name for name in SIGNALS if name in told.signals), *others]
    cards = [_chart("points", "Points left, %")]
    cards += [_chart(name, SIGNALS.get(name, name.replace("_", " "))) for name in names]
    drawn = f'<section class="charts" aria-label="Charts">{"".join(cards)}</section>'
    return drawn + _lacking(told)


def _chart(name: str, title: str) -> str:
    return (
        f'<figure class="chart"><figcaption>{escape(title)} <output></output></figcaption>'
        f'<canvas data-chart="{escape(name)}" role="img" aria-label="{escape(title)}"></canvas>'
        "</figure>"
    )


def _lacking(told: Header) -> str:
    """Say in one line which usual charts are not there, and why."""
    missing = [name for name in SIGNALS if name not in told.signals]
    if not missing:
        return ""
    if told.mode == "script" and len(missing) == len(SIGNALS):
        return paragraph(SCRIPTED, "faint small lacking")
    words = ", ".join(LACKING[name] for name in missing)
    return paragraph(f"No chart {words}.", "faint small lacking")


def _origin(replay: Replay, file: str) -> Origin:
    told = replay.header
    facts = {
        "Map": told.map,
        "Seed, episode": f"{told.seed}, {told.episode}",
        "Player": told.player,
        "Actions": told.mode,
        "Engine": str(told.engine),
        "Map hash": told.map_hash,
        "Checkpoint": told.checkpoint or "none",
        "Last state": replay.rows[-1].state,
        "Seal": replay.seal,
    }
    note = (
        "Played again from map, seed and actions before this page was made: every state had the "
        "recorded hash."
    )
    again = shlex.join(("agent-gym", "marl", "show", file))
    return Origin((again,), facts, told.model_dump(mode="json"), note)


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")
