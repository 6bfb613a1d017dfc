"""Language models."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from . import _tercet


def train(
    text: str | bytes,
    output: str | os.PathLike[str],
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
        pieces: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
        over = threading.Event()

        def put(piece: str) -> bool:
            pieces.put(piece)
            return not over.is_set()

        def work() -> None:
            try:
                self.generate(prompt, on_text=put, **options)
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

    def evaluate(self, text: str) -> _tercet.Cost:
        """Measures how well the model predicts a text: a dict with ``perplexity`` and ``bits_per_byte``."""
        return self._model.evaluate(text)
