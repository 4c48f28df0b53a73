"""What the driver tells the observer and the clients: where everything is just now."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from agent_gym.core.files import write_json


@dataclass
class Scene:
    """Where everything is.

    Attributes:
        home: The workspace.
        database: URL; None for SQLite in the workspace.
        token: For requests.
        life: Number of the service's process, from 1.
        service: Its process id; None while there is none.
        url: Its address; None until it answers.
        known: Processes that the driver looks after.
        driver: The driver's own process.
        points: What agents began with.
        phase: "run", "recovered" or "ended".
    """

    home: str
    database: str | None
    token: str
    driver: int
    life: int = 0
    service: int | None = None
    url: str | None = None
    known: list[int] = field(default_factory=list)
    points: dict[str, int] = field(default_factory=dict)
    phase: str = "run"

    def write(self, path: Path) -> None:
        """Tell it, whole."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> "Scene":
        """Return what was told last."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))
