"""Arrays by name, as models and checkpoints keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


def under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, without it.

    Example:
        >>> import numpy as np
        >>> sorted(under("actor/", {"actor/bias": np.zeros(1), "critic/bias": np.zeros(1)}))
        ['bias']
    """
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
