"""A battle drawn tick by tick, for videos: what the viewer shows, without its buttons."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from agent_gym.evaluation.battle import Film, Shot, shots_of
from agent_gym.reporting.battle.payload import Box, shown_box
from agent_gym.reporting.text import one_line

Colour: TypeAlias = tuple[int, int, int]
Point: TypeAlias = tuple[float, float]
INK, FAINT, PAPER, GRID = (231, 235, 240), (152, 163, 175), (15, 19, 23), (38, 46, 55)
OURS, THEIRS, SHIELD, TRACK = (79, 176, 238), (255, 139, 69), (143, 211, 255), (70, 80, 92)
GOOD, HALF, LOW = (62, 203, 141), (240, 184, 74), (255, 123, 112)
FLASH = 5
STRIP = 48
FINE = 2  # drawn at twice the size and reduced, which smooths edges


class Painter:
    """Draws the ticks of a film.

    Args:
        film: What happens.
        title: Stands at the bottom left.
        width: Of the picture; both sides become multiples of 16.
    """

    def __init__(self, film: Film, title: str, width: int = 768) -> None:
        self._film, self._title, self._box = film, one_line(title, 70), shown_box(film)
        self._shots = shots_of(film)
        self.width = _whole(width)
        self._field_height = _whole(round(self.width * self._box.height / self._box.width))
        self.height = self._field_height + STRIP
        self._scale = FINE * self.width / self._box.width

    def frames(self, every: int = 1) -> Iterator[NDArray[np.uint8]]:
        """Yield a picture of every so manieth tick, the last one in any case."""
        ticks = [*range(0, self._film.ticks, every), self._film.ticks]
        for tick in ticks:
            yield np.asarray(self.picture(tick))

    def picture(self, tick: int) -> Image.Image:
        """Return the picture of one tick."""
        image = Image.new("RGB", (FINE * self.width, FINE * self.height), PAPER)
        pen = ImageDraw.Draw(image)
        self._ground(pen)
        alive = self._film.alive[tick]
        for u in np.flatnonzero(~alive):
            self._grave(pen, int(u), tick)
        for shot in self._shots:
            if 0 <= tick - shot.tick < FLASH:
                self._flash(pen, shot, tick)
        for u in np.flatnonzero(alive):
            self._body(pen, int(u), tick)
        for u in np.flatnonzero(alive):
            self._bars(pen, int(u), tick)
        self._words(pen, tick)
        return image.reduce(FINE)

    def _place(self, u: int, tick: int) -> Point:
        unit = self._film.units[tick, u]
        return _place(self._box, self._scale, float(unit["x"]), float(unit["y"]))

    def _ground(self, pen: ImageDraw.ImageDraw) -> None:
        box, (w, h) = self._box, (FINE * self.width, FINE * self._field_height)
        for x in np.arange(np.ceil(box.left / 2) * 2, box.left + box.width, 2):
            at = (x - box.left) * self._scale
            pen.line([(at, 0), (at, h)], fill=GRID, width=FINE)
        for y in np.arange(np.ceil(box.bottom / 2) * 2, box.bottom + box.height, 2):
            at = (box.bottom + box.height - y) * self._scale
            pen.line([(0, at), (w, at)], fill=GRID, width=FINE)
        battle = self._film.battle
        low, high = (
            _place(box, self._scale, *corner) for corner in ((0, 0), (battle.width, battle.height))
        )
        pen.rectangle((low[0], high[1], high[0], low[1]), outline=TRACK, width=2 * FINE)
        pen.rectangle((0, h, w, FINE * self.height), fill=PAPER)

    def _grave(self, pen: ImageDraw.ImageDraw, u: int, tick: int) -> None:
        (x, y), size = self._place(u, tick), self._size(u) * 0.7
        colour = _mixed(self._side(u), PAPER, 0.5)
        for sign in (-1, 1):
            ends = [(x - size, y - sign * size), (x + size, y + sign * size)]
            pen.line(ends, fill=colour, width=3 * FINE)

    def _flash(self, pen: ImageDraw.ImageDraw, shot: Shot, tick: int) -> None:
        colour = _mixed(self._side(shot.shooter), PAPER, (tick - shot.tick) / FLASH)
        ends = [self._place(shot.shooter, tick), self._place(shot.target, tick)]
        pen.line(ends, fill=colour, width=3 * FINE)

    def _body(self, pen: ImageDraw.ImageDraw, u: int, tick: int) -> None:
        (x, y), size, side = self._place(u, tick), self._size(u), self._side(u)
        agents, kind = self._film.agents, self._film.battle.units[u].kind
        fill, ink = (side, PAPER) if u < agents else (PAPER, side)
        box = (x - size, y - size, x + size, y + size)
        draw = pen.rectangle if kind.speed == 0 else pen.ellipse
        draw(box, fill=fill, outline=side, width=round(2.5 * FINE))
        name = str(u if u < agents else u - agents)
        pen.text((x, y), name, font=_font(round(size)), fill=ink, anchor="mm")

    def _bars(self, pen: ImageDraw.ImageDraw, u: int, tick: int) -> None:
        (x, y), size = self._place(u, tick), self._size(u)
        unit, kind = self._film.units[tick, u], self._film.battle.units[u].kind
        share, half = float(unit["hp"]) / kind.hp, max(size + 3 * FINE, 13 * FINE)
        tone = GOOD if share > 0.6 else HALF if share > 0.3 else LOW
        _bar(pen, (x - half, y - size - 10 * FINE), (2 * half, 5 * FINE), share, tone)
        if kind.shield:
            left = float(unit["shield"]) / kind.shield
            _bar(pen, (x - half, y - size - 15 * FINE), (2 * half, 3 * FINE), left, SHIELD)

    def _words(self, pen: ImageDraw.ImageDraw, tick: int) -> None:
        film, middle = self._film, FINE * (self._field_height + STRIP // 2)
        per_step = film.battle.time.ticks_per_step
        step = -(-tick // per_step)
        over = tick == film.ticks
        end = ("won" if film.won else "lost") if over else ""
        tone = (GOOD if film.won else LOW) if over else INK
        right = f"{end}  step {step} / {len(film.actions)}".strip()
        font = _font(17 * FINE)
        pen.text((14 * FINE, middle), self._title, font=font, fill=FAINT, anchor="lm")
        pen.text((FINE * (self.width - 14), middle), right, font=font, fill=tone, anchor="rm")

    def _size(self, u: int) -> float:
        return max(self._film.battle.units[u].kind.radius * self._scale, 9.0 * FINE)

    def _side(self, u: int) -> Colour:
        return OURS if u < self._film.agents else THEIRS


def _place(box: Box, scale: float, x: float, y: float) -> Point:
    return (x - box.left) * scale, (box.bottom + box.height - y) * scale


def _bar(
    pen: ImageDraw.ImageDraw, corner: Point, size: Point, share: float, colour: Colour
) -> None:
    (x, y), (wide, high) = corner, size
    pen.rectangle((x, y, x + wide, y + high), fill=TRACK)
    if share > 0.0:
        pen.rectangle((x, y, x + wide * share, y + high), fill=colour)


def _mixed(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _whole(size: int) -> int:
    return -(-size // 16) * 16


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font that comes with matplotlib, so that every machine draws the same."""
    name = "fonts/ttf/DejaVuSans-Bold.ttf"
    return ImageFont.truetype(str(Path(mpl.get_data_path()) / name), size)
