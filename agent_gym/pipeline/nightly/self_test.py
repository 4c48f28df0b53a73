"""Does the gate find what was broken on purpose? Every planted fault, played and judged for real.

A fault is played on the scenarios that must give it away and on one that it must leave alone,
against an approved baseline: pinned seeds, fresh seeds on both sides, the gate's own verdict. Then
the command that the reports print for the worst seed is run as it is printed.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import structs
from typing_extensions import override

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import AgentGymError
from agent_gym.core.files import HOME_VARIABLE
from agent_gym.core.registry import unknown
from agent_gym.evaluation.gate import Finding, GatePolicy, judge
from agent_gym.evaluation.scenarios.plant import Plant
from agent_gym.evaluation.scenarios.plants import PLANTS
from agent_gym.evaluation.scenarios.plants_market import MARKET_PLANTS
from agent_gym.evaluation.scenarios.plants_market import TYPES as MARKET_TYPES
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, Suite, fixed_seeds
from agent_gym.pipeline.nightly.baseline import Baseline, load_baseline
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.nightly import play_all
from agent_gym.pipeline.nightly.options import RunOptions
from agent_gym.pipeline.nightly.prepare import Prepared, nightly_run, prepare
from agent_gym.pipeline.nightly.publish import keep_run
from agent_gym.pipeline.nightly.rerun import FreshRerun
from agent_gym.pipeline.nightly.run import Player, suite_samples
from agent_gym.pipeline.nightly.self_test_jobs import HereCrew, KeptJob, Say, SelfTest, do_all
from agent_gym.pipeline.nightly.setup import subject_of
from agent_gym.pipeline.nightly.times import iso
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.reporting.nightly import (
    NightlyResult,
    diff_document,
    document_text,
    replay_command,
    report_document,
)
from agent_gym.reporting.nightly.verdict import by_severity

REPLAY_TIMEOUT_S = 300.0
FAULTS_SCHEMA = "agent_gym.planted_faults/1"
TARGET_SHARE = 0.95
SHOWN = ("caught", "blamed_right", "replayed")
"""What the target holds for: an alarm, on a metric named beforehand, that can be seen again."""


def scenarios_of(plant: Plant, suite: Suite) -> tuple[tuple[ScenarioConfig, ...], str | None]:
    """Return the scenarios that must show a fault with one that must not, and the latter's name.

    Faults of the desk must leave market scenarios alone, and the other way round.
    """
    blamed = {name.partition("/")[0] for name in plant.blamed}
    chosen = tuple(each for each in suite.scenarios if each.type in blamed)
    market = plant.name in MARKET_PLANTS
    others = [each for each in suite.scenarios if (each.type in MARKET_TYPES) != market]
    if not others:
        return chosen, None
    return (*chosen, others[-1]), others[-1].name


class PlantJob(KeptJob):
    """One planted fault against the healthy baseline of a workspace."""

    plant: str

    @property
    @override
    def name(self) -> str:
        return self.plant

    @override
    def work(self) -> dict[str, Any]:
        """Play, judge, keep the run, and play its worst seed again by the printed command."""
        plant = PLANTS[self.plant]
        chosen, control = scenarios_of(plant, self.suite)
        result = self._judged(chosen)
        blamed = frozenset(
            f"{scenario.name}/{metric}"
            for kind, _, metric in (name.partition("/") for name in plant.blamed)
            for scenario in chosen
            if scenario.type == kind
        )
        blame = Blame(result, blamed, control)
        row = {"name": plant.name, "what": plant.what, "room": plant.room, **blame.row()}
        finding = blame.shown
        if finding is not None:
            command = replay_command(result.run.run_id, finding.scenario, finding.worst_seeds[0])
            row["replay"] = run_printed(command, self.root, finding, plant.name)
            row["replayed"] = row["replay"]["reproduced"]
        words = [word for word in SHOWN if row[word]]
        return row | {"says": ", ".join(words) or "MISSED"}

    def _judged(self, chosen: tuple[ScenarioConfig, ...]) -> NightlyResult:
        workspace = Workspace(self.root)
        suite = self.suite.model_copy(update={"scenarios": chosen})
        subject = structs.replace(suite.subject(), plant=self.plant)
        options = RunOptions(suite, subject, date=self.date, timings=False)
        baseline = _part_of(load_baseline(workspace), suite)
        prepared = prepare(options, SystemClock(), baseline.record.id)
        with Ledger(workspace.ledger) as ledger:
            result = compared(prepared, baseline, ledger, self.policy)
        outputs = {
            "report": document_text(report_document(result.run)),
            "diff": document_text(diff_document(result)),
        }
        keep_run(workspace, result, prepared.setup, outputs)
        return result


def compared(
    prepared: Prepared, baseline: Baseline, ledger: Ledger, policy: GatePolicy
) -> NightlyResult:
    """Do what a night does, in this process: play, confirm on fresh seeds of both sides, judge."""
    code, suite, subject = prepared.code.code_hash, prepared.options.suite, prepared.options.subject
    if code != baseline.setup.code_hash:
        raise AgentGymError("the code was changed while it was tested", found=code)
    healthy = subject_of(baseline.setup.subject)
    old = Player(ledger, HereCrew(healthy), code, healthy)
    new = Player(ledger, HereCrew(subject), code, subject)
    played = play_all(prepared, new)
    candidate = suite_samples(suite, prepared.run_id, played, suite.scenarios)
    rerun = FreshRerun(suite, prepared.setup.date, baseline, old, new, proof=None)
    diff = judge(baseline.samples, candidate, rerun, policy)
    run = nightly_run(prepared, played, iso(SystemClock().now_ns()), rerun.seeds, ())
    return NightlyResult(
        run=run,
        diff=diff,
        baseline=baseline.record,
        baseline_samples=baseline.samples,
        fresh=rerun.sides(run.run_id),
    )


def _part_of(baseline: Baseline, suite: Suite) -> Baseline:
    """Return the baseline with the scenarios of a smaller suite alone."""
    names = {scenario.name for scenario in suite.scenarios}
    kept = tuple(each for each in baseline.samples.scenarios if each.name in names)
    return replace(baseline, samples=structs.replace(baseline.samples, scenarios=kept))


@dataclass(frozen=True, slots=True)
class Blame:
    """What the gate said of a fault, what must be blamed for it, and a scenario that must not be.

    A fault is blamed right if a metric that was named with the fault is itself a regression.
    Whether it also stands first in the report is told, and no target: a loss in another metric
    that follows from the same fault may be larger.
    """

    result: NightlyResult
    metrics: frozenset[str]
    control: str | None

    @property
    def broken(self) -> list[Finding]:
        """Return what failed, in the order in which the reports show it."""
        assert self.result.diff is not None
        return by_severity(self.result.diff.of("regression", "error"))

    @property
    def shown(self) -> Finding | None:
        """Return the first finding that is blamed and names a seed."""
        found = (each for each in self.broken if each.id in self.metrics and each.worst_seeds)
        return next(found, None)

    def row(self) -> dict[str, Any]:
        """Return all that was said as plain values."""
        diff, broken = self.result.diff, self.broken
        assert diff is not None
        first = broken[0].id if broken else None
        fresh = self.result.run.seeds.fresh
        return {
            "run_id": self.result.run.run_id,
            "verdict": diff.verdict,
            "control": self.control,
            "blamed": {each.id: each.word for each in diff.findings if each.id in self.metrics},
            "caught": bool(broken),
            "blamed_right": any(each.id in self.metrics for each in broken),
            "first": first,
            "right_first": first in self.metrics,
            "also": [each.id for each in broken if each.id not in self.metrics],
            "false_blame": [each.id for each in broken if each.scenario == self.control],
            "flagged": diff.n_flagged,
            "fresh_seeds": {name: len(seeds) for name, seeds in sorted(fresh.items())},
            "replay": None,
            "replayed": False,
        }


def run_printed(command: str, home: Path, finding: Finding, plant: str) -> dict[str, Any]:
    """Run a replay command as it was printed, and say whether it shows the fault again.

    It does if the run is the same to the last figure and the seed is worse than the baseline's.
    """
    words = shlex.split(command)
    done = subprocess.run(
        [str(Path(sys.executable).with_name(words[0])), *words[1:], "--json"],
        env=os.environ | {HOME_VARIABLE: str(home)},
        capture_output=True,
        text=True,
        timeout=REPLAY_TIMEOUT_S,
        check=False,
    )
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {"error": done.stderr[-500:]}
    figure = said.get("figures", {}).get(finding.metric, {})
    now, base = figure.get("replayed"), figure.get("baseline")
    sign = 1.0 if finding.direction == "up" else -1.0
    worse = base is not None and (now is None or sign * (base - now) > 0.0)
    same = said.get("same") is True and said.get("plant") == plant
    return {
        "command": command,
        "exit_code": done.returncode,
        "metric": finding.id,
        "figure": figure,
        "error": said.get("error"),
        "reproduced": done.returncode == 0 and same and worse,
    }


def known_plants(names: Sequence[str]) -> list[str]:
    """Return the names of faults, all of them if none is given; ConfigError if one is unknown."""
    for name in names:
        if name not in PLANTS:
            raise unknown("planted fault", name, tuple(sorted(PLANTS)))
    return list(dict.fromkeys(names)) or list(PLANTS)


def fault_study(asked: SelfTest, names: Sequence[str], say: Say = print) -> dict[str, Any]:
    """Plant faults (all, if none is named) and return what the gate made of each.

    It goes on where it was stopped.
    """
    suite = asked.suite
    jobs = [PlantJob(**asked.of_a_job(), plant=name) for name in known_plants(names)]
    rows = do_all(jobs, asked.workers, say)
    desk = [row for row in rows if row["name"] not in MARKET_PLANTS]
    return {
        "schema": FAULTS_SCHEMA,
        **asked.document(),
        "pinned_seeds": {each.name: list(fixed_seeds(suite.id, each)) for each in suite.scenarios},
        "fresh_seeds": "fresh_seeds(suite id, date, scenario, n), n as each fault says",
        "desk_and_venue": _counts(desk),
        "all": _counts(rows),
        "meets_target": _met(_counts(rows)) and (not desk or _met(_counts(desk))),
        "faults": {row["name"]: row for row in rows},
    }


def _counts(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    words = (*SHOWN, "right_first", "false_blame")
    return {"planted": len(rows)} | {word: sum(bool(row[word]) for row in rows) for word in words}


def _met(counts: dict[str, int]) -> bool:
    needed = TARGET_SHARE * counts["planted"]
    good = all(counts[word] >= needed for word in SHOWN)
    return good and counts["false_blame"] == 0
