"""CuPy on the first CUDA device, timed by the device's events.

TERCET_PEERS_DEVICE=cpu has NumPy in its place, by the clock: to try this file where there is no device.
"""

import os

if os.environ.get("TERCET_PEERS_DEVICE") == "cpu":
    import numpy as cupy

    fuse, to_host = (lambda function: function), (lambda array: array)
    NAME, VERSION = "NumPy for CuPy", cupy.__version__
else:
    import cupy

    if not cupy.cuda.is_available():
        raise ImportError("CuPy sees no CUDA device")
    fuse, to_host = cupy.fuse, cupy.asnumpy
    NAME, VERSION = "CuPy", cupy.__version__


def drop():
    if hasattr(cupy, "get_default_memory_pool"):
        cupy.get_default_memory_pool().free_all_blocks()


class Timed:
    def run(self, phase):
        if not hasattr(cupy, "cuda"):
            self.work(phase)
            return None
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        self.work(phase)
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(start, end) / 1e3


@fuse
def rounded(x, scale, low, high):
    return cupy.clip(cupy.rint(x / scale), low, high).astype(cupy.int8)


class Ternary(Timed):
    """Ternary codes by the mean of |x|: a sum, then one fused kernel."""

    def __init__(self, arrays, options, threads):
        self.x = cupy.asarray(arrays["x"])

    def work(self, phase):
        self.scale = cupy.abs(self.x).mean()
        self.codes = rounded(self.x, self.scale, -1, 1)

    def answer(self):
        return {"codes": to_host(self.codes), "scale": to_host(self.scale)}


class Int8Rows(Timed):
    """Symmetric int8 codes of rows by their largest magnitudes."""

    def __init__(self, arrays, options, threads):
        self.x = cupy.asarray(arrays["x"]).reshape(-1, options["row"])

    def work(self, phase):
        scales = cupy.abs(self.x).max(axis=1, keepdims=True) / cupy.float32(127)
        self.codes = rounded(self.x, scales, -127, 127)

    def answer(self):
        return {"codes": to_host(self.codes)}


WORK = {"ternary": Ternary, "int8_rows": Int8Rows}
