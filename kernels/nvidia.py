"""Where the packages of requirements.txt put NVIDIA's compilers."""

import pathlib
import sys
import sysconfig

INSTALL = """python3 -m venv target/nvidia
target/nvidia/bin/pip install --no-deps -r kernels/requirements.txt
target/nvidia/bin/python kernels/{script}"""


def find(folder, file, script, package):
    """The path of a file in an installed package's folder; ends the program with what to do where it is missing."""
    path = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / folder / file
    if path.is_file():
        return path
    sys.exit(f"no {file} of {package} beside {sys.executable}; install it and run this again:\n"
             + INSTALL.format(script=script))


def nvrtc():
    return find("cuda_nvrtc", "lib/libnvrtc.so.12", "compile.py", "nvidia-cuda-nvrtc-cu12")


def ptxas():
    return find("cuda_nvcc", "bin/ptxas", "report.py", "nvidia-cuda-nvcc-cu12")


def driver_ptxas():
    """That of CUDA 13.0, as its drivers have it."""
    return find("cu13", "bin/ptxas", "sass.py", "nvidia-cuda-nvcc")


def nvdisasm():
    return find("cu13", "bin/nvdisasm", "sass.py", "nvidia-cuda-nvdisasm")
