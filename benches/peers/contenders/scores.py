"""Scores of every row, the rows shared out to threads: for libraries without threads or a top-k of their own."""

import concurrent.futures

import numpy as np


class Scores:
    """`score(query, rows, out)` writes a float a row; the best, by `sign` the largest (-1) or the least (1), are found outside the time."""

    def __init__(self, score, sign, arrays, options, threads):
        self.score, self.sign, self.query, self.top = score, sign, arrays["query"][None], options["top"]
        rows = arrays["rows"]
        self.scores = np.zeros(len(rows))
        self.parts = list(zip(np.array_split(rows, threads), np.array_split(self.scores, threads)))
        self.pool = concurrent.futures.ThreadPoolExecutor(threads) if threads > 1 else None

    def part(self, part):
        rows, out = part
        self.score(self.query, rows, out)

    def run(self, phase):
        if self.pool:
            list(self.pool.map(self.part, self.parts))
        else:
            self.part(self.parts[0])

    def answer(self):
        best = np.argsort(self.sign * self.scores, kind="stable")[: self.top]
        return {"indices": best.astype(np.uint32)}
