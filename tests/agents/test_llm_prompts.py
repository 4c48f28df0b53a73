from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.prompts import PromptConfig, questions
from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.world import TRADER
from tests.agents.llm_samples import world

ANSWERS = Answers()


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("BUY", 2),
        ("buy.", 2),
        ("I'd say: Sell!", 0),
        ("", None),
        ("BUYING", None),
        ("BUY or SELL", None),
        ("hold, hold, HOLD", 1),
        ("x" * 5_000 + " BUY", None),
    ],
)
def test_a_reply_counts_only_if_it_names_one_answer(reply: str, found: int | None) -> None:
    assert ANSWERS.read(reply) == found


@given(st.text(max_size=200))
def test_no_reply_is_fatal(reply: str) -> None:
    assert ANSWERS.read(reply) in (None, 0, 1, 2)


@pytest.mark.parametrize(
    "bad",
    [
        {"words": ("BUY", "buy"), "levels": (0.0, 1.0)},
        {"words": ("A", "B"), "levels": (1.0, 0.0)},
        {"words": ("A", "B", "C"), "levels": (0.0, 1.0)},
        {"words": ("A B", "C"), "levels": (0.0, 1.0)},
    ],
)
def test_answers_must_make_sense(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Answers.model_validate(bad)


@pytest.mark.parametrize(
    "question", ["{text.__class__}", "{0}", "{text!r}", "{text:>9}", "{secret}", "no field"]
)
def test_a_template_is_fields_alone(question: str) -> None:
    with pytest.raises(ValidationError):
        PromptConfig(question=question)


def test_news_with_braces_is_not_read_as_a_template() -> None:
    text = "- a: state\nNews of this tick:\n- [a] Ann: {text} {0} {secret}."
    (one,) = questions(text, ("a",), PromptConfig(question="{news}"), ANSWERS)
    assert one.prompt == "Ann: {text} {0} {secret}."


def test_one_market_without_a_name_is_always_asked_about() -> None:
    (one,) = questions("All is well.", ("",), PromptConfig(question="{text} {answers}?"), ANSWERS)
    assert (one.place, one.prompt) == (0, "All is well. BUY, HOLD or SELL?")


def test_a_benchmark_is_asked_about_where_it_has_news() -> None:
    stage = world()
    seen = stage.reset(Seeds(0))[TRADER]
    asked_always = asked_news = posts = 0
    while True:
        text = seen.text or ""
        markets = tuple(stage.snapshot.market_ids)
        always = questions(text, markets, PromptConfig(ask="always"), ANSWERS)
        news = questions(text, markets, PromptConfig(), ANSWERS)
        told = {post.market for post in stage.snapshot.posts_at[stage.floor.tick]}
        assert {markets[one.place] for one in news} == told
        assert len(always) == len(markets)
        assert all(one.prompt.endswith("Answer BUY, HOLD or SELL:") for one in always)
        asked_always, asked_news = asked_always + len(always), asked_news + len(news)
        posts += len(told)
        outcome = stage.advance(np.zeros(len(markets)))
        if outcome.terminated:
            break
        seen = outcome.observation
    assert 0 < asked_news == posts < asked_always


def test_a_market_is_shown_its_own_line_and_news() -> None:
    text = "- pm-1: One?\n- pm-11: Eleven?\nNews of this tick:\n- [pm-11] B: up.\n- [pm-1] A: down."
    found = questions(
        text, ("pm-1", "pm-11"), PromptConfig(question="{market}|{state}|{news}"), ANSWERS
    )
    assert [one.prompt for one in found] == ["pm-1|One?|A: down.", "pm-11|Eleven?|B: up."]
