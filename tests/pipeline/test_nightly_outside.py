"""What lies outside of the frozen code: libraries, prompts, links; and what is not compared."""

import json
import os
import sys
from importlib.metadata import version

import pytest
import tiny_scenarios
from nightly_samples import DirectCrew, asked, clock_at, night, stand_still, tiny_suite
from nightly_samples import without_processes as quick

from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.evaluation.scenarios.scenario import Episode
from agent_gym.evaluation.scenarios.suite import fixed_seeds, load_suite
from agent_gym.pipeline.nightly import (
    NightlyOptions,
    Workspace,
    load_baseline,
    nightly,
    prepare,
    run_nightly,
)
from agent_gym.pipeline.nightly.code_identity import code_identity
from agent_gym.pipeline.nightly.frozen import freeze
from agent_gym.pipeline.nightly.imported import imported_libraries, imported_packages
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.libraries import distributions_of, library_hashes, required
from agent_gym.pipeline.nightly.prepare import uncounted, widened
from agent_gym.pipeline.nightly.proof import most_different
from agent_gym.pipeline.nightly.run import Player, Silence, Task
from agent_gym.pipeline.nightly.sources import files_of, source_files, sources_hash
from agent_gym.reporting.nightly import headline, light, schema_of, verdict

ALPHA = tiny_suite(names=("alpha",))
SEEDS = fixed_seeds("tiny", ALPHA.scenarios[0])
SMALL = GatePolicy(n_confirm=8, max_confirm=8, repeat=False)


def affect(monkeypatch, is_hit, loss=lambda: 1.0):
    """Let something that no hash knows of take away from the gain of some seeds."""
    play = tiny_scenarios.TinyScenario.play

    def changed(self, seeds, subject):
        found = play(self, seeds, subject)
        if not is_hit(seeds.root) or not loss():
            return found
        return Episode(
            metrics=found.metrics | {"gain": found.metrics["gain"] - loss()},
            trajectory_hash=f"{found.trajectory_hash}-{loss()}",
            events=found.events,
            notes=found.notes,
        )

    monkeypatch.setattr(tiny_scenarios.TinyScenario, "play", changed)


