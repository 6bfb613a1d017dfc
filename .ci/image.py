"""Says whether a firmware image would start on its board, without one. image.py IMAGE MEMORY.X

Reads the ELF file and the regions of the linker script, fails on the first thing that is wrong, and prints what the image takes.
"""

import re
import struct
import sys


class Image:
    """A 32-bit little-endian ELF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        require(self.bytes[:6] == b"\x7fELF\x01\x01", f"{path} is no 32-bit little-endian ELF file")
        program, section = struct.unpack_from("<II", self.bytes, 28)
        program_size, programs, section_size, sections, names = struct.unpack_from("<HHHHH", self.bytes, 42)
        headers = [struct.unpack_from("<10I", self.bytes, section + i * section_size) for i in range(sections)]
        self.sections = {self.text(headers[names], header[0]): header for header in headers}
        segments = [struct.unpack_from("<8I", self.bytes, program + i * program_size) for i in range(programs)]
        # Address when it runs, address where it is written, bytes written, bytes it takes.
        self.loads = [(s[2], s[3], s[4], s[5]) for s in segments if s[0] == 1 and s[5] > 0]
        table, strings = self.sections[".symtab"], self.sections[".strtab"]
        self.symbols = []
        for at in range(table[4], table[4] + table[5], 16):
            name, value, _, _, _, _ = struct.unpack_from("<IIIBBH", self.bytes, at)
            self.symbols.append((self.text(strings, name), value))

    def text(self, strings, offset):
        start = strings[4] + offset
        return self.bytes[start : self.bytes.index(b"\0", start)].decode()

    def section(self, name):
        """Address and bytes of a section that lies in memory."""
        require(name in self.sections, f"there is no section {name}")
        _, _, _, address, offset, size, *_ = self.sections[name]
        return address, self.bytes[offset : offset + size]

    def symbol(self, name):
        found = [value for symbol, value in self.symbols if symbol == name]
        require(found, f"there is no symbol {name}")
        return found[0]

    def instructions(self):
        """Address, first half-word and length of each Thumb instruction; ARM's mapping symbols say where data lies between."""
        start, code = self.section(".text")
        marks = sorted((v, n[1]) for n, v in self.symbols if re.match(r"\$[td](\.|$)", n) and start <= v < start + len(code))
        require(marks, "no symbols tell code from data")
        for (at, kind), (end, _) in zip(marks, marks[1:] + [(start + len(code), "")]):
            while kind == "t" and at < end:
                (half,) = struct.unpack_from("<H", code, at - start)
                length = 4 if half >> 11 in (0b11101, 0b11110, 0b11111) else 2
                yield at, half, length
                at += length


def require(holds, otherwise):
    if not holds:
        sys.exit(f"{sys.argv[1]}: {otherwise}")


def regions(path):
    """First address and the one behind the last of each region of a linker script."""
    with open(path, encoding="utf-8") as file:
        found = re.findall(r"^\s*(\w+)\s*:\s*ORIGIN = (\w+), LENGTH = ([\w -]+)$", file.read(), re.M)

    def number(text):
        first, *rest = (int(t[:-1]) * 1024 if t.endswith("K") else int(t, 0) for t in text.split(" - "))
        return first - sum(rest)

    return {name: (number(origin), number(origin) + number(length)) for name, origin, length in found}


def crc32_mpeg2(data):
    """What the boot ROM of an RP2040 computes: polynomial 0x04C11DB7, from all ones, nothing reflected."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc >> 31 else 0)) & 0xFFFFFFFF
    return crc


def main():
    image, memory = Image(sys.argv[1]), regions(sys.argv[2])
    flash, ram = memory["FLASH"], memory["RAM"]

    def inside(region, start, length):
        return region[0] <= start and start + length <= region[1]

    written = [region for name, region in memory.items() if name != "RAM"]
    for run, load, size, taken in image.loads:
        require(any(inside(region, run, taken) for region in [*written, ram]), f"{run:#x} is no memory of the board")
        require(size == 0 or any(inside(region, load, size) for region in written), f"{load:#x} is not in flash")

    if "BOOT2" in memory:
        address, boot = image.section(".boot2")
        require(address == memory["BOOT2"][0] and len(boot) == 256, "the second boot stage is not the first 256 bytes of flash")
        require(struct.unpack("<I", boot[252:])[0] == crc32_mpeg2(boot[:252]), "the checksum of the second boot stage is wrong")

    start, code = image.section(".text")
    address, table = image.section(".vector_table")
    require(address == flash[0], f"the vectors are at {address:#x}, the processor looks at {flash[0]:#x}")
    stack, reset, *others = struct.unpack(f"<{len(table) // 4}I", table)
    require(reset, "there is no reset vector")
    for vector in [reset, *others]:
        require(vector == 0 or (vector & 1 and start <= vector < start + len(code)), f"the vector {vector:#x} is not Thumb code")

    statics = min(run for run, _, _, _ in image.loads if inside(ram, run, 0))
    require(ram[0] < stack <= statics and stack % 8 == 0, f"the stack begins at {stack:#x}, the statics at {statics:#x}")
    require(statics - stack < 8, "there is a hole between stack and statics")

    require(inside(ram, image.symbol("_SEGGER_RTT"), 24), "the log is not in RAM")
    _, _, flags, *_ = image.sections.get(".defmt", (0, 0, 2))
    require(not flags & 2, "the strings of the log are in flash, or there are none")
    require(any(name.strip('"').startswith("_defmt_version_") for name, _ in image.symbols), "a decoder could not tell defmt's version")

    count = 0
    for at, half, _ in image.instructions():
        require(half != 0xBEAB, f"{at:#x} asks a debugger for semihosting")
        count += 1
    require(count > 1000, "there is hardly any code")

    print(f"flash {sum(size for _, _, size, _ in image.loads)} statics {ram[1] - statics} stack {stack - ram[0]}")


if __name__ == "__main__":
    main()
