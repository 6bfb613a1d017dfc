"""Lloyd's k-means by scikit-learn and faiss, for benches that time it from outside.

The first line out is {"versions", "missing", "embeddings"}: the versions of what is here, why each absent peer is,
and the path of a safetensors file with an embedding matrix, or null. Then each line in is a JSON object, answered by
one line:

    {"do": "data", "n", "d", "k"}          and n * d points, k * d first centroids, raw little-endian f32: {}
    {"do": "fit", "peer", "threads", "steps"}                            {"seconds", "steps"}, the steps it took
    {"do": "inertia"}                      of the last fit, in f64:      {"inertia"}

It ends with its input.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import pathlib
import platform
import sys
import time

# Libraries that print must not print answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

versions, missing, modules = {"Python": platform.python_version()}, {}, {}
for name, needs in {"scikit-learn": ["sklearn", "sklearn.cluster"], "faiss": ["faiss"]}.items():
    try:
        for module in ["numpy", "threadpoolctl", *needs]:
            modules[module] = importlib.import_module(module)
        versions[name] = modules[needs[0]].__version__
    except ImportError as error:
        missing[name] = str(error)
np = modules.get("numpy")
if np:
    versions["NumPy"] = np.__version__


def embeddings():
    found = importlib.util.find_spec("wordllama")
    if not found or not found.origin:
        return None
    path = pathlib.Path(found.origin).parent / "weights/l2_supercat_256.safetensors"
    return str(path) if path.is_file() else None


class ScikitLearn:
    def __init__(self, points, init, steps):
        self.points = points
        self.means = modules["sklearn.cluster"].KMeans(
            n_clusters=len(init), init=init, n_init=1, max_iter=steps, tol=0, algorithm="lloyd", random_state=0
        )

    def fit(self):
        self.means.fit(self.points)
        return self

    def steps(self):
        return int(self.means.n_iter_)

    def found(self):
        return self.means.cluster_centers_, self.means.labels_


class Faiss:
    def __init__(self, points, init, steps):
        self.points, self.init = points, init
        n, d = points.shape
        # Every point takes part: by default only 256 a centroid do.
        self.means = modules["faiss"].Kmeans(
            d, len(init), niter=steps, nredo=1, max_points_per_centroid=n, min_points_per_centroid=1
        )

    def fit(self):
        self.means.train(self.points, init_centroids=self.init)
        return self

    def steps(self):
        return len(self.means.obj)

    def found(self):
        _, labels = self.means.index.search(self.points, 1)
        return self.means.centroids, labels.ravel()


@contextlib.contextmanager
def threads(count):
    """Every OpenMP and BLAS library that is loaded, each of which has threads of its own."""
    if "faiss" in modules:
        modules["faiss"].omp_set_num_threads(count)
    with modules["threadpoolctl"].threadpool_limits(limits=count):
        yield


def inertia(points, centers, labels):
    """In f64 and in pieces; scikit-learn's own is a sum in the points' type."""
    total = 0.0
    for start in range(0, len(points), 1 << 14):
        part = slice(start, start + (1 << 14))
        difference = points[part].astype(np.float64) - centers[labels[part]]
        total += float(np.einsum("ij,ij", difference, difference))
    return total


def read(rows, columns):
    length = rows * columns * 4
    data = sys.stdin.buffer.read(length)
    if len(data) != length:
        sys.exit("the points end early")
    return np.frombuffer(data, "<f4").reshape(rows, columns)


def answer(value):
    print(json.dumps(value), file=answers, flush=True)


def main():
    answer({"versions": versions, "missing": missing, "embeddings": embeddings()})
    points = init = last = None
    for line in iter(sys.stdin.buffer.readline, b""):
        request = json.loads(line)
        if request["do"] == "data":
            points = read(request["n"], request["d"])
            init = read(request["k"], request["d"])
            last = None
            answer({})
        elif request["do"] == "fit":
            peer = {"scikit-learn": ScikitLearn, "faiss": Faiss}[request["peer"]]
            with threads(request["threads"]):
                last = peer(points, init, request["steps"])
                start = time.perf_counter()
                last.fit()
                seconds = time.perf_counter() - start
            # Threads of OpenMP wait for more work by spinning; the next contender should not run beside them.
            time.sleep(0.01)
            answer({"seconds": seconds, "steps": last.steps()})
        else:
            answer({"inertia": inertia(points, *last.found())})


main()
