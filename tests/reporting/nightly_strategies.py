"""Nights that nobody would expect: odd names, numbers that are none, holes everywhere."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from agent_gym.evaluation.gate.diff import Diff, Finding, Notice, SuiteWord, Word
from agent_gym.evaluation.gate.samples import RunStatus, Sample, ScenarioSamples, SuiteSamples
from agent_gym.evaluation.scenarios.metric import Metric, Tolerance
from agent_gym.reporting.nightly import (
    BaselineRecord,
    Code,
    NightlyResult,
    NightlyRun,
    Past,
    PastNight,
    SeedLists,
)

PAYLOADS = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'',
    "a\nb\r\n# HELP evil",
    'x"} 1\nagent_gym_evil 1',
    "\x1b[31mred\x1b[0m\x9b31m",
    "a | b | c",
    "`rm -rf ~` ``` ~~~",
    '=HYPERLINK("http://127.0.0.1:9","x")',
    "[bold red]markup[/bold red] [link=http://127.0.0.1:9]x[/link]",
    "@everyone ![x](http://127.0.0.1:9/x.png) <!-- -->",
    "]]> &amp; &#60; <?xml ?>",
    "\u202etxt.exe\u200b \ufeff \ud800 \uffff \x00 \x7f",
    "-rf; $(touch /tmp/owned) 'x'",
)
names = st.one_of(
    st.sampled_from(PAYLOADS),
    st.sampled_from(["alpha", "beta", "gamma_1", "latency_p95_ms"]),
    st.text(st.characters(), min_size=0, max_size=30),
)
numbers = st.one_of(
    st.none(), st.floats(), st.sampled_from([0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 1e-9, 0.5])
)
times = st.sampled_from(
    ["2026-11-16T01:30:00Z", "2026-11-16T02:30:00+00:00", "2026-01-01T00:00:00"]
)
words, suite_words = st.sampled_from(get_args(Word)), st.sampled_from(get_args(SuiteWord))
seeds = st.integers(0, 2**48 - 1)
metric_names = st.sampled_from(["alpha", "beta", "gamma_1"])


@st.composite
def findings(draw, figures=numbers) -> Finding:
    scenario, metric = draw(names), draw(st.one_of(metric_names, names))
    return Finding(
        id=f"{scenario}/{metric}",
        scenario=scenario,
        metric=metric,
        word=draw(words),
        stage=draw(st.sampled_from(["exact", "screen", "confirm", "check"])),
        unit=draw(names),
        direction=draw(st.sampled_from(["up", "down", ""])),
        n=draw(st.integers(0, 10_000)),
        ci95=draw(st.one_of(st.none(), st.tuples(st.floats(), st.floats()))),
        must_be_zero=draw(st.booleans()),
        critical=draw(st.booleans()),
        worst_seeds=tuple(draw(st.lists(seeds, max_size=5))),
        why=draw(names),
        **{
            name: draw(figures)
            for name in [
                "base",
                "cand",
                "loss",
                "delta_abs",
                "delta_rel",
                "p",
                "p_holm",
                "effect",
                "sd",
                "mde",
                "required",
                "tolerance_rel",
                "tolerance_abs",
            ]
        },
    )


@st.composite
def samples(draw) -> Sample:
    return Sample(
        seed=draw(seeds),
        status=draw(st.sampled_from(get_args(RunStatus))),
        metrics=draw(st.dictionaries(metric_names, numbers, max_size=3)),
        trajectory_hash=draw(names),
        error=draw(st.one_of(st.none(), names)),
    )


@st.composite
def metrics(draw, name: str) -> Metric:
    return Metric(
        name=name,
        unit=draw(names),
        direction=draw(st.sampled_from(["up", "down"])),
        meaning=draw(names),
        tolerance=Tolerance(rel=draw(st.floats(0, 1)), abs=draw(st.floats(0, 1e300))),
        must_be_zero=draw(st.booleans()),
        gates=draw(st.booleans()),
    )


@st.composite
def suites(draw) -> SuiteSamples:
    scenarios = tuple(
        ScenarioSamples(
            name=name,
            identity=draw(st.dictionaries(names, names, max_size=2)),
            metrics=tuple(draw(metrics(each)) for each in ("alpha", "beta")),
            samples=tuple(draw(st.lists(samples(), max_size=4, unique_by=lambda s: s.seed))),
            repeated=draw(st.dictionaries(seeds, names, max_size=2)),
        )
        for name in draw(st.lists(names, max_size=3, unique=True))
    )
    return SuiteSamples(draw(names), draw(names), draw(st.integers(1, 9)), scenarios)


@st.composite
def runs(draw) -> NightlyRun:
    suite = draw(suites())
    free = st.dictionaries(
        names, st.one_of(names, numbers, st.lists(numbers, max_size=2)), max_size=2
    )
    return NightlyRun(
        run_id=draw(names),
        suite_id=suite.suite_id,
        suite_version=suite.suite_version,
        created_at=draw(times),
        finished_at=draw(times),
        status=draw(st.sampled_from(["complete", "partial"])),
        command=draw(names),
        samples=suite,
        code=Code(commit=draw(st.one_of(st.none(), names)), dirty=draw(st.booleans())),
        manifest=draw(free),
        machine=draw(free),
        subject=draw(free),
        seeds=SeedLists(fixed=draw(st.dictionaries(names, st.tuples(seeds), max_size=2))),
        expected=tuple(draw(st.lists(names, max_size=2))),
        params=draw(st.dictionaries(names, free, max_size=1)),
        durations=draw(st.dictionaries(names, st.floats(0, 1e6), max_size=2)),
        perf=draw(
            st.dictionaries(names, st.dictionaries(names, st.floats(), max_size=1), max_size=1)
        ),
        notes=tuple(draw(st.lists(names, max_size=2))),
    )


@st.composite
def baselines(draw) -> BaselineRecord:
    return BaselineRecord(
        id=draw(names),
        run_id=draw(names),
        suite_id=draw(names),
        suite_version=draw(st.integers(1, 9)),
        created_at=draw(times),
        reason=draw(names.filter(bool)),
        approved_by=draw(names),
        content_hash=draw(names),
        accepted=tuple(draw(st.lists(names, max_size=2))),
        previous=draw(st.one_of(st.none(), names)),
    )


@st.composite
def diffs(draw) -> Diff:
    return Diff(
        baseline_run=draw(names),
        candidate_run=draw(names),
        verdict=draw(suite_words),
        why=draw(names),
        n_tests=draw(st.integers(0, 99)),
        n_flagged=draw(st.integers(0, 99)),
        alpha=draw(st.floats(0, 1)),
        method=draw(names),
        findings=tuple(draw(st.lists(findings(), max_size=4, unique_by=lambda f: f.id))),
        notices=tuple(
            Notice(kind=kind, id=draw(names), why=draw(names))
            for kind in draw(
                st.lists(st.sampled_from(["change_point", "anchor_drift"]), max_size=2)
            )
        ),
    )


@st.composite
def results(draw) -> NightlyResult:
    """Return any night; its samples and past may or may not fit its findings."""
    diff = draw(st.one_of(st.none(), diffs()))
    ids = [finding.id for finding in diff.findings] if diff else []
    nights = tuple(
        PastNight(
            run_id=f"r{at}",
            created_at=draw(times),
            verdict=draw(st.one_of(suite_words, names)),
            values={each: draw(st.floats()) for each in ids},
            commit=draw(st.one_of(st.none(), names)),
            baseline_id=draw(st.one_of(st.none(), names)),
        )
        for at in range(draw(st.integers(0, 3)))
    )
    return NightlyResult(
        run=draw(runs()),
        diff=diff,
        problem=draw(names),
        baseline=draw(st.one_of(st.none(), baselines())),
        baseline_samples=draw(st.one_of(st.none(), suites())),
        fresh=draw(st.one_of(st.none(), st.tuples(suites(), suites()))),
        past=Past(nights=nights, change_points={each: ("r1",) for each in ids}),
        last_success_at=draw(st.one_of(st.none(), times)),
    )
