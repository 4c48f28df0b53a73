"""The audit as a whole: silence on shipped agents, reports in words, checks of one's own."""

from __future__ import annotations

import datetime as calendar
import os
import time
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from agent_gym.core import Ref, Seeds, names
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Entry, _entries
from agent_gym.evaluation.audit import Subject, audit, error, market_world
from agent_gym.evaluation.audit.alternatives import acts_on, is_switch, others
from agent_gym.evaluation.audit.changed_bars import lesson, other_future, turned_round
from agent_gym.evaluation.audit.elsewhere import away_game, hashes
from agent_gym.evaluation.audit.finding import CheckReport, Finding, fine, note, unchecked
from agent_gym.evaluation.audit.generators import global_generators
from agent_gym.evaluation.audit.shifted_clock import shifted_clock
from agent_gym.evaluation.audit.stream import WithColumn, record
from agent_gym.markets.quality import check_bars
from agent_gym.markets.source import open_market
from agent_gym.rollouts.executor import LocalExecutor
from tests.evaluation import audit_clocks as clocks
from tests.evaluation import audit_learners as learners
from tests.evaluation import audit_networks as nets
from tests.evaluation import audit_samples as samples
from tests.evaluation import audit_signals as signals
from tests.evaluation import audit_worlds as worlds
from tests.evaluation.audit_samples import BARS, subject_of
from tests.samples import random_bars

RULES = [name for name in names("agent") if name.startswith("rules/")]
SHIPPED = (
    "accounting",
    "clamps",
    "evaluation-mode",
    "features",
    "leak-canary",
    "learning",
    "look-ahead",
    "options",
    "purity",
    "save-load",
    "time-reversal",
    Ref(use="determinism", params={"processes": 0}),
)
MARKETS = {
    "synthetic": open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 480}), Seeds(0)),
    "spot": random_bars(360, 1, kind="spot"),
    "funded": random_bars(360, 2, funding=1e-4),
}


def test_nine_rules_are_audited():
    assert len(RULES) == 9


@pytest.mark.parametrize("market", MARKETS)
@pytest.mark.parametrize("name", RULES)
def test_nothing_is_found_in_a_shipped_rule(name, market):
    report = audit(Subject.named(Ref(use=name), MARKETS[market]), SHIPPED)
    assert [f.what for f in report.findings("error", "warning")] == []
    assert len(report.findings("fine")) >= 15
    assert not report.failed


def test_rules_decide_the_same_in_another_process(tmp_path):
    subjects = [Subject.named(Ref(use=name), BARS) for name in RULES]
    jobs = [away_game(subject, (1, 0), tmp_path) for subject in subjects]
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "11"
    try:
        rows = LocalExecutor(1).run(jobs).rows
    finally:
        os.environ.pop("PYTHONHASHSEED")
        if before is not None:
            os.environ["PYTHONHASHSEED"] = before
    assert [row["hashes"] for row in rows] == [hashes(s, (1, 0)) for s in subjects]
    assert len({hash_ for row in rows for hash_ in row["hashes"]}) > len(RULES)


@pytest.mark.parametrize("healthy", [nets.Trader, nets.Forecaster, learners.Linear])
def test_nothing_is_found_in_a_healthy_learner(healthy):
    quick = Ref(use="features", params={"moments": 80})
    checks = [quick if check == "features" else check for check in SHIPPED]
    report = audit(subject_of(healthy, bars=BARS.rows(0, 240), lessons=6), checks)
    assert [f.what for f in report.findings("error", "warning")] == []
    verdicts = {check.name: check.verdict for check in report.checks}
    assert {name for name, verdict in verdicts.items() if verdict == "unchecked"} == {"options"}


def test_a_world_is_audited_on_its_own():
    report = audit(subject_of(None, world=worlds.Paper), SHIPPED)
    verdicts = {check.name: check.verdict for check in report.checks}
    assert {name for name, verdict in verdicts.items() if verdict == "fine"} == {
        "accounting",
        "features",
        "look-ahead",
    }
    assert report.findings("error", "warning") == ()


