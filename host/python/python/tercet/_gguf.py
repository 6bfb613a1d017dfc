"""GGUF files from arrays and blocks, and back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _tercet
from ._arrays import taken, widened
from ._tercet import Blocks, Quantized

_TYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
}
_DTYPES = {short: long for long, short in _TYPES.items()}
_NUMBERS = frozenset(["bool", "uint8", "uint16", "uint32", "uint64", *_TYPES]) - {"float16"}


def write_gguf(
    path: str | os.PathLike[str],
    tensors: Mapping[str, ArrayLike | Blocks | Quantized],
    metadata: Mapping[str, Any] | None = None,
    *,
    force: bool = False,
) -> int:
    """Writes arrays and blocks to a GGUF file.

    Parameters
    ----------
    path : str or path
        A name that ends in ``.gguf``. The file appears whole or not at all.
    tensors : mapping of names to arrays, Blocks or Quantized
        Arrays of float64, float32, float16, bfloat16, int64, int32, int16 or int8 with at most four dimensions keep
        their type. Blocks keep their bytes. A :class:`Quantized` ``w`` becomes the int8 tensor ``w`` with ``w_scale``
        and ``w_zero_point``. A name has at most 64 bytes.
    metadata : mapping of names to values
        Texts, bools, numbers, lists of one of these, or arrays of one dimension. NumPy's numbers and arrays keep their
        type. Other floats become float32, and other integers the first of uint32 (in lists: none), int32, uint64 and
        int64 that holds them: the types that llama.cpp expects. ``general.architecture`` is ``tercet`` unless given.
    force : bool
        Replaces an existing file.

    Returns
    -------
    int
        The size of the file in bytes.

    Raises
    ------
    ValueError
        For what GGUF cannot hold, and an existing file; OSError if the file cannot be written.

    Examples
    --------
    >>> import os, tempfile, tercet
    >>> path = os.path.join(tempfile.mkdtemp(), "m.gguf")
    >>> size = write_gguf(path, {"w": tercet.quantize(np.ones((2, 256)), "tq2_0")}, {"demo.layers": 1})
    >>> tensors, metadata = read_gguf(path)
    >>> tensors["w"].shape, int(metadata["demo.layers"])
    ((2, 256), 1)
    """
    if not os.fsdecode(path).lower().endswith(".gguf"):
        raise ValueError(f"{os.fsdecode(path)}: this writes GGUF; end the name in .gguf")
    entries: dict[str, Any] = {
        "general.architecture": "tercet",
        "general.quantization_version": 2,
        **(metadata or {}),
    }
    parts: dict[str, tuple[tuple[int, ...], str, NDArray[np.uint8]]] = {}

    def add(name: str, tensor: ArrayLike | Blocks) -> None:
        if name in parts:
            raise ValueError(f"two tensors have the name {name}")
        parts[name] = _part(name, tensor)

    for name, tensor in tensors.items():
        if isinstance(tensor, Quantized):
            add(name, tensor.codes)
            # A scale per row has the shape of the rows.
            shape = tensor.shape[:-1] if len(tensor.scales) > 1 else (1,)
            add(name + "_scale", tensor.scales.reshape(shape))
            add(name + "_zero_point", tensor.zero_points.reshape(shape))
            entries[_format_key(name)] = tensor.format
        else:
            add(name, tensor)
    return _tercet.write_gguf(
        path,
        [(name, *part) for name, part in parts.items()],
        [(key, _value(key, value)) for key, value in entries.items()],
        force=force,
    )


def read_gguf(
    path: str | os.PathLike[str], names: Sequence[str] | None = None
) -> tuple[dict[str, NDArray[Any] | Blocks | Quantized], dict[str, Any]]:
    """Reads the tensors and the metadata of a GGUF file.

    Parameters
    ----------
    path : str or path
    names : list of str, optional
        The tensors to read; all by default.

    Returns
    -------
    (dict, dict)
        Tensors by name, in their order: arrays of plain numbers (bfloat16 becomes float32, which holds it exactly),
        :class:`Blocks`, and a :class:`Quantized` for each that :func:`write_gguf` wrote. Then metadata by name: texts,
        bools, NumPy's numbers, arrays, and lists of texts or of arrays. :func:`write_gguf` takes both.

    Raises
    ------
    ValueError
        For a damaged file, a name that is not there, and a tensor of a type that is not decoded; OSError for a file
        that cannot be opened.
    """
    wanted = [names] if isinstance(names, str) else names
    found, metadata = _tercet.read_gguf(path, None if wanted is None else list(wanted))
    tensors: dict[str, NDArray[Any] | Blocks | Quantized] = {
        name: it if isinstance(it, Blocks) else _array(*it) for name, it in found.items()
    }
    for name in list(tensors):
        format = metadata.get(_format_key(name))
        codes = tensors.get(name)
        if isinstance(format, str) and isinstance(codes, np.ndarray):
            scales, zeros = tensors.pop(name + "_scale", None), tensors.pop(name + "_zero_point", None)
            if codes.dtype != np.int8 or not isinstance(scales, np.ndarray) or not isinstance(zeros, np.ndarray):
                raise ValueError(f"{os.fsdecode(path)}: tensor `{name}`: its scales or zero points are missing")
            tensors[name] = Quantized(format, codes, scales, zeros)
            del metadata[_format_key(name)]
    if wanted is not None:
        tensors = {name: tensors[name] for name in wanted}
    return tensors, {key: _plain(value) for key, value in metadata.items()}


def _format_key(name: str) -> str:
    """Returns the key of the format of a tensor whose scales are beside it."""
    return f"tercet.{name}.format"


def _part(name: str, tensor: ArrayLike | Blocks) -> tuple[tuple[int, ...], str, NDArray[np.uint8]]:
    """Returns the shape, the type and the bytes of a tensor."""
    if isinstance(tensor, Blocks):
        return tensor.shape, tensor.format, tensor.data
    array, is_bfloat16 = taken(tensor, name)
    kind = "bf16" if is_bfloat16 else _TYPES.get(array.dtype.name)
    if kind is None:
        raise ValueError(f"tensor {name}: GGUF has no type {array.dtype}")
    # GGUF has no scalars.
    shape = array.shape or (1,)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return shape, kind, np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _array(kind: str, shape: Sequence[int], data: NDArray[np.uint8]) -> NDArray[Any]:
    if kind == "bf16":
        return widened(data.view("<u2")).reshape(shape)
    return data.view(_DTYPES[kind]).reshape(shape)


def _value(key: str, value: Any) -> str | list[str] | NDArray[Any]:
    """Returns a value of metadata with the type that the file will have."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return list(value)
    array = np.asarray(value)
    if isinstance(value, np.ndarray) and array.dtype.kind == "U" and array.ndim == 1:
        return [str(item) for item in array]
    if not isinstance(value, (np.generic, np.ndarray)):
        if array.dtype.kind == "f":
            array = array.astype(np.float32)
        elif array.dtype.kind in "iu":
            array = _narrowed(array)
    if array.dtype.name not in _NUMBERS or array.ndim > 1:
        raise ValueError(f"GGUF has no type for the metadata {key}: {value!r}")
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).reshape(array.shape)


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    kinds = [np.uint32] if array.ndim == 0 else []
    for kind in [*kinds, np.int32, np.uint64, np.int64]:
        narrow = array.astype(kind)
        if np.array_equal(narrow, array):
            return narrow
    return array


def _plain(value: Any) -> Any:
    """Returns a number of its NumPy type, a bool of Python's; anything else as it is."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return bool(value) if value.dtype == np.bool_ else value[()]
    return [_plain(item) for item in value] if isinstance(value, list) else value
