"""Where commands write: a wrong place is a wrong command, always, and nothing is left behind."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_gym.apps.cli import backtest, data, demo, market
from agent_gym.apps.cli.main import main
from agent_gym.apps.cli.workspace import check_target, check_writable
from agent_gym.core.errors import ConfigError
from agent_gym.markets.readers import ReadRequest, read_bars
from tests.apps.cli_samples import bars_file, name_walk

# Loaded now, so that no compiled kernel has to be stored on the small disk.
COMMANDS = (backtest, data, demo, market)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    name_walk(monkeypatch)

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["agent-gym", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        seen = capsys.readouterr()
        return int(stop.value.code or 0), seen.out, seen.err

    return call


RUNS = ("--agent", "rules/flat", "--market", "test/walk")
SPAN = ("--start", "2024-01-01", "--end", "2024-01-02", "--base-url", "http://127.0.0.1:9")
FILES: dict[str, tuple[str, ...]] = {
    "import": ("data", "import", "{source}", "--out"),
    "fetch": ("data", "fetch", *SPAN, "--retries", "0", "--out"),
    "generate": ("market", "generate", "--bars", "50", "--out"),
    "report": ("backtest", *RUNS, "--report"),
    "truth": ("market", "generate", "--bars", "50", "--out", "{folder}/b.parquet", "--truth"),
}
FOLDERS: dict[str, tuple[str, ...]] = {
    "backtest": ("backtest", *RUNS, "--out"),
    "demo": ("demo", "--market", "test/walk", "--bars", "100", "--out"),
    "cache": ("data", "fetch", *SPAN, "--retries", "0", "--out", "{folder}/b.csv", "--cache"),
}
BAD_PLACES = {
    "below a file": "{source}/below/a.parquet",
    "where nothing can be made": "/proc/agent-gym/a.parquet",
    "below a link that leads nowhere": "{folder}/lost/a.parquet",
    "below a ring of links": "{folder}/ring/a.parquet",
    "a name that is too long": "{folder}/" + 250 * "x" + ".parquet",
    "a folder with a name that is too long": "{folder}/" + 300 * "x" + "/a.parquet",
    "below a device": "/dev/null/a.parquet",
}
NO_FILES = {
    "a folder": "{folder}/full.parquet",
    "this folder": ".",
    "a device": "/dev/null",
    "a pipe": "{folder}/pipe.parquet",
    "another ending": "{folder}/a.txt",
    "no ending": "{folder}/a",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bars_file(tmp_path)
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    (tmp_path / "full.parquet").mkdir()
    os.mkfifo(tmp_path / "pipe.parquet")
    return tmp_path


def filled(words: tuple[str, ...], folder: Path) -> list[str]:
    return [word.format(folder=folder, source=folder / "walk.parquet") for word in words]


def state(folder: Path) -> list[tuple[str, bytes | None]]:
    return [
        (str(path), path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
    ]


@pytest.mark.parametrize("command", [*FILES, *FOLDERS])
@pytest.mark.parametrize("place", BAD_PLACES)
def test_a_place_that_cannot_be_written_exits_with_2(
    run: Run, folder: Path, command: str, place: str
) -> None:
    before = state(folder)
    words = filled(((FILES | FOLDERS)[command]) + (BAD_PLACES[place],), folder)
    code, out, _ = run(*words, "--json")
    said = json.loads(out)
    assert (code, said["error"]) == (2, "ConfigError"), said
    assert all(said[field] for field in ("where", "found", "remedy"))
    assert state(folder) == before


@pytest.mark.parametrize("command", FILES)
@pytest.mark.parametrize("place", NO_FILES)
def test_what_is_not_a_file_to_write_exits_with_2(
    run: Run, folder: Path, command: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = state(folder)
    code, out, _ = run(*filled((*FILES[command], NO_FILES[place]), folder), "--json")
    said = json.loads(out)
    assert (code, said["error"]) == (2, "ConfigError"), said
    assert all(said[field] for field in ("where", "found", "expected", "remedy"))
    assert state(folder) == before
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("command", ["backtest", "demo"])
def test_a_file_in_place_of_a_folder_exits_with_2(run: Run, folder: Path, command: str) -> None:
    before = state(folder)
    code, _, err = run(*filled((*FOLDERS[command], "{source}"), folder))
    assert code == 2
    assert "is a file" in err
    assert state(folder) == before


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file may grow beyond 2 KB: writing fails as it does on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", ["parquet", "csv", "feather"])
@pytest.mark.parametrize("command", ["import", "generate", "truth", "backtest", "demo"])
def test_a_full_disk_is_an_error_of_the_run(
    run: Run, folder: Path, small_disk: None, command: str, suffix: str
) -> None:
    del small_disk
    before = state(folder)
    name = "t.parquet" if command == "truth" else f"new.{suffix}"
    words = filled((*(FILES | FOLDERS)[command], "{folder}/" + name), folder)
    code, out, _ = run(*words, "--json")
    said = json.loads(out)
    assert (code, said["error"]) == (4, "StoreError"), said
    assert "large" in said["found"]
    assert state(folder) == before


def test_a_missing_folder_is_made(run: Run, folder: Path) -> None:
    for name in ("import", "generate"):
        out = folder / name / "deep" / "a.csv"
        assert run(*filled((*FILES[name], str(out)), folder))[0] == 0
        assert out.is_file()


def test_a_folder_that_may_not_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    for check in (check_writable, check_target):
        with pytest.raises(ConfigError, match=r"Read-only file system.*--out"):
            check(tmp_path / "new" / "a.parquet")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "feather", "pq", "arrow", "CSV"])
@pytest.mark.parametrize("command", ["import", "generate"])
def test_the_ending_decides_the_format_and_it_reads_back(
    run: Run, folder: Path, command: str, suffix: str
) -> None:
    out = folder / f"out.{suffix}"
    code, text, err = run(*filled((*FILES[command], str(out)), folder), "--json")
    assert code == 0, err
    start = out.read_bytes()[:6]
    formats = {"parquet": b"PAR1", "csv": b"ts,ope", "feather": b"ARROW1"}
    said = json.loads(text)
    assert start.startswith(formats[said["format"]])
    assert said["format"] in {suffix.lower(), "parquet", "feather"}
    again = folder / "again.parquet"
    assert run("data", "import", out, "--out", again)[0] == 0
    want = read_bars(out)
    asked = ReadRequest(instrument=want.instrument)
    assert read_bars(again, request=asked).fingerprint == want.fingerprint
    source = folder / "same.parquet"
    run(*filled((*FILES[command], str(source)), folder))
    named = ReadRequest(instrument=read_bars(source).instrument)
    assert read_bars(out, request=named).fingerprint == read_bars(source).fingerprint
