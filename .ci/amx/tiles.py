"""The tile instructions of AMX-int8, by Intel's definition of them (Software Developer's Manual, volume 2): what the emulated
processor lacks. A shape or an operand that the manual refuses is an error here, as it is a fault there."""

import struct

import numpy as np

ROW, ROWS, TILES = 64, 16, 8


class Refused(Exception):
    """What a processor would raise a fault for."""


def require(condition, what):
    if not condition:
        raise Refused(what)


class TileUnit:
    """The tiles and their configuration. `memory` holds what programs address, from 0 on, as bytes."""

    def __init__(self, memory):
        self.memory = memory
        self.counts = {}
        self.release()

    def release(self):
        self.configured = False
        self.rows = [0] * TILES
        self.row_bytes = [0] * TILES
        self.tiles = np.zeros((TILES, ROWS, ROW), np.uint8)

    def execute(self, code, register):
        """Executes the instruction at the head of `code`, and gives its length. `register(n)` is a general register's value."""
        require(code[0] == 0xC4 and code[1] & 0x1F == 2 and code[2] & 0x84 == 0, "not a tile instruction")
        prefix, opcode, mode, field, low = code[2] & 3, code[3], code[4] >> 6, code[4] >> 3 & 7, code[4] & 7
        other = ~(code[2] >> 3) & 15
        name, length = {
            (0, 0x49, True): ("tilerelease" if code[4] == 0xC0 else None, 5),
            (0, 0x49, False): ("ldtilecfg" if field == 0 else None, None),
            (3, 0x49, True): ("tilezero" if low == 0 else None, 5),
            (3, 0x4B, False): ("tileloadd", None),
            (2, 0x4B, False): ("tilestored", None),
            (3, 0x5E, True): ("tdpbssd", 5),
            (2, 0x5E, True): ("tdpbsud", 5),
            (1, 0x5E, True): ("tdpbusd", 5),
            (0, 0x5E, True): ("tdpbuud", 5),
        }.get((prefix, opcode, mode == 3), (None, None))
        require(name, f"not a tile instruction: {bytes(code[:8]).hex()}")
        self.counts[name] = self.counts.get(name, 0) + 1
        if name == "tilerelease":
            self.release()
        elif name == "ldtilecfg":
            base, stride, length = address(code, register)
            self.configure(base)
        elif name == "tilezero":
            self.whole(field)
            self.tiles[field] = 0
        elif name in ("tileloadd", "tilestored"):
            require(low == 4, f"{name} without a stride")
            base, stride, length = address(code, register)
            self.move(field, base, stride, name == "tileloadd")
        else:
            self.multiply(name, field, low, other)
        return length

    def configure(self, at):
        data = self.memory[at : at + 64].tobytes()
        row_bytes, rows = struct.unpack_from("<16H", data, 16), struct.unpack_from("16B", data, 48)
        require(data[0] == 1 and data[1] == 0 and not any(data[2:16]), "ldtilecfg: the head")
        require(not any(row_bytes[TILES:]) and not any(rows[TILES:]), "ldtilecfg: more tiles than there are")
        for width, height in zip(row_bytes, rows):
            require(width <= ROW and height <= ROWS and (width == 0) == (height == 0), f"ldtilecfg: {height} × {width}")
        self.release()
        self.configured, self.rows, self.row_bytes = True, list(rows[:TILES]), list(row_bytes[:TILES])

    def whole(self, tile):
        require(self.configured and tile < TILES and self.rows[tile], f"tile {tile} is not configured")
        return self.rows[tile], self.row_bytes[tile]

    def move(self, tile, base, stride, load):
        rows, width = self.whole(tile)
        if load:
            self.tiles[tile] = 0
        for row in range(rows):
            at = base + row * stride
            require(0 < at and at + width <= len(self.memory), f"row at {at:#x}")
            if load:
                self.tiles[tile, row, :width] = self.memory[at : at + width]
            else:
                self.memory[at : at + width] = self.tiles[tile, row, :width]

    def multiply(self, name, sums, a, b):
        (rows, width), (a_rows, a_width), (b_rows, b_width) = self.whole(sums), self.whole(a), self.whole(b)
        require(len({sums, a, b}) == 3, f"{name}: one tile twice")
        require(rows == a_rows and width == b_width and a_width == 4 * b_rows and width % 4 == 0, f"{name}: shapes")
        signs = {"s": np.int8, "u": np.uint8}
        # For each word k of a row of `a`, the row k of `b`: four bytes of one with four of the other.
        left = self.tiles[a, :rows, :a_width].view(signs[name[4]]).astype(np.int64)
        right = self.tiles[b, :b_rows, :width].view(signs[name[5]]).astype(np.int64)
        right = right.reshape(b_rows, width // 4, 4).transpose(0, 2, 1).reshape(a_width, width // 4)
        total = self.tiles[sums, :rows, :width].view(np.int32) + left @ right
        self.tiles[sums] = 0
        # Modulo 2³².
        self.tiles[sums, :rows, :width] = total.astype(np.uint64).astype(np.uint32).view(np.uint8).reshape(rows, width)


def address(code, register):
    """The base and the stride that an instruction's memory operand says, and the instruction's length."""
    mode, low = code[4] >> 6, code[4] & 7
    require(mode != 3, "a register for memory")
    at = 5
    if low == 4:
        scale, index, base = code[5] >> 6, code[5] >> 3 & 7, code[5] & 7
        at = 6
        index |= (~code[1] >> 6 & 1) << 3
        stride = 0 if index == 4 else register(index) << scale
        if base == 5 and mode == 0:
            origin, size = 0, 4
        else:
            origin, size = register(base | (~code[1] >> 5 & 1) << 3), (0, 1, 4)[mode]
    else:
        require((mode, low) != (0, 5), "an address beside the code")
        stride = 0
        origin, size = register(low | (~code[1] >> 5 & 1) << 3), (0, 1, 4)[mode]
    displacement = int.from_bytes(bytes(code[at : at + size]), "little", signed=True)
    if stride >= 1 << 63:
        stride -= 1 << 64
    return (origin + displacement) % (1 << 64), stride, at + size
