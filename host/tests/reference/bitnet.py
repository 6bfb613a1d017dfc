"""The quantizer and the packings of BitNet models, restated in NumPy from their public descriptions.

usage: bitnet.py hf DTYPE ROWS COLS WEIGHTS SCALES PACKED
       bitnet.py i2_s GROUP CODES SCALE TENSOR
       bitnet.py i2_s_file MODEL FOLDER

hf: WEIGHTS holds ROWS x COLS little-endian values of DTYPE (f32 or bf16), SCALES any number of f32 scales s.
    PACKED gets, for each s, the uint8 tensor of clip(round(w * s), -1, 1), rounded half to even in f32; before
    them comes one f32: the scale that NumPy finds itself, 1 / max(mean|w|, 1e-5).
i2_s: CODES holds int8 codes -1..1, SCALE is a decimal number; TENSOR gets the tensor in groups of GROUP.
i2_s_file: MODEL is a GGUF file of version 3. FOLDER gets, for each I2_S tensor in groups of 128, a file of its name with
    its values as f32, row by row. Prints general.file_type and the number of these tensors.
"""

import math
import os
import struct
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


# ggml's types, as bitnet.cpp's ggml.h numbers them: elements and bytes of a block.
BLOCKS = {0: (1, 4), 1: (1, 2), 8: (32, 34), 30: (1, 2)}
I2_S = 36


def i2_s_file(model, folder):
    with open(model, "rb") as file:
        data = file.read()
    at = 0

    def number(kind):
        nonlocal at
        (value,) = struct.unpack_from("<" + kind, data, at)
        at += struct.calcsize(kind)
        return value

    def text():
        nonlocal at
        length = number("Q")
        at += length
        return data[at - length : at].decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, count = number("I"), number("Q")
            return [value(inner) for _ in range(count)]
        return number("BbHhIif?  Qqd"[kind])

    assert number("I") == 0x46554747 and number("I") == 3
    tensors, keys = number("Q"), number("Q")
    metadata = {text(): value(number("I")) for _ in range(keys)}
    described = []
    for _ in range(tensors):
        name = text()
        dims = [number("Q") for _ in range(number("I"))]
        described.append((name, dims, number("I"), number("Q")))
    alignment = metadata.get("general.alignment", 32)
    start = -(-at // alignment) * alignment
    end, found = 0, 0
    for name, dims, kind, offset in described:
        # Tensors follow one another, each padded to the alignment.
        assert offset == -(-end // alignment) * alignment, name
        count = math.prod(dims)
        if kind != I2_S:
            elements, size = BLOCKS[kind]
            end = offset + count // elements * size
            continue
        end = offset + count // 4 + 32
        packed = np.frombuffer(data, np.uint8, count // 4, start + offset).reshape(-1, 32)
        (scale,) = np.frombuffer(data, "<f4", 1, start + offset + count // 4)
        codes = np.stack([packed >> 6 & 3, packed >> 4 & 3, packed >> 2 & 3, packed & 3], axis=1)
        assert codes.max() < 3, name
        values = (codes.astype(np.float32) - np.float32(1)) * scale
        values.astype("<f4").tofile(os.path.join(folder, name))
        found += 1
    assert start + end <= len(data)
    print(metadata["general.file_type"], found)


with np.errstate(over="ignore"):
    {"hf": hf, "i2_s": i2_s, "i2_s_file": i2_s_file}[sys.argv[1]](*sys.argv[2:])
