"""Who plays: a script or a trained team, with what it thought while it decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.artifact import MANIFEST
from agent_gym.agents.marl import TeamContract, TeamPolicy
from agent_gym.agents.marl.critic import TeamCritic
from agent_gym.agents.marl.foresight import TeamForesight
from agent_gym.agents.marl.policy import CARD
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle import BattleBatch, script
from agent_gym.envs.battle.contract import NO_OP
from agent_gym.evaluation.battle.replay import Mode
from agent_gym.evaluation.battle.starts import Start

ENTROPY, VALUE, INFORMATION = "entropy", "value", "information_bonus"
POLICY, CRITIC, FORESIGHT = "policy", "critic", "foresight"
DEPTH, SHOWN = 4, 6
"""How far below a folder teams are looked for, and how many of them are named."""
IntArray: TypeAlias = NDArray[np.int64]


class Decided(NamedTuple):
    """Actions ``[E, agents]``, and signals ``[E]`` of the team or ``[E, agents]``."""

    actions: IntArray
    signals: Mapping[str, FloatArray]


class _Kept(Protocol):
    """What is kept beside a policy, and knows it by its hash."""

    policy: str


T = TypeVar("T", bound=_Kept)
Decide: TypeAlias = Callable[[BattleBatch], Decided]
Watch: TypeAlias = Callable[[BattleBatch, IntArray], FloatArray]
"""What somebody thinks of a moment and of what is about to be done, ``[E]`` or ``[E, agents]``."""


class Player(Protocol):
    """Whoever can decide for all agents of a batch."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str | None: ...
    @property
    def mode(self) -> Mode: ...
    def begin(self, batch: BattleBatch, starts: Sequence[Start]) -> Decide: ...


class ScriptPlayer:
    """Implements Player on a script."""

    version: str | None = None
    mode: Mode = "script"

    def __init__(self, name: str) -> None:
        script(name, Seeds(0))  # a name that is not known is refused here
        self.name = name

    def begin(self, batch: BattleBatch, starts: Sequence[Start]) -> Decide:
        """Begin episodes; what a script draws comes from the first of them."""
        decide = script(self.name, starts[0].seeds.child("team"))
        return lambda now: Decided(decide(now), {})


class PolicyPlayer:
    """Implements Player on the policy of a team.

    Args:
        policy: Who decides.
        critic: Tells what it expects of each moment, if there is one.
        greedy: Take the likeliest action always; otherwise it is drawn.
        name: What it is called.
        watches: Further signals, by name, such as the information bonus of a world model.
    """

    def __init__(
        self,
        policy: TeamPolicy,
        critic: TeamCritic | None = None,
        *,
        greedy: bool = True,
        name: str = "policy",
        watches: Mapping[str, Watch] | None = None,
    ) -> None:
        self.policy, self.critic, self.name = policy, critic, name
        self.version: str | None = policy.version
        self.mode: Mode = "greedy" if greedy else "drawn"
        self._watches = dict(watches or {})

    def begin(self, batch: BattleBatch, starts: Sequence[Start]) -> Decide:
        """Begin episodes on the map the team was made for; each draws from its own start."""
        self._check(batch)
        dice = [start.seeds.child("team").rng() for start in starts]
        memory = self.policy.memory(batch.n_envs)
        known = None if self.critic is None else self.critic.memory(batch.n_envs)

        def decide(now: BattleBatch) -> Decided:
            nonlocal memory, known
            drawn = self.mode == "drawn"
            draws = np.array([each.random(now.n_agents) for each in dice]) if drawn else None
            seen, state, legal = now.senses
            choice = self.policy.act(seen, legal, memory, draws)
            memory = choice.memory
            signals: dict[str, FloatArray] = {ENTROPY: choice.entropy.astype(np.float64)}
            if self.critic is not None and known is not None:
                values, known = self.critic.values(seen, state, known)
                first, *others = values
                signals[VALUE] = values[first]
                signals |= {f"{VALUE}_{name}": values[name] for name in others}
            for name, watch in self._watches.items():
                signals[name] = watch(now, choice.actions)
            return Decided(choice.actions, signals)

        return decide

    def _check(self, batch: BattleBatch) -> None:
        ours, contract = self.policy.contract, batch.contract
        theirs = TeamContract(
            map=ours.map,
            agents=batch.n_agents,
            observation=contract.observation,
            actions=contract.actions,
        )
        if ours != theirs:
            raise ConfigError(
                "the team was made for another map",
                where=f"map {batch.map.name}",
                found=ours.map,
                expected="observations and actions of the same names",
                remedy=f"Play it on {ours.map}",
            )


def open_team(folder: Path, *, greedy: bool = True) -> PolicyPlayer:
    """Open what training has left: its folder, or the folder of the policy in it.

    A critic beside the policy tells values, and a model of the world tells information; without
    them these are not recorded.

    Raises:
        DataError: There is no team in it, or it is damaged; teams that lie below are named.
    """
    home = folder / POLICY if (folder / POLICY).is_dir() else folder
    _refuse_above(home)
    policy = TeamPolicy.load(home)
    critic = _beside(home, CRITIC, TeamCritic.load, policy)
    model = _beside(home, FORESIGHT, TeamForesight.load, policy)
    watches = {} if model is None else {INFORMATION: information_of(model)}
    return PolicyPlayer(policy, critic, greedy=greedy, name=named(folder), watches=watches)


def _refuse_above(folder: Path) -> None:
    """Raise DataError for a folder that holds no team while folders below it do."""
    if (folder / MANIFEST).exists() or (folder / CARD).exists():
        return
    below = [path.parent for n in range(1, DEPTH + 1) for path in folder.glob("*/" * n + CARD)]
    if not below:
        return
    names = [str(path.relative_to(folder)) for path in sorted(below)]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    raise DataError(
        "no team lies in this folder itself, but some lie below it",
        where=str(folder),
        found=", ".join(names[:SHOWN]) + more,
        expected="the folder of one seed, or of a policy in it",
        remedy=f"Name one of them, such as {folder / names[0]}",
    )


def information_of(model: TeamForesight) -> Watch:
    """Return what says how much each step tells a model of the world."""

    def watch(now: BattleBatch, actions: IntArray) -> FloatArray:
        _, state, legal = now.senses
        return model.information(state, actions, ~legal[..., NO_OP])

    return watch


def _beside(home: Path, name: str, load: Callable[[Path], T], policy: TeamPolicy) -> T | None:
    """Return what was kept beside a policy, None if nothing was; that of another is refused."""
    place = home.parent / name
    if home.name != POLICY or not place.is_dir():
        return None
    kept = load(place)
    if kept.policy != policy.version:
        raise DataError(
            f"the {name} beside this policy belongs to another one",
            where=str(place),
            found=kept.policy,
            expected=policy.version,
            remedy=f"Take the {name} away; what it tells is then not recorded",
        )
    return kept


def named(folder: Path) -> str:
    """Return what a team is called: its folder, without the folder of the policy.

    Example:
        >>> named(Path("runs/3m/policy")), named(Path("runs/3m"))
        ('3m', '3m')
    """
    whole = folder.resolve()
    return whole.parent.name if whole.name == POLICY else whole.name
