import copy
import pickle
import threading

import numpy as np
import pytest
import tercet
from sklearn.utils.estimator_checks import check_estimator

# What scikit-learn expects and KMeans does not do, with the reason.
UNLIKE = {
    "check_sample_weight_equivalence_on_dense_data":
        "points of weight 0 take part in the draws of the first centroids, as in scikit-learn's own KMeans",
}


def test_kmeans_is_an_estimator():
    check_estimator(tercet.KMeans(), expected_failed_checks=UNLIKE, on_skip=None)


def test_info_names_this_machine():
    info = tercet.info()
    assert info["version"] == tercet.__version__
    assert info["backend"] in info["backends"] and info["threads"] > 0


def test_what_holds_memory_of_its_own_is_not_pickled(nano):
    for held in [tercet.quantize([1.0]), tercet.Model(nano), tercet.Index([[1.0]])]:
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(held)
    x = np.array([[0.0], [1.0], [9.0]])
    fitted = tercet.KMeans(2).fit(x)
    for other in [pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)]:
        assert np.array_equal(other.predict(x), fitted.labels_)


def test_the_interpreter_goes_on_while_threads_work(rng):
    x = rng.normal(size=(200_000, 16)).astype(np.float32)
    done = threading.Event()

    def fit():
        tercet.KMeans(32, max_iter=20).fit(x)
        done.set()

    thread = threading.Thread(target=fit)
    thread.start()
    turns = 0
    while not done.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 3


def test_an_array_that_changes_meanwhile_is_no_crash(rng):
    x = rng.normal(size=(300, 300)).astype(np.float32)
    stop = threading.Event()

    def change():
        while not stop.is_set():
            x[rng.integers(300)] = rng.choice([np.nan, 1e30, 0.0, -1.0])

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(200):
        for work in [lambda: tercet.quantize(x, "ternary"), lambda: tercet.Index(x)]:
            try:
                work()
            except ValueError:
                pass
    stop.set()
    thread.join()


def test_more_than_memory_is_a_memory_error():
    for shape in [(1 << 40,), (1 << 20, 1 << 22)]:
        huge = np.broadcast_to(np.float32(1), shape)
        with pytest.raises(MemoryError):
            tercet.quantize(huge)
