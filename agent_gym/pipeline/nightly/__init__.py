"""The nightly: a suite played, compared with the approved baseline, written down and judged.

Belongs here: the order of a night's steps, the lock, the ledger of what is done, baselines with the
code that made them, and playing any seed again.
May import: every room but apps.
Hands on: files in the workspace and an exit code.
"""

from agent_gym.pipeline.nightly.baseline import (
    Approval,
    Baseline,
    NoBaseline,
    load_baseline,
)
from agent_gym.pipeline.nightly.compare import compare_runs, comparison_code
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.lock import LockHeld, one_run
from agent_gym.pipeline.nightly.nightly import NightlyOutcome, run_nightly
from agent_gym.pipeline.nightly.options import NightlyOptions, RunOptions
from agent_gym.pipeline.nightly.replay import Replay, replay_seed
from agent_gym.pipeline.nightly.single import SingleRun, run_suite
from agent_gym.pipeline.nightly.workspace import Workspace

__all__ = [
    "Approval",
    "Baseline",
    "Ledger",
    "LockHeld",
    "NightlyOptions",
    "NightlyOutcome",
    "NoBaseline",
    "Replay",
    "RunOptions",
    "SingleRun",
    "Workspace",
    "compare_runs",
    "comparison_code",
    "load_baseline",
    "one_run",
    "replay_seed",
    "run_nightly",
    "run_suite",
]
