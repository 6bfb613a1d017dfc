"""Palettes against scikit-learn, and read from a file by the documented layout alone.

usage: palette.py inertia CODES K...
       palette.py read FILE OUT

inertia: for each K, scikit-learn's k-means over int8 CODES in one dimension, in float64, from ten seeds and from K
    quantiles. Prints a line each: K, the least inertia, and the least inertia once centroids are rounded to integers.
read: for each palette in FILE prints `name shape` and writes its values to OUT, as little-endian f32.
"""

import sys

import numpy as np
import safetensors.numpy


def inertia(path, counts):
    from sklearn.cluster import KMeans

    codes = np.fromfile(path, np.int8)
    # Equal codes are one point with a weight: the same problem, sooner solved.
    points, weights = np.unique(codes, return_counts=True)
    points = points.astype(np.float64).reshape(-1, 1)
    for k in counts:
        if k >= len(points):
            print(k, 0.0, 0)
            continue
        quantiles = np.quantile(codes, (np.arange(k) + 0.5) / k).reshape(-1, 1)
        runs = [KMeans(k, n_init=1, tol=0.0, max_iter=1000, random_state=seed) for seed in range(10)]
        runs.append(KMeans(k, init=quantiles, n_init=1, tol=0.0, max_iter=1000))
        rounded = []
        for run in runs:
            centroids = run.fit(points, sample_weight=weights).cluster_centers_
            centroids = np.sign(centroids) * np.floor(np.abs(centroids) + 0.5)
            rounded.append(int((weights * ((points - centroids.T) ** 2).min(axis=1)).sum()))
        print(k, min(run.inertia_ for run in runs), min(rounded))


def read(path, out):
    held = safetensors.numpy.load_file(path)
    with open(out, "wb") as file:
        for name in sorted(held):
            if f"{name}_palette" not in held:
                continue
            codebooks, scales = held[f"{name}_palette"], held[f"{name}_palette_scale"]
            shape = [int(dim) for dim in held[f"{name}_palette_shape"]]
            groups, entries = codebooks.shape
            width = entries.bit_length() - 1
            indices = held[name].reshape(-1, held[name].shape[-1])
            bits = np.unpackbits(indices, axis=1, bitorder="little")
            bits = bits[:, : shape[-1] * width].reshape(len(indices), shape[-1], width)
            index = (bits.astype(np.int64) << np.arange(width)).sum(axis=2)
            group = np.arange(len(indices)) // -(-len(indices) // groups)
            entry = codebooks[group[:, None], index].astype(np.float32)
            values = entry * scales[group][:, None]
            print(name, "x".join(map(str, shape)))
            file.write(values.astype("<f4").tobytes())


def main():
    command, *arguments = sys.argv[1:]
    if command == "inertia":
        inertia(arguments[0], [int(k) for k in arguments[1:]])
    else:
        read(*arguments)


main()
