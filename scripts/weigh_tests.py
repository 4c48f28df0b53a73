"""Write tests/heavy.txt: which tests `make test` leaves to `make test-all`.

``python -m scripts.weigh_tests JUNIT`` reads how long a run of all tests took (``pytest --junitxml
JUNIT``, alone on its machine) and lists the functions whose cases take longest together, until
what is left fits into the time.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from agent_gym.core.files import write_text

LIST = Path(__file__).resolve().parent.parent / "tests" / "heavy.txt"
LEFT_S = 840.0
"""Seconds that all others may take together: seven minutes of two processes, and their start."""
LEAST_S = 1.0
"""A function that takes less is never heavy."""


def weights(junit: Path) -> dict[str, float]:
    """Return the seconds of every test function, over all its cases."""
    found: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        function = str(case.get("name")).partition("[")[0]
        found[f"{case.get('classname')}::{function}"] += float(case.get("time", 0.0))
    return found


def heavy(found: Mapping[str, float]) -> list[str]:
    """Return the functions that are left out, so that the rest takes at most LEFT_S."""
    left, listed = sum(found.values()), []
    for name, seconds in sorted(found.items(), key=lambda each: -each[1]):
        if left <= LEFT_S or seconds < LEAST_S:
            break
        left -= seconds
        listed.append(name)
    return sorted(listed)


def main() -> None:
    """Write the list and say what is left."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        sys.exit("usage: python -m scripts.weigh_tests JUNIT, a file of pytest --junitxml")
    found = weights(Path(sys.argv[1]))
    listed = heavy(found)
    write_text(LIST, "".join(f"{name}\n" for name in listed))
    left = sum(seconds for name, seconds in found.items() if name not in set(listed))
    sys.stdout.write(
        f"{len(listed)} of {len(found)} functions are heavy; the others take {left:.0f} s\n"
    )


if __name__ == "__main__":
    main()
