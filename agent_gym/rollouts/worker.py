"""The other side of the executor: a process that does one job after another.

Messages are JSON over a pipe, never pickles. The worker leads its own process group, so that it
can be killed with everything it has started, and it ends when its parent does.
"""

from __future__ import annotations

import json
import os
import signal
from importlib import import_module
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

from agent_gym.core.files import to_json
from agent_gym.rollouts.jobs import unpack
from agent_gym.rollouts.play import attempt


def serve(
    pipe: Connection[bytes, bytes], imports: tuple[str, ...], environment: dict[str, str]
) -> None:
    """Import what registers worlds and agents, say so, and do jobs until the pipe closes."""
    os.environ.clear()
    os.environ.update(environment)
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair: it kills us
    _say(pipe, to_json({"leads": True}).encode())
    inbox: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(pipe, inbox), daemon=True).start()
    status, failure = attempt(lambda: [import_module(name) for name in imports].clear())
    _say(pipe, to_json({"ready": status == "ok", "error": failure}).encode())
    while True:
        _say(pipe, _answer(json.loads(inbox.get())))


def _answer(packed: dict[str, Any]) -> bytes:
    answers: list[str] = []
    status, failure = attempt(lambda: answers.append(to_json({"row": unpack(packed).run()})))
    if not answers:
        answers.append(to_json({"status": status, "error": failure}))
    return answers[0].encode()


def _say(pipe: Connection[bytes, bytes], message: bytes) -> None:
    """Tell the parent; if it is gone there is nobody to complain to."""
    try:
        pipe.send_bytes(message)
    except OSError:
        _end()


def _listen(pipe: Connection[bytes, bytes], inbox: SimpleQueue[bytes]) -> None:
    """Take in jobs; when the parent is gone end at once, even in the middle of a job."""
    while True:
        try:
            inbox.put(pipe.recv_bytes())
        except (EOFError, OSError):
            _end()


def _end() -> None:
    os.killpg(0, signal.SIGKILL)  # ourselves with all that we have started
