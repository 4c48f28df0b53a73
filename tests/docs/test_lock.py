"""The lock has every package of the constraints, by version and hash, and names no place."""

import re
from pathlib import Path

from scripts.make_lock import CONSTRAINTS, LOCK, lock_of, locked, normal, sbom_of

ROOT = Path(__file__).parents[2]


def constrained():
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {normal(name): version.strip() for name, version in pairs}


def test_the_lock_agrees_with_the_constraints():
    found = locked(LOCK.read_text(encoding="utf-8"))
    said = {name: version.partition("+")[0] for name, (version, _) in found.items()}
    built_with = {name: said.pop(name) for name in ("setuptools",)}
    assert said == constrained()
    assert int(built_with["setuptools"].partition(".")[0]) >= 77
    hashes = [digest for _, digest in found.values()]
    assert len(set(hashes)) == len(hashes)


def test_the_lock_names_no_place_to_install_from():
    text = LOCK.read_text(encoding="utf-8")
    assert not re.search(r"://|index-url|find-links|@ ", text)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pinned = re.compile(r"[a-z0-9-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}(  # local file)?")
    assert all(pinned.fullmatch(line) for line in lines)


def test_only_torch_is_a_local_file():
    text = LOCK.read_text(encoding="utf-8")
    assert re.findall(r"(\S+)==\S+ \\\n\s+--hash=\S+  # local file", text) == ["torch"]


def test_a_lock_is_made_of_what_pip_reports():
    item = {
        "metadata": {"name": "Some_Package", "version": "1.2"},
        "download_info": {"url": "x:/y", "archive_info": {"hashes": {"sha256": "a" * 64}}},
    }
    text = lock_of({"install": [item]})
    assert locked(text) == {"some-package": ("1.2", "a" * 64)}
    (part,) = sbom_of(text)["components"]
    assert part["purl"] == "pkg:pypi/some-package@1.2"


def test_locked_installs_ask_for_hashes():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ninstall-locked:")[2]
    assert "--require-hashes --no-deps -r requirements.lock" in recipe.partition("\n\n")[0]
