"""What a client of a faulty venue gets to see."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from agent_gym.core.errors import VenueError


class VenueTimeout(VenueError):
    """No answer came; the request may or may not have reached the venue."""


class VenueRejected(VenueError):
    """The venue got the request and refused it."""


class VenueDisconnected(VenueError):
    """There is no line to the venue; the request never left."""


class VenueRateLimited(VenueError):
    """The venue wants fewer requests; ``retry_after_ns`` says when it will listen again."""

    def __init__(self, what: str, *, retry_after_ns: int, **details: Any) -> None:
        super().__init__(what, **details)
        self.retry_after_ns = retry_after_ns

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the waiting time when the error crosses a process border."""
        fields = self.as_dict()
        details = {name: fields[name] for name in ("where", "found", "expected", "remedy")}
        return (_rate_limited, (self.what, self.retry_after_ns, details))


def _rate_limited(what: str, retry_after_ns: int, details: dict[str, Any]) -> VenueRateLimited:
    return VenueRateLimited(what, retry_after_ns=retry_after_ns, **details)
