"""What the ledger remembers of earlier nights, for the gate and for the pages."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_gym.evaluation.gate import GatePolicy, History, Night, change_points
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.reporting.nightly import NightlyResult, Past, PastNight, light, verdict

NIGHTS = 90
_SELF_TEST = "self test of "  # suites with a planted fault are remembered apart


def remembered_suite(suite_id: str, *, planted: bool) -> str:
    """Return the name under which nights of a suite are remembered."""
    return f"{_SELF_TEST}{suite_id}" if planted else suite_id


class Memory:
    """The nights before this one, read once."""

    def __init__(self, ledger: Ledger, suite: str, run_id: str) -> None:
        nights = ledger.nights(suite, NIGHTS + 1)
        self._nights = [night for night in nights if night["run_id"] != run_id][-NIGHTS:]

    @property
    def history(self) -> History:
        """Return the complete nights as the gate takes them."""
        return History(
            tuple(
                msgspec.convert(night["night"], Night)
                for night in self._nights
                if night["status"] == "complete"
            )
        )

    @property
    def last_success_at(self) -> str | None:
        """Return when the last good night ended."""
        good = [night["finished_at"] for night in self._nights if night["light"] == "good"]
        return str(good[-1]) if good else None

    def past(self, policy: GatePolicy) -> Past:
        """Return the nights as the pages take them, with the levels that the gate sees."""
        history = self.history
        names = sorted({name for night in history.nights for name in night.values})
        levels = {name: _levels(history, name, policy) for name in names}
        return Past(
            nights=tuple(
                PastNight(
                    run_id=night["run_id"],
                    created_at=night["created_at"],
                    verdict=night["verdict"],
                    values=night["night"]["values"],
                    commit=night["commit"],
                    baseline_id=night["baseline_id"],
                )
                for night in self._nights
            ),
            change_points={name: found for name, found in levels.items() if found},
        )


def _levels(history: History, name: str, policy: GatePolicy) -> tuple[str, ...]:
    series = history.series(name)[-policy.change_nights :]
    points = change_points(
        [value for _, value in series],
        alpha=policy.change_alpha,
        min_segment=policy.change_segment,
        superiority=policy.change_superiority,
    )
    return tuple(series[point.index][0] for point in points)


def night_body(result: NightlyResult, night: Night, exit_code: int) -> dict[str, Any]:
    """Return what is remembered of tonight."""
    run = result.run
    return {
        "run_id": run.run_id,
        "created_at": run.created_at,
        "finished_at": run.finished_at,
        "status": run.status,
        "verdict": verdict(result),
        "light": light(result),
        "exit_code": exit_code,
        "commit": run.code.commit,
        "code_hash": run.code.code_hash,
        "baseline_id": None if result.baseline is None else result.baseline.id,
        "night": msgspec.to_builtins(night),
    }
