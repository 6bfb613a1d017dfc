"""k-means as scikit-learn does it, on int8 points and on the floats they came from, from the same seeds.

usage: cluster.py FOLDER DATASET SEEDS

Prints a JSON object: n, d, k and, for each seed, iterations and inertia of both fits run to convergence. Leaves in
FOLDER, little-endian and row-major: values (f32), codes (int8, symmetric abs-max per tensor), and for seed S
init.S (u32 indices of k distinct points), labels.S (int32, the points' nearest initial centroids) and centers.S (f64,
the centroids after one step).
"""

import importlib.util
import json
import pathlib
import sys

import numpy as np
from sklearn.cluster import KMeans


def package(name):
    """Folder of an installed package, without importing it."""
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


def digits():
    from sklearn.datasets import load_digits

    return load_digits().data, 10


def motions():
    """Windows of ten samples of six axes: 800 x 60, from 80 recordings of 100 samples."""
    folder = package("sktime") / "datasets/data/BasicMotions"
    recordings = []
    for part in ["TRAIN", "TEST"]:
        lines = (folder / f"BasicMotions_{part}.ts").read_text().splitlines()
        data = lines.index("@data") + 1
        for line in lines[data:]:
            axes = line.split(":")[:6]
            recordings.append(np.array([[float(x) for x in axis.split(",")] for axis in axes]))
    windows = np.stack(recordings).reshape(len(recordings), 6, 10, 10).transpose(0, 2, 3, 1)
    return windows.reshape(-1, 60), 16


def embeddings():
    from safetensors.numpy import load_file

    tensors = load_file(package("wordllama") / "weights/l2_supercat_256.safetensors")
    (matrix,) = tensors.values()
    # Of 32,000 tokens every fourth.
    return matrix[::4], 64


def fit(points, init, **options):
    means = KMeans(n_clusters=len(init), init=init, n_init=1, algorithm="lloyd", tol=0, **options)
    return means.fit(points)


def main():
    folder = pathlib.Path(sys.argv[1])
    points, k = {"digits": digits, "motions": motions, "embeddings": embeddings}[sys.argv[2]]()
    values = points.astype(np.float32)
    scale = np.abs(values).max() / np.float32(127)
    codes = np.rint(values / scale).astype(np.int8)
    (folder / "values").write_bytes(values.tobytes())
    (folder / "codes").write_bytes(codes.tobytes())
    wide, exact = codes.astype(np.float64), values.astype(np.float64)
    found = {"n": len(codes), "d": codes.shape[1], "k": k, "seeds": []}
    for seed in range(int(sys.argv[3])):
        # Points that coincide as codes would leave a cluster empty at once.
        _, distinct = np.unique(codes, axis=0, return_index=True)
        init = np.random.default_rng(seed).choice(np.sort(distinct), k, replace=False)
        (folder / f"init.{seed}").write_bytes(init.astype("<u4").tobytes())
        one = fit(wide, wide[init], max_iter=1)
        (folder / f"centers.{seed}").write_bytes(one.cluster_centers_.tobytes())
        one.cluster_centers_ = wide[init].copy()
        (folder / f"labels.{seed}").write_bytes(one.predict(wide).astype("<i4").tobytes())
        fits = [fit(wide, wide[init], max_iter=1000), fit(exact, exact[init], max_iter=1000)]
        found["seeds"].append(
            {
                "iterations": [int(fitted.n_iter_) for fitted in fits],
                "inertia": [float(fitted.inertia_) for fitted in fits],
            }
        )
    print(json.dumps(found))


main()
