"""Suites for the tests of the gate: figures are made from arrays, so their truth is known."""

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate import GatePolicy, Sample, ScenarioSamples, SuiteSamples, judge
from agent_gym.evaluation.scenarios.metric import Metric, Tolerance

IDENTITY = {"type": "made_up", "version": "1", "config_hash": "c", "data_hash": "d", "costs": "x"}


def metric(name="speed", *, direction="up", rel=0.02, abs=0.0, floor=0.0, **more):  # noqa: A002
    return Metric(
        name=name,
        unit=more.pop("unit", "1/h"),
        direction=direction,
        meaning="made up",
        tolerance=Tolerance(rel=rel, abs=abs),
        floor=floor,
        **more,
    )


def scenario(values, *, name="calm", metrics=None, tag="old", first_seed=0, **more):
    """Values are {metric: array over seeds}; the hash is that of ``tag`` and the seed."""
    metrics = metrics or tuple(metric(each) for each in values)
    n = len(next(iter(values.values())))
    samples = tuple(
        Sample(
            seed=first_seed + index,
            status="ok",
            metrics={
                each: None if row[index] is None else float(row[index])
                for each, row in values.items()
            },
            trajectory_hash=f"{tag}{first_seed + index}",
        )
        for index in range(n)
    )
    return ScenarioSamples(
        name=name,
        identity=more.pop("identity", IDENTITY),
        metrics=metrics,
        samples=more.pop("samples", samples),
        repeated=more.pop("repeated", {}),
    )


def suite(*scenarios, run="old", version=1):
    return SuiteSamples(run_id=run, suite_id="s", suite_version=version, scenarios=scenarios)


def noise(*names, n=24, sd=0.05):
    return sd * Seeds(5).child(*names).rng().standard_normal(n)


class MadeUpRerun:
    """Plays fresh seeds: each metric's baseline is 1 plus paths, the candidate adds its change."""

    def __init__(self, changes, *, sd=0.05, metrics=None, spoil=None, stream="fresh", name="calm"):
        self.changes, self.sd, self.metrics = changes, sd, metrics
        self.spoil, self.stream, self.name = spoil or (lambda sides: sides), stream, name
        self.calls = []

    def __call__(self, scenarios, n_seeds):
        self.calls.append((tuple(scenarios), n_seeds))
        sides = []
        for side in ("old", "new"):
            made = []
            for name in scenarios:
                values = {}
                for each, change in self.changes.items():
                    node = Seeds(9).child(self.stream, name, each)
                    base = 1.0 + 0.1 * node.child("paths").rng().standard_normal(n_seeds)
                    moved = change + self.sd * node.child("noise").rng().standard_normal(n_seeds)
                    values[each] = base + moved if side == "new" else base
                made.append(
                    scenario(values, name=name, metrics=self.metrics, tag=side, first_seed=1_000)
                )
            sides.append(suite(*made, run=side))
        return self.spoil(tuple(sides))


def pinned(changes, *, sd=0.05, metrics=None, n=24, tags=("old", "new"), name="calm"):
    """Return both sides of one scenario on the pinned seeds."""
    base = {each: 1.0 + noise("pinned", name, each, "paths", n=n, sd=0.1) for each in changes}
    cand = {
        each: base[each] + change + noise("pinned", name, each, n=n, sd=sd)
        for each, change in changes.items()
    }
    return (
        suite(scenario(base, metrics=metrics, tag=tags[0], name=name), run="old"),
        suite(scenario(cand, metrics=metrics, tag=tags[1], name=name), run="new"),
    )


def judged(changes, *, sd=0.05, metrics=None, policy=None, rerun=True, **more):
    """Judge one scenario whose metrics truly change by the given amounts."""
    old, new = pinned(changes, sd=sd, metrics=metrics)
    again = MadeUpRerun(changes, sd=sd, metrics=metrics) if rerun else None
    return judge(old, new, again, policy or GatePolicy(), **more)


def words(diff):
    return {finding.id: finding.word for finding in diff.findings}


def only(diff):
    (finding,) = diff.findings
    return finding


def of_one(base, cand, *, tags=("old", "new"), rerun=None, policy=None, **more):
    """Judge a single metric of a single scenario, given its values."""
    measured = metric(**more)
    sides = [
        suite(scenario({measured.name: row}, metrics=(measured,), tag=tag), run=tag)
        for row, tag in zip((base, cand), tags, strict=True)
    ]
    return judge(*sides, rerun, policy or GatePolicy())


def finite(value):
    if isinstance(value, float):
        return bool(np.isfinite(value))
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    return all(map(finite, value)) if isinstance(value, list | tuple) else True
