"""Buttons that change who serves: deploy and roll back, each with a confirmation.

A dialog names what it would do. What is confirmed is what was shown: if somebody else has changed
who serves meanwhile, it is refused, and the buttons are those of today.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import run, ui

from agent_gym.apps.dashboard.figures.models import Moves, deploy, moves_of, rollback
from agent_gym.apps.dashboard.markup import el
from agent_gym.apps.dashboard.view import Stage, Visit
from agent_gym.apps.dashboard.words import Words
from agent_gym.core.errors import AgentGymError

RENEW_S = 5.0


def tools(visit: Visit, stage: Stage) -> None:
    """Draw the buttons; those who may not press them are told so."""
    words = visit.words
    if visit.may("admin"):
        Buttons(stage, visit.query.get("model"))
        return
    said = words("models.only_admin", role=visit.role)
    with ui.element("div").classes("tools"):
        ui.html(el("p", said, class_="faint", id="only-admin"), sanitize=False)


class Buttons:
    """The buttons of a page, drawn anew when they would do something else."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage, self._name = stage, name
        self._words: Words = stage.visit.words
        self._holder = ui.element("div").classes("tools")
        self._dialogs: list[ui.dialog] = []
        self._moves = moves_of(stage.visit.service, name)
        self._draw()
        ui.timer(RENEW_S, self.renew, immediate=False)

    async def renew(self) -> None:
        """Ask again what can be done; nobody who is just being asked is disturbed."""
        if any(dialog.value for dialog in self._dialogs):
            return
        try:
            found = await run.io_bound(moves_of, self._stage.visit.service, self._name)
        except AgentGymError:  # the page itself says what is wrong
            return
        if found is not None and found != self._moves:
            self._moves = found
            self._draw()

    def _draw(self) -> None:
        for dialog in self._dialogs:
            dialog.delete()
        self._dialogs = []
        self._holder.clear()
        with self._holder:
            if self._moves.stage is not None:
                self._deploy(self._moves)
            if self._moves.back:
                self._rollback(self._moves)

    def _deploy(self, moves: Moves) -> None:
        words = self._words
        stage = words(f"models.{moves.stage}")
        dialog = self._dialog("deploy-title")
        with dialog, ui.card():
            title = words("models.deploy_sure", model=moves.version, stage=stage)
            about = words("models.deploy_about", model=moves.version, stage=stage)
            ui.html(el("h2", title, id="deploy-title"), sanitize=False)
            ui.html(el("p", about), sanitize=False)

            async def go() -> None:
                await self._act(dialog, deploy, moves)

            _answers(words, dialog, words("models.deploy"), go, "confirm-deploy")
        button = ui.button(words("models.deploy"), on_click=dialog.open, color=None)
        button.classes("button").props("flat no-caps id=deploy")

    def _rollback(self, moves: Moves) -> None:
        words = self._words
        dialog = self._dialog("rollback-title")
        with dialog, ui.card():
            ui.html(el("h2", words("models.rollback_sure"), id="rollback-title"), sanitize=False)
            ui.html(el("p", _about(words, moves)), sanitize=False)
            reason = (
                ui.input(words("models.reason"))
                .classes("w-full")
                .props("outlined autofocus maxlength=500 input-class=reason")
            )

            async def go() -> None:
                await self._act(dialog, rollback, moves, reason.value or "")

            _answers(words, dialog, words("models.rollback"), go, "confirm-rollback")
        label = words("models.return_here") if moves.model else words("models.rollback")
        button = ui.button(label, on_click=dialog.open, color=None)
        button.classes("button").props("flat no-caps id=rollback")

    def _dialog(self, title: str) -> ui.dialog:
        dialog = ui.dialog().props(f'aria-labelledby="{title}"')
        self._dialogs.append(dialog)
        return dialog

    async def _act(self, dialog: ui.dialog, what: Callable[..., None], *values: object) -> None:
        """Do what was confirmed, if the visitor may still do it; what goes wrong is shown."""
        words, stage = self._words, self._stage
        if not stage.allowed("admin"):
            ui.notify(words("models.not_allowed"), type="negative", timeout=0, close_button=True)
            return
        try:
            await run.io_bound(what, stage.visit, *values)
        except AgentGymError as error:
            ui.notify(
                _told(words, error), type="negative", timeout=0, close_button=True, multi_line=True
            )
            return
        dialog.close()
        ui.notify(words("models.done"), type="positive")
        await stage.refresh()
        await self.renew()


def _about(words: Words, moves: Moves) -> str:
    if moves.model:
        return words("models.rollback_to", model=moves.version)
    stage = words(f"models.{moves.under_way}")
    about = {"model": moves.version, "stage": stage, "champion": moves.champion}
    return words("models.rollback_about", **about)


def _answers(
    words: Words, dialog: ui.dialog, label: str, go: Callable[[], Awaitable[None]], identity: str
) -> None:
    with ui.element("div").classes("tools"):
        ui.button(words("cancel"), on_click=dialog.close, color=None).classes("button").props(
            "flat no-caps"
        )
        sure = ui.button(label, on_click=go, color="negative")
        sure.props(f"no-caps unelevated id={identity}")


def _told(words: Words, error: AgentGymError) -> str:
    parts = (error.what, error.found, error.remedy)
    return ". ".join(words.said(str(part)) for part in parts if part)
