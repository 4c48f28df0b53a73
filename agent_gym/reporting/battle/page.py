"""The viewer: one page that plays a battle, with everything in it and nothing from elsewhere."""

from __future__ import annotations

import shlex
from functools import cache
from html import escape
from importlib.resources import files

from agent_gym.evaluation.battle import ENTROPY, INFORMATION, VALUE, Film, Header, Replay, film_of
from agent_gym.evaluation.page import Answer, Light, Origin, Own, Page, whole_page
from agent_gym.reporting.battle.payload import payload
from agent_gym.reporting.text import number, one_line

NO_SCRIPT = ".stage, .charts { display: none; }"
SPEEDS = ("0.25", "0.5", "1", "2", "4", "8")
SIGNALS = {
    VALUE: "Value: rewards to come",
    INFORMATION: "Information bonus",
    ENTROPY: "Action entropy, nats",
}
KEYS = (
    ("Space", "play or pause"),
    ("← →", "one step back or forward"),
    (", .", "one tick back or forward"),
    ("Home End", "start and end"),
    ("- +", "slower, faster"),
    ("1 to 9", "highlight an agent"),
    ("Esc", "no highlight"),
)


def viewer_page(replay: Replay, file: str = "FILE") -> str:
    """Return the page of a replay; one that does not play again as it was recorded is refused."""
    return film_page(film_of(replay), replay, file)


def film_page(film: Film, replay: Replay, file: str = "FILE") -> str:
    """Return the page of a film and of what was recorded beside it.

    Args:
        film: The battle, played again.
        replay: Its record.
        file: Where that lies, for the command that makes the page again.
    """
    told = replay.header
    page = Page(
        kind="Battle",
        about=f"{told.map}, {told.player}",
        title=f"{told.map}, {told.player}: {outcome(told)}",
        answer=_answer(told),
        sections=(_stage(), _charts(told)),
        origin=_origin(replay, file),
    )
    own = Own(
        scripts=(_asset("viewer.js"),),
        style=_asset("viewer.css"),
        no_script=NO_SCRIPT,
        data={"battle": payload(film, replay)},
    )
    return whole_page(page, own)


def outcome(told: Header) -> str:
    """Return how a battle ended, in words."""
    steps = f"{told.steps} step{'' if told.steps == 1 else 's'}"
    return f"won in {steps}" if told.won else f"lost after {steps}"


def _answer(told: Header) -> Answer:
    light: Light = "good" if told.won else "bad"
    who = {"script": "a script", "greedy": "a trained team, greedy", "drawn": "a trained team"}
    line = (
        f"{one_line(told.player, 80)} ({who[told.mode]}) on {told.map}, seed {told.seed}, "
        f"episode {told.episode}. Return {number(told.total_reward)}, reward {told.reward}."
    )
    return Answer(light, "Won" if told.won else "Lost", outcome(told).capitalize(), (line,))


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
    known = [*SIGNALS, *(name for name in told.signals if name not in SIGNALS)]
    cards = [_chart("points", "Points left, %")]
    cards += [
        _chart(name, SIGNALS.get(name, name.replace("_", " ")))
        if name in told.signals
        else _missing(SIGNALS[name])
        for name in known
    ]
    return f'<section class="charts" aria-label="Charts">{"".join(cards)}</section>'


def _chart(name: str, title: str) -> str:
    return (
        f'<figure class="chart"><figcaption>{escape(title)} <output></output></figcaption>'
        f'<canvas data-chart="{escape(name)}" role="img" aria-label="{escape(title)}"></canvas>'
        "</figure>"
    )


def _missing(title: str) -> str:
    return (
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        '<p class="absent">not recorded</p></figure>'
    )


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