def test_a_world_that_hides_its_books_is_not_judged():
    report = audit(subject_of(None, world=worlds.Closed), ["accounting"])
    assert report.checks[0].verdict == "unchecked"
    assert "no ledger" in report.findings("unchecked")[0].what


def test_an_agent_that_cannot_play_is_an_error_and_the_rest_is_unchecked():
    report = audit(subject_of(samples.Raiser), ["purity", "clamps"])
    assert [check.name for check in report.checks] == ["plays", "purity", "clamps"]
    assert "ValueError: no price" in report.findings("error")[0].what
    assert [check.verdict for check in report.checks[1:]] == ["unchecked", "unchecked"]
    assert report.failed


def test_a_check_of_ones_own_is_run_and_what_it_raises_is_a_finding(monkeypatch):
    class Nothing(Config):
        limit: int = 3

    class Own:
        looks_for = "nothing in particular"
        wants_agent = True

        def __init__(self, config):
            self._limit = config.limit

        def run(self, subject):
            yield error("too many", "Take fewer", decisions=len(subject.stream.steps))
            if self._limit < 3:
                raise RuntimeError("torn")

    monkeypatch.setitem(_entries, ("check", "test/own"), Entry(Nothing, Own))
    assert "test/own" in names("check")
    subject = subject_of(samples.Follower)
    (report,) = audit(subject, ["test/own"]).checks
    assert [f.evidence for f in report.findings] == [{"decisions": len(BARS) - 1}]
    (torn,) = audit(subject, [Ref(use="test/own", params={"limit": 1})]).checks
    assert [f.severity for f in torn.findings] == ["error", "error"]
    assert "RuntimeError: torn" in torn.findings[1].what
    with pytest.raises(ConfigError, match="no check is named"):
        audit(subject, ["test/other"])


def test_ctrl_c_ends_an_audit():
    class Stopper(samples.Follower):
        def act(self, obs):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(subject_of(Stopper), ["purity"])


def test_the_summary_counts():
    report = audit(subject_of(samples.Scribbler), ["purity", "save-load"])
    assert report.summary == "1 error and no warning in 1 check; 1 could not be made."
    told = report.as_dict()
    assert told["counts"]["error"] == 1
    assert told["checks"][0]["findings"][0]["fix"].startswith("Copy the features")
    assert told["market"]["rows"] == len(BARS)


def test_the_verdict_of_a_check_is_the_worst_that_it_found():
    def verdict(*findings):
        return CheckReport("x", "y", findings).verdict

    assert verdict(fine("a"), error("b", "c")) == "error"
    assert verdict(fine("a"), Finding("warning", "b", {}, "c"), unchecked("d")) == "warning"
    assert verdict(fine("a"), unchecked("b")) == "fine"
    assert verdict(note("a")) == "fine"
    assert verdict(unchecked("a")) == verdict() == "unchecked"


def test_an_option_that_acts_with_another_is_noted():
    subject = subject_of(samples.Optioned, config=samples.OptionsConfig())
    (found,) = audit(subject, ["options"]).findings("note")
    assert found.what == "The option bonus acts only with with_bonus=True."


def test_other_values_are_valid_and_other():
    config = samples.OptionsConfig()
    for name in samples.OptionsConfig.model_fields:
        found = [getattr(other, name) for other in others(config, name)]
        assert found
        assert getattr(config, name) not in found
    assert is_switch(config, "with_bonus")
    assert not is_switch(config, "size")
    assert acts_on(samples.OptionsConfig.model_fields["size"]) is None


def test_another_future_leaves_the_past_alone():
    bars = MARKETS["funded"]
    changed = other_future(bars, 100, 2.0, 30)
    assert len(changed) == 131
    for name, column in bars.columns().items():
        assert np.array_equal(changed.columns()[name][:101], column[:101])
    assert (changed.close[101:] == 2.0 * bars.close[101:131]).all()
    for made in (changed, turned_round(bars), lesson(bars, 200, 0)):
        assert check_bars(made, source_name="audit").ok


