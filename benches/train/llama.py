"""Writes weights of `model.py` as a GGUF file of the architecture `llama`, in f32."""

import gguf

import model

NAMES = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output"}
NAMES |= {"gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
OUTSIDE = {"embedding": "token_embd.weight", "norm": "output_norm.weight"}


def neighbours(rows, heads):
    """Rows of queries or keys whose pairs are half a head apart, in the order of `llama`: the two of a pair together."""
    halves = rows.reshape(heads, 2, -1, rows.shape[-1])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def write(path, config, weights, tokenizer):
    """Writes a model with the tokenizer of another file. Its norms that a `llama` lacks are left out."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.ff)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_layer_norm_rms_eps(model.EPS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(config.vocabulary)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for field in gguf.GGUFReader(tokenizer).fields.values():
        if field.name.startswith("tokenizer."):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            # An empty list of merges has no type, and is not needed.
            if inner is None or len(field.contents()):
                writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    for name, weight in weights.items():
        values = weight.detach().numpy()
        layer, _, part = name.rpartition(".")
        if part.endswith("sub_norm"):
            continue
        if part in ("q", "k"):
            values = neighbours(values, config.heads if part == "q" else config.kv_heads)
        own = f"blk.{layer}.{NAMES.get(part, part)}.weight" if layer else OUTSIDE[name]
        writer.add_tensor(own, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
