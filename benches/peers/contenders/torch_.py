"""PyTorch, eager, and compiled where there is a C++ compiler."""

import shutil

import torch

NAME, VERSION = "torch", torch.__version__


class Ternary:
    """Ternary codes by the mean of |x|."""

    def __init__(self, arrays, options, threads):
        torch.set_num_threads(threads)
        self.x = torch.from_numpy(arrays["x"])

    @staticmethod
    def quantize(x):
        scale = x.abs().mean()
        return (x / scale).round().clamp(-1, 1).to(torch.int8), scale

    @torch.inference_mode()
    def run(self, phase):
        self.codes, self.scale = self.quantize(self.x)

    def answer(self):
        return {"codes": self.codes.numpy(), "scale": self.scale.numpy()}


class TernaryCompiled(Ternary):
    """The same through `torch.compile`, once for each number of threads."""

    def __init__(self, arrays, options, threads):
        super().__init__(arrays, options, threads)
        torch.compiler.reset()
        self.quantize = torch.compile(Ternary.quantize, dynamic=False)


class Int8Rows:
    """`quantize_per_channel` with the scales given."""

    def __init__(self, arrays, options, threads):
        torch.set_num_threads(threads)
        self.x = torch.from_numpy(arrays["x"].reshape(-1, options["row"]))
        self.scales = torch.from_numpy(arrays["scales"])
        self.points = torch.zeros(len(self.scales), dtype=torch.int64)

    @torch.inference_mode()
    def run(self, phase):
        self.codes = torch.quantize_per_channel(self.x, self.scales, self.points, 0, torch.qint8)

    def answer(self):
        return {"codes": self.codes.int_repr().numpy()}


class Matmat:
    """int8 by int8 to int32, as its quantized layers multiply."""

    def __init__(self, arrays, options, threads):
        torch.set_num_threads(threads)
        self.weights = torch.from_numpy(arrays["weights"]).T
        self.x = torch.from_numpy(arrays["x"])

    @torch.inference_mode()
    def run(self, phase):
        self.y = torch._int_mm(self.x, self.weights)

    def answer(self):
        return {"y": self.y.float().numpy()}


class Kmeans:
    """Lloyd's loop by blocks of points: a product, its smallest, sums by index."""

    BLOCK = 1 << 14

    def __init__(self, arrays, options, threads):
        torch.set_num_threads(threads)
        self.points = torch.from_numpy(arrays["points"])
        self.init = torch.from_numpy(arrays["init"])
        self.steps = options["steps"]

    def assign(self, block):
        # The squared length of a point is the same for every centroid.
        return torch.addmm(self.norms, block, self.centroids.T, alpha=-2).argmin(1)

    @torch.inference_mode()
    def run(self, phase):
        self.centroids = self.init.clone()
        for _ in range(self.steps[phase]):
            self.norms = self.centroids.square().sum(1)
            sums = torch.zeros_like(self.centroids)
            counts = torch.zeros(len(sums))
            for block in self.points.split(self.BLOCK):
                labels = self.assign(block)
                sums.index_add_(0, labels, block)
                counts += torch.bincount(labels, minlength=len(sums))
            full = counts > 0
            self.centroids[full] = sums[full] / counts[full, None]

    @torch.inference_mode()
    def answer(self):
        self.norms = self.centroids.square().sum(1)
        labels = torch.cat([self.assign(block) for block in self.points.split(self.BLOCK)])
        return {"centroids": self.centroids.numpy(), "labels": labels.to(torch.int32).numpy()}


WORK = {"ternary": Ternary, "int8_rows": Int8Rows, "matmat": Matmat, "kmeans": Kmeans}
if shutil.which("c++"):
    WORK["ternary_compiled"] = TernaryCompiled
