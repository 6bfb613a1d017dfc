"""RAPIDS cuML on the first CUDA device."""

import cuml
import cupy
import numpy as np

NAME, VERSION = "cuML", cuml.__version__


def drop():
    cupy.get_default_memory_pool().free_all_blocks()


class Kmeans:
    def __init__(self, arrays, options, threads):
        self.points = cupy.asarray(arrays["points"])
        self.init = cupy.asarray(arrays["init"])
        self.steps = options["steps"]

    def run(self, phase):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        self.model = cuml.KMeans(
            n_clusters=len(self.init), init=self.init, max_iter=self.steps[phase], tol=0.0, n_init=1, output_type="numpy"
        ).fit(self.points)
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(start, end) / 1e3

    def answer(self):
        return {
            "centroids": np.ascontiguousarray(self.model.cluster_centers_, np.float32),
            "labels": self.model.labels_.astype(np.int32),
        }


WORK = {"kmeans": Kmeans}
