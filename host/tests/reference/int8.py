"""int8 codes as ONNX Runtime's QuantizeLinear gives them.

usage: int8.py [ROWS COLS VALUES SCALES ZERO_POINTS CODES]...

VALUES holds ROWS x COLS little-endian f32, SCALES f32 and ZERO_POINTS int8: one of each for the tensor, or one a
row. CODES gets ROWS x COLS int8.
"""

import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper


def session(per_row):
    """A model of one QuantizeLinear node whose scales and zero points are inputs."""
    size = ["N"] if per_row else []
    attributes = {"axis": 0} if per_row else {}
    node = helper.make_node("QuantizeLinear", ["x", "scale", "zero_point"], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "quantize",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "M"]),
            helper.make_tensor_value_info("scale", TensorProto.FLOAT, size),
            helper.make_tensor_value_info("zero_point", TensorProto.INT8, size),
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT8, ["N", "M"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def main():
    sessions = {}
    for rows, cols, values, scales, points, codes in zip(*[iter(sys.argv[1:])] * 6, strict=True):
        x = np.fromfile(values, "<f4").reshape(int(rows), int(cols))
        scale, point = np.fromfile(scales, "<f4"), np.fromfile(points, np.int8)
        per_row = len(scale) > 1
        if not per_row:
            scale, point = scale.reshape(()), point.reshape(())
        if per_row not in sessions:
            sessions[per_row] = session(per_row)
        (y,) = sessions[per_row].run(None, {"x": x, "scale": scale, "zero_point": point})
        y.tofile(codes)


main()
