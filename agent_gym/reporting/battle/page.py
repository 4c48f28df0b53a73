"""The viewer: one page that plays a battle, with everything in it and nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from agent_gym.evaluation.battle import ENTROPY, INFORMATION, VALUE, Film, Header, Replay, film_of
from agent_gym.evaluation.tearsheet.markup import embedded
from agent_gym.reporting.battle.payload import payload
from agent_gym.reporting.document import Dress, html_document
from agent_gym.reporting.parts import header as top_line
from agent_gym.reporting.text import number, one_line

NO_SCRIPT = "#theme, .stage, .charts { display: none; }"
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


def viewer_page(replay: Replay) -> str:
    """Return the page of a replay; one that does not play again as it was recorded is refused."""
    return film_page(film_of(replay), replay)


def film_page(film: Film, replay: Replay) -> str:
    """Return the page of a film and of what was recorded beside it."""
    told = replay.header
    title = f"{told.map}, {told.player}: {outcome(told)}"
    data = embedded(payload(film, replay))
    body = "\n".join(
        (
            top_line("Replay of a battle"),
            "<main>",
            _banner(told),
            _stage(),
            _charts(told),
            _about(replay),
            "</main>",
            f'<script type="application/json" id="battle">{data}</script>',
        )
    )
    dress = Dress(
        _asset("page.js", "agent_gym.reporting") + _asset("viewer.js"),
        _asset("page.css", "agent_gym.reporting") + _asset("viewer.css"),
        NO_SCRIPT,
    )
    return html_document(title, body, "#f6f7f9", dress)


def outcome(told: Header) -> str:
    """Return how a battle ended, in words."""
    steps = f"{told.steps} step{'' if told.steps == 1 else 's'}"
    return f"won in {steps}" if told.won else f"lost after {steps}"


def _banner(told: Header) -> str:
    tone, sign = ("good", "✓") if told.won else ("bad", "✗")
    who = {"script": "a script", "greedy": "a trained team, greedy", "drawn": "a trained team"}
    line = (
        f"{one_line(told.player, 80)} ({who[told.mode]}) on {told.map}, seed {told.seed}, "
        f"episode {told.episode}. Return {number(told.total_reward)}, reward {told.reward}."
    )
    return (
        f'<section class="banner slim {tone}"><div class="answer"><div class="sign">{sign}</div>'
        f"<div><h1>{escape(outcome(told).capitalize())}</h1><p>{escape(line)}</p></div></div>"
        "</section>"
    )


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


def _about(replay: Replay) -> str:
    told = replay.header
    facts = {
        "map": told.map,
        "seed, episode": f"{told.seed}, {told.episode}",
        "player": one_line(told.player, 80),
        "actions": told.mode,
        "engine": str(told.engine),
        "map hash": told.map_hash,
        "checkpoint": told.checkpoint or "none",
        "last state": replay.rows[-1].state,
        "seal": replay.seal,
    }
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd><code>{escape(value)}</code></dd></div>"
        for name, value in facts.items()
    )
    return (
        "<section><h2>Proof</h2>"
        '<p class="faint small">Played again from map, seed and actions before this page was made: '
        "every state had the recorded hash.</p>"
        f'<div class="box"><dl class="facts proof">{items}</dl></div></section>'
    )


@cache
def _asset(name: str, room: str = "agent_gym.reporting.battle") -> str:
    return (files(room) / "assets" / name).read_text(encoding="utf-8")
