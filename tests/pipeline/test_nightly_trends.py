"""Which metrics moved: the worst first, by their own spread and their own direction."""

import pytest

from agent_gym.pipeline.nightly.history import RunRow
from agent_gym.pipeline.nightly.trends import trends


def nights(**series):
    length = len(next(iter(series.values())))
    return [
        RunRow(
            run_id=f"n{at}",
            suite="desk",
            created_at=f"2026-01-{at + 1:02d}",
            finished_at="",
            status="complete",
            verdict="pass",
            light="good",
            exit_code=0,
            commit=None,
            baseline_id=None,
            values={name: values[at] for name, values in series.items() if values[at] is not None},
        )
        for at in range(length)
    ]


def test_the_worst_comes_first_and_better_is_not_worse():
    calm = [1.0, 1.1, 0.9, 1.0, 1.1, 0.9]
    made = nights(fell=[*calm, 0.5], rose=[*calm, 1.5], wild=[1.0, 5.0, 1.0, 5.0, 1.0, 5.0, 5.5])
    found = trends(made, {"fell": "up", "rose": "up", "wild": "down"})
    assert [each.name for each in found] == ["fell", "wild", "rose"]
    assert found[0].loss == pytest.approx(0.5 / (1.4826 * 0.1))
    assert found[2].loss < 0.0
    assert found[0].values == (*calm, 0.5)
    assert found[0].usual == 1.0


def test_few_nights_and_gaps_are_no_trend():
    assert trends([], {}) == ()
    assert trends(nights(a=[1.0] * 5), {}) == ()
    assert [each.name for each in trends(nights(a=[None] * 4 + [1.0] * 3, b=[2.0] * 7), {})] == [
        "b"
    ]
    many = nights(**{f"m{at}": [1.0] * 7 for at in range(9)})
    assert len(trends(many, {}, most=4)) == 4
