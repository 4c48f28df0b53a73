"""Buttons that change who serves: deploy and roll back, each with a confirmation.

A button is there only if it would succeed as things stand; a line says why one is not. A dialog
names what it would do. What is confirmed is what was shown: if somebody else has changed who serves
meanwhile, it is refused, and the buttons are those of today.
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
        self._why_not = ui.html("", sanitize=False)
        self._dialogs: list[ui.dialog] = []
        self._moves = moves_of(stage.visit.service, name)
        self._draw()
        self._explain()
        ui.timer(RENEW_S, self.renew, immediate=False)

    async def renew(self) -> None:
        """Ask again what can be done; nobody who is just being asked is disturbed."""
        if any(dialog.value for dialog in self._dialogs):
            return
        try:
            found = await run.io_bound(moves_of, self._stage.visit.service, self._name)
        except AgentGymError:  # the page itself says what is wrong
            return
        if found is None:
            return
        before, self._moves = self._moves, found
        if (found, found.deploys) != (before, before.deploys):
            self._draw()
        self._explain()  # it may count seconds: buttons stay as they are for that

    def _explain(self) -> None:
        """Say why the model cannot be taken further, if it cannot."""
        moves, said = self._moves, ""
        if moves.stage is not None and moves.refused:
            stage = self._words(f"models.{moves.stage}")
            why = why_not(self._words, moves.refused)
            line = self._words("models.why_not", model=moves.version, stage=stage, why=why)
            said = el("p", line, class_="faint", id="why-not")
        self._why_not.set_content(said)

    def _draw(self) -> None:
        for dialog in self._dialogs:
            dialog.delete()
        self._dialogs = []
        self._holder.clear()
        with self._holder:
            if self._moves.deploys:
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


def why_not(words: Words, refused: tuple[str, ...]) -> str:
    """Return a refusal in a sentence or two, in the language of the page."""
    what, found, expected, remedy = map(words.said, refused)
    if expected:
        found = words("models.instead", found=found, expected=expected)
    return ". ".join(part for part in (what, found, remedy) if part)


def _told(words: Words, error: AgentGymError) -> str:
    parts = (error.what, error.found, error.remedy)
    return ". ".join(words.said(str(part)) for part in parts if part)
