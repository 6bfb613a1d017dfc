"""NumKong's dot product of int8 rows."""

import numkong
from scores import Scores

NAME, VERSION = "NumKong", numkong.__version__


def dot(query, rows, out):
    numkong.cdist(query, rows, "dot", out=out[None])


class Search(Scores):
    def __init__(self, arrays, options, threads):
        super().__init__(dot, arrays, options, threads)


WORK = {"search_scores": Search}
