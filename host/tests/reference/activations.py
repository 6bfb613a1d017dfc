"""Rows normalized by their root mean square and quantized, restated in NumPy's float32.

usage: activations.py LIMIT EPS COLS IN GAINS CODES SCALES

IN holds rows of COLS little-endian f32, GAINS one row. CODES gets a little-endian i16 for each value, SCALES an f32 a row.
"""

import sys

import numpy as np

f32 = np.float32
limit, eps, cols = f32(sys.argv[1]), f32(sys.argv[2]), int(sys.argv[3])
source, gains, codes, scales = sys.argv[4:]
x = np.fromfile(source, "<f4").reshape(-1, cols)
g = np.fromfile(gains, "<f4")

# 64 lanes, then halving; zeros fill the last row of lanes up, which changes no sum of squares.
squares = x * x
squares = np.pad(squares, ((0, 0), (0, -cols % 64))).reshape(len(x), -1, 64)
lanes = squares[:, 0].copy()
for step in range(1, squares.shape[1]):
    lanes += squares[:, step]
half = 32
while half:
    lanes = lanes[:, :half] + lanes[:, half : 2 * half]
    half //= 2
root = np.sqrt(lanes[:, 0] / f32(cols) + eps)

y = x * g
largest = np.abs(y).max(axis=1)
factor = limit / largest
np.rint(y * factor[:, None]).astype("<i2").tofile(codes)
(largest / root / limit).astype("<f4").tofile(scales)
