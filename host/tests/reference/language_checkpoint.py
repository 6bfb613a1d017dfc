"""A tiny checkpoint in Hugging Face's layout, of random weights, and its logits in float64 as transformers computes them.

usage: language_checkpoint.py KIND SEED FOLDER TOKENS LOGITS

KIND    llama: width 96, feed-forward 160, 2 layers, heads 4:2, biases, a head of its own, frequencies of Llama 3, in f32
        bitnet: width 256, feed-forward 512, 2 layers, heads 4:2, tied, master weights in f32, online quantization
        packed: the same with packed codes that weight_scale multiplies
FOLDER  gets config.json, model.safetensors, tokenizer.json of 256 bytes and a mark, tokenizer_config.json
TOKENS  ids with commas between
LOGITS  gets them as .npy, float64 [tokens, vocabulary]

RoPE turns pairs that lie half a head apart, as `rotate_half` has them, whatever the architecture. Matrices of a bitnet are what
`WeightQuant` of transformers' integrations/bitnet.py makes of them; activations stay as they are.
"""

import json
import os
import sys

import numpy as np
from language_forward import Model, tokens
from safetensors.numpy import save_file

MATRICES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NORMS = {
    "attn_norm": "input_layernorm",
    "attn_sub_norm": "self_attn.attn_sub_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_sub_norm": "mlp.ffn_sub_norm",
}
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128}


def theirs(name):
    """A tensor's name in a checkpoint, by the one in GGUF."""
    *layer, part, kind = name.split(".")
    if not layer:
        return f"{OUTSIDE[part]}.{kind}"
    return f"model.layers.{layer[1]}.{MATRICES.get(part) or NORMS[part]}.{kind}"


def letter(byte):
    printing = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return chr(byte if byte in printing else 256 + sum(other not in printing for other in range(byte)))


def weight_quant(weight):
    """Codes, and what a 1 stands for."""
    scale = np.float32(1) / max(np.abs(weight).mean(dtype=np.float64).astype(np.float32), np.float32(1e-5))
    return np.clip(np.round(weight * scale), -1, 1), 1 / scale


class Checkpoint(Model):
    def __init__(self, kind, seed):
        self.kind = kind
        self.is_bitnet = kind != "llama"
        self.width, self.feed = (256, 512) if self.is_bitnet else (96, 160)
        self.layers, self.heads, self.kv_heads = 2, 4, 2
        self.head = self.width // self.heads
        self.eps, self.relu2 = 1e-5, False
        # RoPE as `rotate_half` has it.
        self.name = "bitnet"
        self.fields = {"bitnet.rope.freq_base": 50000.0}
        self.random = np.random.default_rng(seed)
        self.stored = {}
        self.count = 257
        self.make()

    def put(self, name, *shape):
        values = self.random.standard_normal(shape).astype(np.float32)
        if name.endswith("norm.weight"):
            values = 1 + values / 8
        elif "token_embd" in name:
            values = values / 2
        else:
            values = values / 8
        self.stored[theirs(name)] = values

    def make(self):
        keys = self.kv_heads * self.head
        rows = {"attn_k": keys, "attn_v": keys, "ffn_gate": self.feed, "ffn_up": self.feed}
        self.put("token_embd.weight", self.count, self.width)
        self.put("output_norm.weight", self.width)
        for layer in range(self.layers):
            for name in MATRICES:
                row = self.feed if name == "ffn_down" else self.width
                self.put(f"blk.{layer}.{name}.weight", rows.get(name, self.width), row)
                if not self.is_bitnet and name.startswith("attn"):
                    self.put(f"blk.{layer}.{name}.bias", rows.get(name, self.width))
            for name in NORMS:
                if self.is_bitnet or "sub" not in name:
                    self.put(f"blk.{layer}.{name}.weight", self.feed if name == "ffn_sub_norm" else self.width)
        if not self.is_bitnet:
            self.put("output.weight", self.count, self.width)
        self.tensors = {"output.weight": None} if not self.is_bitnet else {}

    def get(self, name):
        if name == "rope_freqs.weight":
            return None if self.is_bitnet else self.factors()
        if name.startswith("output.") and (self.is_bitnet or name.endswith("bias")) or name.endswith(".scale"):
            return None
        values = self.stored.get(theirs(name))
        if values is None:
            return None
        if self.is_bitnet and name.startswith("blk.") and values.ndim == 2:
            codes, unit = weight_quant(values)
            values = codes * unit
        return values.astype(np.float64)

    def factors(self):
        """What transformers' `_compute_llama3_parameters` divides each frequency by."""
        steps = 50000.0 ** (-np.arange(0, self.head, 2) / self.head)
        waves, context = 2 * np.pi / steps, LLAMA3["original_max_position_embeddings"]
        low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
        smooth = (context / waves - low) / (high - low)
        between = 1 / ((1 - smooth) / LLAMA3["factor"] + smooth)
        return np.where(waves < context / high, 1, np.where(waves > context / low, LLAMA3["factor"], between))

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        rope = {"rope_type": "default"} if self.is_bitnet else {"rope_type": "llama3", **LLAMA3}
        config = {
            "architectures": ["BitNetForCausalLM" if self.is_bitnet else "LlamaForCausalLM"],
            "hidden_size": self.width,
            "intermediate_size": self.feed,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "vocab_size": self.count,
            "max_position_embeddings": 256,
            "rms_norm_eps": self.eps,
            "hidden_act": "silu",
            "attention_bias": not self.is_bitnet,
            "tie_word_embeddings": self.is_bitnet,
            "rope_parameters": {"rope_theta": 50000.0, **rope},
        }
        tensors = dict(self.stored)
        if self.is_bitnet:
            mode = "offline" if self.kind == "packed" else "online"
            config["quantization_config"] = {
                "quant_method": "bitnet",
                "linear_class": "autobitlinear",
                "quantization_mode": mode,
            }
        if self.kind == "packed":
            for name, values in self.stored.items():
                if name.endswith("_proj.weight"):
                    codes, unit = weight_quant(values)
                    lanes = (codes + 1).astype(np.uint8).reshape(4, -1, values.shape[1])
                    tensors[name] = lanes[0] | lanes[1] << 2 | lanes[2] << 4 | lanes[3] << 6
                    tensors[f"{name}_scale"] = np.array([unit], np.float32)
        save_file(tensors, os.path.join(folder, "model.safetensors"))
        tokenizer = {
            "added_tokens": [{"id": 256, "content": "<s>", "special": True}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "model": {"type": "BPE", "vocab": {letter(byte): byte for byte in range(256)}, "merges": []},
        }
        settings = {"bos_token": "<s>", "eos_token": "<s>", "add_bos_token": True}
        for name, value in (("config", config), ("tokenizer", tokenizer), ("tokenizer_config", settings)):
            with open(os.path.join(folder, f"{name}.json"), "w") as file:
                json.dump(value, file)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    kind, seed, folder, ids, logits = sys.argv[1:]
    checkpoint = Checkpoint(kind, int(seed))
    checkpoint.write(folder)
    with np.errstate(over="ignore"):
        checkpoint.logits(tokens(ids), logits)
