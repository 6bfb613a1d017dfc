"""Bars of tqdm, if it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Told = Callable[[int, float], object]
Read = Callable[[int, int], object]
T = TypeVar("T")


def steps(on_step: Told | None, progress: bool, total: int, figure: str, work: Callable[[Told | None], T]) -> T:
    """Gives ``work`` a callback of steps, which moves a bar too if ``progress`` is true; ``figure`` is its number."""
    if not progress:
        return work(on_step)
    with _tqdm(total=total, unit=" steps") as bar:

        def tell(step: int, value: float) -> object:
            bar.set_postfix({figure: f"{value:.5g}"}, refresh=False)
            bar.update()
            return on_step(step, value) if on_step else None

        return work(tell)


def amount(on_progress: Read | None, progress: bool, work: Callable[[Read | None], T]) -> T:
    """Gives ``work`` a callback of bytes read and bytes to read, which also moves a bar if ``progress`` is true."""
    if not progress:
        return work(on_progress)
    with _tqdm(unit="B", unit_scale=True) as bar:

        def tell(done: int, total: int) -> object:
            bar.total = total
            bar.update(done - bar.n)
            return on_progress(done, total) if on_progress else None

        return work(tell)


def _tqdm(**options: Any) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("progress=True draws with tqdm, which is not installed: pip install tqdm") from None
    return tqdm(**options)
