"""Silhouette and Davies-Bouldin index as scikit-learn computes them.

usage: cluster_scores.py FOLDER

Prints a case a line, JSON: name, d, k, silhouette, davies_bouldin. Leaves in FOLDER, for line I (from 0), I.points
(int8, n x d) and I.labels (u32, n), little-endian.
"""

import json
import pathlib
import sys

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import davies_bouldin_score, silhouette_score


def cases():
    random = np.random.default_rng(9)
    digits = load_digits()
    points = (digits.data * 7).astype(np.int8)
    yield "digits by their classes", points, digits.target
    for k in [2, 10, 37]:
        labels = KMeans(n_clusters=k, n_init=1, random_state=k).fit_predict(points)
        yield f"digits in {k} clusters", points, labels
    yield "digits at random", points, random.integers(0, 7, len(points))
    line = random.integers(-128, 128, (500, 1)).astype(np.int8)
    yield "a line in parts", line, (line[:, 0].astype(int) + 128) // 37
    wide = random.integers(-128, 128, (300, 700)).astype(np.int8)
    yield "wide points", wide, random.integers(0, 3, len(wide))
    # Labels 1, 3 and 5 alone: clusters without members; one with a single point.
    few = random.integers(-3, 4, (200, 3)).astype(np.int8)
    labels = random.integers(0, 2, len(few)) * 2 + 1
    labels[17] = 5
    yield "few values, an outsider, empty clusters", few, labels
    many = random.integers(-128, 128, (4096, 12)).astype(np.int8)
    many[:2000] //= 2
    yield "as many points as are scored exactly", many, (np.arange(4096) < 2000).astype(int)


def main():
    folder = pathlib.Path(sys.argv[1])
    for index, (name, points, labels) in enumerate(cases()):
        points.tofile(folder / f"{index}.points")
        labels.astype("<u4").tofile(folder / f"{index}.labels")
        wide = points.astype(np.float64)
        found = {
            "name": name,
            "d": points.shape[1],
            "k": int(labels.max()) + 1,
            "silhouette": float(silhouette_score(wide, labels)),
            "davies_bouldin": float(davies_bouldin_score(wide, labels)),
        }
        print(json.dumps(found))


main()
