"""The gguf package's quantizers, which are NumPy."""

import importlib.metadata

import gguf
import numpy as np

NAME, VERSION = "gguf", importlib.metadata.version("gguf")


class Encode:
    def __init__(self, arrays, options, threads):
        self.x = arrays["x"]
        self.format = gguf.GGMLQuantizationType[options["format"].upper()]

    def run(self, phase):
        self.bytes = gguf.quants.quantize(self.x, self.format)

    def answer(self):
        return {"bytes": self.bytes.view(np.uint8)}


WORK = {"encode": Encode}
