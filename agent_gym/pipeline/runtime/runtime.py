"""AgentRuntime: agents that live on, a tick at a time, all on the model that serves.

A tick is one transaction: points, position and what was asked and answered are kept together or not
at all. Killed anywhere, the next tick begins where the last one was kept; an agent's decision
depends on the model, what it sees and the number of the tick alone, so a repeated one is the same.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agent_gym.core.clock import Clock
from agent_gym.core.errors import StoreError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.pipeline.minds.mind import question
from agent_gym.pipeline.registry import ModelDeploymentService
from agent_gym.pipeline.registry.deployment import Answering
from agent_gym.pipeline.registry.rollout import in_canary
from agent_gym.pipeline.runtime.calls import Standing, StoredCall, TickCall, stored_calls
from agent_gym.pipeline.runtime.config import RuntimeConfig
from agent_gym.pipeline.runtime.crew import Crew, LoadableModel
from agent_gym.pipeline.runtime.market import DICE, Market, Snapshots
from agent_gym.pipeline.runtime.process import AgentLost, Answer
from agent_gym.pipeline.runtime.rounds import Rounds, TickRound, TickRow
from agent_gym.pipeline.runtime.trajectory import record
from agent_gym.pipeline.runtime.watch import watch
from agent_gym.rollouts.database import (
    AgentRecord,
    PlayedTick,
    ServiceAgent,
    TickTaken,
    TrajectoryStore,
)
from agent_gym.rollouts.play import Failure, attempt

FAILURE = "agent-failure"
EXPLORING = "exploring"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an agent stands when its tick begins."""

    agent: ServiceAgent
    standing: Standing
    snapshot_id: str


