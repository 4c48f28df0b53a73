"""Battles that were kept: what each file says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from agent_gym.apps.api.service import Service
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.evaluation.battle import Header, read_header, read_replay, replays_in
from agent_gym.evaluation.page import Theme
from agent_gym.reporting.battle import viewer_page

FOLDER = "replays"
SIZE = 50


@dataclass(frozen=True, slots=True)
class BattleRow:
    """A replay; ``problem`` says why one cannot be read."""

    name: str
    header: Header | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class BattlePage:
    """Some replays, and how many there are."""

    rows: tuple[BattleRow, ...]
    total: int


def battle_page(service: Service, page: int) -> BattlePage:
    """Return one page of the replays by name."""
    names = list(replays_in(service.folder.path / FOLDER).items())
    first = (min(page, max(1, -(-len(names) // SIZE))) - 1) * SIZE
    rows = []
    for name, path in names[first : first + SIZE]:
        try:
            rows.append(BattleRow(name, read_header(path)))
        except DataError as error:
            rows.append(BattleRow(name, None, str(error)))
    return BattlePage(tuple(rows), len(names))


def battle_header(service: Service, name: str) -> Header:
    """Return what one replay says of itself."""
    known = replays_in(service.folder.path / FOLDER)
    if name not in known:
        raise ConfigError(
            "there is no such replay",
            found=name[:200],
            expected=", ".join(list(known)[:3]) or None,
            remedy="`agent-gym marl record --script focus` makes one",
        )
    return read_header(known[name])


def battle_viewer(service: Service, name: str, theme: Theme = "auto") -> str | None:
    """Return the page that plays a replay; None if there is none of this name."""
    path = replays_in(service.folder.path / FOLDER).get(name)
    return None if path is None else viewer_page(read_replay(path), str(path), theme)
