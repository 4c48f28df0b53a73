"""A guided tour: each step says what is shown, why, and how to do it alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from agent_gym.apps.cli.output import screen


class TourStep(NamedTuple):
    """One step: its name, why it matters, what is seen, and the command that does it alone."""

    title: str
    why: str
    view: RenderableType
    command: str


def guide(steps: Sequence[TourStep], *, pause: bool) -> None:
    """Show the steps one after the other; wait for Enter only where somebody can press it."""
    waits = pause and sys.stdin.isatty() and screen.is_terminal
    for number, step in enumerate(steps, 1):
        screen.print(Text(f"{number}/{len(steps)}  {step.title}", style="bold"))
        screen.print(Text(step.why, style="dim"), soft_wrap=True)
        screen.print(step.view)
        screen.print(Text(f"  $ {step.command}", style="cyan"), soft_wrap=True)
        screen.print()
        if waits and number < len(steps):
            screen.input("Enter goes on, Ctrl-C ends the tour. ")
