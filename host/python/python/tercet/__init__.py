"""Low-bit numbers with the same bits on every machine.

>>> import numpy as np
>>> import tercet
>>> weights = np.array([[0.9, -0.1, 0.4, -1.1], [0.2, 0.0, -0.3, 0.25]], dtype=np.float32)
>>> quantized = tercet.quantize(weights, "ternary")
>>> quantized.codes
array([[ 1,  0,  0, -1],
       [ 1,  0, -1,  1]], dtype=int8)
>>> quantized.matvec(np.array([127, 1, 2, 27], dtype=np.float32))
array([100.,  38.], dtype=float32)

Functions take what NumPy can make an array of. Contiguous float32 arrays are read where they are; others are copied
first. Work runs without the interpreter's lock: an array must not be changed by another thread meanwhile.
"""

from __future__ import annotations

import json as _json
import queue as _queue
import threading as _threading
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as _np
from numpy.typing import ArrayLike, NDArray

from . import _tercet
from ._kmeans import KMeans
from ._tercet import Blocks, Quantized, __version__, info

__all__ = [
    "Blocks",
    "Index",
    "KMeans",
    "Model",
    "Quantized",
    "dequantize",
    "encode",
    "info",
    "quantize",
    "quantize_file",
    "read",
    "tensors",
    "train",
]


def _floats(x: ArrayLike, name: str = "x") -> NDArray[_np.float32]:
    """Returns a contiguous float32 array of numbers."""
    array = _np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {array.dtype}, not numbers")
    return _np.ascontiguousarray(array, dtype=_np.float32)


def quantize(x: ArrayLike, format: str = "int8", *, rows: bool = True) -> Quantized:
    """Quantizes an array.

    Parameters
    ----------
    x : array of shape (..., cols)
        Finite numbers. float32 and float16 keep their type; others become float32.
    format : str
        ``int8``, ``int8_affine`` (with a zero point), ``int4``, ``ternary`` (least squared error) or ``bitnet`` (the
        scale is the mean magnitude).
    rows : bool
        Whether each row, along the last axis, has its own scale; otherwise the array has one.

    Returns
    -------
    Quantized
        With ``codes``, ``scales``, ``zero_points``, ``restore()``, ``compare(x)`` and ``matvec(x)``.

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
    """
    array = _np.asarray(x)
    if array.dtype == _np.float16:
        array = _np.ascontiguousarray(array)
    else:
        array = _floats(array)
    return _tercet.quantize(array, format, rows)


def encode(x: ArrayLike, format: str, *, optimal: bool = False) -> Blocks:
    """Encodes an array in the blocks of a GGUF format.

    Parameters
    ----------
    x : array of shape (..., cols)
        ``cols`` is a multiple of the format's block: 256 for ``tq1_0`` and ``tq2_0``, 64 for ``q2_0``, 32 for others.
    format : str
        ``tq1_0``, ``tq2_0``, ``q2_0``, ``q4_0``, ``q4_1``, ``q5_0``, ``q5_1`` or ``q8_0``.
    optimal : bool
        Chooses ternary codes with the least squared error; otherwise the bytes are ggml's.

    Returns
    -------
    Blocks
        With ``data`` (the bytes), ``restore()``, ``compare(x)`` and ``matvec(x)``.

    Examples
    --------
    >>> blocks = encode([[1.0] * 256] * 2, "tq2_0")
    >>> len(blocks.data), bool((blocks.restore() == 1).all())
    (132, True)
    """
    return _tercet.encode(_floats(x), format, optimal)


def train(
    text: str | bytes,
    output: str | PathLike[str],
    *,
    preset: str = "nano",
    steps: int = 1000,
    vocabulary: int = 512,
    batch: int = 16,
    seed: int = 1,
    force: bool = False,
    on_step: Callable[[int, float], object] | None = None,
) -> _tercet.Trained:
    """Trains a ternary language model of a text in integers, and writes its GGUF file.

    Parameters
    ----------
    text : str or bytes
    output : str or path
        The model's file, which :class:`Model` and microcontrollers run. It is the same on every machine.
    preset : str
        ``nano`` (1.2 M weights), ``tiny``, ``small`` or ``base``.
    steps : int
    vocabulary : int
        Most tokens, made from the text; 0 takes bytes.
    batch : int
        Sequences of a step.
    seed : int
    force : bool
        Replaces an existing file.
    on_step : callable, optional
        Gets the number and the mean loss of each step, in nats per token; ``False`` ends the training. Ctrl-C ends it
        without a file.

    Returns
    -------
    dict
        ``bytes`` of the file, ``steps`` done, and the last ``loss``.
    """
    data = text.encode() if isinstance(text, str) else bytes(text)
    return _tercet.train(
        data,
        output,
        preset=preset,
        steps=steps,
        tokens=vocabulary,
        batch=batch,
        seed=seed,
        force=force,
        on_step=on_step,
    )


