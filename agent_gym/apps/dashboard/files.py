"""Files that pages show: only those that a store of the service names, never a path of a caller."""

from __future__ import annotations

from typing import Literal, cast

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse, HTMLResponse

from agent_gym.apps.api.service import Service
from agent_gym.apps.dashboard.figures.battles import battle_viewer
from agent_gym.apps.dashboard.figures.training import video_path
from agent_gym.core.errors import AgentGymError


def install_files(pages: FastAPI, app: FastAPI) -> None:
    """Add the routes of videos and replays.

    Args:
        pages: The application of the pages, behind the guard.
        app: The service, whose state has what is open.
    """

    def service() -> Service:
        return cast(Service, app.state.service)

    @pages.get("/files/video")
    def video(name: str) -> FileResponse:
        path = video_path(service(), name)
        if path is None:
            raise HTTPException(404, "there is no such video")
        return FileResponse(path, media_type="video/mp4")

    @pages.get("/files/battle")
    def battle(name: str, theme: Literal["auto", "light", "dark"] = "auto") -> HTMLResponse:
        try:
            page = battle_viewer(service(), name, theme)
        except AgentGymError as error:
            raise HTTPException(409, str(error)) from error
        if page is None:
            raise HTTPException(404, "there is no such replay")
        return HTMLResponse(page)
