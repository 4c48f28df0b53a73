"""The pictures of the page: who won on each sealed snapshot, and how the rounds went."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from agent_gym.reporting.canvas import FAINT, INK, PALETTE, WIDE, new_figure, round_numbers
from agent_gym.reporting.loop.report import Played, Round

CHAMPION, CHALLENGER = PALETTE[1], PALETTE[0]


def duel(pairs: Sequence[Played], *, width: int) -> Figure | None:
    """Draw both sides of every pair, sorted by what the challenger gained."""
    if not pairs:
        return None
    figure, (panel,) = new_figure(width, 320)
    ranked = sorted(pairs, key=lambda pair: pair.challenger - pair.champion)
    places = range(1, len(ranked) + 1)
    for at, pair in zip(places, ranked, strict=True):
        panel.plot([at, at], [pair.champion, pair.challenger], color=FAINT, lw=1.0, zorder=1)
    dots = 26 if width >= WIDE else 14
    sides = (("champion", CHAMPION, "s"), ("challenger", CHALLENGER, "o"))
    for name, colour, mark in sides:
        values = [getattr(pair, name) for pair in ranked]
        panel.scatter(places, values, s=dots, color=colour, marker=mark, label=name, zorder=2)
    panel.axhline(0.0, color=INK, lw=0.8)
    panel.set_xlabel("sealed snapshots, by what the challenger gained", color=FAINT, fontsize=11)
    panel.set_ylabel("return of the episode", color=FAINT, fontsize=11)
    panel.xaxis.set_major_locator(round_numbers(8 if width >= WIDE else 4))
    panel.legend(frameon=False, fontsize=11, labelcolor=INK, loc="upper left")
    return figure


def rounds_curve(rounds: Sequence[Round], *, width: int) -> Figure | None:
    """Draw what the policy earned while it explored, round by round."""
    if len(rounds) < 2:
        return None
    figure, (panel,) = new_figure(width, 240)
    panel.plot(
        range(1, len(rounds) + 1), [one.mean_return for one in rounds], color=CHALLENGER, marker="o"
    )
    panel.axhline(0.0, color=INK, lw=0.8)
    panel.set_xlabel("round", color=FAINT, fontsize=11)
    panel.set_ylabel("mean return while exploring", color=FAINT, fontsize=11)
    panel.xaxis.set_major_locator(round_numbers(len(rounds)))
    return figure
