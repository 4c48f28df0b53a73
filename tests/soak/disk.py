"""A small disk for the workspace, that can be filled without filling the machine's own.

Root mounts a tmpfs of a fixed size. Nobody else may: then the processes that write are told by the
system that no file may grow (RLIMIT_FSIZE), which they see as a failed write as well.
"""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SIZE_MB = 512
BLOCK = b"\0" * (1 << 16)


class Disk:
    """Where the workspace lies.

    Args:
        place: Folder to mount at.
        writers: Returns the processes that write, for those who may not mount.
    """

    def __init__(self, place: Path, writers: Callable[[], list[int]]) -> None:
        self.place, self._writers = place, writers
        place.mkdir(parents=True, exist_ok=True)
        self.mounted = os.geteuid() == 0 and _mount(place)

    @property
    def kind(self) -> str:
        return f"tmpfs of {SIZE_MB} MB" if self.mounted else "no file may grow (RLIMIT_FSIZE)"

    @contextmanager
    def full(self) -> Iterator[None]:
        """Let every write fail meanwhile."""
        with self._filled() if self.mounted else self._limited():
            yield

    def close(self) -> None:
        """Give the disk back."""
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.place)], check=False)
        shutil.rmtree(self.place, ignore_errors=True)

    @contextmanager
    def _filled(self) -> Iterator[None]:
        ballast = self.place / "ballast"
        handle = os.open(ballast, os.O_WRONLY | os.O_CREAT)
        try:
            with suppress(OSError):
                os.posix_fallocate(handle, 0, max(1, shutil.disk_usage(self.place).free))
            os.lseek(handle, 0, os.SEEK_END)
            with suppress(OSError):
                while True:
                    os.write(handle, BLOCK)
            yield
        finally:
            os.close(handle)
            ballast.unlink()

    @contextmanager
    def _limited(self) -> Iterator[None]:
        self._limit(0)
        try:
            yield
        finally:
            self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        for pid in self._writers():
            with suppress(OSError):
                hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def _mount(place: Path) -> bool:
    words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(place)]
    try:
        return subprocess.run(words, check=False, capture_output=True).returncode == 0
    except OSError:
        return False
