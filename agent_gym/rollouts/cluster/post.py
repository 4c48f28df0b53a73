"""The driver's side of a station: the actor, what it is doing, and how it is ended."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import ray
from ray.exceptions import RayError

from agent_gym.rollouts.cluster.station import Station

ENDING_S = 3.0  # stations are given this long to end their processes and remove files
Stage: TypeAlias = Literal["starting", "receiving", "idle", "busy"]


@dataclass(slots=True, eq=False)
class Post:
    """One station and what it is doing.

    Attributes:
        actor: The handle of the station.
        stage: What the driver waits for; ``idle`` for nothing.
        ref: What it will answer.
        chunk: The jobs that it has.
        knows: Hashes of the common fields that it was sent.
        deadline_s: When it is too late for its start.
    """

    actor: Any
    stage: Stage = "starting"
    ref: Any = None
    chunk: list[int] = field(default_factory=list)
    knows: set[str] = field(default_factory=set)
    deadline_s: float | None = None

    @property
    def is_ready(self) -> bool:
        """Return whether it takes jobs."""
        return self.stage in ("idle", "busy")

    def ask(self, stage: Stage, ref: Any, deadline_s: float | None = None) -> None:
        """Note what is asked of it."""
        self.stage, self.ref, self.deadline_s = stage, ref, deadline_s

    def rest(self) -> None:
        """Note that it waits for jobs."""
        self.stage, self.ref, self.deadline_s, self.chunk = "idle", None, None, []


def new_post(settings: str) -> Post:
    """Ask the cluster for a station; it starts when a processor is free.

    Ray neither starts it again nor repeats its calls: what was lost is decided by the driver.
    """
    actor: Any = ray.remote(Station)
    options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0, "max_concurrency": 2}
    return Post(actor.options(**options, scheduling_strategy="SPREAD").remote(settings))


def end(posts: Iterable[Post], *, tidy: bool = False) -> None:
    """End stations and all that they have started; one that is gone is no error.

    Args:
        posts: The stations.
        tidy: Remove the files that were sent to their nodes, too: nobody else needs them.
    """
    ended = list(posts)
    closing = [ref for post in ended if post.is_ready for ref in _closing(post, tidy)]
    if closing:
        with suppress(RayError):
            ray.wait(closing, num_returns=len(closing), timeout=ENDING_S)
    for post in ended:
        with suppress(RayError, ValueError):
            ray.kill(post.actor, no_restart=True)


def _closing(post: Post, tidy: bool) -> list[Any]:
    with suppress(RayError):
        return [post.actor.close.remote(tidy)]
    return []
