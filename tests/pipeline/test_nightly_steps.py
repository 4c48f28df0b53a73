"""A night step by step: what is played, what is written, and which code it ends with."""

import json

import pytest
from msgspec.structs import replace
from nightly_samples import DirectCrew, contents, night, stand_still, tiny_suite, without_processes

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.pipeline.nightly import Workspace, load_baseline, nightly, prepare
from agent_gym.reporting.nightly import headline

OUTPUTS = (
    "reports/latest.json",
    "reports/nightly_diff.json",
    "reports/junit.xml",
    "reports/summary.md",
    "reports/nightly.html",
    "metrics/agent_gym_regressions.prom",
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    without_processes(monkeypatch.setattr)


@pytest.fixture
def home(tmp_path):
    """A workspace with a baseline of day 0."""
    assert night(tmp_path, approve="first").exit_code == 0
    DirectCrew.played.clear()
    return tmp_path


def read(home, name):
    return json.loads((home / name).read_text())


def test_without_a_baseline_everything_is_written_and_the_exit_code_is_3(tmp_path):
    outcome = night(tmp_path)
    assert outcome.exit_code == 3
    assert "--update-baseline" in outcome.messages[0]
    assert all((tmp_path / name).is_file() for name in OUTPUTS)
    assert read(tmp_path, "reports/latest.json")["status"] == "complete"


def test_an_unchanged_night_passes_and_plays_two_seeds_a_scenario(home):
    outcome = night(home, day=1)
    assert outcome.exit_code == 0
    assert outcome.result.diff.verdict == "pass"
    assert (outcome.played, outcome.kept) == (4, 16)
    assert len(DirectCrew.played) == 4
    assert {finding.word for finding in outcome.result.diff.findings} <= {
        "unchanged",
        "no_difference_seen",
    }


def test_other_code_is_played_again(home, monkeypatch):
    monkeypatch.setattr(prepare, "code_identity", lambda *_, **__: stand_still(code_hash="new"))
    monkeypatch.setattr(nightly, "frozen_crew", lambda baseline, *_: DirectCrew(None))
    outcome = night(home, day=1)
    assert (outcome.played, outcome.kept) == (20, 0)
    assert outcome.exit_code == 0


def test_a_regression_is_confirmed_on_fresh_seeds_and_fails_only_if_asked(home):
    outcome = night(home, day=1, level=9.0)
    assert outcome.result.diff.verdict == "regressed"
    assert {each.id for each in outcome.result.diff.of("regression")} == {
        "alpha/gain",
        "beta/gain",
    }
    assert outcome.exit_code == 0
    assert night(home, day=2, level=9.0, fail_on_regression=True).exit_code == 1
    fresh = read(home, "reports/latest.json")["seeds"]["fresh"]
    assert len(fresh["alpha"]) >= 64
    assert not set(fresh["alpha"]) & set(
        read(home, "reports/latest.json")["seeds"]["fixed"]["alpha"]
    )


def test_an_improvement_fails_nothing(home):
    outcome = night(home, day=1, level=11.0, fail_on_regression=True)
    assert outcome.exit_code == 0
    assert len(outcome.result.diff.of("improvement")) == 2


def test_fresh_seeds_follow_the_date(home):
    def fresh(day, **options):
        night(home, day=day, level=9.0, **options)
        return read(home, "reports/latest.json")["seeds"]["fresh"]["alpha"]

    assert fresh(1) != fresh(2)
    assert fresh(3, date="2026-01-01") == fresh(4, date="2026-01-01")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"fail": "raise"}, "ValueError: this scenario raises"),
        ({"fail": "nan"}, "finite"),
        ({"fail": "raise", "fail_from": 3}, "raises"),
    ],
)
def test_a_failed_seed_is_a_row_and_exit_4(tmp_path, params, words):
    outcome = night(tmp_path, tiny_suite(n_seeds=16, **params))
    assert outcome.exit_code == 4
    report = read(tmp_path, "reports/latest.json")
    assert report["totals"]["error"] == 2
    samples = report["scenarios"][0]["samples"]
    assert len(samples) == 16
    assert words in next(each["error"] for each in samples if each["status"] != "ok")


def test_a_failed_night_with_a_baseline_is_exit_4_and_its_failures_are_not_kept(home):
    suite = tiny_suite()
    broken = suite.model_copy(
        update={
            "scenarios": (
                suite.scenarios[0],
                suite.scenarios[1].model_copy(update={"params": {"fail": "raise"}}),
            )
        }
    )
    for day in (1, 2):
        outcome = night(home, broken, day=day, fail_on_regression=True)
        assert outcome.exit_code == 4
        assert [name for name, _ in DirectCrew.played].count("beta") == 8  # tried again each time
        DirectCrew.played.clear()
    assert read(home, "reports/nightly_diff.json")["verdict"] == "error"


def test_a_scenario_that_is_gone_is_exit_4(home):
    outcome = night(home, tiny_suite(names=("alpha",)), day=1)
    assert outcome.exit_code == 4
    assert outcome.result.diff.of("missing_in_new")


