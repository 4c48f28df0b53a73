"""A sandbox exchange as an MCP server: a model trades on it as a ccxt bot does."""

from __future__ import annotations

from agent_gym.apps.mcp_gym import serve_desk
from agent_gym.apps.sandbox_door import ExchangeDesk, SandboxClient


def serve_sandbox(url: str, api_key: str, secret: str) -> None:
    """Serve whoever is at the other end of standard input and output."""
    serve_desk(ExchangeDesk(SandboxClient(url, api_key, secret)))
