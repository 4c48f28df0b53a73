"""UMC: walk the active-inference trader over a known market, ask why it traded, read the verdict.

Run it with ``python docs/tutorials/06_umc.py``. The market is ``known/m1``: a hidden drift that
turns now and then. Its law is known, so there is something to find. On real prices expect less.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from agent_gym.core.files import home
from agent_gym.evaluation.umc_walk import explain, open_run
from agent_gym.markets.quality import format_time

AGENT_GYM = Path(sys.executable).with_name("agent-gym")
folder = home() / "tutorials" / "06_umc"
shutil.rmtree(folder, ignore_errors=True)
run = folder / "walk"


# 1. Walk forward: learn from 50 days, choose on 8, trade the next 12, then move on by 12. The drift
#    is larger than the market's default, because this series is short. No crowd, the lightest tier.
words = ["umc", "backtest", "--market", "known/m1", "--bars", "2400", "--seed", "1"]
words += ["--market-param", "drift_bp=15", "--tiers", "exact", "--echo-size", "0", "--draws", "20"]
words += [
    "--train",
    "50d",
    "--validation",
    "8d",
    "--test",
    "12d",
    "--purge",
    "2",
    "--embargo",
    "20",
]
words += ["--out", str(run), "--json"]
print(f"$ agent-gym {' '.join(words)}\n", flush=True)
env = os.environ | {"AGENT_GYM_HOME": str(folder)}
done = subprocess.run([AGENT_GYM, *words], env=env, stdout=subprocess.PIPE, text=True, check=True)
said = json.loads(done.stdout)

# 2. What it earned on bars that it had not learned from, after costs, beside baselines.
print(f"{'after costs, basis points a bar':<34} {'mean':>6}   95 % interval")
for arm in said["arms"]:
    net = arm["net_bp_per_bar"]
    print(f"  {arm['label']:<32} {net['estimate']:6.2f}   {net['low']:6.2f} to {net['high']:6.2f}")

# 3. The verdict. A gain is not enough: what was tried counts, and a part of the data that nobody
#    has looked at (a lockbox, --lockbox 60d) must agree. Here none was held out, so it cannot.
verdict = said["arms"][0]["verdict"]
print(f"\nverdict: {verdict['word']}")
for check in verdict["checks"]:
    found = "not known" if check["found"] is None else f"{check['found']:.3f}"
    holds = "yes" if check["holds"] else "no"
    print(f"  {holds:<4} {check['name']}: {found}, asked: {check['asked']}")
print("  (PSR, DSR and PBO ask whether luck or many trials explain it: docs/statistics.md)")

# 4. One decision: the first close at which it turned from long to short or back. The very agent
#    that decided then is asked again.
kept = open_run(run)
turned = np.flatnonzero(np.diff(np.sign(kept.trace.columns["chosen"])))[0] + 1
why = explain(kept, int(kept.trace.ts[turned]))
print(f"\nat {format_time(why.ts_ns)}: {why.sentence}")
for head in why.heads:
    law = f"{head.name:<8} {100 * head.chance:5.1f} %"
    print(f"  believed {law}, which expects {head.expected_bp:+.2f} bp of the next bar")
for level in why.levels:
    mark = " <- least" if level.position == why.chosen else ""
    print(f"  position {level.position:+.1f}: expected free energy {level.planned:.3f}{mark}")

print(
    f"\nask about any other time: agent-gym umc explain --run {run} --at {format_time(why.ts_ns)}"
)
print("A known market with a strong drift, one path: this shows how it works, not what it earns.")