def half(seed):
    return seed % 2 != SEEDS[0] % 2  # the first seed alone, which is proved once, shows nothing


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A workspace with a baseline of one scenario; its frozen code plays in this process."""
    quick(monkeypatch.setattr)
    monkeypatch.setattr(nightly, "frozen_crew", lambda *_: DirectCrew(asked().subject))
    assert night(tmp_path, ALPHA, approve="first").exit_code == 0
    DirectCrew.played.clear()
    return tmp_path


def other_code(monkeypatch, code_hash="new"):
    monkeypatch.setattr(prepare, "code_identity", lambda *_, **__: stand_still(code_hash=code_hash))


class TestProof:
    def test_a_change_that_both_sides_would_have_is_never_a_pass(self, home, monkeypatch):
        other_code(monkeypatch)
        affect(monkeypatch, half)
        for day in (1, 2):  # what was proved of the first seed is kept, what differs is not
            outcome = night(home, ALPHA, day=day, policy=SMALL)
            assert outcome.exit_code == 3
            assert verdict(outcome.result) == "incomparable"
            assert light(outcome.result) == "bad"
            assert headline(outcome.result).startswith("Could not be compared: the baseline's own")
            for words in ("outside of the frozen code", "a library", "--uncompared", "--also"):
                assert words in outcome.messages[0]
        hit = [seed for seed in SEEDS if half(seed)]
        assert f"{len(hit)} of {len(hit)} seeds differ" in outcome.messages[0]

    def test_another_subject_of_the_same_code_is_proved_too(self, home, monkeypatch):
        affect(monkeypatch, half, lambda: 0.3)
        assert night(home, ALPHA, day=1, level=9.0, policy=SMALL).exit_code == 3

    def test_a_true_change_is_proved_and_confirmed(self, home):
        outcome = night(home, ALPHA, day=1, level=9.0, policy=SMALL)
        assert outcome.result.diff.verdict == "regressed"
        assert [seed for _, seed in DirectCrew.played[10:18]] == sorted(SEEDS)

    def test_a_named_prompt_that_the_baselines_side_reads_as_it_is_today(self, home, monkeypatch):
        prompt = home / "prompt.txt"
        prompt.write_text("0.0")
        identity = lambda *_, **__: stand_still(code_hash=f"with {prompt.read_text()}")  # noqa: E731
        monkeypatch.setattr(prepare, "code_identity", identity)
        affect(monkeypatch, half, lambda: float(prompt.read_text()))
        assert night(home, ALPHA, day=1, approve="with a prompt", also=(prompt,)).exit_code == 0
        assert night(home, ALPHA, day=2, also=(prompt,)).result.diff.verdict == "pass"
        prompt.write_text("1.0")
        outcome = night(home, ALPHA, day=3, also=(prompt,), policy=SMALL)
        assert (outcome.exit_code, verdict(outcome.result)) == (3, "incomparable")

    def test_of_many_seeds_the_worst_of_each_metric_are_proved(self, home, monkeypatch):
        many = tiny_suite(n_seeds=40, names=("alpha",))
        old = night(home / "a", many).result.run.samples.scenarios[0]
        affect(monkeypatch, lambda _: True)
        new = night(home / "b", many, day=1).result.run.samples.scenarios[0]
        chosen = most_different(old, new)
        assert len(chosen) == 24
        losses = {
            now.seed: then.metrics["gain"] - now.metrics["gain"]
            for then, now in zip(old.samples, new.samples, strict=True)
        }
        assert max(losses, key=losses.get) in chosen
        assert most_different(old, old) == ()


class TestTheSameHash:
    def test_a_kept_seed_that_goes_differently_is_no_pass_even_if_the_new_way_is_the_baselines(
        self, home, monkeypatch
    ):
        (home / "gym.db").unlink()
        with monkeypatch.context() as patch:
            patch.setattr(tiny_scenarios, "DRIFT", -1.0)
            night(home, ALPHA, day=1, policy=SMALL)
        outcome = night(home, ALPHA, day=2, fail_on_regression=True)
        assert outcome.result.diff.verdict == "pass"  # all that the gate can see
        assert verdict(outcome.result) == "degraded"
        assert outcome.exit_code == 4
        assert "the same code gave other figures in alpha" in headline(outcome.result)
        assert any("went differently" in text for text in outcome.messages)
        assert json.loads((home / "reports/nightly_diff.json").read_text())["verdict"] == "degraded"

    def test_one_seed_that_is_not_the_baselines_is_no_pass(self, home, monkeypatch):
        (home / "gym.db").unlink()
        affect(monkeypatch, lambda seed: seed == SEEDS[3], lambda: 1e-6)
        outcome = night(home, ALPHA, day=1)
        assert verdict(outcome.result) == "degraded"
        assert night(home, ALPHA, day=2, fail_on_unsure=True).exit_code == 1


class TestUncompared:
    def test_a_run_that_could_not_be_compared_needs_a_word_of_its_own(self, home, monkeypatch):
        other_code(monkeypatch)
        affect(monkeypatch, half)
        before = load_baseline(Workspace(home)).record
        refused = night(home, ALPHA, day=1, policy=SMALL, approve="new library")
        assert (refused.approved, refused.exit_code) == (None, 3)
        assert "--uncompared" in refused.messages[0]
        assert load_baseline(Workspace(home)).record == before
        let_in = night(home, ALPHA, day=1, policy=SMALL, approve="new library", uncompared=True)
        record = load_baseline(Workspace(home)).record
        assert (let_in.exit_code, let_in.approved) == (0, record.id)
        assert "does not give the baseline's figures" in record.uncompared
        said = json.loads((home / f"reports/baseline/{record.id}/manifest.json").read_text())
        assert set(said) <= set(schema_of("baseline")["properties"])

    def test_fewer_seeds_cannot_be_compared(self, home):
        outcome = night(home, tiny_suite(n_seeds=4, names=("alpha",)), day=1)
        assert (outcome.exit_code, verdict(outcome.result)) == (3, "incomparable")
        assert "fewer seeds than the baseline has: 4 of 8 in alpha" in headline(outcome.result)

    def test_a_baseline_that_was_tampered_with_is_the_first_thing_said(self, home):
        record = load_baseline(Workspace(home)).folder / "samples.json"
        record.write_bytes(record.read_bytes() + b" ")
        outcome = night(home, ALPHA, day=1)
        assert outcome.exit_code == 3
        assert headline(outcome.result) == (
            "Could not be compared: the baseline is not what was approved"
        )
        assert (verdict(outcome.result), light(outcome.result)) == ("incomparable", "bad")


class Heard(Silence):
    """Counts as somebody does who waits."""

    def __init__(self):
        self.lines, self.played, self.kept, self.expected = [], 0, 0, 0

    def expect(self, n):
        self.expected += n

    def start(self, scenario, kept=0):
        self.kept += kept

    def advance(self, scenario, n=1, error=None):
        self.played += n

    def tell(self, text):
        self.lines.append((self.played, text))


def test_a_confirmation_says_before_how_much_it_will_play(home):
    watch = Heard()
    options = NightlyOptions(policy=GatePolicy(n_confirm=8, max_confirm=8))
    run_nightly(asked(ALPHA, level=9.0), options, Workspace(home), clock=clock_at(1), watch=watch)
    ((at, text),) = watch.lines
    assert at == 10  # the pinned seeds and two of them again
    assert "at most 40 more episodes" in text  # 8 to prove, twice 8 fresh ones on two sides
    assert "about" in text
    assert watch.expected == watch.played + watch.kept == 10 + 16


def test_seeds_that_are_asked_for_again_are_not_counted_again(tmp_path):
    """A confirmation's second look begins with the seeds of the first."""
    watch, subject = Heard(), asked().subject
    with Ledger(tmp_path / "gym.db") as ledger:
        first = Player(ledger, DirectCrew(subject), "code", subject, watch)
        first.play([Task(ALPHA.scenarios[0], SEEDS[:4])])
        first.play([Task(ALPHA.scenarios[0], SEEDS[:8])])
        assert (watch.expected, watch.played, watch.kept) == (8, 8, 0)
        later = Player(ledger, DirectCrew(subject), "code", subject, watch)
        later.play([Task(ALPHA.scenarios[0], SEEDS[:8])])  # another run: what is kept is told
    assert (watch.expected, watch.played, watch.kept) == (16, 8, 8)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


