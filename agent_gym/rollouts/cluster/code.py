"""What must be alike on all nodes: the versions of libraries and the source itself."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

import agent_gym
from agent_gym.core.manifest import installed_versions
from agent_gym.rollouts.spool import file_hash

OWN = "agent_gym"
SHORT = 16
MODULE = "module "


def identity(modules: Iterable[str]) -> dict[str, str]:
    """Return what decides the bits of a row: versions, our source, and that of other modules.

    Args:
        modules: Modules of the user's that jobs need; those of this package are known already.

    Example:
        >>> {"agent_gym source", "module json"} <= set(identity(["json"]))
        True
    """
    others = sorted({name for name in modules if name.partition(".")[0] != OWN})
    return (
        installed_versions()
        | {f"{OWN} source": own_source()}
        | {f"{MODULE}{name}": _source_of(name) for name in others}
    )


def modules_of(code: dict[str, str]) -> list[str]:
    """Return the modules of the user's that an identity tells of.

    Example:
        >>> modules_of(identity(["json"]))
        ['json']
    """
    return [name.removeprefix(MODULE) for name in code if name.startswith(MODULE)]


def difference(here: dict[str, str], there: dict[str, str]) -> str | None:
    """Return the first thing that differs, None if all is alike.

    Example:
        >>> difference({"numpy": "2.4"}, {"numpy": "2.3"})
        'numpy is 2.3 there and 2.4 here'
    """
    for name in sorted({*here, *there}):
        own, other = here.get(name, "absent"), there.get(name, "absent")
        if own != other:
            return f"{name} is {other} there and {own} here"
    return None


@cache
def own_source() -> str:
    """Return a hash of all files of this package; it is read once in a process."""
    digest = blake2b(digest_size=SHORT)
    root = Path(agent_gym.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(root)}\0{file_hash(path)}\0".encode())
    return digest.hexdigest()


@cache
def _source_of(name: str) -> str:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return "absent"
    if spec is None or spec.origin is None:
        return "absent"
    place = Path(spec.origin)
    return file_hash(place)[: 2 * SHORT] if place.is_file() else spec.origin
