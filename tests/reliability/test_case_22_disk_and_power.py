"""Cases 22 to 24: a full disk, a kill and a power cut at every point leave the old or the new."""

from __future__ import annotations

import os
import shutil
import signal
import stat

import pytest

from agent_gym.agents.sb3.folder import atomic_folder, settled
from agent_gym.apps.api.tokens import TokenFile
from agent_gym.core.files import write_json, write_text
from agent_gym.evaluation.results import staged
from agent_gym.pipeline.nightly.folders import put_in_place, unfinished_folder
from tests.reliability.disk_points import FULL, REFUSED, WENT_ON, contents, stopped

MORE = 12 if FULL else 2


def a_file(root, words):
    write_text(root / "latest.json", words * 2_000)


def many_files(root, words):
    """The last night's files, one after the other: each is whole, not all of them together."""
    for name in range(MORE):
        write_json(root / f"metrics-{name}.prom", {"value": words * 500})


def a_finished_folder(root, words):
    """A folder of a run or a baseline: there or not there."""
    with unfinished_folder(root / f"run-{words}") as folder:
        for name in range(MORE):
            write_text(folder / f"{name}.json", words * 500)
        put_in_place(folder, root / f"run-{words}")


def a_replaced_folder(root, words):
    """A checkpoint or a model: the old one or the new one."""
    with atomic_folder(root / "model") as folder:
        for name in range(MORE):
            (folder / f"{name}.npz").write_bytes(words.encode() * 500)


def staged_files(root, words):
    with staged(root / "backtest") as folder:
        for name in range(MORE):
            (folder / f"{name}.parquet").write_bytes(words.encode() * 500)
        write_json(folder / "results.json", words)


WRITERS = {
    write.__name__: write
    for write in (a_file, many_files, a_finished_folder, a_replaced_folder, staged_files)
}


def prepared(tmp_path, write):
    """Return a folder with the old state, and what old and new state are."""
    before, after = tmp_path / "before", tmp_path / "after"
    write(before, "old")
    shutil.copytree(before, after)
    write(after, "new")
    return before, contents(before), contents(after)


def at_every_point(tmp_path, write, *, kill):
    """Yield how the work ended and what was left, for every point there is."""
    before, old, new = prepared(tmp_path, write)
    assert old != new
    point, ended = 0, None
    while ended != WENT_ON:
        point += 1
        root = tmp_path / f"point-{point}"
        shutil.copytree(before, root)
        ended = stopped(lambda root=root: write(root, "new"), root, point, kill=kill)
        yield ended, contents(root), old, new, root
        shutil.rmtree(root)
    assert point > 4


def check_whole(found, old, new):
    lost = set(old) - set(found)
    assert not lost, f"lost: {lost}"
    for name, content in found.items():
        assert content in (old.get(name), new.get(name)), f"{name} is neither old nor new"


@pytest.mark.case(23)
@pytest.mark.parametrize("name", ["a_file", "many_files", "a_finished_folder", "staged_files"])
def test_a_kill_at_every_point_leaves_old_or_new_files(tmp_path, name):
    write = WRITERS[name]
    for ended, found, old, new, root in at_every_point(tmp_path, write, kill=True):
        assert ended in (-signal.SIGKILL, WENT_ON)
        check_whole(found, old, new)
        write(root, "new")  # and the next run ends as if nothing had been
        assert contents(root) == new


@pytest.mark.case(23)
def test_a_killed_replacement_leaves_a_whole_folder_that_is_found(tmp_path):
    for _, _, old, new, root in at_every_point(tmp_path, a_replaced_folder, kill=True):
        found = {path.name: path.read_bytes() for path in settled(root / "model").iterdir()}
        assert found in [
            {name.partition("/")[2]: one for name, one in s.items()} for s in (old, new)
        ]


@pytest.mark.case(22)
@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_is_full_at_any_write_leaves_the_old_files(tmp_path, name):
    write = WRITERS[name]
    for ended, found, old, new, root in at_every_point(tmp_path, write, kill=False):
        assert ended in (REFUSED, WENT_ON)
        check_whole(found, old, new)
        left = [path for path in root.rglob(".*") if not path.name.endswith(".before")]
        assert left == [], "what was begun is not cleared away"


class Disk:
    """Remembers what would be there after a power cut: what was synced, and nothing else."""

    def __init__(self, monkeypatch):
        self.kept, self.listed, self.moved, self.wrong = {}, set(), {}, []
        plain_sync, plain_rename, plain_replace = os.fsync, os.rename, os.replace

        def fsync(handle):
            plain_sync(handle)
            self.synced(handle)

        def moving(plain):
            def move(source, target, **named):
                self.check(str(source))
                plain(source, target, **named)
                folder = os.path.dirname(str(target))  # noqa: PTH120
                self.moved.setdefault(os.stat(folder).st_ino, []).append(str(target))  # noqa: PTH116

            return move

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "rename", moving(plain_rename))
        monkeypatch.setattr(os, "replace", moving(plain_replace))

    def synced(self, handle):
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            self.moved.pop(found.st_ino, None)
            self.listed.add(found.st_ino)
        else:
            place = os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115
            with open(place, "rb") as file:  # noqa: PTH123
                self.kept[found.st_ino] = file.read()

    def check(self, source):
        """What gets its name must be on the disk before: else the name may lead to nothing."""
        waiting = [source]
        while waiting:
            path = waiting.pop()
            found = os.stat(path)  # noqa: PTH116
            if stat.S_ISDIR(found.st_mode):
                if found.st_ino not in self.listed and path == source:
                    self.wrong.append(f"{path} was not synced before it got its name")
                waiting += [f"{path}/{name}" for name in os.listdir(path)]  # noqa: PTH208
                continue
            with open(path, "rb") as file:  # noqa: PTH123
                if self.kept.get(found.st_ino) != file.read():
                    self.wrong.append(f"{path} was not synced before it got its name")


@pytest.mark.case(24)
@pytest.mark.parametrize("name", WRITERS)
def test_after_a_power_cut_a_name_leads_to_whole_content(tmp_path, monkeypatch, name):
    root = tmp_path / "root"
    disk = Disk(monkeypatch)
    WRITERS[name](root, "old")
    WRITERS[name](root, "new")
    assert disk.wrong == []
    assert disk.moved == {}, "a power cut would take back what was said to be written"


@pytest.mark.case(24)
def test_a_revoked_token_stays_revoked_after_a_power_cut(tmp_path, monkeypatch):
    tokens = TokenFile(tmp_path / "tokens.json")
    token, _ = tokens.add("one", "read")
    disk = Disk(monkeypatch)
    tokens.revoke(token.id)
    assert (disk.wrong, disk.moved) == ([], {})
