"""The generators that belong to nobody: Python's, NumPy's, and torch's if it is loaded."""

from __future__ import annotations

import random  # noqa: TID251 (the audit watches who draws from it)
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def global_generators(seed: int) -> Iterator[None]:
    """Set the global generators to a seed, and put them back as they were afterwards."""
    torch = sys.modules.get("torch")
    plain = random.getstate()
    legacy = np.random.get_state()  # noqa: NPY002 (see above)
    tensors = None if torch is None else torch.random.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002, TID251 (see above)
    if torch is not None:
        torch.random.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(legacy)  # noqa: NPY002 (see above)
        if torch is not None:
            torch.random.set_rng_state(tensors)
