"""The code of a baseline, kept with it, and the process that plays with it.

Both sides of a confirmation really run: today's code here, the baseline's code from the copy that
was frozen with it, in a process that finds the copy before anything else. Old code is asked by the
few plain words of frozen_side.py, which have a version. What Python and numba write beside sources
goes to a working copy in the cache, since the baseline's folder never changes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from agent_gym.core.errors import DataError, StoreError
from agent_gym.core.files import to_json
from agent_gym.pipeline.nightly.crew import FROZEN_WORDS, Heard, Row, Task
from agent_gym.pipeline.nightly.folders import file_hashes, unfinished_folder
from agent_gym.pipeline.nightly.imported import OWN
from agent_gym.pipeline.nightly.jobs import failed_row
from agent_gym.pipeline.nightly.libraries import OURS, distributions_of
from agent_gym.pipeline.nightly.sources import files_of, source_files
from agent_gym.rollouts.hands import job_environment
from agent_gym.rollouts.play import Status

ENDING_S = 10.0
_NUMBA = (".nbi", ".nbc")
_ANNOUNCED = {
    "METADATA": ("METADATA", "PKG-INFO", ""),
    "entry_points.txt": ("entry_points.txt",),
}
"""What is kept of a distribution, and the names it has when installed or beside its sources."""


BOT = "bot-code"
"""Where the folder of a bot is kept beside the packages; no package can have this name."""


def freeze(packages: Sequence[str], target: Path, bot: Path | None = None) -> None:
    """Copy the sources of packages, and what their distributions announce, into a new folder.

    Args:
        packages: Top-level packages.
        target: The folder.
        bot: The folder of the bot under test, which is copied, too.
    """
    for package in packages:
        for name, path in source_files(package):
            _copy(path, target / name)
    if bot is not None:
        for _, path in files_of(bot):
            _copy(path, target / BOT / path.relative_to(bot))
    for name in sorted({each for package in packages for each in _distributions(package)}):
        found = distribution(name)
        folder = target / f"{name.replace('-', '_')}-{found.version}.dist-info"
        folder.mkdir(exist_ok=True)
        for file, names in _ANNOUNCED.items():
            texts = [text for name in names if (text := found.read_text(name)) is not None]
            if texts:
                (folder / file).write_text(texts[0], encoding="utf-8")


def _copy(path: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)
    shutil.copymode(path, copy)  # a bot may be a program by itself


def _distributions(package: str) -> tuple[str, ...]:
    named = distributions_of(package)
    if package == OWN and not named:  # an editable install may name no packages
        named = (OURS,)
    found = []
    for name in named:
        try:
            found.append(str(distribution(name).metadata["Name"]))
        except PackageNotFoundError:
            continue
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FrozenCrew:
    """Plays with the code of a baseline, in a process of its own and its workers.

    Attributes:
        code: The folder of the frozen sources.
        cache: Where a working copy may be kept.
        scenarios: The baseline's own scenarios by name, as it wrote them.
        subject: Who was under test then.
        imports: Modules that register things without an entry point.
        workers: Processes.
        timeout_s: Wall time of a job of a few seeds.
    """

    code: Path
    cache: Path
    scenarios: Mapping[str, Mapping[str, Any]]
    subject: Mapping[str, Any]
    imports: tuple[str, ...] = ()
    workers: int = 1
    timeout_s: float = 300.0
    paths: tuple[str, ...] = field(default_factory=lambda: tuple(path for path in sys.path if path))

    def play(self, tasks: Sequence[Task], heard: Heard) -> dict[str, list[Row]]:
        """Play with the old code; rows come in the order of the seeds that were asked for."""
        code = working_copy(self.code, self.cache)
        request = {
            "schema": FROZEN_WORDS,
            "code": str(code),
            "imports": list(self.imports),
            "subject": frozen_subject(self.subject, code),
            "workers": self.workers,
            "timeout_s": self.timeout_s,
            "tasks": [
                {"scenario": self.scenarios[task.scenario.name], "seeds": list(task.seeds)}
                for task in tasks
            ],
        }
        found: dict[tuple[str, int], Row] = {}
        ended = self._ask(request, found, heard)
        status: Status = "interrupted" if ended == "partial" else "crashed"
        return {
            task.scenario.name: [
                found.get((task.scenario.name, seed)) or failed_row(seed, status, ended)
                for seed in task.seeds
            ]
            for task in tasks
        }

    def _ask(
        self, request: dict[str, Any], found: dict[tuple[str, int], Row], heard: Heard
    ) -> str | None:
        """Talk to the process; return None if it did all, else ``partial`` or how it ended."""
        ours, theirs = os.pipe()
        words = [sys.executable, "-P", "-m", "agent_gym.pipeline.nightly.frozen_side", str(theirs)]
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=self._environment(Path(request["code"])),
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except OSError as error:
            os.close(ours)
            raise StoreError(
                "the code of the baseline cannot be run", where=str(self.code), found=error.strerror
            ) from error
        finally:
            os.close(theirs)
        ended: str | None = "no answer"
        try:
            with os.fdopen(ours, "rb") as answers:
                _send(process, request)
                for message in _messages(answers):
                    if "end" in message:
                        ended = None if message["end"] == "complete" else "partial"
                        break
                    if "refused" in message:
                        raise _refused(self.code, message["refused"])
                    for row in message["episodes"]:
                        found[message["scenario"], row["seed"]] = row
                    heard(message["scenario"], message["episodes"])
        except KeyboardInterrupt:
            ended = "partial"
        finally:
            code = _end(process)
        return f"the baseline's process ended with {code}" if ended == "no answer" else ended

    def _environment(self, code: Path) -> dict[str, str]:
        return job_environment() | {"PYTHONPATH": os.pathsep.join([str(code), *self.paths])}


def frozen_subject(subject: Mapping[str, Any], code: Path) -> dict[str, Any]:
    """Return who was under test then, with the bot as it was then."""
    bot = subject.get("bot")
    kept = {} if bot is None else {"bot": {**bot, "folder": str(code / BOT)}}
    return {**subject, **kept}


def working_copy(code: Path, cache: Path) -> Path:
    """Return a copy of frozen sources that Python and numba may write their caches into.

    It is compared with the original each time. Numba's compiled kernels of today are put beside it:
    numba itself decides whether they fit (by the sources and the processor) and compiles anew if
    not, so this saves a minute and decides nothing.
    """
    copy = cache / "code"
    if not copy.is_dir() or _sources(copy) != _sources(code):
        with unfinished_folder(copy) as folder:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(code, folder, dirs_exist_ok=True)
            _warm(folder)
            folder.rename(copy)
    return copy.resolve()


def _sources(folder: Path) -> dict[str, str]:
    found = file_hashes(folder)
    return {name: digest for name, digest in found.items() if "__pycache__" not in name}


def _warm(copy: Path) -> None:
    for name, path in source_files("agent_gym"):
        kept = path.parent / "__pycache__"
        if path.name == "__init__.py" and any(kept.glob("*.nbi")):
            target = (copy / name).parent / "__pycache__"
            target.mkdir(parents=True, exist_ok=True)
            for file in kept.iterdir():
                if file.suffix in _NUMBA:
                    shutil.copyfile(file, target / file.name)


def _send(process: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    try:
        if process.stdin is not None:
            process.stdin.write(json.dumps(request, allow_nan=False).encode() + b"\n")
            process.stdin.flush()
    except BrokenPipeError:  # it has ended: what it said about that comes by the other pipe
        return


def _messages(answers: Any) -> Iterator[dict[str, Any]]:
    for line in answers:
        if line.endswith(b"\n"):
            yield json.loads(line)


def _end(process: subprocess.Popen[bytes]) -> str:
    """Let the process end and see that it does; its own workers end with it."""
    if process.stdin is not None:
        process.stdin.close()  # it stops by itself when nobody listens any more
    try:
        process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    code = process.returncode
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _refused(code: Path, said: Mapping[str, Any]) -> DataError:
    return DataError(
        "the code of the baseline does not run here",
        where=str(code),
        found=to_json(dict(said)) if not said.get("what") else str(said["what"]),
        remedy="Look at the baseline's code folder, or approve a new baseline on this machine",
    )
