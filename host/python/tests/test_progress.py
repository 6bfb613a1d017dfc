import signal
import sys
import threading

import numpy as np
import pytest
import tercet

TEXT = "It is the east, and Juliet is the sun. Arise, fair sun, and kill the envious moon.\n" * 60


def interrupted(work):
    """Runs work, which takes long, and ends it by Ctrl-C."""
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    timer.join()


@pytest.mark.parametrize("kind", [tercet.KMeans, tercet.MiniBatchKMeans])
def test_each_step_of_a_clustering_is_told(rng, kind):
    x = rng.normal(size=(2000, 8)).astype(np.float32)
    told = []
    kmeans = kind(5, n_init=2, max_iter=20).fit(x, on_step=lambda step, inertia: told.append((step, inertia)))
    starts = [number for number, (step, _) in enumerate(told) if step == 1]
    assert starts[0] == 0 and len(starts) == 2 and len(told) <= 40
    assert [step for step, _ in told[: starts[1]]] == list(range(1, starts[1] + 1))
    assert min(inertia for _, inertia in told) == pytest.approx(kmeans.inertia_, rel=0.01)
    assert np.array_equal(kind(5, n_init=2, max_iter=20).fit(x).labels_, kmeans.labels_)


def test_exceptions_and_ctrl_c_end_a_clustering(rng):
    x = rng.normal(size=(100_000, 32)).astype(np.float32)
    kmeans = tercet.KMeans(2).fit(x[:100])
    before = kmeans.cluster_centers_.copy()
    kmeans.set_params(n_clusters=64, max_iter=100_000, n_init=1000)
    with pytest.raises(ZeroDivisionError):
        kmeans.fit(x, on_step=lambda step, inertia: 1 / 0)
    interrupted(lambda: kmeans.fit(x))
    assert np.array_equal(kmeans.cluster_centers_, before)
    # Nothing of the ended work is left in the threads.
    again = [tercet.KMeans(4).fit(x[:1000]).inertia_ for _ in range(2)]
    assert again[0] == again[1]
    with pytest.raises(TypeError):
        kmeans.fit(x, on_step=lambda: None)


def test_bytes_of_a_conversion_are_told(rng, tmp_path):
    np.save(tmp_path / "w.npy", rng.normal(size=(4096, 1024)).astype(np.float32))
    told = []
    tercet.quantize_file(tmp_path / "w.npy", tmp_path / "w.gguf", "tq2_0", on_progress=lambda *it: told.append(it))
    assert len(told) > 1 and told == sorted(told) and {total for _, total in told} == {4096 * 1024 * 4}
    assert told[-1][0] == told[-1][1]

    def fail(done, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tercet.quantize_file(tmp_path / "w.npy", tmp_path / "x.gguf", "tq2_0", on_progress=fail)

    def stop(done, total):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        tercet.quantize_file(tmp_path / "w.npy", tmp_path / "x.gguf", "tq2_0", on_progress=stop)
    assert sorted(it.name for it in tmp_path.iterdir()) == ["w.gguf", "w.npy"]


def test_ctrl_c_ends_a_training(tmp_path):
    interrupted(lambda: tercet.train(TEXT, tmp_path / "m.gguf", steps=100_000, batch=2))
    assert not list(tmp_path.iterdir())


def test_bars_are_drawn_if_tqdm_is_there(rng, tmp_path, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    x = rng.normal(size=(4, 256)).astype(np.float32)
    np.save(tmp_path / "w.npy", x)
    told = []
    tercet.KMeans(2).fit(x, progress=True, on_step=lambda *it: told.append(it))
    assert told and "inertia=" in capsys.readouterr().err
    tercet.train(TEXT, tmp_path / "m.gguf", steps=3, batch=2, progress=True)
    assert "3/3" in capsys.readouterr().err
    tercet.quantize_file(tmp_path / "w.npy", tmp_path / "w.gguf", "tq2_0", progress=True)
    assert "4.10k/4.10k" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        tercet.KMeans(2).fit(x, progress=True)
    tercet.KMeans(2).fit(x)
