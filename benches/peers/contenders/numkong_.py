"""NumKong's dot product and angle of int8 rows, one by many and many by many."""

import numkong
import numpy as np
from scores import Scores

NAME, VERSION = "NumKong", numkong.__version__


def dot(query, rows, out):
    numkong.cdist(query, rows, "dot", out=out[None])


def angular(query, rows, out):
    numkong.cdist(query, rows, "angular", out=out[None])


class Search(Scores):
    def __init__(self, arrays, options, threads):
        super().__init__(dot, -1, arrays, options, threads)


class Cosine(Scores):
    def __init__(self, arrays, options, threads):
        super().__init__(angular, 1, arrays, options, threads)


class Matmat:
    """Every row by every row, the weights packed beforehand; on one thread, since it takes no number of them."""

    def __init__(self, arrays, options, threads):
        self.weights = numkong.dots_pack(arrays["weights"])
        self.x = arrays["x"]

    def run(self, phase):
        self.y = numkong.dots_packed(self.x, self.weights)

    def answer(self):
        return {"y": np.asarray(self.y).astype(np.float32)}


WORK = {"search_scores": Search, "cosine_scores": Cosine, "matmat": Matmat}
