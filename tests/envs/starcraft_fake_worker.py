"""A worker that speaks the protocol with recorded answers, and breaks it in the way it is told."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

HOME = Path(os.environ.get("SC2PATH", "."))
WAY = (HOME / "way").read_text() if (HOME / "way").exists() else ""


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def opened(recorded):
    sizes = recorded["sizes"]
    names = ("n_agents", "n_enemies", "n_actions", "obs_shape", "state_shape", "episode_limit")
    words = ("agents", "enemies", "actions", "observation", "state", "limit")
    told = dict(zip(words, (sizes[name] for name in names), strict=True))
    if WAY.startswith("wrong-size:"):
        told[WAY.partition(":")[2]] += 1
    protocol = 2 if WAY == "wrong-protocol" else 1
    return {"protocol": protocol, "smac": "1.0.0", "pysc2": "4.0.0", **told}


def look(frame):
    units = [
        {
            "kind": unit["unit_type"],
            **unit["pos"],
            "hp": unit["health"],
            "max_hp": unit["health_max"],
            "shield": unit["shield"],
            "max_shield": unit["shield_max"],
            "target": -1,
        }
        for unit in frame["units"]
    ]
    shown = {"seen": frame["seen"], "state": frame["state"], "units": units}
    shown["legal"] = [[bool(may) for may in row] for row in frame["legal"]]
    if WAY in ("dead-acts", "dead-sees"):
        units[0]["hp"] = 0.0
    if WAY == "dead-sees":
        shown["legal"][0] = [True] + [False] * 8
    if WAY == "short-row":
        shown["seen"][1].pop()
    if WAY == "few-units":
        units.pop()
    return shown


def stepped(episode, t):
    if WAY == "die":
        sys.stderr.write("the floor gave way\n")
        sys.exit(3)
    if WAY == "killed":
        os.kill(os.getpid(), 9)
    if WAY == "hang":
        signal.pause()
    if WAY == "hang-with-child":
        child = subprocess.Popen(["sleep", "600"])
        (HOME / "clients").write_text(f"{child.pid}\n")
        signal.pause()
    ended = t == len(episode["frames"]) - 1
    return {
        "look": look(episode["frames"][t]),
        "reward": episode["rewards"][t - 1],
        "ended": ended,
        "won": ended and episode["won"],
        "limit": ended and episode["limit"],
    }


def broken(line, number):
    """Return how a good answer goes wrong on its way."""
    return {
        "garbage": "\x00 not json",
        "list": "[1]",
        "two-lines": line + "\n" + line,
        "other-id": line.replace(f'"id": {number}', '"id": 99'),
        "nan": re.sub(r'"reward": [^,]+', '"reward": NaN', line),
        "unknown-field": line.replace('"reward": ', '"more": 1, "reward": '),
        "text-reward": re.sub(r'"reward": [^,]+', '"reward": "1"', line),
        "flood": "x" * (1 << 21),
    }.get(WAY, line)


def main():
    t, episode = 0, None
    for line in sys.stdin:
        asked = json.loads(line)
        ask, number = asked["ask"], asked["id"]
        if ask == "open":
            recorded = json.loads((HOME / f"{asked['map']}.json").read_text())
            episode, answer = recorded["episodes"][0], opened(recorded)
        elif ask == "reset":
            t, answer = 0, {"game_version": "4.10.0", "look": look(episode["frames"][0])}
        elif ask == "step":
            t += 1
            answer = stepped(episode, t)
        elif ask == "save":
            answer = {"path": "/elsewhere/x.SC2Replay"}
        else:
            answer = {}
        good = json.dumps({"id": number, "ok": answer})
        say(broken(good, number) if ask == "step" else good)


if __name__ == "__main__":
    main()
