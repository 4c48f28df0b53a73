"""``agent-gym marl``: teams that learn together, and battles that people can watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from agent_gym.apps.cli.tree import LazyParts, add_lines

# Every subcommand is registered here and nowhere else: the first sentence of its help, and where
# it is.
LINES = {
    "train": "Train a team with several seeds and judge each from fresh starts, greedily.",
    "compare": "Train what is missing and compare: win rates, areas, steps to 80 %, verdicts.",
    "diagnose": "Train AMAL with every probe on; exit code 4 says that a bound is missed.",
    "ablation": "Take parts out of AMAL, with the same seeds, and say what that changes.",
    "record": "Play battles and keep each as a replay: actions, hashes of states, what the team "
    "thought.",
    "verify": "Play replays again; one that was changed is refused with the step at fault.",
    "show": "Make a page that plays a replay in any browser, and a GIF or a video if asked for.",
    "behaviour": "Measure focus fire, overkill, exchange, kiting and survival against random and "
    "scripts.",
}


class TeamParts(LazyParts):
    """Torch, kernels and pictures are imported by the parts that need them."""

    places: ClassVar[Mapping[str, str]] = {
        "train": "marl_train:train",
        "compare": "marl_compare:compare",
        "diagnose": "marl_diagnose:diagnose",
        "ablation": "marl_ablation:ablation",
        "record": "marl_replay:record_battles",
        "verify": "marl_replay:verify_replays",
        "show": "marl_replay:show_replay",
        "behaviour": "marl_behaviour:behaviour",
    }


app = typer.Typer(cls=TeamParts, no_args_is_help=True)


@app.callback()
def marl() -> None:
    """Teams: train and compare them, record their battles and watch them."""


add_lines(app, LINES)
