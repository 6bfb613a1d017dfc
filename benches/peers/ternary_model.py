"""A ternary language model of random weights, with the layers of BitNet b1.58 2B-4T: a GGUF file to time, whose text is noise.

    python ternary_model.py [--layers 12] [--seed 1] FILE

Architecture bitnet: width 2560, feed-forward 6912, heads 20:5 of 128, TQ2_0 with one scale a matrix, and 260 tokens: bytes, three control tokens and
one merge. A layer has 69.5 M weights, 17.9 MB. The interpreter needs NumPy and gguf.
"""

import argparse

import gguf
import numpy as np

WIDTH, FEED_FORWARD, HEADS, KEY_HEADS, HEAD = 2560, 6912, 20, 5, 128
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


def embedding(random, tokens):
    """Blocks of Q8_0, small for control tokens, so that none is drawn and ends a text."""
    blocks = np.empty((tokens, WIDTH // 32, 34), np.uint8)
    blocks[..., 2:] = random.integers(-127, 128, (tokens, WIDTH // 32, 32), np.int8).view(np.uint8)
    blocks[..., :2] = np.array([1 / 64], np.float16).view(np.uint8)
    blocks[256:259, :, :2] = np.array([1 / 16384], np.float16).view(np.uint8)
    return blocks.reshape(tokens, -1)


def describe(writer, layers):
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(500000.0)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_TQ2_0)
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
    parser.add_argument("--layers", default=12, type=int)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("file")
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    writer = gguf.GGUFWriter(asked.file, "bitnet")
    tokens = describe(writer, asked.layers)
    writer.add_tensor("token_embd.weight", embedding(random, tokens), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    keys = KEY_HEADS * HEAD
    for layer in range(asked.layers):
        for name, width in [("attn_norm", WIDTH), ("attn_sub_norm", WIDTH), ("ffn_norm", WIDTH), ("ffn_sub_norm", FEED_FORWARD)]:
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(width, np.float32))
        for name, rows, columns in [
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", keys, WIDTH),
            ("attn_v", keys, WIDTH),
            ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", FEED_FORWARD, WIDTH),
            ("ffn_up", FEED_FORWARD, WIDTH),
            ("ffn_down", WIDTH, FEED_FORWARD),
        ]:
            blocks = ternary(random, rows, columns)
            writer.add_tensor(f"blk.{layer}.{name}.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.TQ2_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
