"""Fail when a file outgrows its room: aim for 200 lines, 400 is the limit, core 1,000 in all."""

import sys
from pathlib import Path

FILE_LIMIT = 400
CORE_LIMIT = 1_000


def main() -> int:
    """Check every Python file of the project and print the ones that are too long."""
    root = Path(__file__).resolve().parent.parent
    folders = ("agent_gym", "tests", "benchmarks", "scripts", "docs")
    sizes = {
        path.relative_to(root): len(path.read_text(encoding="utf-8").splitlines())
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
    }
    problems = [
        f"{path}: {n} lines (limit {FILE_LIMIT})" for path, n in sizes.items() if n > FILE_LIMIT
    ]
    core = sum(n for path, n in sizes.items() if path.parts[:2] == ("agent_gym", "core"))
    if core > CORE_LIMIT:
        problems.append(f"agent_gym/core: {core} lines in all (limit {CORE_LIMIT})")
    for problem in problems:
        sys.stdout.write(problem + "\n")
    sys.stdout.write(f"{len(sizes)} files, core {core} lines, {len(problems)} too long\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
