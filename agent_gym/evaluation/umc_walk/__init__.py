"""UMC walked forward: what it earned, and what it believed and traded at every close.

Belongs here: the walk of ``evaluate_forward`` together with the agents of its folds, the trace of
their beliefs, the folder that keeps both, the answer to "why did it trade then", and the search for
markets that it cannot bear. Hands on the names below.
"""

from agent_gym.evaluation.umc_walk.beliefs import Believed, believed, row_of
from agent_gym.evaluation.umc_walk.break_even import BreakEven, break_even
from agent_gym.evaluation.umc_walk.echoes import EchoRecord, follow_echoes
from agent_gym.evaluation.umc_walk.energy import bar_energies
from agent_gym.evaluation.umc_walk.explain import Explanation, Level, explain
from agent_gym.evaluation.umc_walk.folds import FoldAgent, fold_agents
from agent_gym.evaluation.umc_walk.lambda_path import LambdaPath, lambda_path
from agent_gym.evaluation.umc_walk.run import UmcPlan, UmcRun, walk_umc
from agent_gym.evaluation.umc_walk.store import StoredRun, open_run, write_run
from agent_gym.evaluation.umc_walk.trace import WalkTrace, trace_of

__all__ = [
    "Believed",
    "BreakEven",
    "EchoRecord",
    "Explanation",
    "FoldAgent",
    "LambdaPath",
    "Level",
    "StoredRun",
    "UmcPlan",
    "UmcRun",
    "WalkTrace",
    "bar_energies",
    "believed",
    "break_even",
    "explain",
    "fold_agents",
    "follow_echoes",
    "lambda_path",
    "open_run",
    "row_of",
    "trace_of",
    "walk_umc",
    "write_run",
]
