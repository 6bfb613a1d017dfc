"""Bars of tqdm, if it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Told = Callable[[int, float], object]


@contextmanager
def steps(on_step: Told | None, progress: bool, total: int, figure: str) -> Iterator[Told | None]:
    """Yields a callback of steps that also moves a bar, if ``progress`` is true; ``figure`` names its second argument."""
    if not progress:
        yield on_step
        return
    with _tqdm(total=total, unit=" steps") as bar:

        def tell(step: int, value: float) -> object:
            bar.set_postfix({figure: f"{value:.5g}"}, refresh=False)
            bar.update()
            return on_step(step, value) if on_step else None

        yield tell


@contextmanager
def amount(on_progress: Callable[[int, int], object] | None, progress: bool) -> Iterator[Callable[[int, int], object] | None]:
    """Yields a callback of bytes read and bytes to read that also moves a bar, if ``progress`` is true."""
    if not progress:
        yield on_progress
        return
    with _tqdm(unit="B", unit_scale=True) as bar:

        def tell(done: int, total: int) -> object:
            bar.total = total
            bar.update(done - bar.n)
            return on_progress(done, total) if on_progress else None

        yield tell


def _tqdm(**options: Any) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("progress=True draws with tqdm, which is not installed: pip install tqdm") from None
    return tqdm(**options)
