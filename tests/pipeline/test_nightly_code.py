"""No figure of other code is ever served as today's: what the hash covers, and what if it fails."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_scenarios
from nightly_samples import DirectCrew, asked, night, stand_still, tiny_suite, without_processes

from agent_gym.core.errors import ConfigError
from agent_gym.pipeline.nightly import Workspace, load_baseline, nightly, prepare
from agent_gym.pipeline.nightly.code_identity import code_identity
from agent_gym.pipeline.nightly.imported import imported_packages, loaded_packages

HERE = Path(__file__).parent
MAIN = "from agent_gym.apps.cli.main import main; main()"
SCENARIO = """
from importlib import import_module
from agent_gym.core.registry import register
from tiny_scenarios import TinyConfig, TinyScenario

class Helped(TinyScenario):
    def play(self, seeds, subject):
        import helperlib
        hidden = import_module("hidden" + "lib")
        self._config = TinyConfig(level=10.0 * helperlib.BOOST * hidden.BOOST)
        return super().play(seeds, subject)

@register("scenario", "helped", TinyConfig)
def helped(config):
    return Helped(config)
"""


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Return a folder on the path with a module that imports another one, which imports a third."""
    (tmp_path / "first_mod.py").write_text("import json, numpy\nimport second_pkg.part\n")
    package = tmp_path / "second_pkg"
    package.mkdir()
    (package / "__init__.py").write_text("from . import part\n")
    (package / "part.py").write_text("def late():\n    from third_mod import X\n    return X\n")
    (tmp_path / "third_mod.py").write_text("import no_such_module_here\nX = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_what_a_module_imports_is_covered_however_late(modules):
    assert imported_packages(["first_mod"]) == ("first_mod", "second_pkg", "third_mod")
    assert imported_packages(["agent_gym", "third_mod"]) == ("agent_gym", "third_mod")


def test_a_folder_that_is_named_is_part_of_the_code(tmp_path):
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "buy.txt").write_text("buy low")
    bare = code_identity(()).code_hash
    first = code_identity((), also=(prompts,))
    assert first.code_hash != bare
    assert list(first.also) == [str(prompts)]
    assert code_identity((), also=(prompts,)) == first
    (prompts / "buy.txt").write_text("buy high")
    assert code_identity((), also=(prompts,)).code_hash != first.code_hash
    with pytest.raises(ConfigError, match="no such"):
        code_identity((), also=(tmp_path / "nothing",))


def test_only_modules_of_the_user_count_as_loaded(modules, monkeypatch):
    monkeypatch.setitem(sys.modules, "first_mod", type(sys)("first_mod"))
    sys.modules["first_mod"].__file__ = str(modules / "first_mod.py")
    found = loaded_packages()
    assert found["first_mod"] == str(modules / "first_mod.py")
    assert "agent_gym" in found
    assert not {"json", "numpy", "pytest", "__main__"} & set(found)


class TestLedger:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        without_processes(monkeypatch.setattr)

    def test_a_stale_ledger_is_set_aside_and_its_scenario_played_anew(self, tmp_path, monkeypatch):
        night(tmp_path, day=0)
        DirectCrew.played.clear()
        monkeypatch.setattr(tiny_scenarios, "DRIFT", -1.0)  # the hash does not know of it
        outcome = night(tmp_path, tiny_suite(), day=1)
        run = outcome.result.run
        for scenario in run.samples.scenarios:
            hashes = {each.seed: each.trajectory_hash for each in scenario.samples}
            assert all(hashes[seed] == again for seed, again in scenario.repeated.items())
            assert all(each.metrics["gain"] < 9.5 for each in scenario.samples)
        assert any("alpha" in note and "played anew" in note for note in run.notes)
        with sqlite3.connect(tmp_path / "gym.db") as db:
            asked = "SELECT count(*) FROM nightly_set_aside WHERE origin = 'stale episode'"
            assert db.execute(asked).fetchone() == (16,)
        assert night(tmp_path, day=2).kept == 16

    def test_two_plays_of_one_run_that_differ_are_no_stale_ledger(self, tmp_path):
        suite = tiny_suite(fail="unsteady")
        for day in (0, 1):
            (scenario, _) = night(tmp_path, suite, day=day).result.run.samples.scenarios
            hashes = {each.seed: each.trajectory_hash for each in scenario.samples}
            assert all(hashes[seed] != again for seed, again in scenario.repeated.items())

    def test_other_figures_of_the_same_code_are_never_confirmed_against_themselves(
        self, tmp_path, monkeypatch
    ):
        night(tmp_path, approve="first")
        (tmp_path / "gym.db").unlink()
        frozen = DirectCrew(asked().subject)
        monkeypatch.setattr(nightly, "frozen_crew", lambda *_: frozen)
        monkeypatch.setattr(tiny_scenarios, "DRIFT", -1.0)
        outcome = night(tmp_path, day=1, fail_on_regression=True)
        assert outcome.exit_code == 3  # both sides would be tonight's: nothing could be seen
        assert "does not give the baseline's figures" in outcome.messages[0]

    def test_what_was_loaded_and_not_hashed_widens_the_hash(self, tmp_path, monkeypatch, modules):
        def identity(packages, also=(), libraries=()):
            names = sorted({*packages, tiny_scenarios.__name__})
            return stand_still(packages=names, code_hash="-".join(names), named=True)

        class Telling(DirectCrew):
            def play(self, tasks, heard):
                rows = super().play(tasks, heard)
                for row in (each for found in rows.values() for each in found):
                    row["loaded"] = {"third_mod": str(modules / "third_mod.py")}
                return rows

        monkeypatch.setattr(prepare, "code_identity", identity)
        monkeypatch.setattr(prepare, "LocalCrew", Telling)
        outcome = night(tmp_path)
        assert "third_mod" in outcome.result.run.code.code_hash
        assert any("third_mod" in note for note in outcome.result.run.notes)
        assert len([each for each in DirectCrew.played if each[0] == "alpha"]) == 8 + 2 + 2
        assert night(tmp_path, day=1).kept == 16


def cli(folder, *words):
    paths = [str(folder), str(HERE), str(HERE.parent.parent), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *words, "--json"],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(paths), "AGENT_GYM_HOME": str(folder / "home")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def test_an_edited_helper_is_played_and_its_old_code_frozen(tmp_path):
    (tmp_path / "helped_mod.py").write_text(SCENARIO)
    (tmp_path / "helperlib.py").write_text("BOOST = 1.0\n")
    (tmp_path / "hiddenlib.py").write_text("BOOST = 1.0\n")
    (tmp_path / "suite.json").write_text(
        json.dumps([{"name": "h", "type": "helped", "n_seeds": 4}])  # a type that --import adds
    )
    words = ("nightly", "--scenarios", "suite.json", "--import", "helped_mod", "--workers", "1")
    words = (*words, "--desk", "tiny/desk")
    code, said = cli(tmp_path, *words, "--update-baseline", "--reason", "first")
    assert code == 0, said
    frozen = load_baseline(Workspace(tmp_path / "home")).code
    assert {"helperlib.py", "hiddenlib.py"} <= {path.name for path in frozen.iterdir()}
    for name in ("helperlib", "hiddenlib"):
        (tmp_path / f"{name}.py").write_text("BOOST = 0.9\n")
        code, said = cli(tmp_path, *words, "--fail-on-regression")
        assert (code, said["verdict"]) == (1, "regressed"), said
        (tmp_path / f"{name}.py").write_text("BOOST = 1.0\n")
