"""Write ``requirements.lock``: the exact files of ``constraints.txt`` by their SHA-256.

    python -m scripts.make_lock                     ask pip, write requirements.lock
    python -m scripts.make_lock --report FILE       from a report that pip has written before
    python -m scripts.make_lock --sbom FILE         a CycloneDX list of what is in the lock

The lock names no place to install from: pip finds the files where it is set up to, and refuses any
that has another hash. It holds for one platform, that of the machine on which it was written.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agent_gym.core.files import to_json, write_text

ROOT = Path(__file__).parents[1]
CONSTRAINTS, LOCK = ROOT / "constraints.txt", ROOT / "requirements.lock"
BUILD = ("setuptools>=77",)  # what our own package is built with
HEADER = """\
# The exact files of constraints.txt by their SHA-256, written by `make lock` for CPython 3.11 on
# Linux, x86-64. `make install-locked` installs these and nothing else. What is marked "local file"
# was on the disk of the machine that wrote this lock: no index vouches for its hash, so compare it
# with where you have the file from.
"""
_LINE = re.compile(r"([A-Za-z0-9._-]+)==([^\s\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def normal(name: str) -> str:
    """Return the name of a package as all spell it.

    Example:
        >>> normal("Ruamel.YAML_x")
        'ruamel-yaml-x'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def asked_of_pip() -> dict[str, Any]:
    """Let pip say which files it would install; nothing is installed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        words = ["install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
        words += ["-r", str(CONSTRAINTS), *BUILD, "--report", str(report)]
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


def lock_of(report: dict[str, Any]) -> str:
    """Return the lock that belongs to a report of pip."""
    lines = []
    for item in report["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        info = item["download_info"]
        place = urlsplit(info["url"])
        digest = info["archive_info"].get("hashes", {}).get("sha256")
        if digest is None and place.scheme == "file":
            digest = sha256(Path(unquote(place.path)).read_bytes()).hexdigest()
        if digest is None:
            raise SystemExit(f"pip told no hash of {name}")
        note = "  # local file" if "+" in version else ""  # no index has such versions
        lines.append(f"{normal(name)}=={version} \\\n    --hash=sha256:{digest}{note}\n")
    return HEADER + "".join(sorted(lines))


def locked(text: str) -> dict[str, tuple[str, str]]:
    """Return version and hash of each package of a lock, by its normal name."""
    found: dict[str, tuple[str, str]] = {}
    named = None
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if match := _LINE.match(line):
            named = match
        elif (match := _HASH.search(line)) and named:
            found[normal(named[1])] = (named[2], match[1])
    return found


def sbom_of(text: str) -> dict[str, Any]:
    """Return a CycloneDX document of what is in a lock."""
    parts = [
        {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version.replace('+', '%2B')}",
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        for name, (version, digest) in sorted(locked(text).items())
    ]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": parts}


def main() -> None:
    """Write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--report", type=Path, help="report of pip to read")
    parser.add_argument("--sbom", type=Path, help="list of parts to write, from the present lock")
    said = parser.parse_args()
    if said.sbom is not None:
        write_text(said.sbom, to_json(sbom_of(LOCK.read_text(encoding="utf-8"))) + "\n")
        return
    report = json.loads(said.report.read_text()) if said.report else asked_of_pip()
    write_text(LOCK, lock_of(report))


if __name__ == "__main__":
    main()
