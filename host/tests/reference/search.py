"""Exact similarity search as NumPy and Python's integers give it.

usage: search.py exact METRIC DIM K BASE QUERIES INDICES SCORES
       search.py embeddings BASE QUERIES [METRIC INDICES]...

exact: BASE and QUERIES hold rows of DIM int8. INDICES gets the best K rows of each query as int64, ties by the lower
row; SCORES their dot products, cosines or squared distances as float32, rounded once.

embeddings: writes 31,800 rows of wordllama's 32,000 x 256 matrix to BASE and the others, every 160th, to QUERIES (npy,
float32), then for each METRIC the ten best rows of each query by float64 to INDICES (int64).
"""

import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np

getcontext().prec = 60


def exact(metric, dim, k, base, queries, indices, scores):
    dim, k = int(dim), int(k)
    rows = np.fromfile(base, np.int8).reshape(-1, dim).astype(np.int64)
    asked = np.fromfile(queries, np.int8).reshape(-1, dim).astype(np.int64)
    dots = asked @ rows.T
    of_rows, of_asked = (rows**2).sum(1), (asked**2).sum(1)
    if metric == "dot":
        order, values = -dots, dots
    elif metric == "l2":
        order = values = ((asked[:, None, :] - rows[None]) ** 2).sum(2)
    else:
        order = np.empty(dots.shape, object)
        values = np.empty(dots.shape, object)
        for q, r in np.ndindex(*dots.shape):
            dot, norms = int(dots[q, r]), int(of_asked[q]) * int(of_rows[r])
            order[q, r] = -Fraction(dot * abs(dot), norms) if norms else Fraction(0)
            values[q, r] = Decimal(dot) / Decimal(norms).sqrt() if norms else Decimal(0)
    best = np.argsort(order, axis=1, kind="stable")[:, :k]
    best.astype("<i8").tofile(indices)
    np.take_along_axis(values, best, 1).astype(np.float64).astype("<f4").tofile(scores)


def embeddings(base, queries, *metrics):
    from safetensors.numpy import load_file

    # Found without importing it: that would need its own dependencies.
    folder = Path(find_spec("wordllama").submodule_search_locations[0])
    matrix = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"].astype(np.float32)
    held = np.arange(len(matrix)) % 160 == 0
    np.save(base, matrix[~held])
    np.save(queries, matrix[held])
    rows, asked = matrix[~held].astype(np.float64), matrix[held].astype(np.float64)
    dots, lengths = asked @ rows.T, (rows**2).sum(1)
    for metric, indices in zip(*[iter(metrics)] * 2, strict=True):
        order = {"dot": -dots, "cosine": -dots / np.sqrt(lengths), "l2": lengths - 2 * dots}[metric]
        np.argsort(order, axis=1, kind="stable")[:, :10].astype("<i8").tofile(indices)


{"exact": exact, "embeddings": embeddings}[sys.argv[1]](*sys.argv[2:])
