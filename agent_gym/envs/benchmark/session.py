"""An episode that is played from outside: calls come in, and the player ends each tick."""

from __future__ import annotations

from threading import Lock
from typing import Any

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Outcome
from agent_gym.envs.benchmark.calls import OVER, Reply
from agent_gym.envs.benchmark.interface import SimulationA2AInterface
from agent_gym.envs.benchmark.world import BenchmarkWorld

NEXT_TICK = "runner.nextTick"


class Session:
    """One episode for one bot; the session owns the clock and moves it when asked.

    Calls from several threads are carried out one after the other.
    """

    def __init__(self, world: BenchmarkWorld, *, max_calls: int | None = None) -> None:
        self.world = world
        world.reset(Seeds(0))
        self.market = SimulationA2AInterface(world, max_calls=max_calls)
        self.equity = [world.equity]
        self._lock = Lock()

    @property
    def finished(self) -> bool:
        """Say whether the last tick has been played."""
        return self.world.floor.finished

    def handle(self, request: Any) -> dict[str, Any]:
        """Answer a JSON-RPC request: one of the calls, or the wish for the next tick."""
        with self._lock:
            if isinstance(request, dict) and request.get("method") == NEXT_TICK:
                return self._next_tick().as_json_rpc(request.get("id"))
            return self.market.handle(request)

    def call(self, method: str, params: Any = None) -> Reply:
        """Do the same for callers who need no JSON-RPC."""
        with self._lock:
            return self._next_tick() if method == NEXT_TICK else self.market.call(method, params)

    def state(self) -> dict[str, Any]:
        """Return where the episode stands; nothing of the sealed truth."""
        floor = self.world.floor
        return {
            "snapshot": self.world.snapshot.id,
            "tick": floor.tick,
            "lastTick": self.world.snapshot.ticks,
            "finished": self.finished,
            "equity": self.world.equity,
            "invalidCalls": floor.invalid,
            "calls": self.market.calls.total(),
        }

    def _next_tick(self) -> Reply:
        if self.finished:
            return Reply(code=OVER, error="the episode is over")
        outcome: Outcome = self.world.end_tick()
        self.equity.append(self.world.equity)
        return Reply(result={"reward": outcome.reward, **self.state()})
