"""A small report of every kind but UMC, each with the same words from outside in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agent_gym.evaluation.tearsheet import page_of
from agent_gym.reporting.battle import viewer_page
from agent_gym.reporting.loop.page import html_page as loop_page
from agent_gym.reporting.loop.report import Asked, LoopReport, Played, Round
from agent_gym.reporting.nightly import html_page as nightly_page
from agent_gym.reporting.rl.clips import Clip
from agent_gym.reporting.rl.page import html_page as training_page
from agent_gym.reporting.rl.runs import read_arms
from agent_gym.reporting.rl.sections import Shown
from tests.evaluation.battle_replay_samples import scripted
from tests.evaluation.sheet_samples import full_sheet
from tests.reporting.hostile_samples import hostile
from tests.reporting.page_rules import EVIL
from tests.reporting.run_samples import write_arm, write_run

MODEL = "ab" * 32


def nightly(_: Path) -> str:
    """Return the page of a bad night."""
    return nightly_page(hostile(EVIL))


def backtest(_: Path) -> str:
    """Return the tear sheet of a backtest."""
    plain = full_sheet(verdict=None)
    return page_of(
        replace(
            plain,
            title=EVIL,
            subject=EVIL,
            equity={EVIL: plain.curve, **{arm: plain.equity[arm] for arm in plain.beside}},
            figures={EVIL: plain.figures[plain.subject]}
            | {arm: plain.figures[arm] for arm in plain.beside},
            notes=(EVIL,),
            command=EVIL,
            provenance={EVIL: EVIL},
            manifest={EVIL: EVIL},
        )
    )


def evaluation(_: Path) -> str:
    """Return the tear sheet of an evaluation."""
    return page_of(full_sheet(kind="Evaluation", title=EVIL, verdict=("promising", EVIL)))


def sandbox(_: Path) -> str:
    """Return the tear sheet of a session in the sandbox."""
    return page_of(full_sheet(kind="Sandbox session", title=EVIL, verdict=None, command=EVIL))


def training(folder: Path) -> str:
    """Return the page of a training with a seed that failed and a video."""
    write_arm(folder / "arm", 2)
    write_run(folder / "arm", 3, status="error", error={"what": EVIL})
    clip = Clip(b"\0" * 100, EVIL, 5, 251.0, 300)
    return training_page(read_arms(folder / "arm"), [Shown(clip, "videos/best.mp4")])


def loop(_: Path) -> str:
    """Return the page of a run of the loop."""
    return loop_page(
        LoopReport(
            run_id=EVIL,
            verdict="promoted",
            reason=EVIL,
            command=EVIL,
            champion="cd" * 32,
            challenger=MODEL,
            figures=(("trajectories stored", "150"), (EVIL, EVIL)),
            rounds=(Round(100, -0.01, 32, MODEL, 10, 0), Round(50, 0.2, 32, MODEL, 9, 1)),
            pairs=tuple(Played(f"s{k}", "bull", 0.0, 0.01 * k - 0.02) for k in range(10)),
            checks=(Asked("superiority", True, "p is small"), Asked(EVIL, False, EVIL)),
            readiness_before=(Asked("trajectories", False, "1,000 more are needed"),),
            history=(("installed", EVIL),),
            answers={EVIL: MODEL},
            manifest={"command": EVIL},
        )
    )


def battle(_: Path) -> str:
    """Return the viewer of a battle."""
    replay = scripted()
    header = replay.header.model_copy(update={"player": EVIL})
    return viewer_page(replace(replay, header=header).sealed(), f"{EVIL}.battle.jsonl")


KINDS: dict[str, Callable[[Path], str]] = {
    "Nightly": nightly,
    "Backtest": backtest,
    "Evaluation": evaluation,
    "Sandbox session": sandbox,
    "Training": training,
    "Harness": loop,
    "Battle": battle,
}
