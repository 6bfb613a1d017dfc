"""The logits of a language model's GGUF file in float64, by NumPy alone: what llama.cpp computes, with no rounding on the way.

usage: language_forward.py MODEL TOKENS LOGITS

MODEL   a GGUF file of architecture llama, bitnet, bitnet-b1.58 or bitnet-25, in any types that the package gguf dequantizes
TOKENS  ids with commas between, or @FILE with such a list; nothing is put before them
LOGITS  gets them as .npy: float64 [tokens, vocabulary], one row a position

The graph is llama.cpp's (src/models/llama.cpp, bitnet.cpp): grouped-query attention; RoPE over neighbours (llama) or half a head apart
(bitnet), with rope_freqs and a linear factor; sub-norms, biases and `.scale` tensors where the file has them; SiLU, or the square of ReLU
for bitnet-b1.58, bitnet-25 and where <architecture>.hidden_activation says relu2; the embedding as the head where there is no output.weight.
"""

import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

# Of scores and logits that are in memory at once; it shows in no bit but by the order in which BLAS adds.
ROWS = 256
ARCHITECTURES = {"llama", "bitnet", "bitnet-b1.58", "bitnet-25"}


class Model:
    def __init__(self, path):
        reader = GGUFReader(path)
        self.fields = {name: field.contents() for name, field in reader.fields.items()}
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.name = self.fields["general.architecture"]
        if self.name not in ARCHITECTURES:
            sys.exit(f"{path}: architecture {self.name} is not one of {', '.join(sorted(ARCHITECTURES))}")
        scaling = self.key("rope.scaling.type", "none")
        if scaling not in ("none", "linear"):
            sys.exit(f"{path}: scaling of RoPE by {scaling} is not computed here")
        width = self.key("embedding_length")
        self.heads = self.key("attention.head_count")
        self.kv_heads = self.key("attention.head_count_kv", self.heads)
        self.head = self.key("attention.key_length", width // self.heads)
        self.eps = self.key("attention.layer_norm_rms_epsilon")
        self.relu2 = self.key("hidden_activation", "silu" if self.name in ("llama", "bitnet") else "relu2") == "relu2"
        self.layers = self.key("block_count")

    def key(self, name, *default):
        return self.fields.get(f"{self.name}.{name}", *default) if default else self.fields[f"{self.name}.{name}"]

    def get(self, name):
        """A tensor's values as float64, outermost dimension first; None where the file has it not."""
        tensor = self.tensors.get(name)
        if tensor is None:
            return None
        values = dequantize(tensor.data, tensor.tensor_type)
        return values.astype(np.float64).reshape([int(dim) for dim in reversed(tensor.shape)])

    def norm(self, x, name):
        gains = self.get(f"{name}.weight")
        if gains is None:
            return x
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * gains

    def linear(self, x, name, weights=None):
        y = x @ (self.get(f"{name}.weight") if weights is None else weights).T
        for part, apply in (("scale", np.multiply), ("bias", np.add)):
            values = self.get(f"{name}.{part}")
            y = y if values is None else apply(y, values)
        return y

    def turns(self, count):
        """Cosines and sines [positions, 1, pairs]."""
        dims = self.key("rope.dimension_count", self.head)
        steps = float(self.key("rope.freq_base", 10000.0)) ** (-np.arange(0, dims, 2, dtype=np.float64) / dims)
        factors = self.get("rope_freqs.weight")
        steps = steps if factors is None else steps / factors
        angles = np.arange(count, dtype=np.float64)[:, None] * steps / self.key("rope.scaling.factor", 1.0)
        return np.cos(angles)[:, None], np.sin(angles)[:, None]

    def rotate(self, x, turns):
        """x is [positions, heads, head]."""
        cos, sin = turns
        pairs = cos.shape[-1]
        if self.name == "llama":
            first, second = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
        else:
            first, second = slice(0, pairs), slice(pairs, 2 * pairs)
        y = x.copy()
        y[..., first] = x[..., first] * cos - x[..., second] * sin
        y[..., second] = x[..., first] * sin + x[..., second] * cos
        return y

    def attention(self, x, layer, turns):
        count = len(x)
        q = self.rotate(self.linear(x, f"{layer}.attn_q").reshape(count, self.heads, -1), turns)
        k = self.rotate(self.linear(x, f"{layer}.attn_k").reshape(count, self.kv_heads, -1), turns)
        v = self.linear(x, f"{layer}.attn_v").reshape(count, self.kv_heads, -1)
        shared = self.heads // self.kv_heads
        # Heads first, so that what is multiplied are matrices; those that share keys stand in a row.
        q = q.reshape(count, self.kv_heads, shared, -1).transpose(1, 2, 0, 3) / np.sqrt(q.shape[-1])
        k, v = k.transpose(1, 2, 0)[:, None], v.transpose(1, 0, 2)[:, None]
        y = np.empty((count, self.heads * v.shape[-1]))
        for first in range(0, count, ROWS):
            last = min(first + ROWS, count)
            scores = q[:, :, first:last] @ k[..., :last]
            scores[..., np.arange(last) > np.arange(first, last)[:, None]] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            y[first:last] = (weights @ v[..., :last, :]).transpose(2, 0, 1, 3).reshape(last - first, -1)
        return self.linear(self.norm(y, f"{layer}.attn_sub_norm"), f"{layer}.attn_output")

    def feed_forward(self, x, layer):
        gate, up = self.linear(x, f"{layer}.ffn_gate"), self.linear(x, f"{layer}.ffn_up")
        gate = np.square(np.maximum(gate, 0)) if self.relu2 else gate / (1 + np.exp(-gate))
        return self.linear(self.norm(gate * up, f"{layer}.ffn_sub_norm"), f"{layer}.ffn_down")

    def logits(self, tokens, out):
        """Writes them block by block: of thousands of positions they are more than memory holds."""
        embedding = self.get("token_embd.weight")
        x, turns = embedding[tokens], self.turns(len(tokens))
        for layer in (f"blk.{index}" for index in range(self.layers)):
            x = x + self.attention(self.norm(x, f"{layer}.attn_norm"), layer, turns)
            x = x + self.feed_forward(self.norm(x, f"{layer}.ffn_norm"), layer)
        x = self.norm(x, "output_norm")
        head = self.get("output.weight") if "output.weight" in self.tensors else embedding
        rows = np.lib.format.open_memmap(out, "w+", np.float64, (len(x), len(head)))
        for first in range(0, len(x), ROWS):
            rows[first : first + ROWS] = self.linear(x[first : first + ROWS], "output", head)
        rows.flush()


def tokens(text):
    if text.startswith("@"):
        with open(text[1:]) as file:
            text = file.read()
    return [int(word) for word in text.split(",")]


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with np.errstate(over="ignore"):
        Model(sys.argv[1]).logits(tokens(sys.argv[2]), sys.argv[3])
