"""A stand-in for SMAC that plays a recorded battle back; tests copy it to where SMAC would be.

It behaves as SMAC does where that matters: it starts a client with the first episode only, refuses
what is not legal, ends quietly when the client is lost, saves nothing but says nothing, and names a
replay by the second. It runs in the worker's process, and needs nothing but the standard library.
"""

import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace


class StarCraft2Env:
    def __init__(self, **settings):
        sys.stdout.write("noise that must not reach the other side\n")
        self.home = Path(os.environ["SC2PATH"])
        (self.home / "settings.json").write_text(json.dumps(settings))
        (self.home / "paths.json").write_text(json.dumps([sys.path, os.environ["TMPDIR"]]))
        recorded = json.loads((self.home / f"{settings['map_name']}.json").read_text())
        self.episode = recorded["episodes"][settings["seed"] % len(recorded["episodes"])]
        self.sizes = recorded["sizes"]
        self.n_agents, self.n_enemies = self.sizes["n_agents"], self.sizes["n_enemies"]
        self.told = settings["continuing_episode"]
        self.replay_dir = self.replay_prefix = ""
        self.force_restarts = self.played = self.t = 0
        self.client = None
        self._controller = SimpleNamespace(ping=lambda: SimpleNamespace(game_version="4.10.0"))
        fault = self.home / "fault"
        self.fault, _, at = fault.read_text().partition(":") if fault.exists() else ("", "", "")
        self.fault_at = int(at or 0)

    def get_env_info(self):
        return self.sizes

    def reset(self):
        self.t = 0
        if self.played == 0:
            binary = next(self.home.glob("Versions/Base*/SC2_x64"))
            self.client = subprocess.Popen([str(binary)])
            with (self.home / "clients").open("a") as clients:
                clients.write(f"{self.client.pid}\n")
        return self.get_obs(), self.get_state()

    def step(self, actions):
        legal = self.get_avail_actions()
        for i, action in enumerate(actions):
            assert legal[i][action], f"agent {i} cannot do {action}"
        self.t += 1
        if self.fault and self.t == self.fault_at:
            if self.fault == "hang":
                (self.home / "hangs").touch()
                signal.pause()
            if self.fault == "raise":
                raise RuntimeError("the socket closed")
            if self.fault == "lost":
                self.force_restarts += 1
                return 0, True, {}
        ended = self.t == len(self.episode["frames"]) - 1
        self.played += ended
        info = {"battle_won": bool(ended and self.episode["won"])}
        if ended and self.episode["limit"] and self.told:
            info["episode_limit"] = True
        return self.episode["rewards"][self.t - 1], ended, info

    @property
    def frame(self):
        return self.episode["frames"][self.t]

    def get_obs(self):
        return self.frame["seen"]

    def get_state(self):
        return self.frame["state"]

    def get_avail_actions(self):
        return self.frame["legal"]

    @property
    def agents(self):
        return dict(enumerate(self._units()[: self.n_agents]))

    @property
    def enemies(self):
        return dict(enumerate(self._units()[self.n_agents :]))

    def _units(self):
        return [
            SimpleNamespace(**{**unit, "pos": SimpleNamespace(**unit["pos"])})
            for unit in self.frame["units"]
        ]

    def save_replay(self):
        folder = Path(os.path.join(self.home / "Replays", self.replay_dir))  # noqa: PTH118
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d-%H-%M-%S")  # noqa: TID251, UP017
        if self.fault != "no-replay":
            content = f"{self.played} episodes".encode() if self.fault != "empty-replay" else b""
            (folder / f"{self.replay_prefix}_{now}.SC2Replay").write_bytes(content)

    def close(self):
        if self.client is not None:
            self.client.terminate()
            self.client.wait()
