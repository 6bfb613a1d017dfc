"""ggml's block formats, as its own code makes and reads them.

usage: blocks.py LIBRARY VERB TYPE IN OUT [VERB TYPE IN OUT]...

LIBRARY is the path of libggml-base.so, or `gguf` for the NumPy package. VERB is `quantize` (IN holds
little-endian f32, OUT gets blocks), `dequantize` (the inverse), or `f16` (IN holds f32, OUT gets the bits of
their f16; TYPE is ignored). TYPE is a type's name in lower case.
"""

import ctypes
import sys

import numpy as np

LAYOUT = {"tq1_0": (256, 54), "tq2_0": (256, 66), "q2_0": (64, 18), "q8_0": (32, 34), "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22),
          "q5_1": (32, 24), "q4_k": (256, 144), "q6_k": (256, 210)}


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def symbol(name):
    """A type's name in the names of C functions."""
    return name.replace("_k", "_K")


class Compiled:
    """The C reference through ctypes."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def quantize(self, name, values):
        length, size = LAYOUT[name]
        out = np.zeros(len(values) // length * size, np.uint8)
        function = getattr(self.library, f"quantize_row_{symbol(name)}_ref")
        function.restype = None
        function(pointer(values), pointer(out), ctypes.c_int64(len(values)))
        return out

    def dequantize(self, name, blocks):
        length, size = LAYOUT[name]
        out = np.zeros(len(blocks) // size * length, "<f4")
        function = getattr(self.library, f"dequantize_row_{symbol(name)}")
        function.restype = None
        function(pointer(blocks), pointer(out), ctypes.c_int64(len(out)))
        return out

    def f16(self, _name, values):
        out = np.zeros(len(values), "<u2")
        function = self.library.ggml_fp32_to_fp16_row
        function.restype = None
        function(pointer(values), pointer(out), ctypes.c_int64(len(values)))
        return out


class Package:
    """The NumPy package `gguf`."""

    def quantize(self, name, values):
        from gguf import GGMLQuantizationType, quants

        return quants.quantize(values.reshape(1, -1), GGMLQuantizationType[name.upper()]).reshape(-1)

    def dequantize(self, name, blocks):
        from gguf import GGMLQuantizationType, quants

        return quants.dequantize(blocks.reshape(1, -1), GGMLQuantizationType[name.upper()]).reshape(-1)


def main():
    library, *jobs = sys.argv[1:]
    reference = Package() if library == "gguf" else Compiled(library)
    np.seterr(all="ignore")
    for verb, name, source, target in zip(*[iter(jobs)] * 4, strict=True):
        values = np.fromfile(source, np.uint8 if verb == "dequantize" else "<f4")
        getattr(reference, verb)(name, values).tofile(target)


main()