def test_other_parameters_cannot_be_compared(home):
    outcome = night(home, tiny_suite(level=10.5), day=1, fail_on_regression=True)
    assert outcome.exit_code == 3
    assert outcome.result.diff.verdict == "incomparable"


def test_a_way_that_cannot_be_repeated_is_seen_and_cannot_be_approved(tmp_path):
    outcome = night(tmp_path, tiny_suite(fail="unsteady"), approve="no")
    assert (outcome.approved, outcome.exit_code) == (None, 4)
    assert "cannot be repeated" in outcome.messages[0]
    assert not (tmp_path / "reports/baseline/current.json").exists()


class TestApproval:
    def test_a_baseline_keeps_who_when_why_and_what_was_before(self, home):
        first = load_baseline(Workspace(home)).record
        outcome = night(home, day=1, level=11.0, approve="better now")
        record = load_baseline(Workspace(home)).record
        assert outcome.exit_code == 0
        assert outcome.approved == record.id
        assert (record.previous, record.reason) == (first.id, "better now")
        assert (record.approved_by, record.code.commit) == ("tester", "abc")
        assert night(home, day=2, level=11.0).result.diff.verdict == "pass"

    def test_each_regression_must_be_accepted(self, home):
        before = contents(home / "reports/baseline")
        outcome = night(home, day=1, level=9.0, approve="slower", accepted=["alpha/gain"])
        assert (outcome.exit_code, outcome.approved) == (1, None)
        assert "--accept-regression beta/gain" in outcome.messages[0]
        assert contents(home / "reports/baseline") == before
        ids = ["alpha/gain", "beta/gain"]
        outcome = night(home, day=2, level=9.0, approve="slower", accepted=ids)
        assert outcome.exit_code == 0
        assert load_baseline(Workspace(home)).record.accepted == ("alpha/gain", "beta/gain")

    def test_a_failed_or_planted_run_is_refused(self, home):
        before = contents(home / "reports/baseline")
        assert night(home, tiny_suite(fail="raise"), day=1, approve="x").exit_code == 4
        assert contents(home / "reports/baseline") == before

    def test_the_anchor_stays_when_the_baseline_moves(self, home):
        assert night(home, day=1, set_anchor=True).exit_code == 0
        first = load_baseline(Workspace(home)).record.id
        night(home, day=2, level=10.05, approve="a little better")
        assert load_baseline(Workspace(home)).record.id != first
        assert load_baseline(Workspace(home), "anchor").record.id == first

    def test_the_same_night_twice_is_the_same_baseline(self, tmp_path):
        first = night(tmp_path, approve="a")
        (tmp_path / "reports/baseline/current.json").unlink()
        assert night(tmp_path, approve="a").approved == first.approved


def spoil(home, how):
    folder = load_baseline(Workspace(home)).folder
    pointer = home / "reports/baseline/current.json"
    actions = {
        "edited samples": lambda: _edit(folder / "samples.json"),
        "edited report": lambda: _edit(folder / "report.json"),
        "edited code": lambda: _edit(next((folder / "code").rglob("*.py"))),
        "edited contents": lambda: _edit(folder / "contents.json"),
        "edited manifest": lambda: _edit(folder / "manifest.json"),
        "lost samples": (folder / "samples.json").unlink,
        "added file": lambda: (folder / "code" / "more.py").write_text("x"),
        "truncated": lambda: (folder / "samples.json").write_bytes(b'{"sch'),
        "pointer is no JSON": lambda: pointer.write_text("{"),
        "pointer leads out": lambda: pointer.write_text(
            json.dumps({"schema": "agent_gym.pointer/1", "id": "../../x", "manifest_hash": "0"})
        ),
        "folder is gone": lambda: folder.rename(folder.parent / "moved"),
        "link": lambda: _link(folder / "samples.json"),
    }
    actions[how]()


def _edit(path):
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1) + b" ")


def _link(path):
    path.rename(path.parent.parent / "elsewhere.json")
    path.symlink_to(path.parent.parent / "elsewhere.json")


@pytest.mark.parametrize(
    "how",
    [
        "edited samples",
        "edited report",
        "edited code",
        "edited contents",
        "edited manifest",
        "lost samples",
        "added file",
        "truncated",
        "pointer is no JSON",
        "folder is gone",
        "link",
    ],
)
def test_a_spoiled_baseline_is_exit_3_and_never_green(home, how):
    spoil(home, how)
    outcome = night(home, day=1)
    assert outcome.exit_code == 3
    assert outcome.result.diff is None
    assert read(home, "reports/nightly_diff.json")["verdict"] != "pass"
    with pytest.raises(DataError):
        night(home, day=2, approve="over a broken one")


def test_a_pointer_that_leads_out_of_the_workspace_is_refused(home):
    spoil(home, "pointer leads out")
    with pytest.raises((DataError, ConfigError)):
        load_baseline(Workspace(home))


