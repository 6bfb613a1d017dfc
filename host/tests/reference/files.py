"""Reads model files with the formats' own Python packages, and writes one.

usage: files.py read FILE OUT
       files.py write-gguf FILE
       files.py same-metadata BEFORE AFTER

read: prints a line `name type shape` for each tensor of a GGUF, safetensors or npy file, shape outermost first, and
    writes all their values to OUT, in order, as little-endian f32: blocks dequantized, int8 codes times scales.
write-gguf: writes a GGUF file with a tokenizer, an alignment of its own, and tensors of several types.
same-metadata: fails unless two GGUF files have the same keys, types and values, `general.file_type` and
    `general.quantization_version` apart.
"""

import sys

import gguf
import numpy as np
import safetensors.numpy


def tensors(path):
    if path.endswith(".gguf"):
        for tensor in gguf.GGUFReader(path).tensors:
            integers = tensor.data.dtype.kind == "i"
            values = tensor.data if integers else gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            shape = [int(dim) for dim in reversed(tensor.shape)]
            yield tensor.name, tensor.tensor_type.name.lower(), values.reshape(shape)
    elif path.endswith(".npy"):
        array = np.load(path)
        yield "array", array.dtype.name, array
    else:
        held = safetensors.numpy.load_file(path)
        for name, codes in held.items():
            scale = held.get(f"{name}_scale")
            if scale is None:
                if not name.endswith(("_scale", "_zero_point")):
                    yield name, codes.dtype.name, codes
                continue
            values = codes.astype(np.int16)
            zero = held.get(f"{name}_zero_point")
            # [1], [rows, 1] or [rows, parts]: each scale stands for a run of neighbours.
            parts = scale.shape[-1] if scale.size > 1 else 1
            runs = values.reshape(*codes.shape[:-1], parts, -1)
            if zero is not None:
                runs = runs - zero.astype(np.int16).reshape(zero.shape if zero.size > 1 else 1)[..., None]
            scale = scale.reshape(scale.shape if scale.size > 1 else 1)[..., None]
            yield name, codes.dtype.name, (runs.astype(np.float32) * scale).reshape(codes.shape)


def read(path, out):
    with open(out, "wb") as file:
        for name, kind, values in tensors(path):
            print(name, kind, "x".join(map(str, values.shape)))
            file.write(values.astype("<f4").tobytes())


def write_gguf(path):
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_custom_alignment(64)
    writer.add_name("a name with ünïcode")
    writer.add_block_count(1)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_bool("demo.flag", True)
    writer.add_int64("demo.negative", -(2**40))
    writer.add_float64("demo.third", 1 / 3)
    writer.add_file_type(1)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["<s>", "</s>", "ünï", ""])
    writer.add_token_scores([0.0, -1.5, 2.0, 1e-30])
    writer.add_token_types([3, 3, 1, 1])
    weights = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    writer.add_tensor("token_embd.weight", weights(4, 256))
    writer.add_tensor("blk.0.ffn_up.weight", weights(3, 2, 512).astype(np.float16))
    writer.add_tensor("blk.0.attn_norm.weight", weights(256))
    writer.add_tensor("blk.0.ids", np.arange(6, dtype=np.int32).reshape(2, 3))
    q5 = gguf.quants.quantize(weights(2, 64), gguf.GGMLQuantizationType.Q5_0)
    writer.add_tensor("blk.0.q5.weight", q5, raw_dtype=gguf.GGMLQuantizationType.Q5_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def fields(path):
    skipped = ("GGUF.", "general.file_type", "general.quantization_version")
    found = gguf.GGUFReader(path).fields
    return {key: (field.types, field.contents()) for key, field in found.items() if not key.startswith(skipped)}


def same_metadata(before, after):
    before, after = fields(before), fields(after)
    assert before, "no metadata"
    assert list(before) == list(after), (list(before), list(after))
    for key, value in before.items():
        assert value == after[key], (key, value, after[key])
    print(len(before))


if __name__ == "__main__":
    {"read": read, "write-gguf": write_gguf, "same-metadata": same_metadata}[sys.argv[1]](*sys.argv[2:])
