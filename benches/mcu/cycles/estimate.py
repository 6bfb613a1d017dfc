#!/usr/bin/env python3
"""Estimates how many tokens a second the language model of `cargo firmware BOARD story` writes on two real chips.

    estimate.py ELF CHIP      # stm32f411 with the image of `story` for an386, or rp2040 with that for an385:thumbv6m-none-eabi

Wants qemu-system-arm with plugins, a C compiler and arm-none-eabi-objdump. An estimate, not a measurement: QEMU counts instructions and
knows no cycles. Here each instruction takes the cycles that Arm's manuals state for the core (Cortex-M4 r0p1, 3.3; Cortex-M0+ r0p1, 3.3), and
each line of flash that is not in the chip's cache its wait states. What is not modelled: the
bus matrix, contention, loads that overlap.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# What runs beside the model: painting the stack, and printing.
BESIDE = ("cortex_m_stack", "semihosting", "write_file")
# By chip: QEMU's board, megahertz, and the cycles that a missed line costs.
CHIPS = {
    # 3 wait states at 100 MHz and 3.3 V.
    "stm32f411": ("mps2-an386", 100, 3),
    # 8 bytes by the second boot stage W25Q080: 12 clocks of address, mode and dummy, 16 of data and 2 between, of two cycles each.
    "rp2040": ("mps2-an385", 125, 60),
}


def registers(operands):
    """How many registers a list in braces has."""
    names = re.search(r"\{(.*)\}", operands).group(1)
    count = 0
    for part in names.split(","):
        ends = re.findall(r"[rs](\d+)", part)
        count += int(ends[1]) - int(ends[0]) + 1 if "-" in part and len(ends) == 2 else 1
    return count


def cycles(chip, mnemonic, operands):
    """Cycles of an instruction whose code and data are there at once; branches as though taken three of four times."""
    small = chip == "rp2040"
    name = mnemonic.split(".")[0]
    if name in ("ldm", "ldmia", "ldmdb", "stm", "stmia", "stmdb", "push", "pop", "vpush", "vpop", "vldmia", "vstmia"):
        return 1 + registers(operands)
    if name in ("ldrd", "strd"):
        return 3
    if name.startswith(("ldr", "vldr", "tbb", "tbh")):
        return 2
    if name.startswith(("str", "vstr")):
        return 2 if small else 1
    if name in ("udiv", "sdiv"):
        return 7
    if name in ("vdiv", "vsqrt"):
        return 14
    if name.startswith(("vmla", "vmls", "vfma")):
        return 3
    if name in ("bl", "blx"):
        return 3
    if name == "bx":
        return 2 if small else 3
    if name in ("b", "cbz", "cbnz") or (name.startswith("b") and name[1:] in CONDITIONS):
        taken = 2 if small else 3
        return taken if name == "b" else (3 * taken + 1) / 4
    return 1


CONDITIONS = ("eq", "ne", "cs", "cc", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le")


def listing(elf):
    """Address, symbol, mnemonic and operands of each instruction."""
    command = ["arm-none-eabi-objdump", "-d", "-C", "--no-show-raw-insn", elf]
    symbol = ""
    for line in subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        if found := re.match(r"[0-9a-f]+ <(.*)>:", line):
            symbol = found.group(1)
        elif found := re.match(r"\s+([0-9a-f]+):\s+(\S+)\s*(.*)", line):
            yield int(found.group(1), 16), symbol, found.group(2), found.group(3)


def main(elf, chip):
    machine, megahertz, wait = CHIPS[chip]
    with tempfile.TemporaryDirectory() as folder:
        plugin, out = Path(folder) / "libtrace.so", Path(folder) / "trace.txt"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", plugin, HERE / "trace.c"], check=True)
        command = ["qemu-system-arm", "-M", machine, "-nographic", "-monitor", "none", "-icount", "shift=7"]
        command += ["-semihosting-config", "enable=on,target=native", "-plugin", f"{plugin},chip={chip},out={out}", "-kernel", elf]
        said = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout
        lines = [line.split() for line in out.read_text().splitlines()]
    ran = {int(address, 16): int(count) for kind, address, count in lines if kind == "ran"}
    missed = {what: int(count) for kind, what, count in lines if kind == "missed"}
    token = int(re.search(r"# instructions token_64 (\d+)", said).group(1))
    total = busy = 0
    for address, symbol, mnemonic, operands in listing(elf):
        count = ran.get(address, 0)
        if count and not any(beside in symbol for beside in BESIDE):
            total += count
            busy += count * cycles(chip, mnemonic, operands)
    waited = {what: count * wait for what, count in missed.items()}
    per = (busy + sum(waited.values())) / total
    print(f"{chip}, {megahertz} MHz: {token} instructions a token; {busy / total:.2f} cycles an instruction, and waiting for flash "
          f"{waited['instructions'] / total:.2f} for code and {waited['data'] / total:.2f} for data; "
          f"{token * per / 1e6:.2f} million cycles a token, {megahertz * 1e6 / (token * per):.1f} tokens a second")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in CHIPS:
        sys.exit(__doc__)
    main(*sys.argv[1:])
