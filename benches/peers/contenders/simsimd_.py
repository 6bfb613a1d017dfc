"""SimSIMD's dot product and cosine of int8 rows."""

import simsimd
from scores import Scores

NAME, VERSION = "SimSIMD", simsimd.__version__


def dot(query, rows, out):
    simsimd.cdist(query, rows, "dot", out=out[None])


def cosine(query, rows, out):
    simsimd.cdist(query, rows, "cosine", out=out[None])


class Search(Scores):
    def __init__(self, arrays, options, threads):
        super().__init__(dot, -1, arrays, options, threads)


class Cosine(Scores):
    def __init__(self, arrays, options, threads):
        super().__init__(cosine, 1, arrays, options, threads)


WORK = {"search_scores": Search, "cosine_scores": Cosine}
