"""scikit-learn's Lloyd."""

import sklearn
from sklearn.cluster import KMeans

NAME, VERSION = "scikit-learn", sklearn.__version__


class Kmeans:
    def __init__(self, arrays, options, threads):
        self.points, self.init = arrays["points"], arrays["init"]
        self.steps = options["steps"]

    def run(self, phase):
        self.means = KMeans(
            n_clusters=len(self.init),
            init=self.init,
            n_init=1,
            max_iter=self.steps[phase],
            tol=0,
            algorithm="lloyd",
            random_state=0,
        ).fit(self.points)
        if self.means.n_iter_ != self.steps[phase]:
            raise ValueError(f"converged after {self.means.n_iter_} steps: time fewer")

    def answer(self):
        return {"centroids": self.means.cluster_centers_, "labels": self.means.labels_.astype("i4")}


WORK = {"kmeans": Kmeans}
