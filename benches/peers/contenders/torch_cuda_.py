"""PyTorch on the first CUDA device, eager and compiled, timed by the device's events.

TERCET_PEERS_DEVICE=cpu has it work on the processor, by the clock: to try this file where there is no device.
"""

import os
import shutil

import torch

DEVICE = os.environ.get("TERCET_PEERS_DEVICE", "cuda")
if DEVICE == "cuda" and not torch.cuda.is_available():
    raise ImportError("PyTorch sees no CUDA device")
# The units that its users' matrices run on.
torch.backends.cuda.matmul.allow_tf32 = True

NAME, VERSION = "torch", f"{torch.__version__} on {torch.cuda.get_device_name() if DEVICE == 'cuda' else DEVICE}"


def there(array):
    return torch.from_numpy(array).to(DEVICE)


def drop():
    if DEVICE == "cuda":
        torch.cuda.empty_cache()


class Timed:
    """Work whose time is the device's."""

    def run(self, phase):
        with torch.inference_mode():
            if DEVICE != "cuda":
                self.work(phase)
                return None
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            self.work(phase)
            end.record()
            end.synchronize()
            return start.elapsed_time(end) / 1e3


class Ternary(Timed):
    """Ternary codes by the mean of |x|."""

    def __init__(self, arrays, options, threads):
        self.x = there(arrays["x"])

    @staticmethod
    def quantize(x):
        scale = x.abs().mean()
        return (x / scale).round().clamp(-1, 1).to(torch.int8), scale

    def work(self, phase):
        self.codes, self.scale = self.quantize(self.x)

    def answer(self):
        return {"codes": self.codes.cpu().numpy(), "scale": self.scale.cpu().numpy()}


class TernaryCompiled(Ternary):
    def __init__(self, arrays, options, threads):
        super().__init__(arrays, options, threads)
        self.quantize = torch.compile(Ternary.quantize, dynamic=False)


class Int8Rows(Timed):
    """Symmetric int8 codes of rows by their largest magnitudes."""

    def __init__(self, arrays, options, threads):
        self.x = there(arrays["x"]).reshape(-1, options["row"])

    @staticmethod
    def quantize(x):
        scales = x.abs().amax(1, keepdim=True) / 127
        return (x / scales).round().to(torch.int8), scales

    def work(self, phase):
        self.codes, self.scales = self.quantize(self.x)

    def answer(self):
        return {"codes": self.codes.cpu().numpy()}


class Int8RowsCompiled(Int8Rows):
    def __init__(self, arrays, options, threads):
        super().__init__(arrays, options, threads)
        self.quantize = torch.compile(Int8Rows.quantize, dynamic=False)


class Q8(Timed):
    """ggml's Q8_0 as its reference quantizes: 32 codes behind their scale in f16."""

    def __init__(self, arrays, options, threads):
        self.x = there(arrays["x"]).reshape(-1, 32)
        self.quantize = torch.compile(Q8.blocks, dynamic=False) if shutil.which("c++") else Q8.blocks

    @staticmethod
    def blocks(x):
        scale = x.abs().amax(1, keepdim=True) / 127
        inverse = torch.where(scale > 0, 1 / scale, 0)
        scaled = x * inverse
        # roundf: halves away from zero.
        codes = (scaled.abs() + 0.5).floor().copysign(scaled).to(torch.int8)
        return torch.cat([scale.half().view(torch.int8), codes], 1)

    def work(self, phase):
        self.bytes = self.quantize(self.x)

    def answer(self):
        return {"bytes": self.bytes.cpu().numpy()}


class Matmat(Timed):
    """int8 by int8 to int32, for which the vectors must be more than 16: few get zeros beside them."""

    LEAST = 32

    def __init__(self, arrays, options, threads):
        self.weights = there(arrays["weights"]).T
        self.count = len(arrays["x"])
        self.x = torch.zeros((max(self.count, self.LEAST), arrays["x"].shape[1]), dtype=torch.int8, device=DEVICE)
        self.x[: self.count] = there(arrays["x"])

    def work(self, phase):
        self.y = torch._int_mm(self.x, self.weights)

    def answer(self):
        return {"y": self.y[: self.count].float().cpu().numpy()}


class Kmeans(Timed):
    """Lloyd's loop by blocks of points: a product, its smallest, sums by index."""

    # Scores of a block of points.
    ROOM = 1 << 28

    def __init__(self, arrays, options, threads):
        self.points = there(arrays["points"])
        self.init = there(arrays["init"])
        self.steps = options["steps"]
        self.block = max(1024, self.ROOM // len(self.init))

    def assign(self, block):
        # The squared length of a point is the same for every centroid.
        return torch.addmm(self.norms, block, self.centroids.T, alpha=-2).argmin(1)

    def work(self, phase):
        self.centroids = self.init.clone()
        for _ in range(self.steps[phase]):
            self.norms = self.centroids.square().sum(1)
            sums = torch.zeros_like(self.centroids)
            counts = torch.zeros(len(sums), device=DEVICE)
            for block in self.points.split(self.block):
                labels = self.assign(block)
                sums.index_add_(0, labels, block)
                counts += torch.bincount(labels, minlength=len(sums))
            self.centroids = torch.where((counts > 0)[:, None], sums / counts.clamp(min=1)[:, None], self.centroids)

    def answer(self):
        with torch.inference_mode():
            self.norms = self.centroids.square().sum(1)
            labels = torch.cat([self.assign(block) for block in self.points.split(self.block)])
            return {"centroids": self.centroids.cpu().numpy(), "labels": labels.to(torch.int32).cpu().numpy()}


class Search(Timed):
    """The largest of int32 products; the query gets zeros beside it, as in `Matmat`."""

    def __init__(self, arrays, options, threads):
        self.rows = there(arrays["rows"]).T
        self.queries = torch.zeros((Matmat.LEAST, len(self.rows)), dtype=torch.int8, device=DEVICE)
        self.queries[0] = there(arrays["query"])
        self.top = options["top"]

    def work(self, phase):
        self.found = torch._int_mm(self.queries, self.rows)[0].topk(self.top).indices

    def answer(self):
        return {"indices": self.found.to(torch.int32).cpu().numpy()}


WORK = {
    "ternary": Ternary,
    "int8_rows": Int8Rows,
    "q8_0": Q8,
    "matmat": Matmat,
    "kmeans": Kmeans,
    "search": Search,
}
if shutil.which("c++") or shutil.which("cc"):
    WORK |= {"ternary_compiled": TernaryCompiled, "int8_rows_compiled": Int8RowsCompiled}
