"""A decoder of the architecture `bitnet` whose operations come in four kinds: `Float`, `Qat`, `Integer`, and
`Reference`, which has the values of `Integer` and the gradients of PyTorch's own differentiation. `Llama` is `Float`
without the norms that the architecture `llama` lacks."""

import torch
import torch.nn.functional as F

import rules

EPS = 1e-5


def shapes(config):
    """Tensors by name, in the order of a file; gains have one dimension."""
    width, ff = config.width, config.ff
    head = width // config.heads
    found = {"embedding": (config.vocabulary, width)}
    for layer in range(config.layers):
        found |= {
            f"{layer}.attn_norm": (width,),
            f"{layer}.q": (width, width),
            f"{layer}.k": (config.kv_heads * head, width),
            f"{layer}.v": (config.kv_heads * head, width),
            f"{layer}.attn_sub_norm": (width,),
            f"{layer}.o": (width, width),
            f"{layer}.ffn_norm": (width,),
            f"{layer}.gate": (ff, width),
            f"{layer}.up": (ff, width),
            f"{layer}.ffn_sub_norm": (ff,),
            f"{layer}.down": (width, ff),
        }
    return found | {"norm": (width,)}


def initial(config, generator):
    """Gains of 1, the rest normal."""
    made = {}
    for name, shape in shapes(config).items():
        plain = torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=generator) * config.deviation
        made[name] = plain.requires_grad_()
    return made


def turns(config, positions):
    """Cosine and sine by (position, pair)."""
    pairs = config.width // config.heads // 2
    angle = torch.arange(positions).double()[:, None] * 10000.0 ** (-torch.arange(pairs).double() / pairs)
    return angle.cos().float(), angle.sin().float()


