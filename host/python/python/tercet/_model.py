"""Language models."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _tercet
from ._arrays import taken
from ._progress import steps as told_steps

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Sampling(TypedDict, total=False):
    """How :meth:`Model.generate` draws a text."""

    tokens: int
    temperature: float
    top_k: int
    penalty: float
    seed: int


def train(
    text: str | bytes,
    output: str | os.PathLike[str],
    *,
    preset: str = "nano",
    steps: int = 1000,
    vocabulary: int = 512,
    batch: int = 16,
    seed: int = 1,
    teacher: str | os.PathLike[str] | None = None,
    temperature: float = 2.0,
    teacher_share: float = 0.5,
    lean: bool = False,
    zeros: float | None = None,
    keep: float | None = None,
    clusters: int | None = None,
    force: bool = False,
    on_step: Callable[[int, float], object] | None = None,
    progress: bool = False,
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
    teacher : str or path, optional
        A GGUF model to learn from too (distillation). The new model has its vocabulary.
    temperature : float
        The temperature at which the probabilities of both are compared.
    teacher_share : float
        The teacher's share of what is learned, from 0 to 1.
    lean : bool
        Keeps weights in 16 bits and both moments in 8: 4.2 bytes a weight in place of 12.
    zeros : float, optional
        The share of each ternary matrix that is 0 at least.
    keep : float, optional
        The share of the text to train on, chosen at random in pieces of the model's context.
    clusters : int, optional
        Chooses what is kept evenly over so many clusters of similar pieces.
    force : bool
        Replaces an existing file.
    on_step : callable, optional
        Gets the number and the mean loss of each step, in nats per token; ``False`` ends the training. Ctrl-C ends it
        without a file.
    progress : bool
        Draws a bar of steps with tqdm.

    Returns
    -------
    dict
        ``bytes`` of the file, ``steps`` done, and the last ``loss``.
    """
    data = text.encode() if isinstance(text, str) else bytes(text)
    if clusters is not None and keep is None:
        raise ValueError("clusters choose what is kept: give keep too")
    return told_steps(
        on_step,
        progress,
        steps,
        "loss",
        lambda told: _tercet.train(
            data,
            output,
            preset=preset,
            steps=steps,
            tokens=vocabulary,
            batch=batch,
            seed=seed,
            teacher=None if teacher is None else (teacher, temperature, teacher_share),
            lean=lean,
            zeros=zeros,
            keep=keep,
            clusters=clusters,
            force=force,
            on_step=told,
        ),
    )


class Model:
    """A GGUF language model: text in, text out, with the same bits on every machine.

    Parameters
    ----------
    path : str or path
        A file of the architecture ``bitnet`` or ``llama``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.path.abspath(path)
        self._model = _tercet.Model(self._path)

    def __repr__(self) -> str:
        return f"Model({self._path!r})"

    def __reduce__(self) -> tuple[type[Model], tuple[str | bytes]]:
        """Pickles the path: the file is opened again."""
        return Model, (self._path,)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: object) -> Model:
        return self

    @property
    def context(self) -> int:
        """Number of positions that the model was trained for."""
        return self._model.context

    def generate(self, prompt: str, **options: Unpack[Sampling]) -> Iterator[str]:
        """Continues a text, and yields each piece as it comes: :meth:`write` returns all at once.

        The text ends if the iterator is closed, as at the end of a loop that is left. Ctrl-C ends it too.

        Parameters
        ----------
        prompt : str
        tokens : int, 128 by default
            Most tokens to write.
        temperature : float, 0 by default
            0 takes the likeliest token; 1 draws as the model predicts.
        top_k : int, 0 by default
            Draws among so many likeliest tokens; 0 among all.
        penalty : float, 1 by default
            Makes recent tokens less likely; 1 does not.
        seed : int, 0 by default
            The same seed draws the same text on every machine.

        Yields
        ------
        str

        Raises
        ------
        ValueError
            With the first piece, for an option out of its range, and a prompt with no tokens or more than ``context``;
            MemoryError.
        """
        pieces: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
        over = threading.Event()

        def put(piece: str) -> bool:
            pieces.put(piece)
            return not over.is_set()

        def work() -> None:
            try:
                self.write(prompt, on_text=put, **options)
                pieces.put(None)
            except BaseException as error:
                pieces.put(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            over.set()
            thread.join()

    def write(
        self, prompt: str, *, on_text: Callable[[str], object] | None = None, **options: Unpack[Sampling]
    ) -> _tercet.Written:
        """Continues a text with the options of :meth:`generate`, and returns all of it.

        Parameters
        ----------
        prompt : str
        on_text : callable, optional
            Gets each piece of text as it comes; ``False`` ends the text.

        Returns
        -------
        dict
            ``text``, its ``tokens``, ``ended`` if the model ended it, and the ``digest`` of the logits.
        """
        return self._model.generate(prompt, on_text=on_text, **options)

    def evaluate(self, text: str) -> _tercet.Cost:
        """Measures how well the model predicts a text, as ``tercet perplexity`` does.

        Returns
        -------
        dict
            ``perplexity``, ``bits_per_byte``, the number ``count`` of scored tokens, and the ``sum`` of their costs in
            units of 2**-32 nats, which is the same on every machine.

        Raises
        ------
        ValueError
            For a text without a token to predict, such as an empty one.
        """
        return self._model.evaluate(text)

    def perplexity(self, text: str) -> float:
        """Returns the perplexity of a text, in windows of the model's whole context: lower is better.

        Raises
        ------
        ValueError
            For a text without a token to predict, such as an empty one.
        """
        return self.evaluate(text)["perplexity"]

    def tokenize(self, text: str, *, ends: bool = True, special: bool = False) -> list[int]:
        """Returns the tokens of a text, as :meth:`generate` takes it. :meth:`evaluate` takes it without ``ends``.

        Parameters
        ----------
        text : str
        ends : bool
            Adds the tokens that begin and end a text, if the model's file says so.
        special : bool
            Takes the names of control tokens in the text for these tokens; otherwise they are text.
        """
        return self._model.tokenize(text, ends=ends, special=special)

    def detokenize(self, tokens: ArrayLike, *, special: bool = False) -> str:
        """Returns the text of tokens; ``special`` shows the names of control tokens.

        Bytes that are no UTF-8 become U+FFFD.

        Raises
        ------
        ValueError
            For a token that the vocabulary does not have.
        """
        return self._model.detokenize(_tokens(tokens), special=special)

    def logits(self, tokens: ArrayLike, *, each: bool = False) -> NDArray[np.float32]:
        """Returns the logits of the token that follows ``tokens``: float32 of shape (vocabulary,).

        Parameters
        ----------
        tokens : array of shape (n,), whole numbers
            At most ``context`` tokens; :meth:`tokenize` makes them of a text.
        each : bool
            Returns the logits after each of the tokens: float32 of shape (n, vocabulary).

        Raises
        ------
        ValueError
            For no tokens, too many, or one that the vocabulary does not have; MemoryError.
        """
        return self._model.logits(_tokens(tokens), each=each)


def _tokens(tokens: ArrayLike) -> NDArray[np.uint32]:
    array = taken(tokens, "tokens").array
    if array.size == 0:
        array = array.astype(np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not ((array >= 0) & (array < 1 << 32)).all():
        raise ValueError("tokens are whole numbers in one dimension, as tokenize returns them")
    return np.ascontiguousarray(array, dtype=np.uint32)
