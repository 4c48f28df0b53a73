"""The shell around every page: navigation, language, light and dark, and blocks kept up to date.

A page is built from one visit and then asked again every few seconds; only blocks that have changed
are sent, so whoever reads, scrolls or filters is not disturbed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from html import unescape
from typing import Any, cast
from urllib.parse import parse_qsl

from nicegui import run, ui

from agent_gym.apps.api.front_door import DASHBOARD
from agent_gym.apps.api.roles import Role
from agent_gym.apps.dashboard.charts import dressed, harmless, local, theme
from agent_gym.apps.dashboard.frame import FRAME_PX, first_view, head, navigation
from agent_gym.apps.dashboard.markup import Safe, el
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.view import Block, Chart, Markup, Page, View, Visit, view_of

LIVE_S, ANSWER_S = 5.0, 10.0
IS_DARK = 'return document.body.classList.contains("body--dark")'
_CAPTION = re.compile(r"<caption>(.*?)</caption>")


class Screen:
    """The blocks of a page on somebody's screen.

    Args:
        page: What is shown.
        visit: Who looks, and at which state.
        knows: Asks again who the visitor is; None once the session has ended.

    Attributes:
        night: Whether the page is dark, as far as charts have asked.
    """

    def __init__(self, page: Page, visit: Visit, knows: Callable[[Visit], Visit | None]) -> None:
        self.page, self.visit, self._knows = page, visit, knows
        self.night = visit.theme == "dark"
        self._shown: tuple[Block, ...] = ()
        self._elements: dict[str, Any] = {}
        self._frames: dict[str, ui.element] = {}
        self._holder: ui.element | None = None

    def draw(self, view: View) -> None:
        """Draw the blocks for the first time, where the caller stands.

        Charts need a large library, so they follow once everything else can be read.
        """
        self._holder = ui.element("div").classes("blocks")
        self._fill(view.blocks)
        ui.timer(0.0, self._begin_charts, once=True)

    def allowed(self, role: Role) -> bool:
        """Ask again, now, whether the visitor may do what needs a role."""
        known = self._knows(self.visit)
        return known is not None and known.may(role)

    async def refresh(self) -> None:
        """Ask again, and send what has changed."""
        known = self._knows(self.visit)
        if known is None:
            ui.navigate.to(self.visit.query.href().removeprefix(DASHBOARD) or "/")
            return
        self.visit = known
        view = await run.io_bound(view_of, self.page, self.visit)
        if view is None:  # the server is going down
            return
        self._update(view.blocks)

    async def go(self, **changes: str | int | None) -> None:
        """Change the state of the view, and the address with it."""
        query = self.visit.query
        there = Query.of(query.path, parse_qsl(query.href(**changes).partition("?")[2]))
        self.visit = replace(self.visit, query=there)
        ui.navigate.history.replace(there.href())
        await self.refresh()

    def _fill(self, blocks: Sequence[Block]) -> None:
        assert self._holder is not None
        self._elements, self._frames = {}, {}
        with self._holder:
            for block in blocks:
                if isinstance(block, Markup):
                    self._elements[block.key] = _markup(block)
                else:
                    self._frames[block.key] = _frame(block)
        self._shown = tuple(blocks)

    async def _begin_charts(self) -> None:
        """Draw the charts in the colours of the page, which only the browser may know."""
        if self._frames and self.visit.theme not in ("light", "dark"):
            with suppress(TimeoutError):
                self.night = bool(await ui.run_javascript(IS_DARK, timeout=ANSWER_S))
        self._draw_charts()

    def _option(self, block: Chart) -> dict[str, Any]:
        """Return a chart in the colours and the language of the page."""
        made = dressed(harmless(block.option), night=self.night)
        return cast(dict[str, Any], local(made, self.visit.words.language))

    def _draw_charts(self) -> None:
        charts = {block.key: block for block in self._shown if isinstance(block, Chart)}
        for key, frame in self._frames.items():
            with frame:
                self._elements[key] = _chart(
                    charts[key], self._option(charts[key]), theme(night=self.night)
                )
        self._frames = {}

    def _update(self, blocks: Sequence[Block]) -> None:
        assert self._holder is not None
        before = {block.key: block for block in self._shown}
        if [(each.key, type(each)) for each in blocks] != [
            (each.key, type(each)) for each in self._shown
        ]:
            self._holder.clear()
            self._fill(blocks)
            self._draw_charts()
            return
        for block in blocks:
            element = self._elements.get(block.key)
            if block == before[block.key] or element is None:
                continue
            if isinstance(block, Chart):
                element.options.clear()
                element.options.update(self._option(block))
                element.update()
            else:
                element.set_content(block.html)
        self._shown = tuple(blocks)


def show(page: Page, pages: Sequence[Page], stage: Screen, view: View) -> None:
    """Draw a whole page."""
    visit = stage.visit
    ui.page_title(f"{view.title} - Agent Gym")
    ui.dark_mode({"light": False, "dark": True}.get(visit.theme))
    ui.add_head_html(head(visit.words.language))
    ui.add_body_html(first_view(page, pages, visit, view))
    with ui.element("div").classes("frame"):
        with ui.element("div").classes("side"):
            _part(navigation(page.back or page.path, pages, visit))
        with ui.element("div").classes("content").props('id=main role=main tabindex="-1"'):
            _part(el("h1", view.title))
            if page.tools is not None and view.found:
                page.tools(visit, stage)
            stage.draw(view)
    if page.live:
        ui.timer(LIVE_S, stage.refresh, immediate=False)


def _markup(block: Markup) -> ui.html:
    made = ui.html(block.html, sanitize=False).classes("block")
    if block.wide:
        made.classes("wide").props('tabindex="0" role="region"')
        named = _CAPTION.search(block.html)
        made.props["aria-label"] = unescape(named[1]) if named else block.key
    return made


def _frame(block: Chart) -> ui.element:
    """Return the place of a chart, as high as it will be, so that nothing moves when it comes."""
    figure = ui.element("figure").classes("card chart")
    figure.props["aria-label"] = block.label
    with figure:
        ui.html(el("span", block.label), sanitize=False, tag="figcaption")
    return figure.style(f"min-height: {block.height_px + FRAME_PX}px")


def _chart(block: Chart, option: dict[str, Any], worn: dict[str, Any]) -> ui.echart:
    chart = ui.echart(option, theme=worn)
    return chart.style(f"height: {block.height_px}px").props(f"data-chart={block.key}")


def _part(html: Safe) -> None:
    ui.html(html, sanitize=False).classes("part")
