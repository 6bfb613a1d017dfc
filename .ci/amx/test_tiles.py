"""The model of the tile instructions against numbers worked out one by one, and against what it must refuse."""

import random
import struct
import unittest

import numpy as np
from tiles import Refused, TileUnit

CONFIG, A, B, C = 0x1000, 0x2000, 0x3000, 0x4000
# As an assembler writes them.
LDTILECFG = bytes.fromhex("c4e2784900")  # [rax]
TILERELEASE = bytes.fromhex("c4e27849c0")
TILEZERO_0 = bytes.fromhex("c4e27b49c0")
LOAD = {4: "c4e27b4b2437", 6: "c4a27b4b341a", 7: "c4827b4b7c2840"}  # [rdi+rsi], [rdx+r11], [r8+r13+0x40]
STORE_0 = bytes.fromhex("c4827a4b042b")  # [r11+r13]
PRODUCTS = {"tdpbssd": "c4e24b5ec4", "tdpbsud": "c4e24a5ec4", "tdpbusd": "c4e2495ec4", "tdpbuud": "c4e2485ec4"}  # tmm0, tmm4, tmm6


class Tiles(unittest.TestCase):
    def setUp(self):
        self.memory = np.zeros(1 << 16, np.uint8)
        self.unit = TileUnit(self.memory)
        self.registers = [0] * 16

    def execute(self, code):
        """An instruction, with what follows it."""
        code = bytes.fromhex(code) if isinstance(code, str) else code
        self.assertEqual(self.unit.execute(code + bytes(8), self.registers.__getitem__), len(code))

    def configure(self, shapes, head=b"\1\0"):
        rows, widths = bytearray(16), [0] * 16
        for tile, (height, width) in shapes.items():
            rows[tile], widths[tile] = height, width
        data = head + bytes(16 - len(head)) + struct.pack("<16H", *widths) + rows
        self.memory[CONFIG : CONFIG + 64] = np.frombuffer(data, np.uint8)
        self.registers[0] = CONFIG
        self.execute(LDTILECFG)

    def test_products_are_sums_of_four_bytes_by_four(self):
        draw = random.Random(1)
        for name, code in PRODUCTS.items():
            for m, n, k in ((16, 16, 16), (1, 1, 1), (7, 3, 5), (16, 2, 9)):
                self.configure({0: (m, 4 * n), 4: (m, 4 * k), 6: (k, 4 * n)})
                bytes_of = lambda rows, words: [[draw.choice((0, 127, 128, 255, draw.randrange(256))) for _ in range(4 * words)] for _ in range(rows)]
                a, b = bytes_of(m, k), bytes_of(k, n)
                for at, stride, rows in ((A, 80, a), (B, 96, b)):
                    for row, values in enumerate(rows):
                        self.memory[at + row * stride : at + row * stride + len(values)] = values
                self.registers[7], self.registers[6], self.registers[2], self.registers[11] = A, 80, B, 96
                self.execute(TILEZERO_0)
                self.execute(LOAD[4])
                self.execute(LOAD[6])
                self.execute(code)
                self.execute(code)
                self.registers[11], self.registers[13] = C, 64
                self.execute(STORE_0)
                value = lambda byte, sign: byte - 256 if sign == "s" and byte > 127 else byte
                for i in range(m):
                    for j in range(n):
                        expected = 2 * sum(value(a[i][4 * p + q], name[4]) * value(b[p][4 * j + q], name[5]) for p in range(k) for q in range(4))
                        (found,) = struct.unpack_from("<i", self.memory.tobytes(), C + 64 * i + 4 * j)
                        self.assertEqual(found, expected, (name, i, j))

    def test_sums_wrap(self):
        self.configure({0: (1, 4), 4: (1, 4), 6: (1, 4)})
        self.unit.tiles[0, 0, :4] = [255, 255, 255, 127]
        self.unit.tiles[4, 0, 0], self.unit.tiles[6, 0, 0] = 1, 1
        self.execute(PRODUCTS["tdpbssd"])
        self.assertEqual(self.unit.tiles[0, 0, :4].tolist(), [0, 0, 0, 128])

    def test_what_a_processor_refuses_is_refused(self):
        with self.assertRaises(Refused):
            self.execute(TILEZERO_0)
        for shapes, head in (({0: (17, 4)}, b"\1\0"), ({0: (1, 65)}, b"\1\0"), ({0: (0, 4)}, b"\1\0"), ({0: (1, 4)}, b"\2\0"), ({9: (1, 4)}, b"\1\0"), ({}, b"\1\0\1")):
            with self.assertRaises(Refused):
                self.configure(shapes, head)
        for shapes in ({0: (2, 4), 4: (1, 4), 6: (1, 4)}, {0: (1, 8), 4: (1, 4), 6: (1, 4)}, {0: (1, 4), 4: (1, 8), 6: (1, 4)}, {0: (1, 4), 4: (1, 4)}):
            self.configure(shapes)
            with self.assertRaises(Refused):
                self.execute(PRODUCTS["tdpbsud"])
        self.configure({0: (1, 4), 4: (1, 4), 6: (1, 4)})
        self.execute(TILERELEASE)
        for code in (PRODUCTS["tdpbssd"], LOAD[4], "c4e24b5ee4", "0f0b"):
            with self.assertRaises(Refused):
                self.execute(code)

    def test_a_load_clears_what_it_does_not_fill(self):
        self.configure({7: (2, 8)})
        self.unit.tiles[7] = 9
        self.memory[A + 0x40 : A + 0x48] = 5
        self.registers[8], self.registers[13] = A, 64
        self.execute(LOAD[7])
        self.assertEqual(self.unit.tiles[7].sum(), 8 * 5)


unittest.main()
