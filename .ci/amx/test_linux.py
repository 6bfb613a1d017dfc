"""The system that the emulated programs find, against what Linux promises them."""

import types
import unittest

from emulate import Linux


class Memory:
    """A processor's, and nothing else of it."""

    def __init__(self):
        self.ram = bytearray(1 << 12)

    def write(self, at, data):
        self.ram[at : at + len(data)] = data


class Heap(unittest.TestCase):
    def test_what_was_given_back_comes_as_zeros(self):
        linux = Linux(Memory())
        linux.brk = linux.end = 0x100
        call = lambda at: linux(types.SimpleNamespace(rax=12, rdi=at, rsi=0, rdx=0))
        self.assertEqual(call(0x300), 0x300)
        linux.processor.write(0x100, b"\1" * 0x200)
        self.assertEqual(call(0x200), 0x200)
        self.assertEqual(call(0x300), 0x300)
        self.assertEqual(linux.processor.ram[0x100:0x300], b"\1" * 0x100 + bytes(0x100))
        self.assertEqual(call(0), 0x300)


unittest.main()
