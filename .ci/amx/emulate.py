"""Runs a static x86-64 program for Linux on an emulated processor with AMX: emulate.py PROGRAM [NAME=VALUE…] [ARGUMENT…]

The processor is Bochs' Sapphire Rapids (bochscpu-python of PyPI, compiled without AMX); its tiles are tiles.py. The program has one
thread, and gets the system calls that it takes to start, to allocate and to print. The status is the program's, or 70 where it could
not go on."""

import os
import struct
import sys
import time

from processor import LARGE, PAGE, SYSTEM, Processor

HEAP, STACK_TOP = 1 << 28, SYSTEM
ENOENT, EAGAIN, ENOMEM, ENOSYS, EINVAL = 2, 11, 12, 38, 22
ARCH_SET_FS, ARCH_REQ_XCOMP_PERM, XTILEDATA = 0x1002, 0x1023, 18


class Linux:
    """What one program asks its system for."""

    def __init__(self, processor):
        self.processor = processor
        self.next = HEAP
        self.brk = self.end = 0
        self.permitted = False
        self.unknown = set()

    def load(self, path, arguments, environment):
        """Maps a program and its first stack; gives where it begins and where the stack does."""
        with open(path, "rb") as file:
            elf = file.read()
        kind, machine, _, entry, headers = struct.unpack_from("<HHIQQ", elf, 16)
        size, count = struct.unpack_from("<HH", elf, 54)
        if elf[:5] != b"\x7fELF\x02" or (kind, machine) != (2, 62):
            sys.exit(f"{path} is no static x86-64 program at a fixed address")
        at_headers = 0
        for n in range(count):
            kind, _, offset, address, _, in_file, in_memory, _ = struct.unpack_from("<IIQQQQQQ", elf, headers + n * size)
            if kind == 1:
                if not LARGE <= address <= address + in_memory <= HEAP:
                    sys.exit(f"{path}: {in_memory} bytes at {address:#x}")
                self.processor.write(address, elf[offset : offset + in_file])
                self.end = max(self.end, -(-(address + in_memory) // PAGE) * PAGE)
                if offset <= headers < offset + in_file:
                    at_headers = address + headers - offset
        self.brk = self.end
        top = STACK_TOP

        def push(data):
            nonlocal top
            top -= len(data)
            self.processor.write(top, data)
            return top

        words = [[push(word.encode() + b"\0") for word in words] for words in ((path, *arguments), environment)]
        random = push(bytes(range(16)))
        # AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ, AT_ENTRY, AT_SECURE, AT_RANDOM, and the end.
        vector = [(3, at_headers), (4, size), (5, count), (6, PAGE), (9, entry), (23, 0), (25, random), (0, 0)]
        stack = [len(words[0]), *words[0], 0, *words[1], 0, *(value for pair in vector for value in pair)]
        top = (top - 8 * len(stack)) // 16 * 16
        self.processor.write(top, struct.pack(f"<{len(stack)}Q", *stack))
        return entry, top

    def __call__(self, cpu):
        number = cpu.rax
        call = getattr(self, CALLS.get(number, ""), None)
        if call is None:
            self.unknown.add(number)
            return -ENOSYS
        return call(cpu.rdi, cpu.rsi, cpu.rdx)

    def ignored(self, *_):
        return 0

    def absent(self, *_):
        return -ENOENT

    def write(self, file, at, length):
        os.write(file if file in (1, 2) else 2, self.processor.ram[at : at + length])
        return length

    def set_brk(self, at, *_):
        """What is given back comes as zeros when it is given again, on which calloc relies."""
        if self.end <= at < HEAP:
            self.processor.write(at, bytes(max(self.brk - at, 0)))
            self.brk = at
        return self.brk

    def map(self, at, length, _):
        """Always anew, and so always zeros: nothing that was given back is given again."""
        length = -(-length // PAGE) * PAGE
        if self.next + length > STACK_TOP - 8 * LARGE:
            return -ENOMEM
        self.next += length
        return self.next - length

    def arch_prctl(self, code, value, _):
        if code == ARCH_SET_FS:
            segment = self.processor.cpu.fs
            segment.base = value
            self.processor.cpu.fs = segment
            return 0
        if (code, value) == (ARCH_REQ_XCOMP_PERM, XTILEDATA):
            self.permitted = True
            return 0
        return -EINVAL

    def get_time(self, clock, at, _):
        now = time.clock_gettime_ns(clock)
        self.processor.write(at, struct.pack("<QQ", now // 10**9, now % 10**9))
        return 0

    def get_random(self, at, length, _):
        """The same each time."""
        self.processor.write(at, bytes(n & 255 for n in range(length)))
        return length

    def get_affinity(self, _, length, at):
        """One processor."""
        self.processor.write(at, b"\1" + bytes(7))
        return 8

    def get_id(self, *_):
        return 1

    def exit(self, status, *_):
        raise SystemExit(status & 255)


# What is ignored: close, mprotect, munmap, rt_sigaction, rt_sigprocmask, madvise, sigaltstack, set_tid_address, set_robust_list,
# poll, futex, sched_yield. What is absent: open, readlink, openat, readlinkat.
CALLS = {1: "write", 9: "map", 12: "set_brk", 39: "get_id", 60: "exit", 158: "arch_prctl", 186: "get_id", 204: "get_affinity"}
CALLS |= {228: "get_time", 231: "exit", 318: "get_random"}
CALLS |= dict.fromkeys((3, 7, 10, 11, 13, 14, 24, 28, 131, 202, 218, 273), "ignored")
CALLS |= dict.fromkeys((2, 89, 257, 267), "absent")


def main():
    program, *words = sys.argv[1:]
    environment = [word for word in words if "=" in word]
    processor = Processor()
    linux = Linux(processor)
    entry, stack = linux.load(program, [word for word in words if "=" not in word], environment)
    started = time.monotonic()
    status = processor.run(entry, stack, linux)
    counts = processor.tiles.counts
    if counts and not linux.permitted:
        print("emulator: tiles were used without the system's leave", file=sys.stderr)
        status = 70
    used = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    unknown = f"; unknown system calls: {sorted(linux.unknown)}" if linux.unknown else ""
    print(f"emulator: {time.monotonic() - started:.1f} s; {used or 'no tiles'}{unknown}", file=sys.stderr)
    sys.stdout.flush()
    # Without the extension's long farewell.
    os._exit(status)


if __name__ == "__main__":
    main()
