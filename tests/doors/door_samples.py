"""What tests of doors share: a small market, programs in a folder, and who is still alive."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agent_gym.agents.team import Independent
from agent_gym.core import Ref, Seeds, make
from agent_gym.core.clock import SystemClock
from agent_gym.core.types import ActionSpec, EpisodeStart, Role
from agent_gym.envs import ContinuousTargets, MarketConfig, MarketWorld
from agent_gym.rollouts import EpisodeResult, MemorySink, run_episode
from tests.samples import random_bars

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "doors"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

LOOP = """
import json, os, sys, time
def answer(question, **said):
    print(json.dumps({"id": question["id"]} | said), flush=True)
def evil(question):
%s
for line in sys.stdin:
    question = json.loads(line)
    if question["ask"] == "hello":
        answer(question, protocol=1)
    elif question["ask"] == "act":
        evil(question)
        if %s:
            answer(question, target=0.0)
    else:
        answer(question)
"""


def world(n: int = 30) -> MarketWorld:
    config = MarketConfig(
        actions=ContinuousTargets(), episode_bars=n, random_start=False, warmup_bars=0
    )
    return MarketWorld(config, random_bars(n + 20, 1))


def start(n: int | None = None) -> EpisodeStart:
    spec = ActionSpec() if n is None else ActionSpec(n=3, levels=(-1.0, 0.0, 1.0))
    return EpisodeStart(Role("trader"), ("close",), spec, Seeds(1))


def hostile(folder: Path, deed: str, *, answers: bool = False) -> Path:
    """Write a program that behaves until it is asked to act."""
    path = folder / "agent.py"
    body = textwrap.indent(textwrap.dedent(deed).strip(), "    ")
    path.write_text(LOOP % (body, answers), encoding="utf-8")
    return path


def played(ref: Ref, n: int = 30, sinks: tuple[MemorySink, ...] = ()) -> EpisodeResult:
    team = Independent({Role("trader"): make("agent", ref)})
    return run_episode(world(n), team, "e", Seeds(3), sinks)


def pipe_ref(path: Path, **params: Any) -> Ref:
    return Ref(use="door/pipe", params={"command": f"python {path}", "answer_s": 3.0} | params)


def alive(word: object) -> list[str]:
    """Return the command lines that name something; a dying process gets a moment."""
    wall = SystemClock()
    for _ in range(50):
        found = []
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = place.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if str(word) in line:
                found.append(line)
        if not found:
            return []
        wall.sleep_s(0.1)
    return found