def test_a_planted_run_touches_nothing_that_shows_real_nights(home, monkeypatch):
    monkeypatch.setattr(prepare, "PLANTS", {"half": None})
    before = contents(home)
    outcome = night(home, day=1, plant="half", fail_on_regression=True)
    assert outcome.exit_code == 1
    after = contents(home)
    assert {name: after[name] for name in before} == before
    assert outcome.result.run.run_id.endswith("-planted")
    report = read(home, "reports/self_test/latest.json")
    assert report["subject"]["plant"] == "half"
    assert "SELF-TEST" in report["notes"][0]
    refused = night(home, day=2, plant="half", approve="never", accepted=["alpha/gain"])
    assert refused.approved is None
    assert "planted" in refused.messages[0]
    assert night(home, day=3).result.past.nights[-1].run_id != outcome.result.run.run_id


def test_an_unknown_plant_is_named_with_the_nearest(home, monkeypatch):
    monkeypatch.setattr(prepare, "PLANTS", {"half": None})
    with pytest.raises(ConfigError, match="half"):
        night(home, day=1, plant="halv")


def test_nights_are_remembered_and_the_last_good_one_is_known(home):
    night(home, day=1)
    outcome = night(home, day=2, level=9.0)
    assert [each.verdict for each in outcome.result.past.nights] == ["no_baseline", "pass"]
    assert outcome.result.last_success_at == "2025-11-17T01:30:00Z"
    assert outcome.result.past.nights[-1].values["alpha/gain"] == pytest.approx(10.0, abs=0.2)


def test_equal_nights_give_equal_bytes_in_another_order_of_scenarios(tmp_path):
    suite = tiny_suite()
    turned = suite.model_copy(update={"scenarios": suite.scenarios[::-1]})
    first = night(tmp_path / "a", suite).result.run
    second = night(tmp_path / "b", turned).result.run
    assert first.samples == msg(second.samples, first.run_id)


def msg(samples, run_id):
    return type(samples)(run_id, samples.suite_id, samples.suite_version, samples.scenarios)


class TestWhatCannotBeTrusted:
    def unsteady(self, home, **options):
        """Run a night whose first scenario cannot be repeated, under the same identity."""
        DirectCrew.unsteady = True
        try:
            return night(home, **options)
        finally:
            DirectCrew.unsteady = False

    def test_what_cannot_be_repeated_is_exit_4_and_only_proposed_for_quarantine(self, home):
        (home / "gym.db").unlink()
        outcome = self.unsteady(home, day=1, fail_on_regression=True)
        assert outcome.result.diff.of("nondeterministic")
        assert outcome.exit_code == 4
        assert not Workspace(home).quarantine.exists()
        assert any("--quarantine alpha/gain --reason" in text for text in outcome.messages)
        assert self.unsteady(home, day=2).exit_code == 0

    def test_it_can_never_be_approved(self, home):
        before = contents(home / "reports/baseline")
        (home / "gym.db").unlink()
        outcome = self.unsteady(home, day=1, approve="no")
        assert (outcome.approved, outcome.exit_code) == (None, 4)
        assert contents(home / "reports/baseline") == before

    def test_a_finding_that_is_an_error_cannot_be_approved(self, home, monkeypatch):
        judge = nightly.judge

        def with_an_error(*args, **options):
            diff = judge(*args, **options)
            first = replace(diff.findings[0], word="error")
            return replace(diff, findings=(first, *diff.findings[1:]))

        monkeypatch.setattr(nightly, "judge", with_an_error)
        outcome = night(home, day=1, approve="no")
        assert (outcome.approved, outcome.exit_code) == (None, 4)
        assert "is error" in outcome.messages[0]

    def test_an_event_that_must_not_be_is_never_approved_unnamed(self, tmp_path):
        suite = tiny_suite(names=("alpha",), fail="accident")
        outcome = night(tmp_path, suite, approve="first")
        assert (outcome.approved, outcome.exit_code) == (None, 4)
        assert "--accept-regression alpha/accidents" in outcome.messages[0]
        named = night(tmp_path, suite, day=1, approve="first", accepted=["alpha/accidents"])
        assert named.exit_code == 0
        assert named.approved

    def test_an_event_of_a_new_scenario_is_refused_too(self, home):
        suite, bad = tiny_suite(), tiny_suite(names=("gamma",), fail="accident")
        more = suite.model_copy(update={"scenarios": (*suite.scenarios, *bad.scenarios)})
        outcome = night(home, more, day=1, approve="more")
        assert outcome.approved is None
        assert "--accept-regression gamma/accidents" in outcome.messages[0]

    def test_a_quarantine_that_cannot_be_read_is_said_in_the_headline(self, home):
        Workspace(home).quarantine.write_text('{"entries": 3}')
        outcome = night(home, day=1, fail_on_regression=True)
        assert outcome.exit_code == 3
        assert headline(outcome.result) == "Could not be compared: the quarantine cannot be read"


def test_a_night_that_is_not_sure_fails_if_asked(home):
    suite = tiny_suite(names=("alpha", "beta", "gamma"))  # one that the baseline does not have
    assert night(home, suite, day=1, fail_on_regression=True).exit_code == 0
    assert night(home, suite, day=2, fail_on_unsure=True).exit_code == 1
    assert night(home, day=3, fail_on_unsure=True).exit_code == 0
    assert night(home, day=4, level=9.0, fail_on_unsure=True).exit_code == 1
