"""Files of tensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _tercet
from ._progress import amount


def tensors(path: str | PathLike[str]) -> list[tuple[str, str, list[int]]]:
    """Lists the tensors of a safetensors, npy or GGUF file: name, type and shape of each.

    Raises
    ------
    OSError
        For a file that cannot be opened; ``ValueError`` for a damaged one.
    """
    return _tercet.tensors(path)


def read(path: str | PathLike[str], tensor: str | None = None) -> NDArray[np.float32]:
    """Reads a tensor of a safetensors, npy, CSV or GGUF file: float32, restored if it is quantized.

    ``tensor`` may be left out if the file has one tensor, or one with two dimensions.
    """
    return _tercet.read(path, tensor)


def quantize_file(
    input: str | PathLike[str],
    output: str | PathLike[str],
    to: str,
    *,
    bits: float | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    force: bool = False,
    on_progress: Callable[[int, int], object] | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Quantizes a model's file: from safetensors, npy or GGUF to a file of the format that the output's name says.

    Parameters
    ----------
    input, output : str or path
        The output appears whole or not at all.
    to : str
        A format, such as ``tq2_0``, ``tq1_0``, ``q8_0``, ``int8``, ``ternary``, ``palette:4`` or ``auto``.
    bits : float, optional
        Bits per weight for ``auto``.
    include, exclude : list of str
        Globs of the tensors to quantize, or not to.
    force : bool
        Replaces an existing output.
    on_progress : callable, optional
        Gets the bytes of the input that were read, and how many will be. An exception that it raises ends the work
        without an output, as Ctrl-C does.
    progress : bool
        Draws a bar of bytes with tqdm.

    Returns
    -------
    dict
        The report, as ``tercet quantize --json`` prints it.
    """
    report = amount(
        on_progress,
        progress,
        lambda told: _tercet.quantize_file(
            input,
            output,
            to=to,
            bits=bits,
            include=list(include),
            exclude=list(exclude),
            force=force,
            on_progress=told,
        ),
    )
    found: dict[str, Any] = json.loads(report)
    return found
