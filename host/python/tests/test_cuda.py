import os
import subprocess
import sys

import numpy as np
import pytest
import tercet

# Runs in a process of its own, which loads the driver; the numbers are told by the parent.
ON_DEVICE = """
import signal
import numpy as np, tercet
x = np.load("x.npy")
for kind in [tercet.KMeans, tercet.MiniBatchKMeans]:
    for spherical in [False, True]:
        options = {"n_clusters": 3, "n_init": 2, "spherical": spherical, "max_iter": 10}
        steps = []
        found = kind(engine="cuda", **options).fit(x, on_step=lambda *it: steps.append(it))
        expected = kind(**options).fit(x)
        assert found.engine_ == "cuda" != expected.engine_ and steps
        assert np.array_equal(found.labels_, expected.labels_) and found.inertia_ == expected.inertia_
        assert np.array_equal(found.cluster_centers_, expected.cluster_centers_)

def stop(step, inertia):
    signal.raise_signal(signal.SIGINT)

try:
    tercet.KMeans(3, engine="cuda").fit(x, on_step=stop)
    raise SystemExit("not stopped")
except KeyboardInterrupt:
    pass
assert tercet.KMeans(3, engine="cuda").fit(x).engine_ == "cuda"
print("the same")
"""


def has_cuda():
    try:
        tercet.KMeans(1, engine="cuda").fit([[0.0]])
    except ValueError as error:
        assert "this build has no CUDA" in str(error)
        return False
    except RuntimeError:
        pass
    return True


def test_a_device_gives_the_same_bits(rng, tmp_path):
    """Needs the feature cuda, and a driver in the folder TERCET_DRIVER: the machine's, or the emulated one."""
    if not has_cuda():
        pytest.skip("built without the feature cuda")
    folder = os.environ.get("TERCET_DRIVER")
    if folder is None:
        pytest.skip("TERCET_DRIVER names no folder with a driver")
    np.save(tmp_path / "x.npy", rng.normal(size=(300, 6)).astype(np.float32))
    package = os.path.dirname(os.path.dirname(os.path.abspath(tercet.__file__)))
    environment = {**os.environ, "LD_LIBRARY_PATH": folder, "PYTHONPATH": package}
    program = [sys.executable, "-c", ON_DEVICE]
    said = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert said.returncode == 0 and said.stdout == "the same\n", said.stderr


def test_an_engine_that_is_not_there_is_an_error():
    for kind in [tercet.KMeans, tercet.MiniBatchKMeans]:
        with pytest.raises(ValueError, match="no engine is called `tpu`; there are cpu and cuda"):
            kind(2, engine="tpu").fit([[0.0], [1.0]])
        assert kind(1).fit([[0.0]]).engine_ in tercet.info()["backends"]
    if not has_cuda():
        with pytest.raises(ValueError, match="build the package with its feature cuda"):
            tercet.KMeans(1, engine="cuda").fit([[0.0]])
