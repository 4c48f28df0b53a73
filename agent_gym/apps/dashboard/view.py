"""What a page is before it is drawn: blocks of HTML and charts, made from one visit."""

from __future__ import annotations

import logging
import secrets
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from agent_gym.apps.api.front_door import DASHBOARD
from agent_gym.apps.api.problems import status_of
from agent_gym.apps.api.roles import Role, may
from agent_gym.apps.api.service import Service
from agent_gym.apps.dashboard.markup import Part, Safe, el, link, text
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.words import Words
from agent_gym.core.errors import AgentGymError, ConfigError
from agent_gym.core.files import HOME_VARIABLE, home

log = logging.getLogger(__name__)
Option: TypeAlias = Mapping[str, Any]
THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class Visit:
    """Who looks at what.

    Attributes:
        service: What holds the stores.
        query: The state of the view.
        words: The language.
        role: What the visitor may do.
        token_id: Who it is, for what is written down.
        token_name: The same in a word.
        theme: What the visitor wants to see: light, dark, or as the system has it.
    """

    service: Service
    query: Query
    words: Words
    role: Role
    token_id: str
    token_name: str
    theme: str = "auto"

    def may(self, role: Role) -> bool:
        """Return whether the visitor may do what needs a role."""
        return may(self.role, role)

    def command(self, words: str) -> str:
        """Return a command as it fills the folder that is served."""
        folder = self.service.folder.path
        if folder.resolve() == home().resolve():
            return words
        return f"{HOME_VARIABLE}={shlex.quote(str(folder))} {words}"


@dataclass(frozen=True, slots=True)
class Markup:
    """A block of HTML; a wide one scrolls by itself, a late one is left out of the first view."""

    key: str
    html: Safe
    wide: bool = False
    late: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, with what it shows in words for those who cannot see it."""

    key: str
    option: Option
    label: str
    height_px: int = 320


Block: TypeAlias = Markup | Chart


@dataclass(frozen=True, slots=True)
class View:
    """A page: its title, its blocks from top to bottom, and what a program is told of it."""

    title: str
    blocks: tuple[Block, ...]
    status: int = 200

    @property
    def found(self) -> bool:
        """Return whether it shows what was asked for."""
        return self.status == 200


class Stage(Protocol):
    """A page on somebody's screen, as those see it who put buttons there."""

    visit: Visit

    def allowed(self, role: Role) -> bool:
        """Ask again, now, whether the visitor may do what needs a role."""

    async def go(self, **changes: str | int | None) -> None:
        """Change the state of the view, and the address with it."""

    async def refresh(self) -> None:
        """Ask again, and show what has changed."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the dashboard.

    Attributes:
        path: Behind ``/dashboard``; empty is home.
        name: Key of its name in the words; also what the navigation marks.
        view: Makes the blocks; asks the rooms below and computes nothing.
        tools: Draws what can be pressed, if there is anything.
        listed: Whether the navigation shows it.
        live: Whether it is asked again while it is open.
        back: Where the list is from which one comes to it; its own path if it has one.
    """

    path: str
    name: str
    view: Callable[[Visit], View]
    tools: Callable[[Visit, Stage], None] | None = None
    listed: bool = True
    live: bool = True
    back: str | None = None


def view_of(page: Page, visit: Visit) -> View:
    """Return the page; whatever goes wrong is shown on it, with what to do."""
    try:
        return page.view(visit)
    except AgentGymError as error:
        told = failure(visit.words, error, f"{DASHBOARD}{page.back or page.path}")
        return View(visit.words(f"nav.{page.name}"), (told,), _status(error))
    except Exception:  # the border of a request: it becomes a recorded failure
        mark = secrets.token_hex(4)
        log.exception("unforeseen error %s in page %s", mark, page.name)
        words = visit.words
        said = el(
            "div", el("h2", words("error.unforeseen")), el("p", words("error.log", mark=mark))
        )
        block = Markup("error", el("section", said, class_="card bad", role="alert"))
        return View(words(f"nav.{page.name}"), (block,), 500)


def _status(error: AgentGymError) -> int:
    """Return the status of an error; an address that cannot be shown names what is not there."""
    return 404 if isinstance(error, ConfigError) else status_of(error)


def failure(words: Words, error: AgentGymError, back: str) -> Markup:
    """Return an error as a block: what, where, found, expected, what to do, and a way on."""
    rows: list[Part] = []
    for name in ("where", "found", "expected", "remedy"):
        value = getattr(error, name)
        if value not in (None, ""):
            rows += [el("dt", words(f"error.{name}")), el("dd", words.said(str(value)))]
    way = el("p", link(back, words("error.back"), class_="button"))
    body = text(el("h2", words.said(error.what)), el("dl", *rows, class_="facts"), way)
    return Markup("error", el("section", body, class_="card bad", role="alert"))


def empty(words: Words, key: str, command: str = "") -> Safe:
    """Return what to do where there is nothing yet."""
    said: list[Part] = [el("p", words(key))]
    if command:
        said.append(el("pre", el("code", command)))
    return el("div", *said, class_="empty")


def to_page(query: Query, number: int, label: str, *, on: bool, name: str) -> Safe:
    """Return a link to another page of a list, or its name where there is none."""
    if not on:
        return el(
            "span", label, class_="button off", role="link", aria_disabled="true", aria_label=name
        )
    return link(query.href(page=number), label, class_="button", aria_label=name)


def card(title: str, *children: Part, tone: str = "", **attributes: str | None) -> Safe:
    """Return a box with a headline."""
    named = f"card {tone}".strip()
    return el("section", el("h2", title), *children, class_=named, **attributes)
