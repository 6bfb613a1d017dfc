"""Which architectures a source file is compiled for: its name says so."""

import pathlib

KERNELS = pathlib.Path(__file__).resolve().parent
TESTS = KERNELS / "emulator" / "tests"
# What a file's name ends with, and the virtual architecture its PTX is for. The first that fits counts.
SUFFIXES = [("_wgmma", "90a"), ("_mma", "80"), ("", "75")]
# The PTX that is written: the oldest that has what it uses, so that old drivers load it. 7.4 has loads that pass L1 by, 8.0 warpgroup products.
VERSIONS = {"75": "7.4", "80": "7.4", "90a": "8.0"}
# The real architectures that each is measured on.
REAL = {"75": ["75", "80", "90"], "80": ["80", "90"], "90a": ["90a"]}


def sources():
    return sorted((KERNELS / "cuda").glob("*.cu"))


def tests():
    """What the emulated device is tested with."""
    return sorted(TESTS.glob("*.cu"))


def architecture(source):
    """The virtual architecture of a source file: "75", "80" or "90a". Tests have a bit of everything."""
    return "90a" if source.parent == TESTS else next(name for suffix, name in SUFFIXES if source.stem.endswith(suffix))


def ptx(source):
    """Where the PTX of a source file lies."""
    if source.parent == TESTS:
        return source.parent / "ptx" / f"{source.stem}.ptx"
    return KERNELS / "ptx" / architecture(source) / f"{source.stem}.ptx"
