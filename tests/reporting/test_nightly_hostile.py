"""Names and messages from outside stay text, in every output."""

from __future__ import annotations

import io
import re
import shlex
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from agent_gym.reporting.nightly import (
    ConsoleProgress,
    diff_document,
    document_text,
    html_page,
    junit_xml,
    markdown_summary,
    prometheus_text,
    replay_command,
    report_document,
    run_view,
    summary_view,
)
from agent_gym.reporting.text import one_line, visible
from tests.reporting import nightly_strategies as odd
from tests.reporting.hostile_samples import hostile
from tests.reporting.result_samples import bad_night

ANY = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\ufeff\ud800-\udfff]")
TAGS = set(
    [
        "a",
        "article",
        "b",
        "body",
        "br",
        "button",
        "code",
        "details",
        "div",
        "figcaption",
        "figure",
        "h1",
        "h2",
        "h3",
        "footer",
        "head",
        "header",
        "html",
        "i",
        "input",
        "li",
        "main",
        "meta",
        "noscript",
        "option",
        "output",
        "p",
        "pre",
        "script",
        "section",
        "select",
        "small",
        "span",
        "style",
        "summary",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "title",
        "tr",
        "ul",
        "svg",
        "path",
        "rect",
        "text",
        "circle",
    ]
)


class Parsed(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def check_page(text: str) -> None:
    seen = Parsed(text).seen
    assert {tag for tag, _ in seen} <= TAGS
    assert sum(tag == "script" for tag, _ in seen) == 2  # the common one and its own
    for tag, attributes in seen:
        bad = [name for name in attributes if name.startswith("on") or name in ("src", "style")]
        assert not bad, (tag, attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert not CONTROL.search(text)


def check_markdown(text: str) -> None:
    plain = re.sub(r"^```sh\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    tags = set(re.findall(r"<[^>]*>?", plain.replace("<0.0001", "")))
    assert tags <= {"<details>", "</details>", "<summary>", "</summary>"}
    plain = re.sub(r"`[^`\n]*`", "", plain)
    assert "](" not in plain
    assert "@" not in plain
    assert "`" not in plain
    for line in plain.splitlines():
        if line.startswith("|"):
            assert line.count("|") == 9, line
    assert not CONTROL.search(text)
    assert len(text) <= 65_536


@pytest.mark.parametrize("payload", odd.PAYLOADS)
def test_the_page_holds_text_only(payload):
    check_page(html_page(hostile(payload)))


def test_the_check_of_the_page_would_see_an_injection():
    page = html_page(bad_night())
    for evil in ("<script>1</script>", "<p onclick='x'>", "<a href='http://x'>", "<iframe>"):
        with pytest.raises(AssertionError):
            check_page(page.replace("</main>", evil + "</main>"))


@pytest.mark.parametrize("payload", odd.PAYLOADS)
def test_the_comment_holds_text_only(payload):
    check_markdown(markdown_summary(hostile(payload)))


@pytest.mark.parametrize("payload", odd.PAYLOADS)
def test_metrics_and_xml_hold_text_only(payload):
    night = hostile(payload)
    text = prometheus_text(night)
    lines = text.splitlines()
    assert all(re.match(r"# (HELP|TYPE) agent_gym_|agent_gym_[a-z_]+[ {]", line) for line in lines)
    found = {family.name for family in text_string_to_metric_families(text)}
    assert found == {
        family.name for family in text_string_to_metric_families(prometheus_text(bad_night()))
    }
    assert not CONTROL.search(text)
    root = ElementTree.fromstring(junit_xml(night).encode())
    assert {node.tag for node in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "properties", "property"),
        *("failure", "error", "skipped", "system-out"),
    }


@pytest.mark.parametrize("payload", odd.PAYLOADS)
def test_the_terminal_sees_no_escapes_and_no_markup(payload):
    night, screen = hostile(payload), io.StringIO()
    console = Console(file=screen, width=100)
    console.print(summary_view(night), run_view(night.run))
    with ConsoleProgress(payload, 2, console) as progress:
        progress.start(payload)
        progress.advance(payload, error=payload)
        progress.note(payload)
    text = screen.getvalue()
    assert not CONTROL.search(text)
    if "[bold red]" in payload:
        assert "[bold red]" in text  # shown, not obeyed


@pytest.mark.parametrize("payload", odd.PAYLOADS)
def test_json_holds_no_control_signs(payload):
    night = hostile(payload)
    for document in (diff_document(night), report_document(night.run)):
        assert not CONTROL.search(document_text(document))


@ANY
@given(odd.results())
def test_any_night_is_harmless(result):
    check_page(html_page(result))
    check_markdown(markdown_summary(result))


@pytest.mark.parametrize("payload", odd.PAYLOADS)
def test_a_replay_command_is_one_command(payload):
    words = shlex.split(replay_command(payload, payload, 7))
    assert words[:2] == ["agent-gym", "replay"]
    assert words[4] == "7"
    assert len(words) == 5


def test_long_texts_are_cut():
    assert len(visible("x" * 10_000)) == 4_000
    assert one_line("a\n\n b\tc") == "a b c"
