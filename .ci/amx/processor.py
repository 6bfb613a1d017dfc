"""Bochs' Sapphire Rapids in long mode, with tiles: memory where an address is its own translation, a system of a few instructions, and
two calls to whoever drives it: for a system call, and for what the program may not do."""

import ctypes
import mmap
import os
import struct
import sys

import numpy as np
from tiles import Refused, TileUnit

MEMORY, PAGE, LARGE = 1 << 30, 1 << 12, 1 << 21
# The last 2 MiB are the system's. The first are not there, so that a null pointer faults.
SYSTEM = MEMORY - LARGE
PML4, PDPT, PD, GDT, IDT, TSS, CODE, STACK = (SYSTEM + page * PAGE for page in (0, 1, 2, 3, 4, 5, 6, 16))
SYSTEM_CALL, INVALID_OPCODE = CODE, CODE + 64
# What the processor leaves on its stack: instruction pointer, code segment, flags, stack pointer, stack segment.
FRAME = STACK - 40
REGISTERS = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
# x87, SSE, AVX, the three of AVX-512, PKRU, and the tiles' configuration and data.
XCR0 = 0x602E7


def load():
    """The extension and its C symbols. It asks for two functions of glibc 2.38, which TERCET_ISOC23 has where that is newer."""
    shim = os.environ.get("TERCET_ISOC23")
    if shim:
        ctypes.CDLL(shim, ctypes.RTLD_GLOBAL)
    import bochscpu
    import bochscpu.cpu
    import bochscpu.memory

    return bochscpu, ctypes.CDLL(bochscpu._bochscpu.__file__)


class Leaf(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("eax", "ebx", "ecx", "edx")]


CpuidLeaf = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(Leaf))


def report_tiles(symbols):
    """Has the model's CPUID say AMX-TILE and AMX-INT8, and the one palette there is."""
    name = "_ZNK17sapphire_rapids_t14get_cpuid_leafEjjP16cpuid_function_t"
    plain = CpuidLeaf((name, symbols))
    at = ctypes.cast(getattr(symbols, name), ctypes.c_void_p).value
    table = ctypes.addressof(ctypes.c_uint64.in_dll(symbols, "_ZTV17sapphire_rapids_t"))
    (slot,) = (table + 8 * n for n in range(2, 16) if ctypes.c_uint64.from_address(table + 8 * n).value == at)

    def leaf(this, function, part, found):
        plain(this, function, part, found)
        found = found.contents
        if function == 0:
            found.eax = max(found.eax, 0x1D)
        elif function == 7 and part == 0:
            found.edx |= 0b11 << 24
        elif function == 0x1D:
            found.eax, found.ebx, found.ecx, found.edx = {
                0: (1, 0, 0, 0),
                1: (1024 << 16 | 8192, 8 << 16 | 64, 16, 0),
            }.get(part, (0, 0, 0, 0))

    leaf = CpuidLeaf(leaf)
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(slot & -PAGE), 2 * PAGE, 3) != 0:
        sys.exit("the table of the model's functions cannot be written")
    ctypes.c_uint64.from_address(slot).value = ctypes.cast(leaf, ctypes.c_void_p).value
    return leaf