class AgentRuntime:
    """Keeps agents alive.

    Args:
        store: Where agents, their ticks and trajectories are.
        deployments: Says which model answers for whom.
        snapshots: Folder of the snapshots that agents walk through.
        config: What a tick costs, and the limits.
    """

    def __init__(
        self,
        store: TrajectoryStore,
        deployments: ModelDeploymentService,
        snapshots: Path,
        config: RuntimeConfig | None = None,
    ) -> None:
        self._store, self._deployments = store, deployments
        self._snapshots, self._config = Snapshots(snapshots), config or RuntimeConfig()
        self._clock: Clock = store.clock
        self._crew = Crew(self._config, self._clock)
        self._markets: dict[str, tuple[int, Market]] = {}
        self._rounds = Rounds()

    def __enter__(self) -> Self:
        """Finish what was cut off when the last process ended."""
        self.recover()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the tick that is under way, and end the processes of the agents."""
        with self._rounds.quiet():
            self._crew.close()

    def add(self, agent_id: str, *, name: str | None = None, points: int = 100) -> ServiceAgent:
        """Let an agent live; one that is there already stays as it is."""
        return self._store.agents.add(
            AgentRecord(agent_id=agent_id, name=name or agent_id, points=points)
        )

    def recover(self) -> list[str]:
        """Record the markets that had ended when the last process did; return trajectory ids."""
        found: list[str] = []
        for agent in self._store.agents.all():
            status, failure = attempt(partial(self._finish, agent, found))
            if status != "ok":
                self._note(agent.agent_id, failure)
        return found

    def tick(self, call_id: str | None = None) -> TickRound:
        """Advance every active agent by one tick.

        A call that comes while the same one is under way gets its round. A call with a name moves
        each agent once, however often it is repeated; an agent knows its last 100.

        Args:
            call_id: Name of the call.
        """
        return self._rounds.once(call_id, lambda: self._round(call_id))

    def _round(self, call_id: str | None) -> TickRound:
        agents = self._store.agents.all("active")
        with ThreadPoolExecutor(self._config.processes, "agent-tick") as pool:
            rows = pool.map(lambda agent: self._row(agent, call_id), agents)
            return TickRound(call_id, tuple(rows))

    def _row(self, agent: ServiceAgent, call_id: str | None) -> TickRow:
        """Let one agent play; whatever goes wrong with it is a row of its own."""
        made: list[TickRow] = []
        _, failure = attempt(lambda: made.append(self._play(agent, call_id)))
        if made:
            return made[0]
        self._note(agent.agent_id, failure)
        return TickRow.of(agent, "failed", error=failure)

    def _play(self, agent: ServiceAgent, call_id: str | None) -> TickRow:
        standing = Standing.of(agent)
        if call_id is not None and call_id in standing.call_ids:
            return TickRow.of(agent, "repeated")
        place = self._place(agent, standing)
        market = self._market(place)
        served, asked_ns = self._deployments.answering(agent.agent_id), self._clock.now_ns()
        call = self._ask(place, market, served, asked_ns)
        now = place.standing.model_copy(
            update={"t": market.t, "over": market.over, "call_ids": standing.named(call_id)}
        )
        played = PlayedTick(
            tick=agent.tick,
            cost_points=self._config.cost_points,
            policy_version=call.model,
            state=now.model_dump(),
            snapshot_id=place.snapshot_id,
            call=call.model_dump(mode="json"),
        )
        try:
            after = self._store.agents.advance(agent.agent_id, played)
        except TickTaken:
            return TickRow.of(self._store.agents.get(agent.agent_id), "repeated")
        if market.over:
            self._end(after, now)
        else:
            self._markets[agent.agent_id] = (after.tick, market)
        return TickRow.played(after, call)

    def _place(self, agent: ServiceAgent, standing: Standing) -> _Place:
        """Return where the next tick is played: here, or in the next market."""
        if not standing.over and agent.snapshot_id is not None:
            return _Place(agent, standing, agent.snapshot_id)
        before = standing.before
        if standing.episode >= 0:
            _, before = self._end(agent, standing)
        fresh = Standing(episode=standing.episode + 1, over=False, before=before)
        return _Place(agent, fresh, self._snapshots.after(agent.snapshot_id))

    def _market(self, place: _Place) -> Market:
        """Return the market of an agent, played up to where it stands.

        It is taken out of memory, and put back only when the tick is kept.
        """
        agent = place.agent
        tick, market = self._markets.pop(agent.agent_id, (-1, None))
        if market is not None and tick == agent.tick and market.t == place.standing.t:
            return market
        market = Market(self._snapshots.path(place.snapshot_id), text=self._config.text)
        for each in self._calls(agent.agent_id, place.standing):
            market.replay(each.call, agent.agent_id)
        if market.t != place.standing.t:
            raise StoreError(
                "ticks of an agent are missing",
                where=agent.agent_id,
                found=f"{market.t} stored",
                expected=f"{place.standing.t} in market {place.standing.episode}",
            )
        return market

    def _ask(self, place: _Place, market: Market, served: Answering, asked_ns: int) -> TickCall:
        """Ask the agent, play the tick, and return what is to be written down."""
        agent_id, standing = place.agent.agent_id, place.standing
        answer: Answer | None = None
        failure: Failure | None = None
        artifact = self._crew.artifact(served.model, self._deployments.registry)
        seeds = Seeds(self._config.seed).child(DICE, agent_id, standing.episode)
        asked = question(
            market.start(seeds), market.seen, self._played_by(artifact, agent_id, standing.episode)
        )
        try:
            answer = self._crew.of(agent_id).ask(asked, market.n_targets)
            _refuse_another(answer.version, served.model)
        except AgentLost as error:
            failure = error.as_dict()
            log.warning("agent %s lost tick %d: %r", agent_id, place.agent.tick, str(error))
        kept = None if failure else answer
        outcome = market.play(None if kept is None else kept.targets)
        return TickCall(
            tick=place.agent.tick,
            episode=standing.episode,
            t=market.t - 1,
            snapshot_id=place.snapshot_id,
            status="answered" if kept else "lost",
            action=None if kept is None else tuple(kept.targets),
            model=None if answer is None else answer.version,
            kind=artifact.kind,
            served=served.model,
            position=served.position,
            asked_ns=asked_ns,
            reward=outcome.reward,
            over=market.over,
            signals={} if kept is None else kept.signals,
            rationale=None if kept is None else kept.rationale,
            latency_ms=None if answer is None else answer.latency_ms,
            error=failure,
        )

    def _played_by(self, artifact: LoadableModel, agent_id: str, episode: int) -> Ref:
        """Return the agent of a model: drawing in some markets, at its best in the others."""
        params: dict[str, Any] = {"model": str(artifact.folder)}
        if not in_canary(f"{agent_id}/{episode}", EXPLORING, 100.0 * self._config.explore):
            params["deterministic"] = True
        return Ref(use=artifact.kind, params=params)

    def _finish(self, agent: ServiceAgent, found: list[str]) -> None:
        standing = Standing.of(agent)
        if standing.episode >= 0 and standing.over:
            found.append(self._end(agent, standing)[0])

    def _end(self, agent: ServiceAgent, standing: Standing) -> tuple[str, int]:
        """Record a market that is over; return the trajectory and the last event of the market."""
        calls = self._calls(agent.agent_id, standing)
        snapshot_id = calls[0].call.snapshot_id
        path = self._snapshots.path(snapshot_id)
        made = record(self._store, agent.agent_id, calls, Market(path, text=self._config.text))
        status, failure = attempt(
            lambda: _forget(watch(self._deployments, agent.agent_id, calls, path))
        )
        if status != "ok":  # the market itself is kept
            log.error("the rollout was not told of a market: %s", failure)
        return made, calls[-1].event_id

    def _calls(self, agent_id: str, standing: Standing) -> list[StoredCall]:
        if standing.t == 0:
            return []
        found = stored_calls(self._store, agent_id=agent_id, after=standing.before)
        return [each for each in found if each.call.episode == standing.episode]

    def _note(self, agent_id: str, failure: Failure | None) -> None:
        """Write down that a tick was not played, and why."""
        log.error("agent %s was not moved: %s", agent_id, failure)
        data: dict[str, Any] = {"error": failure}
        status, _ = attempt(lambda: _forget(self._store.events.append(FAILURE, agent_id, data)))
        if status != "ok":
            log.error("the failure of agent %s could not be stored", agent_id)


def _refuse_another(version: str, expected: str) -> None:
    if version != expected:
        raise AgentLost("another model answered", found=version[:12], expected=expected[:12])


def _forget(_: object) -> None:
    """Take a value that nobody needs."""
