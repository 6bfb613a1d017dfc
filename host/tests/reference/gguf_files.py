"""GGUF files as the `gguf` package and ggml's compiled library see them.

usage: gguf_files.py dump FILE           what GGUFReader finds
       gguf_files.py write FILE          writes a file with GGUFWriter and prints what went in
       gguf_files.py types               the block layouts of the package
       gguf_files.py ggml LIBRARY FILE   what gguf_init_from_file of libggml-base.so finds
       gguf_files.py ggml-types LIBRARY  the block layouts of the library

A line is `entry KEY TYPE[ TYPE...] VALUE[,VALUE...]`, with integers in decimal, floats as the hexadecimal
bytes of a little-endian double, strings as those of their UTF-8; or `tensor NAME TYPE DIMS BYTES`.
"""

import ctypes
import struct
import sys


def text(value):
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return struct.pack("<d", value).hex()
    if isinstance(value, str):
        return value.encode().hex()
    return str(int(value))


def entry(key, types, values):
    print("entry", key, *types, ",".join(text(value) for value in values))


def tensor(name, kind, dims, data):
    print("tensor", name, kind, ",".join(str(dim) for dim in dims), data.hex())


def dump(path):
    from gguf import GGUFReader

    reader = GGUFReader(path)
    for key, field in reader.fields.items():
        if key.startswith("GGUF."):
            continue
        value = field.contents()
        entry(key, [kind.name for kind in field.types], value if isinstance(value, list) else [value])
    for t in reader.tensors:
        tensor(t.name, t.tensor_type.name, t.shape.tolist(), t.data.tobytes())


def write(path):
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter

    draw = np.random.default_rng(7)
    writer = GGUFWriter(path, "demo")
    entry("general.architecture", ["STRING"], ["demo"])
    writer.add_custom_alignment(64)
    entry("general.alignment", ["UINT32"], [64])
    ends = {
        "UINT8": [0, 255], "INT8": [-128, 127], "UINT16": [0, 65535], "INT16": [-32768, 32767],
        "UINT32": [0, 2**32 - 1], "INT32": [-2**31, 2**31 - 1], "UINT64": [0, 2**64 - 1],
        "INT64": [-2**63, 2**63 - 1], "BOOL": [False, True], "STRING": ["<s>", "▁höchst \u0000 𝄞"],
        "FLOAT32": [-0.0, 2.0**-149], "FLOAT64": [-1e-310, float("inf")],
    }
    for name, values in ends.items():
        kind = GGUFValueType[name]
        for i, value in enumerate(values):
            writer.add_key_value(f"scalar.{name}.{i}", value, kind)
            entry(f"scalar.{name}.{i}", [name], [value])
        writer.add_key_value(f"array.{name}", values * 3, GGUFValueType.ARRAY, kind)
        entry(f"array.{name}", ["ARRAY", name], values * 3)
    writer.add_array("array.nested", [[1, 2], [3]])
    entry("array.nested", ["ARRAY", "ARRAY", "INT32"], [1, 2, 3])
    tokens = ["<unk>"] + [chr(0x2581) + "t" * (i % 7) + str(i) for i in range(4000)]
    scores = [float(np.float32(-i / 3)) for i in range(4001)]
    writer.add_array("tokenizer.ggml.tokens", tokens)
    entry("tokenizer.ggml.tokens", ["ARRAY", "STRING"], tokens)
    writer.add_array("tokenizer.ggml.scores", scores)
    entry("tokenizer.ggml.scores", ["ARRAY", "FLOAT32"], scores)
    for kind, length, size in layouts():
        for rows in [1, 3]:
            name = f"blk.{rows}.{kind.name}.weight"
            # The writer turns a NumPy shape in bytes into one in elements, and turns it round.
            data = draw.integers(0, 256, (rows, 2 * size), np.uint8)
            writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType(kind))
            tensor(name, kind.name, [2 * length, rows], data.tobytes())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def layouts():
    from gguf import GGML_QUANT_SIZES

    # The package's size of Q8_1, which no file stores, is not ggml's.
    return [(kind, *sizes) for kind, sizes in GGML_QUANT_SIZES.items() if kind.name != "Q8_1"]


def types():
    for kind, length, size in layouts():
        print(int(kind), kind.name, length, size)


class Ggml:
    """The C library through ctypes."""

    class Params(ctypes.Structure):
        _fields_ = [("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p)]

    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, name, result, *args):
        function = getattr(self.library, name)
        function.restype = result
        return function(*args)

    def types(self):
        # 43 is GGML_TYPE_COUNT of ggml 0.25, after Q2_0; the removed types have blocks of no bytes.
        for kind in range(43):
            name = self.call("ggml_type_name", ctypes.c_char_p, kind).decode().upper()
            length = self.call("ggml_blck_size", ctypes.c_int64, kind)
            size = self.call("ggml_type_size", ctypes.c_size_t, kind)
            if size > 0:
                print(kind, name, length, size)

    def dump(self, path):
        file = self.call(
            "gguf_init_from_file", ctypes.c_void_p, path.encode(), self.Params(no_alloc=True, ctx=None)
        )
        if not file:
            sys.exit("ggml refuses the file")
        file = ctypes.c_void_p(file)
        start = self.call("gguf_get_data_offset", ctypes.c_size_t, file)
        data = open(path, "rb").read()[start:]
        for i in range(self.call("gguf_get_n_kv", ctypes.c_int64, file)):
            i = ctypes.c_int64(i)
            print("key", self.call("gguf_get_key", ctypes.c_char_p, file, i).decode())
        for i in range(self.call("gguf_get_n_tensors", ctypes.c_int64, file)):
            i = ctypes.c_int64(i)
            name = self.call("gguf_get_tensor_name", ctypes.c_char_p, file, i).decode()
            kind = self.call("gguf_get_tensor_type", ctypes.c_int, file, i)
            offset = self.call("gguf_get_tensor_offset", ctypes.c_size_t, file, i)
            size = self.call("gguf_get_tensor_size", ctypes.c_size_t, file, i)
            print("tensor", name, kind, data[offset : offset + size].hex())
        self.call("gguf_free", None, file)


def main(verb, *args):
    if verb == "ggml":
        Ggml(args[0]).dump(args[1])
    elif verb == "ggml-types":
        Ggml(args[0]).types()
    else:
        {"dump": dump, "write": write, "types": types}[verb](*args)


main(*sys.argv[1:])
