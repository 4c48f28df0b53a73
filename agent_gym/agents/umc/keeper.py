"""Who runs the slow fits: by default they just run; a keeper can also stop and resume them.

A keeper decides when work is done and whether it was done before, never what comes out: a fit ends
with the same bits whoever runs it. So it is no setting of an agent. It is put in charge for a
while, for all agents that learn meanwhile, also those that an evaluation makes on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from agent_gym.core.seeds import Seeds


class FitState(NamedTuple):
    """A fit between two steps: arrays, and numbers and texts that JSON can hold."""

    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any]


class ResumableFit(Protocol):
    """A fit that takes one step after another and can be taken up again between any two.

    ``steps`` is how many it takes at most, ``warm`` whether it goes on from earlier weights, and
    ``looks`` what was found on held-out bars so far, as dataclasses.
    """

    @property
    def done(self) -> bool: ...
    @property
    def step_count(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def warm(self) -> bool: ...
    @property
    def looks(self) -> Sequence[Any]: ...
    def step(self) -> None: ...
    def state(self) -> FitState: ...
    def restore(self, state: FitState) -> None: ...


class Keeper(Protocol):
    """Takes all steps of a fit that are left."""

    def run(self, name: str, fit: ResumableFit) -> None: ...


class Plain:
    """Runs fits and keeps nothing."""

    def run(self, name: str, fit: ResumableFit) -> None:
        """Take all steps that are left."""
        while not fit.done:
            fit.step()


_in_charge: ContextVar[Keeper] = ContextVar("keeper", default=Plain())  # noqa: B039


@contextmanager
def kept_by(keeper: Keeper) -> Iterator[None]:
    """Put a keeper in charge of every fit that is run inside."""
    token = _in_charge.set(keeper)
    try:
        yield
    finally:
        _in_charge.reset(token)


def run_fit(fit: ResumableFit, seeds: Seeds) -> None:
    """Run a fit to its end; it goes by its place in the seed tree, which no other fit has."""
    _in_charge.get().run("/".join(seeds.path), fit)
