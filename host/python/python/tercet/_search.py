"""Search."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _tercet
from ._arrays import floats


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
        self._index = _tercet.Index(floats(rows, "rows"), metric)

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"Index({len(self)} rows of {self._index.dims}, {self.metric!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle an Index; pickle its rows, and make it again from them")

    def __copy__(self) -> Index:
        return self

    def __deepcopy__(self, memo: object) -> Index:
        return self

    def search(
        self, queries: ArrayLike, k: int = 10
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Returns the scores (float32) and the numbers (int64) of the best ``k`` rows for each query, the best first.

        Both have the shape (queries, k); of equal scores, the lower number comes first.
        """
        asked = floats(queries, "queries")
        if asked.ndim != 2 or asked.shape[1] != self._index.dims:
            raise ValueError(
                f"queries have the shape {asked.shape}; the rows have {self._index.dims} values"
            )
        return self._index.search(asked, k)
