"""SimSIMD's dot product of int8 rows."""

import simsimd
from scores import Scores

NAME, VERSION = "SimSIMD", simsimd.__version__


def dot(query, rows, out):
    simsimd.cdist(query, rows, "dot", out=out[None])


class Search(Scores):
    def __init__(self, arrays, options, threads):
        super().__init__(dot, arrays, options, threads)


WORK = {"search_scores": Search}
