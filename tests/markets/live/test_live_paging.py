from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.errors import DataError
from agent_gym.markets.live.adapter import Hiccup
from agent_gym.markets.live.paging import MS_NS, Page, Walk, read_page

STEP_NS = 60_000 * MS_NS


def raw_bar(index: int, value: float = 1.0) -> list[float]:
    return [index * 60_000, value, value + 1.0, value - 0.5, value, 3.0]


def indices(page: Page) -> list[int]:
    return (page.ts // STEP_NS).tolist()


@given(st.lists(st.integers(0, 50), max_size=80))
def test_a_page_is_sorted_and_holds_each_time_once(found: list[int]) -> None:
    page = read_page([raw_bar(n, 1.0 + n) for n in found])
    assert indices(page) == sorted(set(found))
    assert page.duplicates == len(found) - len(set(found))
    assert page.rows[:, 0].tolist() == [1.0 + n for n in indices(page)]


@pytest.mark.parametrize(
    "raw",
    [
        "not rows",
        [[1, 2]],
        [[1, 2, 3, 4, 5, 6], [1]],
        [["x", 1, 1, 1, 1, 1]],
        [[None, 1, 1, 1, 1, 1]],
        [[1.5, 1, 1, 1, 1, 1]],
        [[float("inf"), 1, 1, 1, 1, 1]],
        [{"a": 1}],
    ],
)
def test_what_is_no_table_of_numbers_is_tried_again(raw: Any) -> None:
    with pytest.raises(Hiccup):
        read_page(raw)


def test_two_values_for_one_time_are_an_error() -> None:
    with pytest.raises(DataError, match="two different bars"):
        read_page([raw_bar(1, 1.0), raw_bar(1, 2.0)])


class Server:
    """Answers with at most ``cap`` bars from a time on, out of those it has."""

    def __init__(self, has: set[int], cap: int, window: int | None = None) -> None:
        self.has, self.cap, self.window = sorted(has), cap, window
        self.calls = 0

    def ask(self, since_ns: int) -> Page:
        self.calls += 1
        assert self.calls < 2000, "the walk does not end"
        since = -(-since_ns // STEP_NS)
        until = since + (self.window or 10**9)
        return read_page([raw_bar(n, 1.0 + n) for n in self.has if since <= n < until][: self.cap])


@given(
    has=st.sets(st.integers(0, 120), max_size=121),
    cap=st.integers(2, 30),
    windowed=st.booleans(),
    start=st.integers(0, 60),
    length=st.integers(1, 60),
)
def test_a_walk_finds_every_bar_once_and_ends(
    has: set[int], cap: int, windowed: bool, start: int, length: int
) -> None:
    server = Server(has, cap, cap if windowed else None)
    walk = Walk(server.ask, STEP_NS, cap, keep_gaps=True)
    found: list[int] = []
    known = start * STEP_NS
    for page, known_to in walk.span(start * STEP_NS, (start + length) * STEP_NS):
        assert known_to > known
        known = known_to
        found += indices(page)
        assert all(n < known_to // STEP_NS for n in indices(page))
    assert found == [n for n in sorted(has) if start <= n < start + length]
    assert known == (start + length) * STEP_NS
    assert walk.pages == server.calls


def test_a_hole_is_crossed_in_steps_the_exchange_can_see() -> None:
    # It looks 60 bars ahead though 1000 were asked for: a jump of 1000 would lose real bars.
    server = Server(set(range(60)) | set(range(130, 400)), 60, 60)
    walk = Walk(server.ask, STEP_NS, 1000, keep_gaps=True)
    found = [n for page, _ in walk.span(0, 400 * STEP_NS) for n in indices(page)]
    assert found == [*range(60), *range(130, 400)]


def test_the_last_known_bar_is_asked_for_again() -> None:
    server = Server(set(range(30)), 10)
    asked: list[int] = []

    def ask(since_ns: int) -> Page:
        asked.append(since_ns // STEP_NS)
        return server.ask(since_ns)

    walk = Walk(ask, STEP_NS, 10)
    assert sum(len(page) for page, _ in walk.span(0, 30 * STEP_NS)) == 30
    assert asked == [0, 9, 18, 27]
    assert walk.duplicates == 0


def test_a_server_that_repeats_itself_is_left() -> None:
    page = read_page([raw_bar(n) for n in range(10)])
    calls = 0

    def stuck(_: int) -> Page:
        nonlocal calls
        calls += 1
        return page

    with pytest.raises(DataError, match="no further bars"):
        for _ in Walk(stuck, STEP_NS, 10).span(0, 100 * STEP_NS):
            pass
    assert calls == 3


def test_a_history_that_changes_is_refused() -> None:
    first = read_page([raw_bar(n) for n in range(10)])
    second = read_page([raw_bar(n, 2.0) for n in range(9, 19)])
    pages = iter([first, second])
    with pytest.raises(DataError, match="two different bars"):
        for _ in Walk(lambda _: next(pages), STEP_NS, 10).span(0, 100 * STEP_NS):
            pass


def test_a_page_answers_for_a_time() -> None:
    page = read_page([raw_bar(1, 5.0), raw_bar(3, 6.0)])
    assert page.at(2 * STEP_NS) is None
    assert page.at(9 * STEP_NS) is None
    assert np.array_equal(page.at(3 * STEP_NS), [6.0, 7.0, 5.5, 6.0, 3.0])
