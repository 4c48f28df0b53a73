"""How far two colours lie apart for eyes of every kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import agent_gym.evaluation.page
from agent_gym.core.types import FloatArray
from agent_gym.reporting.canvas import THEMED

# Machado, Oliveira and Fernandes (2009): no red, no green and no blue receptors.
EYES = (
    np.eye(3),
    np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
)
XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
WHITE = np.array([0.9505, 1.0, 1.0888])
TOKEN = re.compile(r"(--\w+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")


def themed(colours: Iterable[str]) -> list[list[str]]:
    """Return the colours as the page shows them, light and dark."""
    css = (Path(agent_gym.evaluation.page.__file__).parent / "assets" / "page.css").read_text()
    known = {name: both for name, *both in TOKEN.findall(css)}
    wanted = [known[THEMED[colour][4:-1]] for colour in colours]
    return [[both[theme] for both in wanted] for theme in (0, 1)]


def apart(first: str, second: str) -> float:
    """Return how far two colours lie apart in CIELAB for the eyes that tell them apart worst."""
    return min(float(np.linalg.norm(_lab(first, eye) - _lab(second, eye))) for eye in EYES)


def _lab(colour: str, eye: FloatArray) -> FloatArray:
    signs = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255.0
    light = np.where(signs <= 0.04045, signs / 12.92, ((signs + 0.055) / 1.055) ** 2.4)
    seen = XYZ @ np.clip(eye @ light, 0.0, 1.0) / WHITE
    x, y, z = np.where(seen > 0.008856, np.cbrt(seen), 7.787 * seen + 16.0 / 116.0)
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])
