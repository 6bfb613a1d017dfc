"""OFP8 as ml_dtypes converts it, without saturation.

usage: fp8.py FORMAT IN CODES VALUES

FORMAT is `e4m3` or `e5m2`. IN holds little-endian f32; CODES gets one byte for each. VALUES gets the f32 of
the codes 0 to 255.
"""

import sys

import ml_dtypes
import numpy as np

TYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}

name, source, codes, values = sys.argv[1:]
kind = TYPES[name]
with np.errstate(all="ignore"):
    np.fromfile(source, "<f4").astype(kind).view(np.uint8).tofile(codes)
    np.arange(256, dtype=np.uint8).view(kind).astype("<f4").tofile(values)
