"""Does the gate stay quiet when nothing got worse? The same code, night after night.

There are two questions. Reruns of the very same code must be recognised by their hashes. And two
sides that differ in luck alone (see luck.py) must not be told apart: these are tested seed by
seed, flagged, and confirmed on fresh seeds, so an alarm is possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent_gym.core.clock import SystemClock
from agent_gym.evaluation.gate import Diff, judge
from agent_gym.evaluation.gate.power import upper_bound
from agent_gym.evaluation.gate.samples import SuiteSamples
from agent_gym.evaluation.scenarios.plants_market import TYPES as MARKET_TYPES
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import Suite, fixed_seeds, fresh_seeds
from agent_gym.pipeline.nightly.baseline import load_baseline
from agent_gym.pipeline.nightly.crew import Task
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.luck import lucky_subject
from agent_gym.pipeline.nightly.options import RunOptions
from agent_gym.pipeline.nightly.prepare import prepare
from agent_gym.pipeline.nightly.run import Player, suite_samples
from agent_gym.pipeline.nightly.self_test import compared
from agent_gym.pipeline.nightly.self_test_jobs import HereCrew, KeptJob, Say, SelfTest, do_all
from agent_gym.pipeline.nightly.workspace import Workspace

SAME_SCHEMA = "agent_gym.same_code/1"
FRESH_SEEDS = 3  # of each scenario and night, played on both sides though nobody asked
LUCKY_DESK_TYPES = ("signal_throughput", "execution_fallback")
ONE_SEED_LOSS = 0.05
NOWHERE = Path(":memory:")


class RerunJob(KeptJob):
    """One more night of the same code."""

    @property
    @override
    def name(self) -> str:
        return f"rerun-{self.date}"

    @override
    def work(self) -> dict[str, Any]:
        """Compare with the baseline as a night does, and play fresh seeds twice besides."""
        workspace, suite = Workspace(self.root), self.suite
        baseline = load_baseline(workspace)
        options = RunOptions(suite, suite.subject(), date=self.date, timings=False)
        prepared = prepare(options, SystemClock(), baseline.record.id)
        with Ledger(workspace.ledger) as ledger:
            night = compared(prepared, baseline, ledger, self.policy)
        tasks = [
            Task(each, fresh_seeds(suite.id, self.date, each.name, FRESH_SEEDS))
            for each in suite.scenarios
        ]
        once, again = (_Side(suite, suite.subject()).play_samples(tasks) for _ in range(2))
        fresh = judge(once, again, None, self.policy)
        assert night.diff is not None
        said = {"night": _said(night.diff), "fresh": _said(fresh)}
        quiet = not any(each["regressions"] for each in said.values())
        return {
            "name": self.name,
            "date": self.date,
            "says": "quiet" if quiet else "ALARM",
            "played_again": {
                each.name: list(each.repeated) for each in night.run.samples.scenarios
            },
            "fresh_seeds": {task.scenario.name: list(task.seeds) for task in tasks},
            **said,
        }


class LuckJob(KeptJob):
    """Two sides that differ in luck alone, compared with everything that a night does."""

    number: int

    @property
    @override
    def name(self) -> str:
        return f"luck-{self.number}"

    @override
    def work(self) -> dict[str, Any]:
        """Screen on the pinned seeds of both sides, confirm on fresh ones."""
        suite, salts = self.suite, (2 * self.number + 1, 2 * self.number + 2)
        base, cand = (lucky_subject(salt) for salt in salts)
        asked: dict[str, int] = {}

        def rerun(scenarios: Sequence[str], n_seeds: int) -> tuple[SuiteSamples, SuiteSamples]:
            asked.update(dict.fromkeys(scenarios, n_seeds))
            fresh = [
                Task(suite.scenario(name), fresh_seeds(suite.id, self.date, name, n_seeds))
                for name in sorted(scenarios)
            ]
            return old.play_samples(fresh), new.play_samples(fresh)

        old, new = _Side(suite, base), _Side(suite, cand)
        tasks = [Task(each, fixed_seeds(suite.id, each)) for each in suite.scenarios]
        sides = old.play_samples(tasks), new.play_samples(tasks)
        diff = judge(*sides, rerun, self.policy)
        said = _said(diff)
        return {
            "name": self.name,
            "date": self.date,
            "salts": list(salts),
            "scenarios": [each.name for each in suite.scenarios],
            "says": f"{said['flagged']} flagged, {len(said['regressions'])} regressions",
            "fresh_seeds": dict(sorted(asked.items())),
            **said,
            "unconfirmed": len(judge(*sides, None, self.policy).of("regression")),
            "one_seed": _one_seed_alarms(*sides),
            "losses": {each.id: each.loss for each in diff.findings if each.stage == "confirm"},
        }


class _Side:
    """Plays one subject; longer lists of seeds begin with those that it has played."""

    def __init__(self, suite: Suite, subject: Subject) -> None:
        self._suite = suite
        self._player = Player(Ledger(NOWHERE), HereCrew(subject), "self-test", subject)

    def play_samples(self, tasks: Sequence[Task]) -> SuiteSamples:
        played = self._player.play(tasks)
        scenarios = [task.scenario for task in tasks]
        return suite_samples(self._suite, "self-test", played, scenarios)


def _said(diff: Diff) -> dict[str, Any]:
    return {
        "verdict": diff.verdict,
        "words": dict(sorted(Counter(each.word for each in diff.findings).items())),
        "tested": diff.n_tests,
        "flagged": diff.n_flagged,
        "regressions": [each.id for each in diff.of("regression")],
        "errors": [each.id for each in diff.of("error")],
        "improvements": [each.id for each in diff.of("improvement")],
    }


def _one_seed_alarms(base: SuiteSamples, cand: SuiteSamples) -> int:
    """Return how many metrics lose 5 % on the first seed: what a naive gate would cry about."""
    alarms = 0
    for old, new in zip(base.scenarios, cand.scenarios, strict=True):
        for metric in (each for each in new.metrics if each.gates):
            was, now = (side.samples[0].metrics.get(metric.name) for side in (old, new))
            if was is not None and now is not None:
                alarms += metric.sign * (was - now) > ONE_SEED_LOSS * abs(was)
    return alarms


def lucky_suite(suite: Suite, number: int) -> Suite:
    """Return the market scenarios of a suite and one of the desk's, another one each time."""
    market = [each for each in suite.scenarios if each.type in MARKET_TYPES]
    desk = [each for each in suite.scenarios if each.type in LUCKY_DESK_TYPES]
    chosen = (*market, *([desk[number % len(desk)]] if desk else ()))
    return suite.model_copy(update={"scenarios": chosen})


