"""Quantizers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _tercet
from ._arrays import floats
from ._tercet import Blocks, Quantized


def quantize(x: ArrayLike, format: str = "int8", *, rows: bool = True, measure: bool = True) -> Quantized:
    """Quantizes an array.

    Parameters
    ----------
    x : array of shape (..., cols)
        Finite numbers. float32 and float16 keep their type; others become float32.
    format : str
        ``int8``, ``int8_affine`` (with a zero point), ``int4``, ``ternary`` (least squared error) or ``bitnet`` (the
        scale is the mean magnitude).
    rows : bool
        True if each row, along the last axis, has its own scale; otherwise the array has one.
    measure : bool
        Restores the values once and measures ``error``. It takes as long as quantizing to int8; False skips it.

    Returns
    -------
    Quantized
        With ``codes``, ``scales``, ``zero_points``, ``error`` (the squared error as a part of the sum of squares),
        ``restore()``, ``compare(x)``, ``matvec(x)`` and ``save(path)``.

    Raises
    ------
    ValueError
        For an unknown format, no values, or a value that is not finite: the sentence has its indices.

    Examples
    --------
    >>> quantized = quantize([0.5, -1.0, 2.0])
    >>> quantized.codes
    array([ 32, -64, 127], dtype=int8)
    >>> quantized.restore().round(3)
    array([ 0.504, -1.008,  2.   ], dtype=float32)
    >>> round(quantized.error, 6)
    1.5e-05
    """
    array = np.asarray(x)
    if array.dtype == np.float16:
        array = np.ascontiguousarray(array)
    else:
        array = floats(array)
    return _tercet.quantize(array, format, rows, measure)


def encode(x: ArrayLike, format: str, *, optimal: bool = False, measure: bool = True) -> Blocks:
    """Encodes an array in the blocks of a GGUF format.

    Parameters
    ----------
    x : array of shape (..., cols)
        ``cols`` is a multiple of the format's block: 256 for ``tq1_0`` and ``tq2_0``, 64 for ``q2_0``, 32 for others.
    format : str
        ``tq1_0``, ``tq2_0``, ``q2_0``, ``q4_0``, ``q4_1``, ``q5_0``, ``q5_1`` or ``q8_0``.
    optimal : bool
        Chooses ternary codes with the least squared error; otherwise the bytes are ggml's.
    measure : bool
        As in :func:`quantize`.

    Returns
    -------
    Blocks
        With ``data`` (the bytes), ``error``, ``restore()``, ``compare(x)``, ``matvec(x)`` and ``save(path)``.

    Examples
    --------
    >>> blocks = encode([[1.0] * 256] * 2, "tq2_0")
    >>> len(blocks.data), bool((blocks.restore() == 1).all())
    (132, True)
    """
    return _tercet.encode(floats(x), format, optimal, measure)


def dequantize(quantized: Quantized | Blocks) -> NDArray[np.float32]:
    """Returns the restored values of a :class:`Quantized` or of :class:`Blocks`: float32.

    >>> dequantize(quantize([1.0, -1.0])).tolist()
    [1.0, -1.0]
    """
    return quantized.restore()
