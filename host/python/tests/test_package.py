import copy
import pathlib
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tercet

# What scikit-learn expects and KMeans does not do, with the reason.
UNLIKE = {
    "check_sample_weight_equivalence_on_dense_data":
        "points of weight 0 take part in the draws of the first centroids, as in scikit-learn's own KMeans",
}


@pytest.mark.parametrize("estimator", [tercet.KMeans(), tercet.MiniBatchKMeans()])
@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit")
def test_clusterings_are_estimators(estimator):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    checks.check_estimator(estimator, expected_failed_checks=UNLIKE, on_skip=None)


def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    root = pathlib.Path(__file__).parents[3]
    (code,) = re.findall(r"```python\n(.*?)```", (root / "host/python/README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    # Two steps tell as much as all.
    exec(code.replace('"gpu/', f'"{root.as_posix()}/gpu/').replace("steps=100", "steps=2"), {})
    written = {"weights.gguf", "points.csv", "w.gguf", "digits.gguf", "plays.gguf"}
    assert {file.name for file in tmp_path.iterdir()} == written
    assert "\n2 " in capsys.readouterr().out


def test_info_names_this_machine():
    info = tercet.info()
    assert info["version"] == tercet.__version__
    assert info["backend"] in info["backends"] and info["threads"] > 0


def copies(value):
    return [
        copy.copy(value), copy.deepcopy(value), copy.deepcopy([value])[0],
        *(pickle.loads(pickle.dumps(value, protocol)) for protocol in range(2, 1 + pickle.HIGHEST_PROTOCOL)),
    ]


@pytest.mark.parametrize("format", ["int8", "int8_affine", "ternary", "tq2_0", "q4_1"])
@pytest.mark.parametrize("measure", [True, False])
def test_quantized_arrays_are_pickled(rng, format, measure):
    x = rng.normal(size=(3, 256)).astype(np.float32)
    value = tercet.quantize(x, format, measure=measure)
    for other in copies(value):
        assert type(other) is type(value) and repr(other) == repr(value)
        assert np.array_equal(other.restore(), value.restore())
        assert getattr(other, "error", None) == getattr(value, "error", None)
        if format != "int8_affine":
            assert np.array_equal(other.matvec(x), value.matvec(x))
    assert repr(value) == f"{type(value).__name__}(\"{format}\", (3, 256))"


@pytest.mark.parametrize("kind", [tercet.KMeans, tercet.MiniBatchKMeans])
def test_clusterings_are_pickled(kind):
    x = np.array([[0.0], [1.0], [9.0]])
    fitted = kind(2).fit(x)
    for other in copies(fitted):
        assert np.array_equal(other.predict(x), fitted.labels_) and other.inertia_ == fitted.inertia_
        assert other.get_params() == fitted.get_params()
    assert all(repr(other) == repr(kind(2)) for other in copies(kind(2)))


def test_a_model_is_pickled_by_its_path(nano, tmp_path, monkeypatch):
    file = tmp_path / "m.gguf"
    file.write_bytes(nano.read_bytes())
    monkeypatch.chdir(tmp_path)
    model = tercet.Model("m.gguf")
    monkeypatch.chdir("/")
    for other in copies(model):
        assert other.write("ROMEO:", tokens=4) == model.write("ROMEO:", tokens=4)
    data = pickle.dumps(model)
    file.unlink()
    with pytest.raises(OSError, match="cannot open"):
        pickle.loads(data)


def test_an_index_is_copied_and_not_pickled():
    index = tercet.Index([[1.0], [2.0]])
    assert copy.copy(index) is copy.deepcopy(index) is index
    with pytest.raises(TypeError, match="cannot pickle an Index; pickle its rows"):
        pickle.dumps(index)


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


def test_objects_are_shared_by_threads(rng, nano):
    x = rng.normal(size=(64, 256)).astype(np.float32)
    index, model, kmeans = tercet.Index(x), tercet.Model(nano), tercet.KMeans(4).fit(x)

    def used(quantized, blocks):
        return [
            quantized.matvec(x), quantized.codes, blocks.matvec(x), blocks.restore(), *index.search(x, 3),
            kmeans.predict(x), model.logits([1, 2, 3]), tercet.quantize(x).codes,
        ]

    expected = used(tercet.quantize(x, "ternary"), tercet.quantize(x, "tq2_0"))
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            # The first product packs the weights, once.
            shared = tercet.quantize(x, "ternary"), tercet.quantize(x, "tq2_0")
            for found in pool.map(lambda _: used(*shared), range(16)):
                assert all(np.array_equal(a, b) for a, b in zip(found, expected))


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
