"""TrajectoryRecorder: a sink that puts what a team plays into the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from typing_extensions import override

from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.core.types import Step
from agent_gym.rollouts.closing import Closing
from agent_gym.rollouts.database.finished import Finished
from agent_gym.rollouts.database.records import EpisodeFigures, LlmCallRecord, TrajectoryContext
from agent_gym.rollouts.database.store import TrajectoryStore
from agent_gym.rollouts.database.tally import StepBuffer
from agent_gym.rollouts.database.writer import FLUSH_STEPS, TrajectoryWriter
from agent_gym.rollouts.play import EpisodeResult

UNKNOWN = "unknown"

Contexts = TrajectoryContext | Mapping[str, TrajectoryContext]


class TrajectoryRecorder(Closing):
    """Records each role of each episode as one trajectory.

    Say before an episode what it is with begin(), play it with run_episode() and this recorder
    among the sinks, and add what else is known with annotate(). A step is copied as it comes.

    Args:
        store: Where to.
        observations: Keep what was seen; training needs it.
        flush_steps: Steps of finished trajectories that are collected before they are written.
    """

    def __init__(
        self,
        store: TrajectoryStore,
        *,
        observations: bool = True,
        flush_steps: int = FLUSH_STEPS,
    ) -> None:
        self._clock = store.clock
        self._observations = observations
        self._contexts: Contexts | None = TrajectoryContext()
        self._open: dict[str, StepBuffer] = {}
        self._agents: dict[str, str] = {}
        self._calls: dict[str, list[LlmCallRecord]] = {}
        self._episode: str | None = None
        self._role: str | None = None
        self._take: Callable[[Step], None] = self.write
        self._ended: list[Finished] = []  # the episode that ended last: it can still be annotated
        self._started_s = self._clock.monotonic_s()
        self._writer = TrajectoryWriter(store, flush_steps)
        self._told = self._closed = False

    def begin(self, context: Contexts) -> None:
        """Say what the next episode is, for all roles or for each."""
        self._refuse_if_closed()
        self._end_unfinished()
        self._settle()
        self._contexts, self._told = context, True
        self._started_s = self._clock.monotonic_s()

    def write(self, step: Step) -> None:
        """Take one step."""
        if step.role is not self._role or step.episode is not self._episode:
            self._turn_to(step)
        self._take(step)

    def use_version(self, version: str | None, role: str | None = None) -> None:
        """Say that from the next step on another version of the policy decides."""
        self._open[self._one_role(role)].use_version(version)

    def add_calls(self, calls: Iterable[LlmCallRecord], role: str | None = None) -> None:
        """Add what a model was asked, in the episode under way or the one that ended last."""
        if self._ended:
            for one in self._ended_of(role):
                one.calls.extend(calls)
        else:
            self._calls.setdefault(self._one_role(role), []).extend(calls)

    def annotate(self, figures: EpisodeFigures, role: str | None = None) -> None:
        """Add what is known of the episode that ended last; until the next one begins."""
        for one in self._ended_of(role):
            one.figures = figures

    def finish_episode(self, result: EpisodeResult) -> None:
        """Make trajectories of an episode; run_episode() calls it."""
        if result.episode != self._episode and self._open:
            self._end_unfinished()
        self._end(result)

    def flush(self) -> None:
        """Write everything that has ended; it is in the store or in the outbox after this."""
        self._settle()
        self._writer.flush()

    def trajectory_ids(self, episode: str) -> dict[str, str]:
        """Return the id of each role's trajectory of an episode, by role."""
        self.flush()
        return self._writer.ids.get(episode, {})

    @override
    def close(self) -> None:
        """Write everything; a second call does nothing."""
        if not self._closed:
            self._end_unfinished()
            self._close()

    @override
    def abandon(self, reason: str) -> None:
        """Write everything; the episode under way counts as interrupted."""
        if not self._closed:
            self._end_unfinished(reason)
            self._close()

    def _close(self) -> None:
        self._closed = True
        try:
            self.flush()
        finally:
            self._writer.close()

    # An episode from its first step to its last.

    def _turn_to(self, step: Step) -> None:
        """Go on with the buffer of another role, or with another episode."""
        self._refuse_if_closed()
        if step.episode != self._episode or not self._open:
            self._end_unfinished()
            self._settle()
            self._episode = step.episode
        role = str(step.role)
        if role not in self._open:
            version = self._context(role).agent_version
            self._open[role] = StepBuffer(observations=self._observations, version=version)
            self._agents[role] = step.agent
        self._episode, self._role = step.episode, step.role
        self._take = self._open[role].write

    def _end(self, result: EpisodeResult) -> None:
        now = self._clock.monotonic_s()
        self._settle()
        for role in self._roles(result):
            context = self._context(role)
            self._ended.append(
                Finished(
                    episode=result.episode,
                    role=role,
                    agent=context.agent or self._agents.get(role) or UNKNOWN,
                    context=context,
                    status=result.status,
                    error=result.error,
                    steps=self._open.get(role),
                    wall_ms=(now - self._started_s) * 1e3,
                    calls=self._calls.get(role, []),
                )
            )
        self._open, self._agents, self._calls = {}, {}, {}
        self._role, self._take, self._started_s = None, self.write, now
        if self._told:
            self._contexts = None

    def _end_unfinished(self, reason: str | None = None) -> None:
        """End an episode whose end nobody has told us: it was played with play()."""
        if not self._open:
            return
        result = EpisodeResult(self._episode or UNKNOWN)
        if reason is not None or not all(buffer.is_over for buffer in self._open.values()):
            result.status = "interrupted"
            result.error = {"what": reason or "the episode was left before its end"}
        self._end(result)

    def _roles(self, result: EpisodeResult) -> list[str]:
        """Return the roles that played, or should have."""
        contexts = self._contexts if isinstance(self._contexts, Mapping) else {}
        known = dict.fromkeys([*self._open, *contexts, *map(str, result.total_reward)])
        return list(known) or [UNKNOWN]

    def _context(self, role: str) -> TrajectoryContext:
        told = self._contexts
        if isinstance(told, TrajectoryContext):
            return told
        if told is None or role not in told:
            raise ConfigError(
                "nothing was said of what is played now",
                where=f"episode {self._episode}, role {role}",
                expected="a role that was announced" if told is None else ", ".join(told),
                remedy="Call begin() before each episode, with a context for each role",
            )
        return told[role]

    def _one_role(self, role: str | None) -> str:
        if role is None and len(self._open) == 1:
            return next(iter(self._open))
        if role not in self._open:
            raise ConfigError(
                "no such role plays now", found=role, expected=", ".join(self._open) or "a step"
            )
        return role

    def _ended_of(self, role: str | None) -> list[Finished]:
        found = [one for one in self._ended if role in (None, one.role)]
        if not found or (role is None and len(found) > 1):
            raise ConfigError(
                "it is not clear which trajectory is meant",
                found=role,
                expected=", ".join(one.role for one in self._ended) or "an episode that has ended",
                remedy="Call it right after the episode, and name the role if there are several",
            )
        return found

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError("this recorder is closed", remedy="Make another one")

    def _settle(self) -> None:
        """Let go of the episode that ended last."""
        ended, self._ended = self._ended, []
        self._writer.put(ended)
