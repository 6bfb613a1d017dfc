"""Where the packages of requirements.txt put NVIDIA's compilers."""

import pathlib
import sys
import sysconfig

INSTALL = """python3 -m venv target/nvidia
target/nvidia/bin/pip install -r kernels/requirements.txt
target/nvidia/bin/python kernels/{script}"""


def find(package, file, script):
    """The path of a file in an installed package; ends the program with what to do where it is missing."""
    folder = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / package
    if (folder / file).is_file():
        return folder / file
    sys.exit(f"no {file} of nvidia-{package.replace('_', '-')}-cu12 beside {sys.executable}; install it and run this again:\n"
             + INSTALL.format(script=script))


def nvrtc():
    return find("cuda_nvrtc", "lib/libnvrtc.so.12", "compile.py")


def ptxas():
    return find("cuda_nvcc", "bin/ptxas", "report.py")
