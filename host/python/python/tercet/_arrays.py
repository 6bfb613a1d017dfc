"""What is taken for an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def numbers(x: Any, name: str = "x") -> NDArray[Any]:
    """Returns a contiguous array: float32, float16, or uint16 for the bits of bfloat16. Other numbers become float32."""
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {array.dtype}, not numbers")
    if array.dtype == np.float16:
        return np.ascontiguousarray(array)
    return np.ascontiguousarray(array, dtype=np.float32)


def floats(x: ArrayLike, name: str = "x") -> NDArray[np.float32]:
    """Returns a contiguous array of float32."""
    return np.ascontiguousarray(numbers(x, name), dtype=np.float32)
