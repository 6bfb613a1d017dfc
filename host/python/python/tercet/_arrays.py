"""What is taken for an array."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def floats(x: ArrayLike, name: str = "x") -> NDArray[np.float32]:
    """Returns a contiguous float32 array of numbers."""
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {array.dtype}, not numbers")
    return np.ascontiguousarray(array, dtype=np.float32)
