"""Quantizers."""

from __future__ import annotations

from typing import Literal, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _tercet
from ._tercet import Blocks, Quantized


_Codes = Literal["int8", "int8_affine", "int4", "ternary", "bitnet"]
_BlockFormat = Literal["tq1_0", "tq2_0", "q2_0", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"]
_BLOCKS = frozenset(get_args(_BlockFormat))


@overload
def quantize(
    x: ArrayLike,
    format: _Codes = "int8",
    *,
    rule: str | None = None,
    axis: int | None = 0,
    measure: bool = True,
) -> Quantized: ...
@overload
def quantize(
    x: ArrayLike,
    format: _BlockFormat,
    *,
    rule: str | None = None,
    axis: int | None = 0,
    measure: bool = True,
) -> Blocks: ...
@overload
def quantize(
    x: ArrayLike,
    format: str,
    *,
    rule: str | None = None,
    axis: int | None = 0,
    measure: bool = True,
) -> Quantized | Blocks: ...
def quantize(
    x: ArrayLike,
    format: str = "int8",
    *,
    rule: str | None = None,
    axis: int | None = 0,
    measure: bool = True,
) -> Quantized | Blocks:
    """Quantizes an array.

    Parameters
    ----------
    x : array of shape (..., cols)
        Finite numbers. float32 and float16 keep their type; others become float32.
    format : str
        Codes with scales: ``int8``, ``int8_affine`` (with a zero point), ``int4``, ``ternary`` or ``bitnet``.

        Blocks of GGUF files, each with a scale of its own: ``tq1_0``, ``tq2_0``, ``q2_0``, ``q4_0``, ``q4_1``,
        ``q5_0``, ``q5_1`` or ``q8_0``. ``cols`` is a multiple of the block: 256 for ``tq1_0`` and ``tq2_0``, 64 for
        ``q2_0``, 32 for others.
    rule : str, optional
        How ternary codes are chosen: ``optimal`` (least squared error), ``absmax`` (codes ±1 from half of the largest
        magnitude on; ggml's), ``absmean`` (BitNet b1.58's) or ``twn`` (Ternary Weight Networks'). The default is
        ``optimal`` for ``ternary``, ``absmean`` for ``bitnet``, and ``absmax`` for ``tq1_0``, ``tq2_0`` and ``q2_0``,
        with the bytes of ggml. Other formats have no rule.
    axis : 0 or None
        0 gives each row its own scale. A row is the values along the last axis; for a scale per index of the first of
        more than two axes, reshape ``x`` to ``(len(x), -1)``. None gives all values one scale, which blocks do not
        allow.
    measure : bool
        Restores the values once and measures ``error``. It takes about as long as quantizing to int8; False skips it.

    Returns
    -------
    Quantized
        With ``codes``, ``scales``, ``zero_points``, ``error`` (the squared error as a part of the sum of squares),
        ``restore()``, ``compare(x)``, ``matvec(x)`` and ``save(path)``.
    Blocks
        For formats of blocks: the same, with ``data`` (the bytes, uint8) instead of ``zero_points``. Formats that add a
        minimum (``q4_1``, ``q5_1``) have no ``codes`` and ``scales``.

    Raises
    ------
    ValueError
        For an unknown format or rule, another axis, no values, a last axis that does not divide into blocks, or a value
        that is not finite: the sentence has its indices.

    Examples
    --------
    >>> quantized = quantize([0.5, -1.0, 2.0])
    >>> quantized.codes
    array([ 32, -64, 127], dtype=int8)
    >>> quantized.restore().round(3)
    array([ 0.504, -1.008,  2.   ], dtype=float32)
    >>> round(quantized.error, 6)
    1.5e-05
    >>> blocks = quantize([[1.0] * 256] * 2, "tq2_0", rule="optimal")
    >>> len(blocks.data), blocks.scales.tolist(), bool((blocks.restore() == 1).all())
    (132, [[1.0], [1.0]], True)
    """
    if axis is not None and axis != 0:
        raise ValueError(f"axis is {axis!r}; it takes 0 (a scale per row) or None (one). For columns, transpose x")
    if format.lower() in _BLOCKS:
        if axis is None:
            raise ValueError(f"{format} has a scale in each block; axis is 0")
        return _tercet.encode(x, format, rule, measure)
    return _tercet.quantize(x, format, rule, axis == 0, measure)


def dequantize(quantized: Quantized | Blocks) -> NDArray[np.float32]:
    """Returns the restored values of a :class:`Quantized` or of :class:`Blocks`: float32.

    >>> dequantize(quantize([1.0, -1.0])).tolist()
    [1.0, -1.0]
    """
    return quantized.restore()
