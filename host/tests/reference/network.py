"""An integer network, restated in NumPy from the documented file format alone.

usage: network.py NETWORK INPUTS OUT

Opens NETWORK with gguf's reader, runs the int8 rows of INPUTS (npy) through it in int64 and Python integers, and writes the
last layer's sums to OUT as little-endian int64, and then their classes, one int64 an input.
"""

import sys

import numpy as np
from gguf import GGUFReader

UNIT = 2.0**-24


def lanes(data, rows, cols):
    """ternary_lanes: eight rows a group, a word for each pair of columns, two rows in each half of a rotated word."""
    words = np.frombuffer(data, "<u4").astype(np.uint64).reshape(-(-rows // 8), -1)
    out = np.zeros((len(words) * 8, words.shape[1] * 2), np.int64)
    for j in range(4):
        turned = (words >> np.uint64(4 * j) | words << np.uint64(32 - 4 * j)) & np.uint64(0xFFFFFFFF)
        for half in range(2):
            lane = (turned >> np.uint64(16 * half)) & np.uint64(0xC003)
            a = (lane & np.uint64(3)).astype(np.int64) - 1
            b = (lane >> np.uint64(14)).astype(np.int64)
            b -= 4 * (b >> 1)  # two bits in two's complement
            out[2 * j :: 8, half::2], out[2 * j + 1 :: 8, half::2] = a, b
    return out[:rows, :cols]


def pairs(data, rows, cols):
    """int8_pairs: tiles of four rows and eight columns; a half of a word is even + 256 * odd."""
    halves = np.frombuffer(data, "<i2").astype(np.int64)
    tiles = halves.reshape(-(-rows // 4), -1, 2, 4, 2)  # group, tile, columns 0..3 or 4..7, row, half
    even = ((tiles & 255) ^ 128) - 128
    odd = (tiles - even) >> 8
    out = np.stack([even, odd], axis=-1)  # … half, column
    return out.transpose(0, 3, 1, 2, 4, 5).reshape(out.shape[0] * 4, -1)[:rows, :cols]


def int4(data, rows, cols):
    """int4: tiles of four rows and eight columns; a half of a word is four weights plus 8, its highest bit flipped."""
    halves = np.frombuffer(data, "<u2").astype(np.int64) ^ 0x8000
    tiles = halves.reshape(-(-rows // 4), -1, 4, 2)  # group, tile, word, half
    out = np.stack([(tiles >> 4 * row & 15) - 8 for row in range(4)], axis=1)
    return out.reshape(out.shape[0] * 4, -1)[:rows, :cols]


def trits(data, rows, cols):
    """five_trits: sixty columns in twelve bytes; byte m holds columns m + 12 n, the first the most significant digit."""
    value = np.frombuffer(data, np.uint8).astype(np.int64).reshape(rows, -1, 12) * 243 // 256
    digits = [value // 3 ** (4 - n) % 3 - 1 for n in range(5)]
    return np.stack(digits, 2).reshape(rows, -1)[:, :cols]


def blocks(kind, data, rows):
    """GGUF's blocks: code times scale plus, in some, a minimum, both as whole numbers of units."""
    size = {"tq1_0": 54, "tq2_0": 66, "q8_0": 34, "q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24}[kind]
    raw = np.frombuffer(data, np.uint8).reshape(rows, -1, size)

    def units(at):
        return (raw[..., at : at + 2].copy().view("<f2").astype(np.float64) / UNIT).astype(np.int64)

    at = {"tq1_0": 52, "tq2_0": 64}.get(kind, 0)
    scale, minimum = units(at), units(2) if kind in ("q4_1", "q5_1") else 0
    body = np.delete(raw, [at, at + 1, 2, 3] if kind in ("q4_1", "q5_1") else [at, at + 1], axis=-1).astype(np.int64)
    if kind == "q8_0":
        codes = body.astype(np.uint8).view(np.int8).astype(np.int64)
    elif kind in ("q4_0", "q4_1"):
        codes = np.concatenate([body & 15, body >> 4], axis=-1) - (8 if kind == "q4_0" else 0)
    elif kind in ("q5_0", "q5_1"):
        fifths = np.unpackbits(body[..., :4].astype(np.uint8), axis=-1, bitorder="little").astype(np.int64)
        codes = np.concatenate([body[..., 4:] & 15, body[..., 4:] >> 4], axis=-1) + 16 * fifths - (16 if kind == "q5_0" else 0)
    elif kind == "tq2_0":
        quads = body.reshape(*body.shape[:2], 2, 1, 32)
        codes = np.concatenate([quads >> 2 * i & 3 for i in range(4)], axis=3).reshape(*body.shape[:2], -1) - 1
    else:
        parts = []
        for first, last, digits in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
            part = body[..., first:last]
            parts += [((part * 3**i & 255) * 3) >> 8 for i in range(digits)]
        codes = np.concatenate(parts, axis=-1) - 1
    return (codes * scale + minimum).reshape(rows, -1)


def main(path, inputs, out):
    reader = GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def field(key, missing=None):
        found = reader.get_field(f"tercet.network.{key}")
        return missing if found is None else found.contents()

    def values(name):
        return None if name not in tensors else np.asarray(tensors[name].data).reshape(-1)

    assert field("version") == 1
    x = np.load(inputs).astype(np.int64)
    x_scale = np.float32(field("input_scale"))
    count = field("layers")
    for i in range(count):
        layout, rows, cols = field(f"{i}.layout"), field(f"{i}.rows"), field(f"{i}.cols")
        data = values(f"network.{i}.weight").tobytes()
        unit = np.float32(1)
        if layout == "int8":
            weights = np.frombuffer(data, np.int8).astype(np.int64).reshape(rows, cols)
        elif layout in (own := {"ternary_lanes": lanes, "five_trits": trits, "int8_pairs": pairs, "int4": int4}):
            weights = own[layout](data, rows, cols)
        else:
            weights, unit = blocks(layout, data, rows), np.float32(UNIT)
        sums = x @ weights.T
        bias = values(f"network.{i}.bias")
        if bias is not None:
            sums = sums + (bias.astype(np.int64) << field(f"{i}.bias_shift", 0))
        if i + 1 == count:
            break
        multiplier = values(f"network.{i}.multiplier").astype(object)
        shift = values(f"network.{i}.shift").astype(object)
        # Python's integers: the product needs up to 94 bits.
        y = (sums.astype(object) * multiplier + (1 << (shift - 1))) >> shift
        low = {"relu": 0, "none": -127}[field(f"{i}.activation", "none")]
        x = np.clip(y, low, 127).astype(np.int64)
        x_scale = np.float32(field(f"{i}.output_scale"))
    scale = values(f"network.{count - 1}.scale")
    logits = sums.astype(np.float32) * unit
    if scale is not None:
        logits = logits * scale.astype(np.float32)
    classes = (logits * x_scale).argmax(axis=1)
    with open(out, "wb") as file:
        file.write(sums.astype("<i8").tobytes())
        file.write(classes.astype("<i8").tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
