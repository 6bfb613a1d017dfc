"""The quantizer and the packings of BitNet models, restated in NumPy from their public descriptions.

usage: bitnet.py hf DTYPE ROWS COLS WEIGHTS SCALES PACKED
       bitnet.py i2_s GROUP CODES SCALE TENSOR

hf: WEIGHTS holds ROWS x COLS little-endian values of DTYPE (f32 or bf16), SCALES any number of f32 scales s.
    PACKED gets, for each s, the uint8 tensor of clip(round(w * s), -1, 1), rounded half to even in f32; before
    them comes one f32: the scale that NumPy finds itself, 1 / max(mean|w|, 1e-5).
i2_s: CODES holds int8 codes -1..1, SCALE is a decimal number; TENSOR gets the tensor in groups of GROUP.
"""

import math
import sys

import ml_dtypes
import numpy as np


def hf(dtype, rows, cols, weights, scales, packed):
    kind = {"f32": np.dtype("<f4"), "bf16": np.dtype(ml_dtypes.bfloat16)}[dtype]
    weights = np.fromfile(weights, kind).astype(np.float32).reshape(int(rows), int(cols))
    mean = np.float32(math.fsum(np.abs(weights.astype(np.float64)).ravel()) / weights.size)
    parts = [(np.float32(1) / np.maximum(mean, np.float32(1e-5))).astype("<f4").tobytes()]
    for s in np.fromfile(scales, "<f4"):
        codes = np.clip(np.rint(weights * s), -1, 1).astype(np.int8)
        # Four consecutive slabs of rows share a byte row; rows that are missing at the end are bits 0.
        slab = -(-len(codes) // 4)
        bits = np.zeros((4 * slab, codes.shape[1]), np.uint8)
        bits[: len(codes)] = codes + 1
        four = bits.reshape(4, slab, codes.shape[1]).astype(np.uint32)
        parts.append(np.einsum("isc,i->sc", four, 4 ** np.arange(4, dtype=np.uint32)).astype(np.uint8).tobytes())
    with open(packed, "wb") as file:
        file.write(b"".join(parts))


def i2_s(group, codes, scale, tensor):
    bits = (np.fromfile(codes, np.int8) + 1).astype(np.uint32).reshape(-1, 4, int(group) // 4)
    packed = np.einsum("gil,i->gl", bits, np.array([64, 16, 4, 1], np.uint32)).astype(np.uint8)
    with open(tensor, "wb") as file:
        file.write(packed.tobytes() + np.float32(scale).astype("<f4").tobytes() + bytes(28))


with np.errstate(over="ignore"):
    {"hf": hf, "i2_s": i2_s}[sys.argv[1]](*sys.argv[2:])
