"""Episodes as videos: what the agent saw done, with step, action, reward and return below it.

The picture is made frame by frame and handed to the encoder at once, so a long episode needs no
more memory than a short one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.envs.training_env import EnvRecipe, make_single_env
from agent_gym.reporting.encoding import BLOCK, encode
from agent_gym.reporting.rl.clips import Clip
from agent_gym.reporting.text import one_line

PICTURES = "rgb_array"
STRIP, HOLD_S = 64, 1.0
INK, FAINT, PAPER, LINE = (231, 235, 240), (152, 163, 175), (15, 19, 23), (45, 53, 63)
GAIN, LOSS = (62, 203, 141), (255, 123, 112)
LANDER_ACTIONS = ("coast", "left engine", "main engine", "right engine")
DEFAULT_FPS = 30


class Actor(Protocol):
    """Who acts: rows of raw observations in, rows of actions out."""

    def predict(self, obs: NDArray[Any]) -> NDArray[Any]: ...


class Frame(NamedTuple):
    """A picture and what led to it; ``action`` is empty before the first step."""

    picture: NDArray[np.uint8]
    step: int
    action: str
    reward: float
    total: float


def record_episode(policy: Actor, recipe: EnvRecipe, seed: int, *, title: str = "") -> Clip:
    """Play one greedy episode and return it as H.264 in MP4.

    Args:
        policy: Who acts.
        recipe: The environment.
        seed: What the episode begins from.
        title: Shown in the corner.
    """
    if not draws_pictures(recipe):
        raise ConfigError(
            "this environment draws no pictures",
            where=f"env {recipe.env}",
            expected=f"the render mode {PICTURES}",
            remedy="Watch one that does, such as LunarLander-v3; a market has its tear sheet",
        )
    env = make_single_env(recipe, render_mode=PICTURES)
    try:
        fps = int(env.metadata.get("render_fps") or DEFAULT_FPS)
        last: list[Frame] = []
        mp4 = encode(_drawn(_played(policy, env, recipe, seed), title, last, fps), fps)
    finally:
        env.close()
    return Clip(mp4, title, seed, last[-1].total, last[-1].step)


def draws_pictures(recipe: EnvRecipe) -> bool:
    """Return whether episodes of an environment can be filmed."""
    env = make_single_env(recipe)
    try:
        return PICTURES in env.metadata.get("render_modes", ())
    finally:
        env.close()


def frame_of(frame: Frame, title: str = "") -> NDArray[np.uint8]:
    """Return the picture with what happened written below it, sides multiples of 16."""
    height, width = frame.picture.shape[:2]
    full_width, full_height = _whole(max(width, 320)), _whole(height + STRIP)
    canvas = Image.new("RGB", (full_width, full_height), PAPER)
    left = (full_width - width) // 2
    canvas.paste(Image.fromarray(np.ascontiguousarray(frame.picture)), (left, 0))
    draw = ImageDraw.Draw(canvas)
    draw.line([(0, height), (full_width, height)], fill=LINE)
    tone = GAIN if frame.reward > 0.0 else LOSS if frame.reward < 0.0 else INK
    cells = (
        ("STEP", str(frame.step), INK),
        ("ACTION", frame.action or "-", INK),
        ("REWARD", f"{frame.reward:+.2f}", tone),
        ("RETURN", f"{frame.total:.1f}", INK),
    )
    places = (0.03, 0.19, 0.60, 0.81)
    for (name, text, colour), place in zip(cells, places, strict=True):
        x = place * full_width
        draw.text((x, height + 10), name, font=_font(12), fill=FAINT)
        draw.text((x, height + 28), text, font=_font(19), fill=colour)
    if title:
        shown = one_line(title, 60)
        box = draw.textbbox((left + 12, 10), shown, font=_font(15))
        draw.rectangle((box[0] - 6, box[1] - 4, box[2] + 6, box[3] + 4), fill=PAPER)
        draw.text((left + 12, 10), shown, font=_font(15), fill=INK)
    return np.asarray(canvas)


def action_text(action: Any, recipe: EnvRecipe) -> str:
    """Return an action as a person would say it.

    Example:
        >>> action_text(np.int64(2), EnvRecipe("LunarLander-v3"))
        'main engine'
        >>> action_text(np.array([0.5, -1.0]), EnvRecipe("CarRacing-v3", continuous=True))
        '+0.50 -1.00'
    """
    values = np.ravel(action)
    lander = recipe.env.startswith("LunarLander")
    if not recipe.continuous and values.size == 1:
        at = int(values[0])
        return LANDER_ACTIONS[at] if lander and 0 <= at < len(LANDER_ACTIONS) else str(at)
    if lander and values.size == 2:
        # Engines are off in a dead zone: the main one below 0, the side ones within a half.
        main = f"main {50.0 + 50.0 * float(values[0]):.0f} %" if values[0] > 0.0 else "main off"
        side = float(values[1])
        sides = (
            "side off" if abs(side) <= 0.5 else f"{'left' if side < 0 else 'right'} {abs(side):.0%}"
        )
        return f"{main}, {sides.replace('%', ' %')}"
    return " ".join(f"{value:+.2f}" for value in values[:4])


def pick_episodes(rewards: Sequence[float]) -> dict[str, int]:
    """Return which episodes are the best, the median and the worst; the first of equal ones.

    Example:
        >>> pick_episodes([3.0, 9.0, 1.0, 4.0, 5.0])
        {'best': 1, 'median': 3, 'worst': 2}
    """
    if not len(rewards):
        raise DataError("there is no episode to show")
    order = np.argsort(rewards, kind="stable")
    return {
        "best": int(np.argmax(rewards)),
        "median": int(order[(len(order) - 1) // 2]),
        "worst": int(order[0]),
    }


def _played(policy: Actor, env: Any, recipe: EnvRecipe, seed: int) -> Iterator[Frame]:
    seen, _ = env.reset(seed=seed)
    yield Frame(env.render(), 0, "", 0.0, 0.0)
    total, step, over = 0.0, 0, False
    while not over:
        action = policy.predict(np.asarray(seen)[None])[0]
        seen, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        step += 1
        over = terminated or truncated
        yield Frame(env.render(), step, action_text(action, recipe), float(reward), total)


def _drawn(
    frames: Iterator[Frame], title: str, last: list[Frame], fps: int
) -> Iterator[NDArray[np.uint8]]:
    """Draw each frame, keep the last one for the caller, and hold it for a moment."""
    picture = None
    for frame in frames:
        last[:] = [frame]
        picture = frame_of(frame, title)
        yield picture
    if picture is not None:
        for _ in range(round(HOLD_S * fps)):
            yield picture


def _whole(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font that comes with matplotlib, so that every machine draws the same."""
    return ImageFont.truetype(str(Path(mpl.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"), size)
