"""What is taken for an array."""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# DLPack's numbers of memory that the processor reads: its own, and what CUDA and ROCm hold for it.
_PROCESSOR = frozenset([1, 3, 11])


class Taken(NamedTuple):
    """An array, or the bits of bfloat16 numbers as uint16, for which NumPy has no type of its own."""

    array: NDArray[Any]
    is_bfloat16: bool = False


def taken(x: Any, name: str = "x") -> Taken:
    """Takes an array, or what has NumPy's protocols, DLPack or the buffer protocol, without a copy if it has memory.

    Tensors of PyTorch are taken as they are, without their gradients. Nothing is written to.
    """
    if not isinstance(x, np.ndarray):
        if isinstance(x, (str, os.PathLike)):
            raise ValueError(f"{name} is a {type(x).__name__}, not numbers; tercet.read returns the array of a file")
        try:
            is_elsewhere = _is_elsewhere(x)
            imported = None if is_elsewhere else _imported(x)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            # Such as a sparse tensor; PyTorch's sentence says what helps.
            raise ValueError(f"{name} is not taken as an array: {error}") from error
        if imported is None:
            raise ValueError(
                f"{name} is in the memory of a device; copy it to the processor's first, as {name}.cpu() does"
            )
        x, is_bfloat16 = imported
        if is_bfloat16:
            return imported
    # Its kind first: to make the name takes longer than all of the rest.
    if x.dtype.kind == "V" and x.dtype.name == "bfloat16":
        return Taken(x.view(np.uint16), True)
    return Taken(x)


def numbers(x: Any, name: str = "x") -> NDArray[Any]:
    """Returns a contiguous array: float16, uint16 for the bits of bfloat16, or float32 for all other numbers."""
    array, is_bfloat16 = taken(x, name)
    if is_bfloat16 or array.dtype == np.float16:
        return np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {array.dtype}, not numbers")
    return np.ascontiguousarray(array, dtype=np.float32).reshape(array.shape)


def floats(x: Any, name: str = "x") -> NDArray[np.float32]:
    """Returns a contiguous array of float32."""
    array = numbers(x, name)
    return widened(array) if array.dtype == np.uint16 else array.astype(np.float32, copy=False)


def widened(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Returns the values of bfloat16 numbers, which are the upper halves of float32."""
    # A shift of an array without dimensions is none.
    return np.asarray(np.left_shift(bits, 16, dtype=np.uint32)).view(np.float32)


def _is_elsewhere(x: Any) -> bool:
    """Returns whether an array is in the memory of a device."""
    device = getattr(x, "__dlpack_device__", None)
    if device is None:
        return hasattr(x, "__cuda_array_interface__")
    return int(device()[0]) not in _PROCESSOR


def _imported(x: Any) -> Taken:
    if hasattr(x, "requires_grad"):
        x = x.detach()
        # A view whose values are negated as they are read, which only PyTorch can do.
        if hasattr(x, "resolve_neg"):
            x = x.resolve_neg()
        if str(x.dtype) == "torch.bfloat16":
            return Taken(np.asarray(x.view(sys.modules["torch"].int16)).view(np.uint16), True)
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
        return Taken(np.from_dlpack(x))
    return Taken(np.asarray(x))
