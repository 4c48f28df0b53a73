"""An agent behind a door: it turns every call of the loop into a question over a channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from agent_gym.agents.doors.words import (
    DoorError,
    act_words,
    check_answer,
    check_hello,
    hello,
    observe_words,
    read_decision,
    start_words,
)
from agent_gym.core.types import Decision, EpisodeStart, Observation, Step


class Channel(Protocol):
    """A way to ask. ``begin`` returns whether who answers now has not been greeted yet."""

    def begin(self) -> bool: ...
    def ask(self, message: dict[str, Any]) -> dict[str, Any]: ...
    def fail(self) -> None: ...
    def finish(self) -> None: ...


class RemoteAgent:
    """Implements Agent over a channel.

    Args:
        name: The agent's name in the registry.
        channel: Whom to ask.
        restarts: How often in an episode a lost agent is begun anew and told where it is.
    """

    def __init__(self, name: str, channel: Channel, restarts: int = 0) -> None:
        self.name = name
        self._channel, self._restarts = channel, restarts
        self._observes, self._number, self._left, self._t = False, 0, 0, 0
        self._start: EpisodeStart | None = None

    @property
    def used_restarts(self) -> int:
        """Return how often it had to be begun anew in this episode."""
        return self._restarts - self._left

    def reset(self, start: EpisodeStart) -> None:
        """Begin an episode: greet whoever is new, and tell what will be seen."""
        self._start, self._left, self._t = start, self._restarts, 0
        self._guarded(lambda: self._begin(start, 0))

    def act(self, obs: Observation) -> Decision:
        """Ask for a decision; one that is lost is asked again as often as restarts are allowed."""
        start = self._started()
        asked = act_words(obs)
        while True:
            try:
                said = self._ask(asked)
                made = read_decision(said, start.actions)
            except DoorError as error:
                self._channel.fail()
                if not self._left:
                    raise self._placed(error) from error
                self._left -= 1
                self._guarded(lambda: self._begin(start, self._t))
            else:
                self._t += 1
                return self._marked(made)

    def observe(self, step: Step) -> None:
        """Tell it what came of its decision, if it wants to know; let go at the end."""
        if self._observes:
            self._guarded(lambda: self._ask(observe_words(step)))
        if step.after.terminated or step.after.truncated:
            self._channel.finish()

    def close(self) -> None:
        """End whatever is at the other end."""
        self._channel.fail()

    def _begin(self, start: EpisodeStart, t: int) -> None:
        if self._channel.begin():
            self._number = 0
            self._observes = check_hello(self._ask(hello()))
        self._ask(start_words(start) | {"t": t})

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        said = self._channel.ask({"id": self._number} | message)
        return check_answer(said, self._number)

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except DoorError as error:
            self._channel.fail()
            raise self._placed(error) from error

    def _placed(self, error: DoorError) -> DoorError:
        where = f"{self.name}, decision {self._t}"
        error.where = where if error.where is None else f"{where}, {error.where}"
        return error

    def _marked(self, made: Decision) -> Decision:
        if not self.used_restarts:
            return made
        signals = dict(made.signals or {}) | {"restarts": float(self.used_restarts)}
        return Decision(made.action, signals, made.rationale)

    def _started(self) -> EpisodeStart:
        if self._start is None:
            raise DoorError("no episode has begun", expected="reset before act")
        return self._start
