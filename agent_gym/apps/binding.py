"""Where a server may listen, and by which names it may be called."""

from __future__ import annotations

from ipaddress import ip_address

from agent_gym.core.errors import ConfigError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def names_of(host: str, allowed: tuple[str, ...], *, remote: bool) -> tuple[str, ...]:
    """Return the names under which the service may be called.

    Raises:
        ConfigError: Others could reach it, and nobody has said that they may.
    """
    if not is_loopback(host) and not remote:
        raise ConfigError(
            "others could reach the service there",
            where="--host",
            found=host,
            expected="127.0.0.1",
            remedy="Say --remote if they may, and put a proxy with TLS before it",
        )
    own = (f"[{host}]" if ":" in host else host,)
    return tuple(dict.fromkeys((*LOOPBACK, *own, *allowed)))
