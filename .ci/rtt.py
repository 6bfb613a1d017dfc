"""Starts an image in QEMU and writes to stdout what it logs by RTT. rtt.py IMAGE MACHINE

A debug probe would read the log from RAM while the program runs; here QEMU's monitor saves the RAM until nothing more comes. The
image is the one for the board, unchanged; MACHINE has its processor and memory, and not much more of it.
"""

import struct
import subprocess
import sys
import tempfile
import time

from image import Image, require

RAM = 0x2000_0000
LENGTH = 128 * 1024
# What is not logged after that much time is not waited for.
LIMIT = 60


def frames(ram, block):
    """The bytes that are in the up channel of the control block at that address."""
    (name,) = struct.unpack_from("<16s", ram, block - RAM)
    if name != b"SEGGER RTT\0\0\0\0\0\0":
        return b""
    _, buffer, size, end, start, _ = struct.unpack_from("<6I", ram, block - RAM + 24)
    require(start == 0 and end < size - 1, "the log has run over its buffer")
    return ram[buffer - RAM : buffer - RAM + end]


def main():
    path, machine = sys.argv[1:]
    block = Image(path).symbol("_SEGGER_RTT")
    command = ["qemu-system-arm", "-M", machine, "-display", "none", "-serial", "null", "-monitor", "stdio", "-kernel", path]
    with tempfile.NamedTemporaryFile() as saved, subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as qemu:
        log, before, until = b"", None, time.monotonic() + LIMIT
        while time.monotonic() < until and (log != before or not log):
            before = log
            time.sleep(1)
            qemu.stdin.write(f'pmemsave {RAM:#x} {LENGTH} "{saved.name}"\n')
            qemu.stdin.flush()
            time.sleep(0.5)
            with open(saved.name, "rb") as file:
                ram = file.read()
            log = frames(ram, block) if len(ram) == LENGTH else b""
        qemu.stdin.write("quit\n")
        qemu.stdin.close()
    require(log, f"nothing was logged in {LIMIT} s")
    sys.stdout.buffer.write(log)


main()