class TestSources:
    def test_every_portion_of_a_namespace_counts_and_is_frozen(self, path, monkeypatch):
        for part, name in (("one", "first.py"), ("two", "second.py")):
            (path / part / "spaced_ns").mkdir(parents=True)
            (path / part / "spaced_ns" / name).write_text("X = 1\n")
            monkeypatch.syspath_prepend(str(path / part))
        (path / "spaced_user.py").write_text("import spaced_ns.second\n")
        (path / "two/spaced_ns/second.py").write_text("import spaced_far\n")
        (path / "spaced_far.py").write_text("")
        names = ["spaced_ns/first.py", "spaced_ns/second.py"]
        assert sorted(name for name, _ in source_files("spaced_ns")) == names
        assert imported_packages(["spaced_user"]) == ("spaced_far", "spaced_ns", "spaced_user")
        before = sources_hash("spaced_ns")
        freeze(("spaced_ns",), path / "ice")
        assert sorted(each.name for each in (path / "ice/spaced_ns").iterdir()) == [
            "first.py",
            "second.py",
        ]
        for part, name in (("one", "first.py"), ("two", "second.py")):
            (path / part / "spaced_ns" / name).write_text("X = 2\n")
            assert sources_hash("spaced_ns") != before
            before = sources_hash("spaced_ns")

    def test_a_linked_folder_is_hashed_and_frozen_and_a_circle_ends(self, path):
        package, rules = path / "linked_pkg", path / "elsewhere"
        package.mkdir()
        rules.mkdir()
        (package / "__init__.py").write_text("")
        (rules / "size.py").write_text("SIZE = 1\n")
        (package / "rules").symlink_to(rules)
        (rules / "up").symlink_to(package)
        before = sources_hash("linked_pkg")
        (rules / "size.py").write_text("SIZE = 2\n")
        assert sources_hash("linked_pkg") != before
        freeze(("linked_pkg",), path / "ice")
        assert (path / "ice/linked_pkg/rules/size.py").read_text() == "SIZE = 2\n"
        assert not (path / "ice/linked_pkg/rules").is_symlink()
        assert [name for name, _ in files_of(package)] == [
            "linked_pkg/__init__.py",
            "linked_pkg/rules/size.py",
        ]


@pytest.fixture
def site(path, monkeypatch):
    """A folder of installed libraries: one with a list of files, one that was put there by hand."""
    folder = path / "site-packages"
    for name in ("listed_lib", "needed_lib"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("SIZE = 1\n")
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "RECORD").write_text(f"{name}/__init__.py,sha256=a,9\n{info.name}/RECORD,,\n")
    needs = 'Requires-Dist: needed-lib>=1\nRequires-Dist: numpy; extra == "all"\n\nabout\n'
    (folder / "listed_lib-1.0.dist-info/METADATA").write_text(f"Name: listed-lib\n{needs}")
    (folder / "bare_lib").mkdir()
    (folder / "bare_lib/__init__.py").write_text("SIZE = 1\n")
    (path / "buyer.py").write_text("import listed_lib, bare_lib, json\n")
    monkeypatch.syspath_prepend(str(folder))
    return folder


