"""The page of a run of the loop: the answer first, the evidence, and nothing from outside."""

import re
from dataclasses import replace

import pytest

from agent_gym.reporting.loop.page import html_page
from agent_gym.reporting.loop.report import Asked, LoopReport, Played, Round

MODEL = "ab" * 32
REPORT = LoopReport(
    run_id="run-1",
    verdict="promoted",
    reason="the challenger earns more",
    command="agent-gym harness --seed 3",
    champion="cd" * 32,
    challenger=MODEL,
    figures=(("trajectories stored", "150"),),
    rounds=(Round(100, -0.01, 32, MODEL, 10, 0), Round(50, 0.2, 32, MODEL, 9, 1)),
    pairs=tuple(Played(f"s{k}", "bull", 0.0, 0.01 * k - 0.02) for k in range(10)),
    checks=(Asked("superiority", True, "p is small"), Asked("max_drawdown", False, "too deep")),
    readiness_before=(Asked("trajectories", False, "1,000 more are needed"),),
    history=(("installed", "model cdcd"),),
    answers={"agent-0": MODEL},
    manifest={"command": "agent-gym harness"},
)


def test_the_answer_and_its_evidence_are_told():
    page = html_page(REPORT)
    assert "A better model serves now" in page
    assert "The challenger is ahead on 7." in page
    assert page.count("<figure") == 2
    assert "max drawdown" in page
    assert "agent-gym harness --seed 3" in page
    assert html_page(REPORT) == page


@pytest.mark.parametrize(
    ("verdict", "headline", "light"),
    [
        ("not promoted", "goes on serving", "unsure"),
        ("rolled back", "was taken back", "bad"),
        ("skipped", "not enough to train on", "unsure"),
        ("unchanged", "changed nothing", "unsure"),
        ("not learnable", "cannot be learned from", "bad"),
        ("not trained", "training was not asked for", "same"),
    ],
)
def test_every_ending_has_words_and_a_colour(verdict, headline, light):
    page = html_page(replace(REPORT, verdict=verdict, pairs=(), checks=(), rounds=()))
    assert headline in page
    assert f'class="banner {light}"' in page
    assert "<figure" not in page
    assert "The gate" not in page


def test_what_comes_from_outside_cannot_become_part_of_the_page():
    evil = "<script>alert(1)</script>"
    page = html_page(
        replace(
            REPORT,
            reason=evil,
            answers={evil: evil},
            checks=(Asked(evil, True, evil),),
            history=((evil, evil),),
            command=evil,
            manifest={"x": evil},
        )
    )
    assert evil not in page
    assert len(re.findall(r"<script>", page)) == 1
