"""onnxruntime's QuantizeLinear, a scale a row."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

NAME, VERSION = "onnxruntime", onnxruntime.__version__


class Int8Rows:
    """QuantizeLinear along axis 0, with the scales given."""

    def __init__(self, arrays, options, threads):
        x = arrays["x"].reshape(-1, options["row"])
        scales = arrays["scales"]
        node = helper.make_node("QuantizeLinear", ["x", "scales", "points"], ["codes"], axis=0)
        shapes = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
            helper.make_tensor_value_info("scales", TensorProto.FLOAT, scales.shape),
            helper.make_tensor_value_info("points", TensorProto.INT8, scales.shape),
        ]
        out = helper.make_tensor_value_info("codes", TensorProto.INT8, x.shape)
        graph = helper.make_graph([node], "quantize", shapes, [out])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.checker.check_model(model)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        # Its threads would spin on while others are timed.
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), settings, ["CPUExecutionProvider"])
        self.codes = np.zeros(x.shape, np.int8)
        self.held = [x, scales, np.zeros(len(scales), np.int8)]
        self.binding = self.session.io_binding()
        for name, array in zip(["x", "scales", "points"], self.held):
            self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        self.binding.bind_output("codes", "cpu", 0, np.int8, self.codes.shape, self.codes.ctypes.data)

    def run(self, phase):
        self.session.run_with_iobinding(self.binding)

    def answer(self):
        return {"codes": self.codes}


WORK = {"int8_rows": Int8Rows}