class TestLibraries:
    def test_a_library_counts_with_what_it_needs(self, site):
        assert distributions_of("listed_lib") == ("listed-lib",)
        assert imported_libraries(["buyer"]) == {"listed-lib"}
        before = code_identity(("buyer",))
        assert {"listed-lib", "needed-lib", "numpy"} <= set(before.libraries)
        assert before.libraries["listed-lib"].startswith("1.0 ")
        assert code_identity(("buyer",)) == before
        (site / "needed_lib/__init__.py").write_text("SIZE = 2\n")  # the list is as it was
        edited = code_identity(("buyer",))
        assert edited.code_hash != before.code_hash
        record = site / "listed_lib-1.0.dist-info/RECORD"
        record.write_text(record.read_text().replace("=a,", "=b,"))
        assert code_identity(("buyer",)).libraries != edited.libraries

    @pytest.mark.parametrize("inside", ["PKG-INFO", ""], ids=["folder", "file"])
    def test_a_working_copy_says_what_it_needs_in_another_file(self, site, inside):
        said = site / "copied_lib.egg-info" / inside
        said.parent.mkdir(exist_ok=True)
        said.write_text("Name: copied-lib\nRequires-Dist: needed-lib\n\nabout\n")
        assert required(["copied-lib"]) == {"copied-lib", "needed-lib"}

    def test_a_frozen_working_copy_keeps_its_version(self, site, tmp_path, monkeypatch):
        said = site / "copied_lib.egg-info"
        said.mkdir()
        (said / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: copied-lib\nVersion: 3.0\n\n")
        (said / "top_level.txt").write_text("copied_lib\n")
        (site / "copied_lib").mkdir()
        (site / "copied_lib/__init__.py").write_text("")
        freeze(("copied_lib",), tmp_path / "ice")
        monkeypatch.setattr(sys, "path", [str(tmp_path / "ice")])
        assert version("copied-lib") == "3.0"

    def test_what_nobody_claims_is_code_of_the_users_and_frozen(self, site, tmp_path):
        assert imported_packages(["buyer"]) == ("bare_lib", "buyer")
        freeze(("bare_lib", "buyer"), tmp_path / "ice")
        assert (tmp_path / "ice/bare_lib/__init__.py").is_file()

    def test_caches_that_come_and_go_do_not_count(self, site):
        before = library_hashes(["listed-lib"])
        record = site / "listed_lib-1.0.dist-info/RECORD"
        record.write_text("listed_lib/__pycache__/a.pyc,,\n" + record.read_text())
        (site / "listed_lib/__pycache__").mkdir()
        (site / "listed_lib/__pycache__/a.pyc").write_bytes(os.urandom(8))
        record.write_text(record.read_text().replace("listed_lib/__pycache__/a.pyc,,\n", ""))
        assert library_hashes(["listed-lib"]) == before
        assert library_hashes(["no-such"]) == {"no-such": "absent"}

    def test_what_only_a_worker_has_seen_widens_the_hash(self, site, monkeypatch):
        calls = []

        def identity(packages, also=(), libraries=()):
            calls.append(tuple(libraries))
            found = stand_still(code_hash="+".join(libraries))
            return type(found)(
                found.code_hash, None, False, found.packages, found.versions, {},
                dict.fromkeys(libraries, "1"),
            )  # fmt: skip

        monkeypatch.setattr(prepare, "code_identity", identity)
        prepared = prepare.prepare(asked(), clock_at())
        loaded = {"listed_lib": str(site / "listed_lib/__init__.py")}
        assert uncounted(prepared, loaded) == loaded
        wider = widened(prepared, loaded)
        assert calls[-1] == ("listed-lib",)
        assert uncounted(wider, loaded) == {}
        assert wider.setup.libraries == {"listed-lib": "1"}


@pytest.mark.parametrize(
    ("entries", "words", "never"),
    [
        ([{"name": "a", "type": "tiny", "seeds": 3}], "'n_seeds'", "mean 'seed'?"),
        ([{"name": "a", "type": "tiny"}, {"name": "a", "type": "tiny"}], "same name", "{"),
    ],
)
def test_a_suite_is_refused_in_words(tmp_path, entries, words, never):
    (tmp_path / "suite.json").write_text(json.dumps(entries))
    with pytest.raises(ConfigError) as caught:
        load_suite(tmp_path / "suite.json")
    assert words in str(caught.value)
    assert never not in str(caught.value)
