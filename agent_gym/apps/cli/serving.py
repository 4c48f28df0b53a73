"""What ``agent-gym serve`` does once its options are good; it loads the whole service."""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.api.app import Mount
from agent_gym.apps.api.front_door import DASHBOARD
from agent_gym.apps.api.server import serve
from agent_gym.apps.api.settings import ServiceSettings
from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.apps.binding import is_loopback
from agent_gym.apps.cli.output import emit, notes, table
from agent_gym.apps.cli.serve import ServeOptions
from agent_gym.pipeline.runtime import RuntimeConfig

FIRST = "first start"
QUIET = ("dbos", "alembic")
PAGES = "agent_gym.apps.dashboard.mount"


def run(
    options: ServeOptions, hosts: tuple[str, ...], place: Path, url: str | None, *, as_json: bool
) -> None:
    """Serve until it is ended.

    Args:
        options: Where it listens, and what it does by itself.
        hosts: Names that it may be called by.
        place: Its folder.
        url: Of its database, if it is not in the folder.
        as_json: Tell where it listens as one JSON document.
    """
    settings = settings_of(options, hosts, place, url)
    if not is_loopback(options.host):
        notes.print(
            "[bold yellow]Others can reach this service, and it speaks plain HTTP.[/] "
            "Put a proxy with TLS before it.",
            soft_wrap=True,
        )
    tokens = TokenFile(place / FILE)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)

    def ready(address: str) -> None:
        fresh = None if tokens.all() else tokens.add(FIRST, "admin")[1]
        pages = f"{address}{DASHBOARD}" if options.dashboard else None
        told = {"url": address, "dashboard": pages, "folder": str(place), "token": fresh}
        emit(told, as_json=as_json, view=_view(address, pages, place, fresh))

    serve(settings, options.host, options.port, ready, _dashboard() if options.dashboard else None)


def settings_of(
    options: ServeOptions, hosts: tuple[str, ...], place: Path, url: str | None
) -> ServiceSettings:
    """Return what the service is told."""
    return ServiceSettings(
        folder=place,
        database=url,
        hosts=hosts,
        tick_every_s=options.tick_every,
        check_every_s=options.check_every,
        train_every_s=options.train_every,
        runtime=RuntimeConfig(
            timeout_s=options.agent_timeout,
            cost_points=options.tick_cost,
            explore=options.explore,
            text=options.text,
        ),
    )


def _dashboard() -> Mount:
    """Return what adds the pages; their libraries are loaded only now."""
    mount: Mount = import_module(PAGES).mount
    return mount


def _view(address: str, pages: str | None, folder: Path, fresh: str | None) -> RenderableType:
    rows: list[tuple[object, ...]] = [("address", address), ("folder", folder)]
    if pages is not None:
        rows.insert(1, ("dashboard", pages))
    shown = table("Service", ("what", "is"), rows)
    if fresh is None:
        return shown
    # A line of its own, never broken: it is shown once and copied by hand.
    return Group(shown, "Token (admin), shown once:", Text(fresh, no_wrap=True, overflow="ignore"))
