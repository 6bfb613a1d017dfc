"""Writes ptxas.md: registers, spills and shared memory of every kernel, as ptxas allots them.

    python kernels/report.py [--check]

Ends with 1 where ptxas says that it has products of a warpgroup wait for each other, which is all that they are faster by.
"""

import re
import subprocess
import sys
import tempfile

import architectures
import nvidia

TABLE = architectures.KERNELS / "ptxas.md"
HEAD = """# What each kernel takes

Registers a thread, bytes spilled (stores + loads), bytes of static shared memory and of stack, by ptxas {version};
in brackets what differs by {driver}, the compiler of drivers of CUDA 13.0, for 9.0.
Written by `report.py`.

| module | kernel | sm | registers | spilled | shared | stack |
|---|---|---|---|---|---|---|
"""
ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\w+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
SERIALIZED = re.compile(r".*wgmma\S* instructions are serialized.*")


def rows(ptxas, source, real):
    """One row a kernel of a source file on a real architecture."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        done = subprocess.run([ptxas, "-v", f"--gpu-name=sm_{real}", "-o", cubin.name, architectures.ptx(source)],
                              capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{source.name} for sm_{real}:\n{done.stderr}")
    serialized = SERIALIZED.search(done.stderr + done.stdout)
    if serialized:
        sys.exit(f"{source.name} for sm_{real}: {serialized[0].strip()}")
    found = []
    for part in re.split(r"(?=ptxas info\s+: Compiling entry function)", done.stderr + done.stdout):
        entry, stack, registers = ENTRY.search(part), STACK.search(part), REGISTERS.search(part)
        if entry and stack and registers:
            shared = SHARED.search(part)
            found.append([source.stem, entry[1], real, registers[1], str(int(stack[2]) + int(stack[3])),
                          shared[1] if shared else "0", stack[1]])
    return found


def both(source, real):
    """The rows by the compiler that ships, with what the drivers' gives otherwise."""
    ours = rows(nvidia.ptxas(), source, real)
    if not real.startswith("90"):
        return ours
    theirs = {row[1]: row for row in rows(nvidia.driver_ptxas(), source, real)}
    return [[a if a == b else f"{a} ({b})" for a, b in zip(row, theirs[row[1]])] for row in ours]


def version(ptxas):
    said = subprocess.run([ptxas, "--version"], capture_output=True, text=True).stdout
    return re.search(r"V([\d.]+)", said)[1]


def main():
    found = [row for source in architectures.sources() for real in architectures.REAL[architectures.architecture(source)]
             for row in both(source, real)]
    found.sort(key=lambda row: (row[0], row[1], architectures.REAL["75"].index(row[2][:2])))
    text = HEAD.format(version=version(nvidia.ptxas()), driver=version(nvidia.driver_ptxas())) + "".join(f"| {' | '.join(row)} |\n" for row in found)
    if "--check" in sys.argv[1:]:
        same = TABLE.is_file() and TABLE.read_text() == text
        print("ptxas.md is what ptxas says" if same else "ptxas.md differs from what ptxas says; run kernels/report.py")
        sys.exit(not same)
    TABLE.write_text(text)
    spilled = [row for row in found if row[4] != "0"]
    print(f"{len(found)} rows, {len(spilled)} with spills")


if __name__ == "__main__":
    main()
