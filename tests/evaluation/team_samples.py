"""Trainings of teams that nobody has trained."""

from agent_gym.evaluation.marl.runs import Seen, TeamRun

BUDGET = 100_000


def team(seed, arm="mappo", reach=40_000, **changes):
    """Return a run whose looks climb from 0 to 1 and pass 80 % at ``reach``."""
    looks = [(step, 64 if step >= reach else 16) for step in range(10_000, BUDGET + 1, 10_000)]
    given = {
        "task": "3m",
        "arm": arm,
        "seed": seed,
        "env_steps": BUDGET,
        "budget": BUDGET,
        "curve": tuple(Seen(step, wins, 64) for step, wins in looks),
        "wins": 970 + seed % 5,
        "episodes": 1000,
        "model_hash": "m",
        "config_hash": "c",
        "command": "agent-gym marl train",
    }
    return TeamRun(**(given | changes))


def arm_of(name, times, **changes):
    """Return one run a time, with seeds from 0."""
    return [team(seed, name, reach, **changes) for seed, reach in enumerate(times)]
