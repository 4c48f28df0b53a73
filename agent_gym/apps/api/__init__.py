"""The service: the loop over HTTP, behind tokens, on loopback.

What is asked for by name is imported then: the tokens alone need nothing of the loop.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_gym.apps.api.app import create_app
    from agent_gym.apps.api.settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app"]
_PLACES = {"create_app": "app", "ServiceSettings": "settings"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
