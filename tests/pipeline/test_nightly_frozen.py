"""The baseline's side of a confirmation is played by the baseline's own code."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCRIPT = """
import sys
from pathlib import Path
from nightly_samples import clock_at
from agent_gym.core.registry import Ref
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, Suite
from agent_gym.pipeline.nightly import (
    Approval, NightlyOptions, RunOptions, Workspace, replay_seed, run_nightly
)
import iced.scenarios

def main():
    home, day, reason = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    suite = Suite(
        id="iced", scenarios=(ScenarioConfig(name="ice", type="iced", n_seeds=4),),
        desk=Ref(use="tiny/desk"),
    )
    options = RunOptions(
        suite, Subject(desk=suite.desk), workers=1, imports=("tiny_scenarios", "iced.scenarios")
    )
    policy = GatePolicy(n_confirm=8, max_confirm=8, repeat=False)
    approval = Approval(reason, "tester") if reason else None
    outcome = run_nightly(
        options, NightlyOptions(approval=approval, policy=policy), Workspace(home),
        clock=clock_at(day),
    )
    if not reason:
        seed = outcome.result.run.seeds.fresh["ice"][0]
        found = replay_seed(
            Workspace(home), outcome.result.run.run_id, "ice", seed, side="baseline"
        )
        print(found.same, found.played.metrics["gain"])
    sys.exit(outcome.exit_code)

if __name__ == "__main__":
    main()
"""
PACKAGE = """
from agent_gym.core.registry import register
from tiny_scenarios import TinyConfig, TinyScenario

SHIFT = 0.0

class Iced(TinyScenario):
    def play(self, seeds, subject):
        self._config = TinyConfig(level=10.0 + SHIFT)
        return super().play(seeds, subject)

@register("scenario", "iced", TinyConfig)
def iced(config):
    return Iced(config)
"""


def night(folder, day, reason):
    paths = [str(folder), str(HERE), str(HERE.parent.parent), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, str(folder / "night.py"), str(folder / "home"), str(day), reason],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_old_code_really_plays_the_old_side(tmp_path):
    package = tmp_path / "iced"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "scenarios.py").write_text(PACKAGE)
    (tmp_path / "night.py").write_text(SCRIPT)
    night(tmp_path, 0, "first")
    (folder,) = (tmp_path / "home/reports/baseline").glob("2*")
    before = sorted(path.name for path in folder.rglob("*"))
    assert (folder / "code/iced/scenarios.py").read_text() == PACKAGE
    assert (folder / "code/agent_gym/__init__.py").is_file()
    (package / "scenarios.py").write_text(PACKAGE.replace("SHIFT = 0.0", "SHIFT = -1.0"))
    said = night(tmp_path, 1, "").split()
    diff = json.loads((tmp_path / "home/reports/nightly_diff.json").read_text())
    (found,) = diff["regressions"]
    assert found["delta_abs"] < -0.9
    (run,) = (tmp_path / "home/reports/runs").glob("2025111[7]*")
    fresh = json.loads((run / "fresh.json").read_text())
    gains = {
        side: {each["seed"]: each["metrics"]["gain"] for each in said["scenarios"][0]["samples"]}
        for side, said in fresh.items()
    }
    assert gains["baseline"].keys() == gains["candidate"].keys()
    for seed, gain in gains["baseline"].items():
        assert 0.99 < gain - gains["candidate"][seed] < 1.01  # same luck, other code
    assert said[0] == "True"
    assert 9.0 < float(said[1]) < 11.0
    assert sorted(path.name for path in folder.rglob("*")) == before  # nothing was written there
