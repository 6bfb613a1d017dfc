"""Low-bit numbers with the same bits on every machine.

>>> import numpy as np
>>> import tercet
>>> weights = np.array([[0.9, -0.1, 0.4, -1.1], [0.2, 0.0, -0.3, 0.25]], dtype=np.float32)
>>> quantized = tercet.quantize(weights, "ternary")
>>> quantized.codes
array([[ 1,  0,  0, -1],
       [ 1,  0, -1,  1]], dtype=int8)
>>> quantized.matvec(np.array([127, 1, 2, 27], dtype=np.float32))
array([100.,  38.], dtype=float32)

Functions take arrays, lists, and what has DLPack or the buffer protocol, such as tensors of PyTorch in the processor's
memory. Contiguous float32 arrays are read where they are; others are copied first. Work runs without the interpreter's
lock: an array must not be changed by another thread meanwhile.
"""

from ._files import quantize_file, read, tensors
from ._gguf import read_gguf, write_gguf
from ._kmeans import KMeans, MiniBatchKMeans
from ._model import Model, train
from ._quantize import dequantize, quantize
from ._search import Index
from ._tercet import Blocks, Quantized, __version__, info, verify

__all__ = [
    "Blocks",
    "Index",
    "KMeans",
    "MiniBatchKMeans",
    "Model",
    "Quantized",
    "dequantize",
    "info",
    "quantize",
    "quantize_file",
    "read",
    "read_gguf",
    "tensors",
    "train",
    "verify",
    "write_gguf",
]

# Its example is run too, though it is native.
__test__ = {"verify": verify}
