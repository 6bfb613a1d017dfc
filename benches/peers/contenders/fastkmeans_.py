"""fastkmeans, on the CPU."""

import importlib.metadata

import torch
from fastkmeans import FastKMeans

NAME, VERSION = "fastkmeans", importlib.metadata.version("fastkmeans")


class Kmeans:
    def __init__(self, arrays, options, threads):
        torch.set_num_threads(threads)
        self.points, self.init = arrays["points"], arrays["init"]
        self.seeds = torch.from_numpy(arrays["seeds"].astype("i8"))
        self.steps = options["steps"]

    def run(self, phase):
        n, d = self.points.shape
        self.means = FastKMeans(
            d,
            len(self.init),
            niter=self.steps[phase],
            # Below 0: no step is so small.
            tol=-1.0,
            gpu=False,
            max_points_per_centroid=None,
            use_triton=False,
        )
        # It starts from the first points of a random order, which is its only start: here the order begins with the seeds.
        randperm, torch.randperm = torch.randperm, lambda *_, **__: self.seeds
        try:
            self.means.train(self.points)
        finally:
            torch.randperm = randperm

    def answer(self):
        return {"centroids": self.means.centroids, "labels": self.means.predict(self.points).astype("i4")}


WORK = {"kmeans": Kmeans}