def dequantize(quantized: Quantized | Blocks) -> NDArray[_np.float32]:
    """Returns the restored values of a :class:`Quantized` or of :class:`Blocks`: float32.

    >>> dequantize(quantize([1.0, -1.0])).tolist()
    [1.0, -1.0]
    """
    return quantized.restore()


def tensors(path: str | PathLike[str]) -> list[tuple[str, str, list[int]]]:
    """Lists the tensors of a safetensors, npy or GGUF file: name, type and shape of each.

    Raises
    ------
    OSError
        For a file that cannot be opened; ``ValueError`` for a damaged one.
    """
    return _tercet.tensors(path)


def read(path: str | PathLike[str], tensor: str | None = None) -> NDArray[_np.float32]:
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

    Returns
    -------
    dict
        The report, as ``tercet quantize --json`` prints it.
    """
    report = _tercet.quantize_file(
        input,
        output,
        to=to,
        bits=bits,
        include=list(include),
        exclude=list(exclude),
        force=force,
    )
    found: dict[str, Any] = _json.loads(report)
    return found


class Index:
    """Rows held as int8 codes, for the nearest ones to queries.

    Parameters
    ----------
    rows : array of shape (n, dims)
    metric : str
        ``cosine`` or ``dot``.

    Examples
    --------
    >>> index = Index([[1.0, 0.1], [-0.5, 2.0], [3.0, 0.2]])
    >>> scores, numbers = index.search([[2.0, 0.1]], k=2)
    >>> numbers.tolist()
    [[2, 0]]
    """

    def __init__(self, rows: ArrayLike, metric: str = "cosine") -> None:
        self.metric = metric
        self._index = _tercet.Index(_floats(rows, "rows"), metric)

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"Index({len(self)} rows of {self._index.dims}, {self.metric!r})"

    def search(
        self, queries: ArrayLike, k: int = 10
    ) -> tuple[NDArray[_np.float32], NDArray[_np.int64]]:
        """Returns the scores (float32) and the numbers (int64) of the best ``k`` rows for each query, the best first.

        Both have the shape (queries, k); of equal scores, the lower number comes first.
        """
        asked = _floats(queries, "queries")
        if asked.ndim != 2 or asked.shape[1] != self._index.dims:
            raise ValueError(
                f"queries have the shape {asked.shape}; the rows have {self._index.dims} values"
            )
        return self._index.search(asked, k)


class Model:
    """A GGUF language model: text in, text out, with the same bits on every machine.

    Parameters
    ----------
    path : str or path
        A file of the architecture ``bitnet`` or ``llama``.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._model = _tercet.Model(path)

    @property
    def context(self) -> int:
        """Number of positions that the model was trained for."""
        return self._model.context

    def generate(
        self,
        prompt: str,
        *,
        tokens: int = 128,
        temperature: float = 0.0,
        top_k: int = 0,
        penalty: float = 1.0,
        seed: int = 0,
        on_text: Callable[[str], object] | None = None,
    ) -> str:
        """Continues a text.

        Parameters
        ----------
        prompt : str
        tokens : int
            Most tokens to write.
        temperature : float
            0 takes the likeliest token; 1 draws as the model predicts.
        top_k : int
            Draws among so many likeliest tokens; 0 among all.
        penalty : float
            Makes recent tokens less likely; 1 does not.
        seed : int
            The same seed draws the same text on every machine.
        on_text : callable, optional
            Gets each piece of text as it comes; ``False`` ends the text. Ctrl-C ends it too.

        Returns
        -------
        str
        """
        return self.write(
            prompt,
            tokens=tokens,
            temperature=temperature,
            top_k=top_k,
            penalty=penalty,
            seed=seed,
            on_text=on_text,
        )["text"]

    def write(
        self,
        prompt: str,
        *,
        tokens: int = 128,
        temperature: float = 0.0,
        top_k: int = 0,
        penalty: float = 1.0,
        seed: int = 0,
        on_text: Callable[[str], object] | None = None,
    ) -> _tercet.Written:
        """As :meth:`generate`, but returns a dict: ``text``, ``tokens``, ``ended`` and the ``digest`` of the logits."""
        return self._model.generate(
            prompt,
            tokens=tokens,
            temperature=temperature,
            top_k=top_k,
            penalty=penalty,
            seed=seed,
            on_text=on_text,
        )

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        """Continues a text as :meth:`generate` does, and yields each piece as it comes.

        The text ends if the iterator is closed, as at the end of a loop that is left.
        """
        pieces: _queue.SimpleQueue[str | BaseException | None] = _queue.SimpleQueue()
        over = _threading.Event()

        def put(piece: str) -> bool:
            pieces.put(piece)
            return not over.is_set()

        def work() -> None:
            try:
                self.generate(prompt, on_text=put, **options)
                pieces.put(None)
            except BaseException as error:
                pieces.put(error)

        thread = _threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            over.set()
            thread.join()

    def evaluate(self, text: str) -> _tercet.Cost:
        """Measures how well the model predicts a text: a dict with ``perplexity`` and ``bits_per_byte``."""
        return self._model.evaluate(text)
