"""Writers that end well or are marked: the ``with`` form that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """A writer whose ``with`` block makes its store final, and partial if left by an exception."""

    @abstractmethod
    def close(self) -> None:
        """Make the store final; a second call does nothing."""

    @abstractmethod
    def abandon(self, reason: str) -> None:
        """Make what there is final, marked partial, and say why."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon(f"ended by {kind.__name__}")
