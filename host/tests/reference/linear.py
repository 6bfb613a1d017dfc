"""Products of weights and int8 activations by onnxruntime, PyPI's gguf and Python's integers.

usage: linear.py int8 ROWS COLS WEIGHTS X SUMS
       linear.py blocks TYPE ROWS COLS WEIGHTS X SUMS
       linear.py requantize SUMS MULTIPLIERS SHIFTS OUT

int8: WEIGHTS (row-major) and X are int8. SUMS gets onnxruntime's MatMulInteger as int64.
blocks: WEIGHTS holds blocks of the GGUF type TYPE. SUMS gets the exact sum of weight * 2^24 * x of each row, the weights as gguf
decodes them, int64.
requantize: SUMS (int64), MULTIPLIERS (int32) and SHIFTS (uint8), one each a value. OUT gets int8:
clip(floor(sum * multiplier / 2^shift + 1/2), -127, 127), in fractions.
"""

import sys
from fractions import Fraction
from math import floor

import numpy as np


def int8(rows, cols, weights, x, sums):
    import onnxruntime
    from onnx import TensorProto, helper

    rows, cols = int(rows), int(cols)
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["w", "x"], ["y"])],
        "product",
        [tensor("w", TensorProto.INT8, [rows, cols]), tensor("x", TensorProto.INT8, [cols, 1])],
        [tensor("y", TensorProto.INT32, [rows, 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    w = np.fromfile(weights, np.int8).reshape(rows, cols)
    (y,) = session.run(None, {"w": w, "x": np.fromfile(x, np.int8).reshape(cols, 1)})
    y.astype("<i8").tofile(sums)


def blocks(kind, rows, cols, weights, x, sums):
    from gguf import GGMLQuantizationType, quants

    bytes_ = np.fromfile(weights, np.uint8).reshape(int(rows), -1)
    # A code times an f16 has at most 19 bits: exact in float32.
    decoded = quants.dequantize(bytes_, GGMLQuantizationType[kind]).astype(np.float64) * 2**24
    assert decoded.shape == (int(rows), int(cols)) and (decoded == np.round(decoded)).all()
    x = np.fromfile(x, np.int8)
    exact = [sum(int(w) * int(v) for w, v in zip(row, x)) for row in decoded]
    np.array(exact, "<i8").tofile(sums)


def requantize(sums, multipliers, shifts, out):
    triples = zip(np.fromfile(sums, "<i8"), np.fromfile(multipliers, "<i4"), np.fromfile(shifts, np.uint8))
    codes = [floor(Fraction(int(a) * int(m), 2 ** int(s)) + Fraction(1, 2)) for a, m, s in triples]
    np.array([max(-127, min(127, code)) for code in codes], np.int8).tofile(out)


{"int8": int8, "blocks": blocks, "requantize": requantize}[sys.argv[1]](*sys.argv[2:])
