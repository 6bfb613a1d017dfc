"""NumPy, as people write it, and with its buffers given."""

import numpy as np

NAME, VERSION = "NumPy", np.__version__


class Ternary:
    """Ternary codes by the mean of |x|."""

    def __init__(self, arrays, options, threads):
        self.x = arrays["x"]

    def run(self, phase):
        x = self.x
        self.scale = np.abs(x).mean()
        self.codes = np.clip(np.round(x / self.scale), -1, 1).astype(np.int8)

    def answer(self):
        return {"codes": self.codes, "scale": np.float32(self.scale)}


class TernaryOut(Ternary):
    """The same without a temporary of its own."""

    def __init__(self, arrays, options, threads):
        self.x = arrays["x"]
        self.buffer = np.zeros_like(self.x)
        self.codes = np.zeros(self.x.shape, np.int8)

    def run(self, phase):
        x, buffer = self.x, self.buffer
        np.abs(x, out=buffer)
        self.scale = buffer.mean()
        np.multiply(x, np.float32(1) / self.scale, out=buffer)
        np.rint(buffer, out=buffer)
        np.clip(buffer, -1, 1, out=buffer)
        np.copyto(self.codes, buffer, casting="unsafe")


class Int8Rows:
    """Symmetric int8, a scale a row."""

    def __init__(self, arrays, options, threads):
        self.x = arrays["x"].reshape(-1, options["row"])

    def run(self, phase):
        x = self.x
        self.scales = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
        self.codes = np.clip(np.round(x / self.scales), -127, 127).astype(np.int8)

    def answer(self):
        return {"codes": self.codes, "scales": self.scales}


class Sum:
    """A plain sum in f32; pairwise, since NumPy's is."""

    def __init__(self, arrays, options, threads):
        self.x = arrays["x"]

    def run(self, phase):
        self.sum = self.x.sum()

    def answer(self):
        return {"mean": np.float64(self.sum) / self.x.size}


class Matvec:
    """A product in f32, by the BLAS that NumPy came with."""

    def __init__(self, arrays, options, threads):
        self.weights = arrays["weights"]
        self.x = arrays["x"]
        self.y = np.zeros(len(self.weights), np.float32)

    def run(self, phase):
        np.matmul(self.weights, self.x, out=self.y)

    def answer(self):
        return {"y": self.y}


class Matmat:
    """The same of many vectors."""

    def __init__(self, arrays, options, threads):
        self.weights = arrays["weights"].astype(np.float32)
        self.x = arrays["x"].astype(np.float32)
        self.y = np.zeros((len(self.x), len(self.weights)), np.float32)

    def run(self, phase):
        np.matmul(self.x, self.weights.T, out=self.y)

    def answer(self):
        return {"y": self.y}


class Search:
    """Scores of an f32 copy, then the ten of the largest."""

    def __init__(self, arrays, options, threads):
        self.rows = arrays["rows"].astype(np.float32)
        self.query = arrays["query"].astype(np.float32)
        self.top = options["top"]

    def run(self, phase):
        scores = self.rows @ self.query
        best = np.argpartition(scores, len(scores) - self.top)[-self.top :]
        self.best = best[np.argsort(-scores[best], kind="stable")]

    def answer(self):
        return {"indices": self.best.astype(np.uint32)}


WORK = {
    "ternary": Ternary,
    "ternary_out": TernaryOut,
    "int8_rows": Int8Rows,
    "sum": Sum,
    "matvec": Matvec,
    "matmat": Matmat,
    "search": Search,
}
