"""One run on a cluster: who has which jobs, what came back, and what was lost on the way."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from agent_gym.core.clock import Clock
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import to_json
from agent_gym.rollouts.batch import Ledger, lost, process_lost
from agent_gym.rollouts.cluster.code import difference, modules_of
from agent_gym.rollouts.cluster.parcels import Parcels
from agent_gym.rollouts.cluster.post import Post, end
from agent_gym.rollouts.play import Failure, Status

LOOK_AROUND_S = 0.5
SLICE_S = 0.5  # a chunk is made to take about this long
MOST_IN_CHUNK = 256
SALVAGE_S = 2.0
START_ATTEMPTS = 3  # failed starts in a row, after which no station is asked for any more
ATTEMPTS = 3  # stations that may be lost with a job before it is given up

KILLER = "See whether the job ends its node, for example by its memory; run it alone with job.run()"
NO_START = "Install the same version of everything on all nodes, and see the logs of Ray there"
NO_ROOM = "See with `ray status` whether the cluster has a free processor"
SAME_CODE = "Install the same commit and the same versions on every node, and restart Ray there"
SHARE = "Mount the folder at the same place on all nodes, or give the jobs a folder that is shared"


@dataclass(frozen=True, slots=True)
class Order:
    """What a run is made of, beside its jobs.

    Attributes:
        code: What must be alike on all nodes.
        files: By the path as jobs name it, the hash of each file.
        tokens: Files that whoever shares the folders of results sees.
        timeout_s: Wall time a job may take.
        start_timeout_s: Wall time until a station is there, if no other is.
        most: Stations at a time.
        parcels: The jobs as they are sent.
    """

    parcels: Parcels
    code: dict[str, str]
    files: dict[str, dict[str, str]]
    tokens: list[str]
    timeout_s: float | None
    start_timeout_s: float
    most: int

    def text(self) -> str:
        """Return what a station is told."""
        modules = modules_of(self.code)
        return to_json({"files": self.files, "tokens": self.tokens, "modules": modules})


class Shift:
    """Gives jobs to stations until every job has its row.

    Args:
        ledger: Takes the rows.
        order: What the run is made of.
        posts: The stations that are there; lost ones are taken out, new ones are put in.
        new: Asks for another station.
        clock: Measures time limits.
    """

    def __init__(
        self, ledger: Ledger, order: Order, posts: list[Post], new: Callable[[], Post], clock: Clock
    ) -> None:
        self._ledger, self._order, self._posts, self._new = ledger, order, posts, new
        self._clock, self._text = clock, order.text()
        self._parcels = order.parcels
        self._waiting = deque(range(len(ledger)))
        self._suspects: deque[int] = deque()
        self.attempts: Counter[int] = Counter()
        self._refs: dict[str, Any] = {}
        self._job_s: float | None = None
        self._failed_starts, self._ever_started = 0, False
        for post in posts:
            post.knows.clear()
            self._begin(post)

    def work(self, is_over: Callable[[], bool]) -> None:
        """Go on until all rows are there, or somebody says that it is over."""
        while self._ledger.done < len(self._ledger) and not is_over():
            self._staff()
            for post in self._posts:
                if post.stage == "idle":
                    self._give(post)
            self._listen()

    def salvage(self) -> list[int]:
        """Take what is done of the chunks under way, and return the jobs that are at work."""
        asked = {}
        for post in self._posts:
            if post.stage == "busy":
                asked[post.actor.salvage.remote()] = post
        if not asked:
            return []
        told, silent = ray.wait(list(asked), num_returns=len(asked), timeout=SALVAGE_S)
        under_way = [index for ref in silent for index in asked[ref].chunk]
        for ref in told:
            try:
                answer = json.loads(ray.get(ref))
            except RayError:
                under_way += asked[ref].chunk
                continue
            under_way += [] if answer["at"] is None else [answer["at"]]
            for index, each in answer["answers"]:
                self._ledger.note(index, each)
        return under_way

    def _staff(self) -> None:
        """Ask for stations, as many as are of use."""
        wanted = min(self._order.most, len(self._ledger) - self._ledger.done)
        while len(self._posts) < wanted and self._failed_starts < START_ATTEMPTS:
            post = self._new()
            self._posts.append(post)
            self._begin(post)

    def _begin(self, post: Post) -> None:
        late_s = self._clock.monotonic_s() + self._order.start_timeout_s
        post.ask("starting", post.actor.begin.remote(self._text), late_s)

    def _give(self, post: Post) -> None:
        chunk = self._next_chunk()
        if not chunk:
            return
        items = [self._item(index) for index in chunk]
        keys = sorted({key for _, _, missing in items for key in missing.values()} - post.knows)
        post.knows.update(keys)
        contents = [self._common(key) for key in keys]
        limit = self._order.timeout_s
        post.chunk = chunk
        post.ask("busy", post.actor.do.remote(items, SLICE_S, limit, keys, *contents))

    def _next_chunk(self) -> list[int]:
        """Return jobs of about a slice of time; who was in a lost station goes alone."""
        if self._suspects:
            return [self._suspects.popleft()]
        n = 1 if self._job_s is None else int(SLICE_S / max(self._job_s, SLICE_S / MOST_IN_CHUNK))
        share = -(-len(self._waiting) // (2 * max(1, len(self._posts))))  # all end together
        return [self._waiting.popleft() for _ in range(min(max(1, n), share))]

    def _item(self, index: int) -> tuple[int, bytes, dict[str, str]]:
        if not self.attempts[index]:
            return index, self._parcels.message(index), self._parcels.missing(index)
        return index, Parcels([self._ledger.jobs[index].again()]).message(0), {}

    def _common(self, key: str) -> Any:
        """Return the common field in the object store; it is put there once."""
        if key not in self._refs:
            self._refs[key] = ray.put(self._parcels.shared[key].encode())
        return self._refs[key]

    def _file(self, key: str) -> Any:
        """Return a file in the object store; it is put there once."""
        if key not in self._refs:
            path = next(
                Path(name) / inside if inside else Path(name)
                for name, parts in self._order.files.items()
                for inside, each in parts.items()
                if each == key
            )
            content = path.read_bytes()
            if blake2b(content, digest_size=32).hexdigest() != key:
                raise DataError("a file was changed while jobs read it", where=str(path))
            self._refs[key] = ray.put(content)
        return self._refs[key]

    def _listen(self) -> None:
        """Wait until a station speaks or is lost, and note what that means for its jobs."""
        asked = {post.ref: post for post in self._posts if post.ref is not None}
        if not asked:
            self._give_up("crashed", process_lost("no station is left", NO_START))
            return
        spoken, _ = ray.wait(list(asked), num_returns=1, timeout=LOOK_AROUND_S)
        for ref in spoken:
            self._hear(asked[ref])
        now_s = self._clock.monotonic_s()
        if not any(post.is_ready for post in self._posts):
            for post in [p for p in self._posts if p.deadline_s is not None]:
                if now_s >= (post.deadline_s or now_s):
                    what = f"no station was there within {self._order.start_timeout_s} s"
                    self._failed_start(post, "timeout", process_lost(what, NO_ROOM))

    def _hear(self, post: Post) -> None:
        try:
            answer = json.loads(ray.get(post.ref))
        except RayError as error:
            self._lose(post, str(error).partition("\n")[0])
            return
        if post.stage == "starting":
            self._hear_start(post, answer)
        elif post.stage == "receiving":
            self._ever_started = True
            post.rest()
        else:
            self._hear_rows(post, answer)

    def _hear_start(self, post: Post, answer: dict[str, Any]) -> None:
        """Look whether a station is one of ours, and send it the files that it lacks."""
        other = difference(self._order.code, answer["code"])
        if other is not None:
            self._refuse(post, "a node has other code", answer["host"], (other, SAME_CODE))
        elif answer["unshared"]:
            folder = str(Path(answer["unshared"][0]).parent)
            self._refuse(post, "a node does not see a folder", answer["host"], (folder, SHARE))
        elif answer["missing"]:
            contents = [self._file(key) for key in answer["missing"]]
            ref = post.actor.receive.remote(answer["missing"], *contents)
            post.ask("receiving", ref, post.deadline_s)
        else:
            self._ever_started = True
            post.rest()

    def _hear_rows(self, post: Post, answer: dict[str, Any]) -> None:
        chunk = post.chunk
        post.rest()
        for index, each in answer["answers"]:
            self._ledger.note(index, each)
        if answer["answers"]:
            self._failed_starts = 0
            job_s = answer["seconds"] / len(answer["answers"])
            self._job_s = job_s if self._job_s is None else (self._job_s + job_s) / 2
        self._waiting.extendleft(index for index in reversed(chunk) if index not in self._ledger)
        if answer["refused"] is not None:
            told = answer["refused"]
            self._refuse(post, told["what"], told.get("where"), (told.get("found"), told["remedy"]))

    def _lose(self, post: Post, what: str) -> None:
        """Note that a station is gone: its jobs are done again, one by one, but not for ever."""
        if not post.is_ready:
            self._failed_start(post, "crashed", process_lost(what, NO_START))
            return
        self._posts.remove(post)
        end([post])
        for index in post.chunk:
            self.attempts[index] += 1
            if self.attempts[index] < ATTEMPTS:
                self._suspects.append(index)
            else:
                told = f"its station was lost {ATTEMPTS} times: {what}"
                self._ledger.note(index, lost("crashed", process_lost(told, KILLER)))

    def _refuse(
        self, post: Post, what: str, where: str | None, why: tuple[str | None, str | None]
    ) -> None:
        """Do without a station; if nothing has been done yet, the user is told at once."""
        found, remedy = why
        if not self._ledger.done:
            raise ConfigError(what, where=where, found=found, remedy=remedy)
        self._failed_start(post, "error", process_lost(f"{what}: {found}", remedy or NO_START))

    def _failed_start(self, post: Post, status: Status, failure: Failure) -> None:
        """Try again a few times; then every job that waits gets its row."""
        self._posts.remove(post)
        end([post])
        self._failed_starts += 1
        if self._posts or self._failed_starts < START_ATTEMPTS:
            return
        if not self._ever_started and not self._ledger.done:
            what = failure["what"]
            raise ConfigError("no station could start", found=what, remedy=failure["remedy"])
        self._give_up(status, failure)

    def _give_up(self, status: Status, failure: Failure) -> None:
        for index in (*self._suspects, *self._waiting):
            self._ledger.note(index, lost(status, failure))
        self._suspects.clear()
        self._waiting.clear()
