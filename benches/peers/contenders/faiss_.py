"""faiss: k-means, and search over int8 codes."""

import faiss
import numpy as np

NAME, VERSION = "faiss", faiss.__version__


class Kmeans:
    def __init__(self, arrays, options, threads):
        faiss.omp_set_num_threads(threads)
        self.points, self.init = arrays["points"], arrays["init"]
        self.steps = options["steps"]

    def run(self, phase):
        n, d = self.points.shape
        # Every point takes part: by default only 256 a centroid do.
        self.means = faiss.Kmeans(
            d, len(self.init), niter=self.steps[phase], nredo=1, max_points_per_centroid=n, min_points_per_centroid=1
        )
        self.means.train(self.points, init_centroids=self.init)

    def answer(self):
        _, labels = self.means.index.search(self.points, 1)
        return {"centroids": self.means.centroids, "labels": labels.ravel().astype("i4")}


class Search:
    """The scalar quantizer that takes signed bytes as they are."""

    KIND = faiss.ScalarQuantizer.QT_8bit_direct_signed

    def __init__(self, arrays, options, threads):
        faiss.omp_set_num_threads(threads)
        rows = arrays["rows"]
        self.index = faiss.IndexScalarQuantizer(rows.shape[1], self.KIND, faiss.METRIC_INNER_PRODUCT)
        # In parts, since it takes floats.
        for start in range(0, len(rows), 1 << 16):
            part = rows[start : start + (1 << 16)].astype(np.float32)
            if start == 0:
                self.index.train(part)
            self.index.add(part)
        self.query = arrays["query"].astype(np.float32)[None]
        self.top = options["top"]

    def run(self, phase):
        self.scores, self.indices = self.index.search(self.query, self.top)

    def answer(self):
        return {"indices": self.indices.ravel().astype(np.uint32)}


class SearchSq8(Search):
    """The scalar quantizer of 8 bits, which learns a range a coordinate; its scores are near the integers'."""

    KIND = faiss.ScalarQuantizer.QT_8bit


WORK = {"kmeans": Kmeans, "search": Search, "search_sq8": SearchSq8}
