"""Checks of the judgement: verdicts that need seeds, steps that are all counted, whole replays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from agent_gym.agents.marl import TeamPolicy
from agent_gym.agents.marl.crowd import LAST_LAYER
from agent_gym.core.errors import AgentGymError
from agent_gym.core.seeds import Seeds
from agent_gym.envs.battle import MAPS, BattleBatch
from agent_gym.envs.battle.contract import STOP
from agent_gym.evaluation.audit import Finding, error, fine
from agent_gym.evaluation.battle import ENDING, PolicyPlayer, Start, read_replay, verify
from agent_gym.evaluation.marl import TeamRun
from agent_gym.evaluation.marl.runs import Seen
from agent_gym.training.marl.audit.endings import LONG
from agent_gym.training.marl.audit.subject import TeamSubject
from agent_gym.training.marl.looks import Look
from agent_gym.training.marl.worlds import contract_for

TASK, BUDGET, EPISODES = "audit", 100_000, 64
STEPS = 4_000
BEATS, NOT_SHOWN = "beats", "not shown"


def verdicts(subject: TeamSubject) -> Iterator[Finding]:
    """Hand in results of which it is known what may be said about them."""
    wrong = [name for name, runs in _unproved().items() if _word(subject, runs) == BEATS]
    proof = _word(subject, _arms({"amal": 0.4, "mappo": 1.0, "mappo-reuse": 1.0}, 20))
    told: dict[str, int | str] = {"cases": len(_unproved()), "of_a_clear_lead": proof}
    if wrong:
        yield error(
            f"A win is declared that nothing has shown: {', '.join(wrong)}.",
            "Ask for enough seeds, and for an interval that lies below the bound",
            **told,
        )
    elif proof != BEATS:
        yield error(
            "A clear lead over many seeds is not told, so a verdict says nothing.",
            "Let the interval decide",
            **told,
        )
    else:
        yield fine("A verdict needs seeds, wins, both controls and an interval.", **told)
    interval = Look(3, 2, 0.0, 0.0).interval
    width = interval.high - interval.low
    if width < 0.5:
        yield error(
            "Three episodes are told as if they were many.",
            "Show Wilson's interval beside every win rate",
            width=width,
        )
    else:
        yield fine("A win rate of three episodes has a wide interval.", width=width)


def _unproved() -> Mapping[str, Sequence[TeamRun]]:
    """Return results by what they lack."""
    fast = {"amal": 0.4, "mappo": 1.0, "mappo-reuse": 1.0}
    even = {"amal": 1.0, "mappo": 1.0, "mappo-reuse": 1.0}
    return {
        "from a single seed": _arms(fast, 1),
        "from three seeds": _arms(fast, 3),
        "where nobody ever wins": _arms(fast, 20, wins=False),
        "by luck": _arms(even, 20),
        "without the control that reuses samples": _arms({"amal": 0.4, "mappo": 1.0}, 20),
    }


def _word(subject: TeamSubject, runs: Sequence[TeamRun]) -> str:
    """Return the word for AMAL; results that are refused show nothing."""
    try:
        task = subject.seams.compare(runs).tasks[TASK]
    except AgentGymError:
        return NOT_SHOWN
    return task.verdicts["amal"].word if "amal" in task.verdicts else NOT_SHOWN


def _arms(pace: Mapping[str, float], seeds: int, *, wins: bool = True) -> list[TeamRun]:
    """Return runs whose steps to 80 % vary from seed to seed around a pace."""
    found = []
    for arm, own in pace.items():
        rng = Seeds(len(arm)).child("audit", arm).rng()
        for seed in range(seeds):
            solved = own * 50_000 * float(rng.uniform(0.7, 1.3))
            at = range(STEPS, BUDGET + 1, STEPS)
            curve = tuple(Seen(t, EPISODES * (wins and t >= solved), EPISODES) for t in at)
            won = EPISODES if wins else 0
            found.append(TeamRun(TASK, arm, seed, BUDGET, BUDGET, curve, won, EPISODES, "", "", ""))
    return found


def all_steps(subject: TeamSubject) -> Iterator[Finding]:
    """Count the steps of all worlds that were played in, and hold them against the record."""
    training = subject.training
    primary, auxiliary = training.watched.primary, training.watched.auxiliary
    really = primary.env_steps + (0 if auxiliary is None else auxiliary.env_steps)
    told = {"told": training.watched.session.env_steps, "played": really}
    if told["told"] != really:
        yield error(
            "Not all steps are counted: curves have another x-axis than those of others.",
            "Count the steps of auxiliary teams and of the search as well",
            **told,
        )
    else:
        yield fine("All steps are counted, those of auxiliary teams included.", **told)
    yield _same_budget(subject)


def _same_budget(subject: TeamSubject) -> Finding:
    """Hand in a run that was given fewer steps; all must be judged by that many."""
    runs = _arms({"amal": 1.0, "mappo": 1.0}, 3)
    half = BUDGET // 2
    runs[0] = TeamRun(
        TASK, "amal", 0, half, half, runs[0].curve[: half // STEPS], 0, EPISODES, "", "", ""
    )
    until = subject.seams.compare(runs).tasks[TASK].until
    if until != half:
        return error(
            "Runs of unequal length are compared as they are.",
            "Judge all by the steps that all have played",
            judged_by=until,
            fewest=half,
        )
    return fine("Runs of unequal length are judged by the steps all have played.", judged_by=until)


def replays(subject: TeamSubject) -> Iterator[Finding]:
    """Record a battle that lasts until time runs out, and read it where it was written."""
    battle = MAPS[LONG]
    player = PolicyPlayer(_idle(subject), name="idle")
    with TemporaryDirectory() as home:
        path = Path(home) / f"audit{ENDING}"
        replay = subject.seams.record(player, battle, Start(subject.small.seed, 1))
        subject.seams.write(path, replay)
        if not path.is_file():
            yield error(
                "A replay is not where it was to be written.",
                "Write to the path that is given, and say where that is",
                steps=replay.header.steps,
            )
            return
        try:
            verify(read_replay(path))
        except AgentGymError as failure:
            yield error(
                f"A replay does not hold a whole battle: {failure.what}.",
                "Record until the battle ends, whatever its length",
                steps=replay.header.steps,
                limit=battle.step_limit,
            )
            return
    yield fine(
        "A replay is where it was written, holds the whole battle, and plays again.",
        steps=replay.header.steps,
        limit=battle.step_limit,
    )


def _idle(subject: TeamSubject) -> TeamPolicy:
    """Return a team that stands still."""
    contract = contract_for(BattleBatch(MAPS[LONG], 1), LONG)
    policy = TeamPolicy.create(subject.small.network, contract, Seeds(0).child("audit", "idle"))
    bias, weight = (np.zeros_like(policy.weights[name]) for name in LAST_LAYER)
    bias[STOP] = 1.0
    return policy.with_weights(policy.weights | dict(zip(LAST_LAYER, (bias, weight), strict=True)))
