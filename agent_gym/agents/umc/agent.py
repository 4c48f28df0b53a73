"""UMC: the active-inference trader as an agent, with the doors that every other agent has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.gate import AsymmetricGate, GateConfig, Source, Tagged, Tags
from agent_gym.agents.umc.choice import BARS, begin_choice, sized
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.curiosity import Curiosity
from agent_gym.agents.umc.kept import read_agent, settled_config, write_agent
from agent_gym.agents.umc.mind import Mind, Trace
from agent_gym.agents.umc.plans import Plans
from agent_gym.agents.umc.telling import rationale_of, signals_of
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import register
from agent_gym.core.types import (
    Decision,
    EpisodeStart,
    FloatArray,
    Observation,
    Step,
)

NAME = "umc"
SCALES = ("model/weights/input_", "model/weights/normaliser/")


class UMCAgent:
    """Follows a learned model of the market and holds what has the least expected free energy.

    Implements Agent, SeriesAgent, Learner, Tuned, Successor, Inspectable and Saveable. Its targets
    hang on what it was shown and on its own earlier targets, never on the account, unless the world
    shows what its orders paid: then it learns what trading costs, and may pay for learning it.
    """

    name = NAME

    def __init__(self, config: UMCConfig) -> None:
        self.config = config
        self.gate = AsymmetricGate(GateConfig())
        self.mind = Mind(config)
        self.plans = Plans(config)
        self._past: Mapping[str, FloatArray] | None = None
        self._earlier_tier: str | None = None
        self._start: EpisodeStart | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the columns it reads."""
        return self.config.needs

    def succeed(self, earlier: UMCAgent) -> None:
        """Begin the next fit from where an agent that learned an earlier past has come to."""
        self.mind.succeed(earlier.mind)
        self.plans.succeed(earlier.plans)
        self._earlier_tier = earlier.mind.model.report.chosen

    def fit(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> None:
        """Learn the market from a past, then plan for it."""
        batch = self.gate.primary_batch(self._met(columns))
        seeds = start.seeds.child(NAME)
        self.mind.fit(batch, seeds)
        past = {name: np.array(batch[name], dtype=np.float64) for name in self.needs}
        self._past = past
        self._plan(start)

    def tune(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> None:
        """Choose the model again by the span after the one it learned from."""
        if self._past is None:
            raise AgentError("an agent is tuned after fit()", where=NAME)
        batch = self.gate.primary_batch(self._met(columns))
        self.mind.choose(self._past, {name: batch[name] for name in self.needs})
        self._plan(start)

    def reset(self, start: EpisodeStart) -> None:
        """Forget the last episode and find the columns in this world."""
        self._check_learned()
        try:
            self._places = np.array([start.column(name) for name in self.needs], dtype=np.int64)
        except LookupError as error:
            raise AgentError(
                "the world does not show what this agent reads",
                where=NAME,
                found=", ".join(start.feature_names),
                expected=", ".join(self.needs),
            ) from error
        self._start = start
        self._policy = self.plans.policy(start.actions)
        self._memory = self.mind.begin()
        self._choice = begin_choice(self._policy.levels)
        self._curiosity = Curiosity.of(self.config, start)

    def act(self, obs: Observation) -> Decision:
        """Take in one bar and choose, with the reasons in signals."""
        if self._start is None:
            raise AgentError("an agent acts after reset()", where=NAME)
        row = obs.features[self._places]
        columns = {name: row[i : i + 1] for i, name in enumerate(self.needs)}
        trace = self.mind.follow(columns, self._memory)
        held = int(self._choice[0])
        outlook = trace.outlook(self.config.lam.coherence_threshold)
        places, energies = self._policy.choose(trace, outlook, self._choice)
        view = self._curiosity.look(obs, trace, energies[0], self._policy.levels, held)
        chosen = int(places[0]) if view.place is None else view.place
        self._choice[0] = chosen
        bar = int(self._choice[BARS])
        self._choice[BARS] = bar + 1
        wished = sized(self._policy.levels[[chosen]], bar, self.config.resize_bars)
        signals = signals_of(self.config, trace, self._policy.levels, (held, chosen), view)
        words = rationale_of(signals, self._policy.levels[held], self._policy.levels[chosen])
        return Decision(self._start.actions.encode(float(wished[0])), signals, words)

    def observe(self, step: Step) -> None:
        """Take no notice: what orders paid is shown with the next observation."""

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the target at every moment of a series, as the world would hold it."""
        self._check_learned()
        policy = self.plans.policy(start.actions)
        trace = self.mind.follow(self._columns(columns), self.mind.begin())
        outlook = trace.outlook(self.config.lam.coherence_threshold)
        places, _ = policy.choose(trace, outlook, begin_choice(policy.levels))
        wished = sized(policy.levels[places.astype(np.int64)], 0, self.config.resize_bars)
        return start.actions.held(wished)

    def trace(self, columns: Mapping[str, FloatArray]) -> Trace:
        """Return what it would believe at each bar of a series."""
        self._check_learned()
        return self.mind.follow(self._columns(columns), self.mind.begin())

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return the numbers that learning moves; names and scales of inputs are none of them."""
        return {
            name: array
            for name, array in self._kept().items()
            if array.dtype.kind == "f" and array.size and not name.startswith(SCALES)
        }

    def losses(self) -> Mapping[str, float]:
        """Return the surprise of the past it learned from, in nats a bar."""
        return self.plans.losses()

    def save(self, folder: Path) -> None:
        """Put all that was learned into a folder of its own."""
        write_agent(folder, self.config, self._kept())

    def load(self, folder: Path) -> None:
        """Take over what an agent of the same config has learned."""
        _, weights = read_agent(folder)
        self.mind.restore(weights)
        self.plans.restore(weights)
        if self._start is not None:
            self.reset(self._start)

    def _kept(self) -> dict[str, NDArray[Any]]:
        self._check_learned()
        return self.mind.weights() | self.plans.weights()

    def _plan(self, start: EpisodeStart) -> None:
        assert self._past is not None
        trace = self.mind.follow(self._past, self.mind.begin())
        same = self.mind.model.report.chosen == self._earlier_tier
        self.plans.learn(trace, start.actions, start.seeds.child(NAME), same_model=same)

    def _columns(self, columns: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        self._require(columns)
        return {name: np.array(columns[name], dtype=np.float64) for name in self.needs}

    def _met(self, columns: Mapping[str, FloatArray | Tagged]) -> dict[str, Tagged]:
        """Return the columns with where they come from: what a world shows was met, unless it says.

        Columns that are tagged keep their tags, so a crowd's bars are refused here and by name.
        """
        self._require(columns)
        found = {}
        for name in self.needs:
            column = columns[name]
            if not isinstance(column, Tagged):
                rows = np.asarray(column, dtype=np.float64)
                column = Tagged(rows, Tags.of(Source.PRIMARY, NAME, np.arange(rows.size)))
            found[name] = column
        return found

    def _require(self, columns: Mapping[str, Any]) -> None:
        missing = [name for name in self.needs if name not in columns]
        if missing:
            raise AgentError("a column is missing", where=NAME, expected=", ".join(missing))

    def _check_learned(self) -> None:
        if not self.plans.learned:
            raise AgentError(
                "this agent has learned nothing yet",
                where=NAME,
                remedy="Let it learn (agent-gym umc backtest, agent-gym evaluate umc), or name the "
                "folder of one that has: umc:folder=PATH",
            )


@register("agent", NAME, UMCConfig)
def umc(config: UMCConfig) -> UMCAgent:
    """Follow a learned model of the market and hold what has the least expected free energy.

    It weighs simple laws of the market by Bayes' rule, and sits out where none is believed.
    """
    if config.folder is None:
        return UMCAgent(config)
    saved, _ = read_agent(config.folder)
    agent = UMCAgent(settled_config(config, saved))
    agent.load(config.folder)
    return agent