class Processor:
    def __init__(self):
        self.bochs, symbols = load()
        self.ram = mmap.mmap(-1, MEMORY)
        self.bytes = np.frombuffer(self.ram, np.uint8)
        self.tiles = TileUnit(self.bytes)
        self.choose(symbols)
        self.kept = report_tiles(symbols)
        base = self.bytes.ctypes.data
        for page in range(LARGE, MEMORY, PAGE):
            self.bochs.memory.page_insert(page, base + page)
        self.session = self.bochs.Session()
        self.session.missing_page_handler = lambda at: self.fail(f"no memory at {at:#x}")
        self.cpu = self.session.cpu

    def choose(self, symbols):
        """Sapphire Rapids: the number of the model that says so of itself."""
        get = symbols._ZN13bx_real_sim_c14get_param_enumEPKcP10bx_param_c
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        model = get(ctypes.c_void_p.in_dll(symbols, "SIM"), b"cpu.model", None)
        put = symbols._ZN14bx_param_num_c15set_initial_valEl
        put.restype, put.argtypes = None, [ctypes.c_void_p, ctypes.c_long]
        # Its place in Bochs' list of models; a wrong one has no AMX in its CPUID, and programs say so.
        put(model, 30)

    def write(self, at, data):
        self.ram[at : at + len(data)] = bytes(data)

    def word(self, at, value):
        self.write(at, struct.pack("<Q", value))

    def register(self, number):
        """A general register of the program whose instruction was refused."""
        if REGISTERS[number] == "rsp":
            return struct.unpack_from("<Q", self.ram, FRAME + 24)[0]
        return getattr(self.cpu, REGISTERS[number])

    def tables(self):
        """Pages of 2 MiB that all may write, two levels of code and data, and a gate for instructions that Bochs lacks."""
        self.word(PML4, PDPT | 7)
        self.word(PDPT, PD | 7)
        for page in range(1, MEMORY // LARGE):
            self.word(PD + 8 * page, page * LARGE | 0x87)
        for selector, descriptor in (
            (0x10, 0x00AF9B000000FFFF),
            (0x18, 0x00CF93000000FFFF),
            (0x28, 0x00CFF3000000FFFF),
            (0x30, 0x00AFFB000000FFFF),
        ):
            self.word(GDT + selector, descriptor)
        gate = INVALID_OPCODE
        self.write(IDT + 16 * 6, struct.pack("<HHBBHII", gate & 0xFFFF, 0x10, 0, 0x8E, gate >> 16 & 0xFFFF, gate >> 32, 0))
        self.word(TSS + 4, STACK)
        # sysret
        self.write(SYSTEM_CALL, bytes.fromhex("480f07"))
        # wbinvd, which has a hook; iretq
        self.write(INVALID_OPCODE, bytes.fromhex("0f09 48cf"))

    def segment(self, selector, attributes, base=0, limit=0xFFFFFFFF):
        segment = self.bochs.Segment()
        segment.present, segment.selector, segment.base = True, selector, base
        segment.limit, segment.attr = limit, attributes
        return segment

    def run(self, entry, stack, system_call):
        """Runs a program until `system_call(cpu)` raises SystemExit."""
        self.tables()
        state = self.bochs.State()
        self.bochs.cpu.set_long_mode(state)
        state.cr3 = PML4
        # PAE, FXSR, SIMD exceptions, FSGSBASE, XSAVE.
        state.cr4 = 1 << 5 | 1 << 9 | 1 << 10 | 1 << 16 | 1 << 18
        state.xcr0 = XCR0
        state.rip, state.rsp, state.rflags = entry, stack, 2
        state.star, state.lstar, state.sfmask = 0x23 << 48 | 0x10 << 32, SYSTEM_CALL, 0x200
        state.mxcsr, state.fpcw, state.fptw = 0x1F80, 0x37F, 0xFFFF
        state.cs = self.segment(0x33, 0x22FB)
        for name in ("ds", "ss", "es", "fs", "gs"):
            setattr(state, name, self.segment(0x2B, 0xCF3))
        state.tr = self.segment(0x40, 0x8B, TSS, 0x67)
        for name, base in (("gdtr", GDT), ("idtr", IDT)):
            table = self.bochs.GlobalSegment()
            table.base, table.limit = base, PAGE - 1
            setattr(state, name, table)
        self.cpu.state = state
        self.system_call, self.status = system_call, None
        hook = self.bochs.Hook()
        hook.far_branch, hook.exception, hook.cache_cntrl = self.far_branch, self.exception, self.refused
        self.session.run([hook])
        return self.status

    def stop(self, status):
        self.status = status
        self.session.stop()

    def fail(self, what):
        print(f"emulator: {what}; rip {self.cpu.rip:#x}", file=sys.stderr)
        self.stop(70)

    def far_branch(self, session, cpu, kind, from_cs, from_rip, to_cs, to_rip):
        if to_rip == SYSTEM_CALL:
            try:
                self.cpu.rax = self.system_call(self.cpu) & (1 << 64) - 1
            except SystemExit as end:
                self.stop(end.code)

    def exception(self, session, cpu, vector, error):
        """Only an instruction that the processor lacks goes on: to its gate."""
        if vector != 6:
            self.fail(f"exception {vector} ({error:#x}) at address {self.cpu.cr2:#x}")

    def refused(self, session, cpu, kind):
        """In the gate: executes the instruction, and has the program go on behind it."""
        (rip,) = struct.unpack_from("<Q", self.ram, FRAME)
        try:
            self.word(FRAME, rip + self.tiles.execute(self.ram[rip : rip + 16], self.register))
        except Refused as refused:
            self.fail(f"{refused} at {rip:#x}")
