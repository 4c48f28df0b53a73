"""What several routes need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar, cast

from fastapi import Depends, Path, Request

from agent_gym.apps.api.problems import NotThere
from agent_gym.apps.api.service import Service
from agent_gym.core.errors import ConfigError

ADMIN_REQUEST = "admin-request"
T = TypeVar("T")
Plain: TypeAlias = dict[str, Any]
AgentName: TypeAlias = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
JobName: TypeAlias = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
ModelName: TypeAlias = Annotated[str, Path(pattern=r"^[0-9a-zA-Z.]{1,80}$")]
HashName: TypeAlias = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


Loop: TypeAlias = Annotated[Service, Depends(_service)]


def _written_down(loop: Loop, request: Request) -> None:
    """Write down who asks for a change, before it is made."""
    token = request.state.token
    asked = {"name": token.name, "method": request.method, "path": request.url.path}
    loop.stages.store.events.append(ADMIN_REQUEST, token.id, asked)


WRITTEN_DOWN = (Depends(_written_down),)


def there(find: Callable[[], T]) -> T:
    """Return what a path names, or say that it is not there."""
    try:
        return find()
    except ConfigError as error:
        raise NotThere(
            error.what,
            where=error.where,
            found=error.found,
            expected=error.expected,
            remedy=error.remedy,
        ) from error
