from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "core_agent"


def test_the_original_example_ends_in_a_clear_insufficient():
    ran = subprocess.run(
        [sys.executable, "example.py"],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = " ".join(ran.stdout.split())
    assert "signals: 1" in told
    assert "'risk.exposure_limit': 1" in told
    assert "training: insufficient" in told
    assert "0 labelled signals, 200 are needed" in told
    assert "retraining: insufficient" in told
    assert "Traceback" not in ran.stderr
