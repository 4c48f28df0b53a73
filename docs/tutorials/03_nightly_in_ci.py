"""Nightly in CI: approve a baseline, plant a bug, see the gate go red, play a failing seed again.

Run it with ``python docs/tutorials/03_nightly_in_ci.py``. It plays in a project of its own below
``results/tutorials`` and touches nothing else. What a CI server looks at is the exit code.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from agent_gym.core.files import home

AGENT_GYM = Path(sys.executable).with_name("agent-gym")
folder = (home() / "tutorials" / "03_nightly_in_ci").absolute()
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
desk = folder / "my_desk"


def agent_gym(*words: str, where: Path = desk) -> subprocess.CompletedProcess[str]:
    """Run a command as a CI server does: its words, its exit code, what it printed."""
    print(f"\n$ agent-gym {' '.join(words)}", flush=True)
    env = os.environ | {"AGENT_GYM_HOME": str(desk / "results")}
    done = subprocess.run(
        [AGENT_GYM, *words], cwd=where, env=env, capture_output=True, text=True, check=False
    )
    print(f"  exit code {done.returncode}")
    return done


def night(*words: str) -> dict:
    """Play a night and tell what it says in one line."""
    done = agent_gym("nightly", "--scenarios", "suite.json", "--workers", "1", *words, "--json")
    said = json.loads(done.stdout)
    print(f"  {said['headline']} ({said['played']} episodes played, {said['kept']} known)")
    return said


# 1. A project: an agent, a scenario of its own (the price slides down), a suite, a workflow for CI.
#    A smaller suite is played here, to save time: a day and a half of half hours, 24 seeds.
agent_gym("init", "my_desk", where=folder)
setting = {"bar_minutes": 30, "hours": 36, "warmup_hours": 8}
slow_dip = {"name": "slow_dip", "type": "my_desk_slow_dip", "n_seeds": 24, "params": setting}
trend = {"use": "my_desk/trend", "params": {"window": 12}}
suite = {"id": "small", "version": 1, "agent": trend, "scenarios": [slow_dip]}
(desk / "suite.json").write_text(json.dumps(suite))

# 2. The first night has nothing to compare with, which is no pass: without an approval the exit
#    code would be 3. Somebody approves it, with a reason. The code is frozen with it.
night("--update-baseline", "--reason", "first baseline")

# 3. Nothing has changed: all episodes but two are known already, and the night is green.
night("--fail-on-regression")

# 4. A bug is planted: the sign of what the agent wants is turned round on its way to the venue. The
#    same happens when you break my_desk/agent.py by hand; docs/tutorials/ten_minutes.md does that.
#    What seems worse on the pinned seeds is played again on fresh ones, by both sides.
said = night("--fail-on-regression", "--plant", "market_sign_flipped")
for each in said["diff"]["regressions"]:
    print(f"    {each['metric']:<15} {each['base']:9.4f} -> {each['cand']:9.4f}")

# 5. Every regression names its worst seeds. One of them again: the same to the bit, beside what the
#    baseline did on the very same market.
worst = said["diff"]["regressions"][0]["replay"].split()[1:]
again = json.loads(agent_gym(*worst, "--json").stdout)
print(f"  recorded and replayed are {'the same' if again['same'] else 'NOT THE SAME'}")
for name in (said["diff"]["regressions"][0]["metric"], "net_return", "costs_paid"):
    figure = again["figures"][name]
    print(f"    {name:<16} baseline {figure['baseline']:8.4f}   now {figure['replayed']:8.4f}")

print(f"\nthe page for people   {said['files']['page']}")
print("exit codes: 0 nothing got worse, 1 a regression, 2 wrong words, 3 nothing to compare with,")
print("            4 the run failed, 5 another run is under way, 130 stopped")
