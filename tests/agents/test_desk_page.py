"""The page on the desk tells every code, limit, field and rule, as they are."""

import re
from pathlib import Path

from agent_gym.agents.desk import DEFAULT_RULES, MEANINGS, FilterConfig, RejectCode, SignalParams

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "core_agent.md").read_text(encoding="utf-8")
CODE_ROW = re.compile(r"^\| `([a-z_]+\.[a-z_]+)` \| (.+?) \| (\w+) \| (yes|no) \|$", re.MULTILINE)
RULE_ROW = re.compile(r"^\| (\d+) \| `([a-z-]+)` \| (.+?) \|$", re.MULTILINE)


def told_codes(page):
    return CODE_ROW.findall(page)


def true_codes():
    return [
        (code.value, code.text, code.severity, "yes" if code.retryable else "no")
        for code in RejectCode
    ]


def test_the_taxonomy_is_the_one_of_the_code():
    assert told_codes(PAGE) == true_codes()
    assert list(MEANINGS) == list(RejectCode)


def test_a_wrong_text_on_the_page_would_be_seen():
    assert told_codes(PAGE.replace("Exposure limit exceeded |", "Too much |")) != true_codes()


def test_the_texts_are_different_so_that_a_text_names_its_code():
    assert len({meaning.text for meaning in MEANINGS.values()}) == len(RejectCode)


def test_the_rule_table_is_the_one_of_the_code():
    rules = sorted(DEFAULT_RULES, key=lambda rule: (rule.priority, rule.id))
    assert RULE_ROW.findall(PAGE) == [(str(r.priority), r.id, r.meaning) for r in rules]


def test_every_limit_and_every_field_is_told():
    assert [name for name in FilterConfig.model_fields if f"`{name}" not in PAGE] == []
    assert [name for name in SignalParams.__struct_fields__ if f"params.{name}`" not in PAGE] == []
