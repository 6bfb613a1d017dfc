"""A language model of random weights, with the layers of a real one: a GGUF file to time, whose text is noise.

    python random_model.py [--shape bitnet] [--layers 12] [--seed 1] FILE

--shape bitnet: BitNet b1.58 2B-4T. Width 2560, feed-forward 6912, heads 20:5 of 128, TQ2_0 with one scale a matrix. A layer has 69.5 M weights, 17.9 MB.
--shape llama: TinyLlama 1.1B. Width 2048, feed-forward 5632, heads 32:4 of 64, F16. A layer has 44.0 M weights, 88.1 MB.

The vocabulary has 260 tokens: bytes, three control tokens and one merge. The interpreter needs NumPy and gguf.
"""

import argparse
from collections import namedtuple

import gguf
import numpy as np

Shape = namedtuple("Shape", "width feed_forward heads key_heads head rope_base file_type")
SHAPES = {
    "bitnet": Shape(2560, 6912, 20, 5, 128, 500000.0, gguf.LlamaFileType.MOSTLY_TQ2_0),
    "llama": Shape(2048, 5632, 32, 4, 64, 10000.0, gguf.LlamaFileType.MOSTLY_F16),
}
CONTEXT = 4096


def letters():
    """GPT-2's letter of each byte."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printed else next(others)) for byte in range(256)]


def ternary(random, rows, columns):
    """Blocks of TQ2_0 with codes 0, 1, 2 that are equally likely, and a scale that keeps the variance of what is multiplied."""
    four = np.array([sum((index // 3**at % 3) << 2 * at for at in range(4)) for index in range(81)], np.uint8)
    blocks = np.empty((rows, columns // 256, 66), np.uint8)
    blocks[..., :64] = four[random.integers(0, 81, (rows, columns // 256, 64), np.uint8)]
    blocks[..., 64:] = np.array([(1.5 / columns) ** 0.5], np.float16).view(np.uint8)
    return blocks.reshape(rows, -1)


def floats(random, rows, columns):
    """F16 values that keep the variance of what is multiplied."""
    return (random.standard_normal((rows, columns), np.float32) * columns**-0.5).astype(np.float16)


def float_embedding(random, tokens, width):
    """F16 values, small for control tokens, so that none is drawn and ends a text."""
    values = floats(random, tokens, width)
    values[256:259] *= np.float16(1 / 64)
    return values


def embedding(random, tokens, width):
    """The same as blocks of Q8_0."""
    blocks = np.empty((tokens, width // 32, 34), np.uint8)
    blocks[..., 2:] = random.integers(-127, 128, (tokens, width // 32, 32), np.int8).view(np.uint8)
    blocks[..., :2] = np.array([1 / 64], np.float16).view(np.uint8)
    blocks[256:259, :, :2] = np.array([1 / 16384], np.float16).view(np.uint8)
    return blocks.reshape(tokens, -1)


def describe(writer, shape, layers):
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.key_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.head)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_file_type(shape.file_type)
    writer.add_quantization_version(2)
    tokens = [*letters(), "<|bos|>", "<|eos|>", "<|pad|>", "th"]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3] * 3 + [1])
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    writer.add_pad_token_id(258)
    writer.add_add_bos_token(True)
    return len(tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="bitnet", choices=SHAPES)
    parser.add_argument("--layers", default=12, type=int)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("file")
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    shape = SHAPES[asked.shape]
    width, hidden, keys = shape.width, shape.feed_forward, shape.key_heads * shape.head
    queries = shape.heads * shape.head
    writer = gguf.GGUFWriter(asked.file, asked.shape)
    tokens = describe(writer, shape, asked.layers)
    if asked.shape == "bitnet":
        writer.add_tensor("token_embd.weight", embedding(random, tokens, width), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    else:
        writer.add_tensor("token_embd.weight", float_embedding(random, tokens, width))
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    norms = [("attn_norm", width), ("ffn_norm", width)]
    if asked.shape == "bitnet":
        norms += [("attn_sub_norm", queries), ("ffn_sub_norm", hidden)]
    for layer in range(asked.layers):
        for name, length in norms:
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(length, np.float32))
        for name, rows, columns in [
            ("attn_q", queries, width),
            ("attn_k", keys, width),
            ("attn_v", keys, width),
            ("attn_output", width, queries),
            ("ffn_gate", hidden, width),
            ("ffn_up", hidden, width),
            ("ffn_down", width, hidden),
        ]:
            name = f"blk.{layer}.{name}.weight"
            if asked.shape == "bitnet":
                writer.add_tensor(name, ternary(random, rows, columns), raw_dtype=gguf.GGMLQuantizationType.TQ2_0)
            else:
                writer.add_tensor(name, floats(random, rows, columns))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
