"""A battle as an animated GIF, which needs nothing but Pillow."""

from __future__ import annotations

from io import BytesIO

from PIL import Image

from agent_gym.evaluation.battle import Film
from agent_gym.reporting.battle.pictures import Painter

EVERY, WIDTH, COLOURS, HOLD_MS = 2, 560, 64, 1_500


def gif_of(film: Film, title: str) -> bytes:
    """Return a film as a GIF that plays for ever, at the speed of the game."""
    painter = Painter(film, title, WIDTH)
    frames = [Image.fromarray(each) for each in painter.frames(EVERY)]
    # One palette for all pictures, that of the middle of the battle; others would flicker.
    palette = frames[len(frames) // 2].quantize(COLOURS)
    drawn = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in frames]
    # GIF counts in hundredths of a second.
    pause = 10 * round(100 * EVERY / film.battle.time.ticks_per_second)
    sink = BytesIO()
    drawn[0].save(
        sink,
        format="GIF",
        save_all=True,
        append_images=drawn[1:],
        duration=[pause] * (len(drawn) - 1) + [HOLD_MS],
        loop=0,
        optimize=False,
    )
    return sink.getvalue()
