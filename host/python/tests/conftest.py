import os
import pathlib
import signal

import numpy as np
import pytest

# A shell starts what runs in its background with Ctrl-C ignored, and the tests of Ctrl-C would go on for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def nano():
    return ROOT / "gpu/models/nano.gguf"


@pytest.fixture(scope="session")
def command():
    """The `tercet` command, for digests; TERCET_COMMAND names it."""
    name = os.environ.get("TERCET_COMMAND")
    if not name:
        pytest.skip("TERCET_COMMAND does not name the command")
    return os.path.abspath(name)