def test_turned_round_the_same_returns_come_in_reverse():
    bars = MARKETS["spot"]
    turned = turned_round(bars)
    moves, back = np.diff(np.log(bars.close)), np.diff(np.log(turned.close))
    assert np.allclose(back[:-1], moves[::-1][1:])
    assert (turned.high >= np.maximum(turned.open, turned.close)).all()
    assert (turned.low <= np.minimum(turned.open, turned.close)).all()
    assert np.allclose(np.diff(np.log(turned_round(turned).close))[:-1], moves[:-1])


def test_the_lesson_shows_its_next_move():
    bars = lesson(MARKETS["synthetic"], 240, 0)
    moves = np.sign(np.diff(np.log(bars.close)))
    assert (moves[1:] == moves[:-1]).mean() > 0.9
    assert set(bars.extra) == set(MARKETS["synthetic"].extra)
    assert abs(moves.mean()) < 0.05


def test_a_planted_column_reaches_the_agent():
    values = {int(ts) + BARS.period_ns: float(i) for i, ts in enumerate(BARS.ts)}
    world = WithColumn(market_world(BARS), "planted", values)
    stream = record(world, samples.Follower(), 0)
    assert stream.start.feature_names[-1] == "planted"
    assert stream.column("planted").tolist() == list(map(float, range(len(BARS))))


def test_an_agent_that_reads_nothing_gets_a_note():
    blind, deaf = (
        audit(subject_of(agent), ["features"]).findings("note")[-1].what
        for agent in (clocks.ClockWatcher, clocks.Deaf)
    )
    assert blind.startswith("It depends on nothing that it was shown")
    assert deaf == "Its decisions do not depend on what it asks for (close)."


@pytest.mark.parametrize("agent", [clocks.SessionTrader, samples.VolumeReader, samples.Follower])
def test_an_agent_that_reads_something_gets_none(agent):
    report = audit(subject_of(agent), ["features"])
    assert not any("depends on nothing" in f.what for f in report.findings("note"))


@pytest.mark.parametrize("name", ["rules/flat", "rules/buy-hold", "rules/random"])
def test_a_rule_that_asks_for_nothing_gets_none(name):
    report = audit(Subject.named(Ref(use=name), BARS), ["features"])
    assert not any("depends on nothing" in f.what for f in report.findings("note"))


def test_the_clock_is_shifted_counted_and_put_back():
    real = datetime, date, calendar, clocks.now_s
    began = datetime.now(UTC)  # noqa: TID251 (the clock that is shifted)
    with shifted_clock(5 * 86_400) as clock:
        told = (
            datetime.now(UTC),  # noqa: TID251
            calendar.datetime.now(UTC),  # noqa: TID251
            date.today(),  # noqa: DTZ011
            clocks.now_s(),
        )
        words = time.strftime("%Y-%m-%d", time.gmtime())
        assert isinstance(began, datetime)
        assert isinstance(datetime(2026, 1, 1, tzinfo=UTC), date)
        assert type(datetime(2026, 1, 1, tzinfo=UTC)) is type(began)
        assert not isinstance(date(2026, 1, 1), datetime)
    assert clock.readings == 5
    for moment in told[:2]:
        assert 5.0 <= (moment - began).total_seconds() / 86_400 < 5.01
    assert told[2] >= began.date() + timedelta(days=4)
    assert abs(told[3] - told[0].timestamp()) < 60.0
    assert words >= str(told[1].date())
    assert (datetime, date, calendar, clocks.now_s) == real
    assert (datetime.now(UTC) - began).total_seconds() < 86_400.0  # noqa: TID251


def test_a_clock_may_leap_at_every_reading():
    with shifted_clock(0, 3_600):
        first, second = clocks.now_s(), clocks.now_s()
    assert 3_600.0 <= second - first < 3_660.0


def test_global_generators_are_put_back():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    with global_generators(3):
        first = np.random.random()  # noqa: NPY002
    with global_generators(3):
        assert np.random.random() == first  # noqa: NPY002
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_a_signal_of_few_values_that_has_settled_is_a_note():
    report = audit(subject_of(signals.Settled), ["clamps"])
    (told,) = [found for found in report.findings("note") if "lambda" in found.what]
    assert "may be a state that lasts" in told.what
    assert not report.findings("warning")
    assert not [found for found in report.findings("fine") if "lambda" in found.what]
