"""The side of the game: a script that runs in another interpreter, one that has SMAC.

It is started by path and imports nothing of this package, and nothing newer than Python 3.8, since
that interpreter is an old one. Questions come by the line on stdin, answers go by the line to what
was stdout; ``messages`` describes them. Whatever else prints goes to stderr.
One worker has one client of the game. When the other side goes away it kills its own process group,
the game included, even while it waits for the game.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

PROTOCOL = 1
NO_TARGET = -1


class Refused(Exception):
    """A question that is not answered, and whose fault that is."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


class Game:
    """What can be asked; ``env`` is SMAC's."""

    def __init__(self) -> None:
        self.env: Any = None
        self.asked: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "probe": self.probe,
            "open": self.open,
            "reset": self.reset,
            "step": self.step,
            "save": self.save,
            "close": self.close,
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one question."""
        ask = _field(request, "ask", str)
        if ask not in self.asked:
            raise Refused("request", f"nothing is named {ask!r}")
        if self.env is None and ask in ("reset", "step", "save"):
            raise Refused("request", f"{ask} before open")
        return self.asked[ask](request)

    def probe(self, request: dict[str, Any]) -> dict[str, Any]:
        """Import SMAC and say which one it is."""
        _starcraft_env()
        return {"protocol": PROTOCOL, "python": platform.python_version(), **_versions()}

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make the environment; the game itself starts with the first episode."""
        asked = _field(request, "protocol", int)
        if asked != PROTOCOL:
            raise Refused("request", f"this worker speaks protocol {PROTOCOL}, not {asked}")
        if self.env is not None:
            raise Refused("request", "one worker has one game")
        self.env = _starcraft_env()(
            map_name=_field(request, "map", str),
            seed=_field(request, "seed", int),
            difficulty=_field(request, "difficulty", str),
            game_version=request.get("game_version"),
            step_mul=_field(request, "step_mul", int),
            move_amount=_field(request, "move_amount", float),
            continuing_episode=True,  # only then is it told that time ran out
        )
        about = self.env.get_env_info()
        return {
            "protocol": PROTOCOL,
            **_versions(),
            "agents": int(about["n_agents"]),
            "enemies": int(self.env.n_enemies),
            "actions": int(about["n_actions"]),
            "observation": int(about["obs_shape"]),
            "state": int(about["state_shape"]),
            "limit": int(about["episode_limit"]),
        }

    def reset(self, request: dict[str, Any]) -> dict[str, Any]:
        """Begin an episode."""
        restarts = self.env.force_restarts
        self.env.reset()
        self._same_client(restarts)
        told = self.env._controller.ping()
        return {"game_version": str(told.game_version), "look": self._look()}

    def step(self, request: dict[str, Any]) -> dict[str, Any]:
        """Let every agent act."""
        actions = _field(request, "actions", list)
        if len(actions) != self.env.n_agents or not all(type(each) is int for each in actions):
            raise Refused("request", f"{actions} are not {self.env.n_agents} whole numbers")
        legal = self.env.get_avail_actions()
        for i, action in enumerate(actions):
            if not 0 <= action < len(legal[i]) or not legal[i][action]:
                raise Refused("request", f"agent {i} may not do {action}")
        restarts = self.env.force_restarts
        reward, ended, info = self.env.step(actions)
        self._same_client(restarts)
        if "battle_won" not in info:
            raise Refused("game", "the end of the battle was not told")
        return {
            "look": self._look(),
            "reward": float(reward),
            "ended": bool(ended),
            "won": bool(info["battle_won"]),
            "limit": bool(info.get("episode_limit", False)),
        }

    def save(self, request: dict[str, Any]) -> dict[str, Any]:
        """Save what this client has played; SMAC does not say where, so the folder is looked at."""
        folder, prefix = Path(_field(request, "folder", str)), _field(request, "prefix", str)
        if not folder.is_absolute() or not folder.is_dir():
            raise Refused("request", f"{folder} is not the full path of a folder")
        if not prefix or os.sep in prefix:
            raise Refused("request", f"{prefix!r} cannot begin the name of a file")
        before = set(folder.glob("*.SC2Replay"))
        self.env.replay_dir, self.env.replay_prefix = str(folder), prefix
        self.env.save_replay()
        new = sorted(set(folder.glob(prefix + "*.SC2Replay")) - before)
        if len(new) != 1:
            raise Refused("game", f"one new replay was expected in {folder}, found {len(new)}")
        return {"path": str(new[0])}

    def close(self, request: dict[str, Any]) -> dict[str, Any]:
        """Let the game go."""
        if self.env is not None:
            self.env.close()
        return {}

    def _same_client(self, restarts: int) -> None:
        """Refuse an episode in which SMAC quietly started the game anew: it ends as if lost."""
        if self.env.force_restarts != restarts:
            raise Refused("game", "the client of the game was lost and had to be started again")

    def _look(self) -> dict[str, Any]:
        env = self.env
        units = [env.agents[i] for i in range(env.n_agents)]
        units += [env.enemies[j] for j in range(env.n_enemies)]
        number = {unit.tag: k for k, unit in enumerate(units)}
        return {
            "seen": [[float(value) for value in seen] for seen in env.get_obs()],
            "state": [float(value) for value in env.get_state()],
            "legal": [[bool(value) for value in row] for row in env.get_avail_actions()],
            "units": [
                {
                    "kind": int(unit.unit_type),
                    "x": float(unit.pos.x),
                    "y": float(unit.pos.y),
                    "hp": float(unit.health),
                    "max_hp": float(unit.health_max),
                    "shield": float(unit.shield),
                    "max_shield": float(unit.shield_max),
                    "target": number.get(unit.engaged_target_tag, NO_TARGET),
                }
                for unit in units
            ],
        }


def _starcraft_env() -> Any:
    """Import SMAC only when it is needed, so that its failure can be told like any other."""
    try:
        return import_module("smac.env").StarCraft2Env
    except Exception as error:  # old libraries fail in many ways on import
        what = f"StarCraft2Env of smac.env cannot be imported ({_said(error)})"
        raise Refused("setup", what) from error


def _versions() -> dict[str, str]:
    found = {}
    for name in ("smac", "pysc2"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _field(request: dict[str, Any], name: str, kind: type) -> Any:
    value = request.get(name)
    if type(value) is not kind:
        raise Refused("request", f"{name} is {value!r}, not {kind.__name__}")
    return value


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def respond(game: Game, line: str) -> str:
    """Return the line that answers a line."""
    number = -1
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise Refused("request", "a question is an object")
        number = _field(request, "id", int)
        return json.dumps({"id": number, "ok": game.answer(request)}, allow_nan=False)
    except Refused as error:
        failed = {"kind": error.kind, "what": str(error)}
    except json.JSONDecodeError as error:
        failed = {"kind": "request", "what": _said(error)}
    except Exception as error:  # noqa: BLE001 - the border: whatever breaks over here is told
        failed = {"kind": "game", "what": _said(error)}
    return json.dumps({"id": number, "failed": failed})


def _listen(handle: int, lines: Queue[str]) -> None:
    """Pass questions on; when nobody can ask any more, end the game and everything else here."""
    with os.fdopen(handle, encoding="utf-8") as source:
        for line in source:
            lines.put(line)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """Answer until the end."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    asked, told = os.dup(0), os.dup(1)  # neither is inherited by the game
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    lines: Queue[str] = Queue()
    Thread(target=_listen, args=(asked, lines), daemon=True).start()
    game = Game()
    with os.fdopen(told, "w", encoding="utf-8") as out:
        while True:
            line = lines.get()
            out.write(respond(game, line) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
