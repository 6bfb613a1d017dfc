"""Runs the BitNet functions of Hugging Face's `transformers`, as installed, on NumPy arrays.

usage: transformers_bitnet.py ROWS COLS WEIGHTS DIVISOR MULTIPLIER FOLDER

Those functions ask little of PyTorch, so their source is compiled here against the stand-ins below; neither
PyTorch nor the package's other dependencies are needed (`pip install --no-deps transformers`).

WEIGHTS holds ROWS x COLS little-endian f32; DIVISOR and MULTIPLIER are files of one f32, the `weight_scale` of each
kind. FOLDER gets
  quantized      f32: what the online quantizer makes of the weights
  packed         uint8: its codes, packed
  bitlinear      f32, transposed: a BitLinear layer's output for the identity, from `packed` and DIVISOR
  autobitlinear  f32, transposed: an offline AutoBitLinear layer's, from the unpacked codes and MULTIPLIER
"""

import __future__

import ast
import importlib.util
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np


class Tensor(np.ndarray):
    """The few methods of torch.Tensor that the functions use."""

    def to(self, dtype):
        return self.astype(dtype)

    def float(self):
        return self.astype(np.float32)

    def abs(self):
        return np.abs(self)

    def mean(self):
        # Rounded once, as Tercet does; PyTorch's own order of summation may differ in the last place.
        return np.float32(math.fsum(self.astype(np.float64).ravel()) / self.size).reshape(1).view(Tensor)

    def round(self):
        return np.rint(self)

    def clamp(self, low, high):
        return np.clip(self, low, high)

    def clamp_(self, min):
        return np.maximum(self, self.dtype.type(min))


WANTED = [
    "pack_weights",
    "unpack_weights",
    "WeightQuant.forward",
    "BitLinear.post_quant_process",
    "BitLinear.forward",
    "AutoBitLinear.forward",
]


def functions():
    """The wanted functions of the package's BitNet module, without decorators."""
    package = Path(importlib.util.find_spec("transformers").origin).parent
    source = package / "integrations" / "bitnet.py"
    names = {
        "torch": SimpleNamespace(uint8=np.uint8, zeros=lambda *a, **k: np.zeros(*a, **k).view(Tensor)),
        "F": SimpleNamespace(linear=lambda x, weight, bias=None: x @ weight.T),
        "ActQuant": SimpleNamespace(apply=lambda x: x),
        "VALUES_PER_ITEM": 4,
    }
    found = {}
    for node in ast.parse(source.read_text()).body:
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for function in node.body if owner else [node]:
            if isinstance(function, ast.FunctionDef) and owner + function.name in WANTED:
                function.decorator_list = []
                code = ast.Module([function], [])
                local = {}
                flags = __future__.annotations.compiler_flag
                exec(compile(code, str(source), "exec", flags), names, local)
                found[owner + function.name] = local[function.name]
    # Plain functions are called by name.
    names.update({name: function for name, function in found.items() if "." not in name})
    return found


def main():
    rows, cols, weights, divisor, multiplier, folder = sys.argv[1:]
    call, folder = functions(), Path(folder)
    one = [np.fromfile(path, "<f4").view(Tensor) for path in (divisor, multiplier)]
    weights = np.fromfile(weights, "<f4").reshape(int(rows), int(cols)).view(Tensor)

    quantized = call["WeightQuant.forward"](None, weights)
    quantized.astype("<f4").tofile(folder / "quantized")
    codes = np.sign(quantized).astype(np.int8)
    packed = call["pack_weights"](codes)
    packed.tofile(folder / "packed")

    identity = np.eye(int(cols), dtype=np.float32).view(Tensor)
    layer = SimpleNamespace(rms_norm=None, bias=None, dtype=np.float32, online_quant=False)
    layer.weight, layer.weight_scale = packed, one[0]
    layer.activation_quant = lambda x: (x, np.float32(1))
    layer.post_quant_process = lambda *args: call["BitLinear.post_quant_process"](layer, *args)
    call["BitLinear.forward"](layer, identity).astype("<f4").tofile(folder / "bitlinear")

    layer.weight, layer.weight_scale = call["unpack_weights"](packed, np.float32), one[1]
    call["AutoBitLinear.forward"](layer, identity).astype("<f4").tofile(folder / "autobitlinear")


main()