def same_code_study(asked: SelfTest, reruns: int, say: Say = print) -> dict[str, Any]:
    """Rerun the same code on so many dates, and compare so many pairs that luck alone separates."""
    first = date.fromisoformat(asked.date)
    dates = [(first + timedelta(days=number)).isoformat() for number in range(reruns)]
    fields = asked.of_a_job()
    nights = [RerunJob(**fields | {"date": day}) for day in dates]
    pairs = [
        LuckJob(**fields | {"date": day, "suite": lucky_suite(asked.suite, number)}, number=number)
        for number, day in enumerate(dates)
    ]
    rows = do_all([*nights, *pairs], asked.workers, say)
    same, luck = rows[:reruns], rows[reruns:]
    alarms = sum(bool(row["regressions"] or row["errors"]) for row in luck)
    loud = sum(any(row[part]["regressions"] for part in ("night", "fresh")) for row in same)
    changed = sum(set(row[p]["words"]) != {"unchanged"} for row in same for p in ("night", "fresh"))
    return {
        "schema": SAME_SCHEMA,
        **asked.document(),
        "reruns": {"n": reruns, "with_regressions": loud, "not_all_unchanged": changed},
        "luck": {
            "n": reruns,
            "with_regressions": alarms,
            "upper95": upper_bound(alarms, reruns),
            "with_improvements": sum(bool(row["improvements"]) for row in luck),
            "metrics_tested": sum(row["tested"] for row in luck),
            "metrics_flagged": sum(row["flagged"] for row in luck),
            "alarms_unconfirmed": sum(row["unconfirmed"] > 0 for row in luck),
            "alarms_one_seed": sum(row["one_seed"] > 0 for row in luck),
        },
        "meets_target": not loud and not changed and not alarms and _could_fail(luck),
        "nights": same,
        "pairs": luck,
    }


def _could_fail(luck: Sequence[dict[str, Any]]) -> bool:
    """A test in which nothing is ever flagged proves nothing."""
    return all(row["flagged"] > 0 for row in luck)