def forward(ops, config, tokens):
    """Logits of (sequences, positions)."""
    cos, sin = turns(config, tokens.shape[-1])
    groups = config.heads // config.kv_heads

    def split(x, queries):
        return x.unflatten(-1, (config.kv_heads, queries, -1)).permute(0, 2, 3, 1, 4)

    def rotate(x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    x = ops.lookup("embedding", tokens)
    for layer in range(config.layers):
        y = ops.norm(f"{layer}.attn_norm", x)
        q, k, v = (ops.linear(f"{layer}.{name}", y) for name in "qkv")
        y = ops.attention(rotate(split(q, groups)), rotate(split(k, 1)), split(v, 1)).permute(0, 3, 1, 2, 4).flatten(2)
        x = x + ops.linear(f"{layer}.o", ops.norm(f"{layer}.attn_sub_norm", y))
        y = ops.norm(f"{layer}.ffn_norm", x)
        y = ops.gate(ops.linear(f"{layer}.gate", y), ops.linear(f"{layer}.up", y))
        x = x + ops.linear(f"{layer}.down", ops.norm(f"{layer}.ffn_sub_norm", y))
    return ops.head("embedding", ops.norm("norm", x))


def ternary(master):
    """Codes and the tensor's scale."""
    scale = master.double().abs().mean().half().float()
    return (master * (1 / scale)).clamp(-1, 1).round(), scale


def rows(master):
    """int8 codes of the embedding and each row's scale."""
    scale = (master.abs().amax(-1) / 127).half().float()
    inverse = 1 / scale
    scaled = master * torch.where(torch.isfinite(inverse), inverse, 0.0)[:, None]
    return (scaled.sign() * (scaled.abs() + 0.5).floor()).clamp(-127, 127), scale


class Value(torch.autograd.Function):
    """One value, another's gradient: a straight-through estimator whose value is exact."""

    @staticmethod
    def forward(ctx, through, value):
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Float:
    """No quantization at all."""

    def __init__(self, weights, quantizers):
        self.weights, self.used = weights, dict(weights)

    def lookup(self, name, tokens):
        return self.used[name][tokens]

    def norm(self, name, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * self.weights[name]

    def linear(self, name, y):
        return y @ self.used[name].T

    head = linear

    def gate(self, gate, up):
        return F.silu(gate) * up

    def attention(self, q, k, v):
        k, v = (x.expand_as(q).flatten(1, 2) for x in (k, v))
        mixed = F.scaled_dot_product_attention(q.flatten(1, 2), k, v, is_causal=True)
        return mixed.unflatten(1, q.shape[1:3])

    def loss(self, logits, targets):
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")

    def gradients(self):
        return {name: weight.grad for name, weight in self.weights.items()}


class Llama(Float):
    """No quantization, and no norms before the output and down projections."""

    def norm(self, name, x):
        return x if name.endswith("sub_norm") else super().norm(name, x)


class Qat(Float):
    """Quantization-aware training: weights, embedding and activations are codes, the rest and all gradients floats."""

    def __init__(self, weights, quantizers):
        super().__init__(weights, quantizers)
        for name, master in weights.items():
            if master.dim() == 2:
                with torch.no_grad():
                    codes, scale = rows(master) if name == "embedding" else ternary(master)
                    value = codes * (scale[:, None] if name == "embedding" else scale)
                self.used[name] = Value.apply(master, value)

    def norm(self, name, x):
        y = super().norm(name, x)
        with torch.no_grad():
            codes, largest = rules.absmax(y, 127)
            value = codes * (largest / 127)
        return Value.apply(y, value)


class Integer:
    """All rules, forward and backward."""

    def __init__(self, weights, quantizers):
        self.weights, self.record = weights, rules.Record(*quantizers)
        with torch.no_grad():
            named = ((name, master) for name, master in weights.items() if master.dim() == 2)
            self.codes = {name: rows(master) if name == "embedding" else ternary(master) for name, master in named}

    def lookup(self, name, tokens):
        return rules.Lookup.apply(self.record, name, tokens, self.weights[name], *self.codes[name])

    def norm(self, name, x):
        return rules.Norm.apply(self.record, name, x, self.weights[name], EPS)

    def linear(self, name, y):
        return rules.Linear.apply(self.record, name, *y, self.weights[name], *self.codes[name])

    def head(self, name, y):
        return rules.Head.apply(self.record, name, *y, self.weights[name], *self.codes[name])

    def gate(self, gate, up):
        return rules.Gate.apply(gate, up)

    def attention(self, q, k, v):
        return rules.Attention.apply(self.record, q, k, v)

    def loss(self, logits, targets):
        return rules.Loss.apply(logits, targets)

    def gradients(self):
        return self.record.sums


class Reference(Qat):
    """Every operation has the value of `Integer`, bit for bit, and the gradient of `Qat`, with codes of q, k and v."""

    def __init__(self, weights, quantizers):
        super().__init__(weights, quantizers)
        self.exact = Integer(weights, quantizers)

    def both(self, operation, *operands):
        """Operands are pairs of a float with gradient and what `Integer` takes."""
        own = getattr(super(), operation)(*(pair[0] for pair in operands))
        with torch.no_grad():
            exact = getattr(self.exact, operation)(*(pair[1] for pair in operands))
        return own, exact

    def lookup(self, name, tokens):
        return Value.apply(*self.both("lookup", (name, name), (tokens, tokens)))

    def norm(self, name, x):
        y = Float.norm(self, name, x)
        with torch.no_grad():
            codes, scale = self.exact.norm(name, x)
        return Value.apply(y, codes * scale), (codes, scale)

    def linear(self, name, y):
        return Value.apply(*self.both("linear", (name, name), y))

    def head(self, name, y):
        return Value.apply(*self.both("head", (name, name), y))

    def gate(self, gate, up):
        return Value.apply(*self.both("gate", (gate, gate), (up, up)))

    def attention(self, q, k, v):
        def coded(x, limit):
            with torch.no_grad():
                codes, largest = rules.absmax(x, limit)
            return Value.apply(x, codes * (largest / limit)), x

        return Value.apply(*self.both("attention", coded(q, 32512), coded(k, 127), coded(v, 127)))


KINDS = {"float": Float, "llama": Llama, "qat": Qat, "reference": Reference, "integer": Integer}
