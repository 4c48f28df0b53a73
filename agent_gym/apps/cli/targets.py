"""Where bars and truths may be written; asked of every place before anything is computed.

Apart from ``workspace``, which ``doctor`` needs even where a library is missing.
"""

from __future__ import annotations

import os
from pathlib import Path

from agent_gym.apps.cli.workspace import check_target
from agent_gym.core.errors import ConfigError
from agent_gym.markets.writers import format_of


def check_bars_target(path: Path) -> None:
    """Raise ConfigError unless bars can be written here, in the format of the file name."""
    check_target(path)
    format_of(path)


def check_truth_target(truth: Path, out: Path) -> None:
    """Raise ConfigError unless the truth can be written here, apart from the bars."""
    check_target(truth)
    if os.path.realpath(truth) == os.path.realpath(out):
        raise ConfigError(
            "the truth must not be written into the bars",
            where=str(out),
            expected="two files",
            remedy="Choose another name with --truth",
        )
    if format_of(truth) != "parquet":
        raise ConfigError(
            "the truth is written as Parquet only",
            where=str(truth),
            found=truth.suffix,
            expected=".parquet",
            remedy=f"Call it {truth.stem}.parquet",
        )
