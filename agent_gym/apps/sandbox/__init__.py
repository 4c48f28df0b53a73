"""The sandbox exchange: a Binance spot server over the venue, for bots that exist already.

It speaks the exchange's REST, its streams and its websocket API; all that trades, costs or counts
is done by ``agent_gym.exchange``. What is asked for by name is imported then, so a bot that only
wants ``ccxt_options`` loads no server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_gym.apps.sandbox.app import create_app
    from agent_gym.apps.sandbox.client import ccxt_options
    from agent_gym.apps.sandbox.session import Session

__all__ = ["Session", "ccxt_options", "create_app"]
_PLACES = {"ccxt_options": "client", "create_app": "app", "Session": "session"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
