"""flash-kmeans, whose kernels Triton compiles for the first CUDA device; timed by the device's events."""

import os
import sys

import torch
from flash_kmeans import __version__, batch_kmeans_Euclid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_cuda_ import DEVICE, Timed, drop, there  # noqa: E402, F401

if DEVICE != "cuda":
    raise ImportError("its kernels run on CUDA devices alone")

NAME, VERSION = "flash-kmeans", __version__


class Kmeans(Timed):
    """One batch, from the same first centroids, without a tolerance."""

    TYPE = torch.float32

    def __init__(self, arrays, options, threads):
        self.points = there(arrays["points"]).to(self.TYPE)[None]
        self.init = there(arrays["init"]).to(self.TYPE)[None]
        self.steps = options["steps"]

    def work(self, phase):
        # Its last step's labels are those of the centroids before it.
        self.labels, self.centroids, _ = batch_kmeans_Euclid(
            self.points, self.init.shape[1], max_iters=self.steps[phase], tol=0.0, init_centroids=self.init.clone()
        )

    def answer(self):
        return {
            "centroids": self.centroids[0].float().cpu().numpy(),
            "labels": self.labels[0].to(torch.int32).cpu().numpy(),
        }


class KmeansF16(Kmeans):
    TYPE = torch.float16


WORK = {"kmeans": Kmeans, "kmeans_f16": KmeansF16}
