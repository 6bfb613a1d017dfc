"""The rules of training in integers, as functions that PyTorch differentiates by the rules and not by itself.

Every float is f32 and every operation rounds once (eager PyTorch fuses nothing). Every sum over tokens is a sum of
integers: in f32 if it stays below 2²⁴, else in f64, whose 53 bits it fits. Sums over channels that the rules give 64
lanes are PyTorch's own: they differ in the last bit. `exp2_neg` is f64's, rounded. Weights and gains get their
gradients in `Record.sums`, in f64, not in `.grad`.
"""

import torch

LOG2E = 1.4426950
PAGE = 64


class Record:
    """Gradients of a step by name, and the exponents that were seen, by kind of group."""

    def __init__(self, floors, limits):
        self.floors, self.limits, self.sums, self.exponents = floors, limits, {}, {}

    def add(self, name, gradient):
        self.sums[name] = self.sums[name] + gradient if name in self.sums else gradient

    def see(self, kind, exponent, empty):
        """Counts 2⁻¹²⁸…2¹²⁷, and in a last place the groups of zeros alone."""
        at = torch.where(empty, torch.full_like(exponent, 128), exponent.clamp(-128, 127)).flatten() + 128
        count = torch.bincount(at.long(), minlength=257)
        self.exponents[kind] = self.exponents[kind] + count if kind in self.exponents else count

    def quantize(self, kind, values, dim):
        """Codes and their powers of two: one for each group, whose values lie along `dim`."""
        largest = values.abs().amax(dim, keepdim=True)
        exponent = least_exponent(largest, self.limits.get(kind, 127))
        self.see(kind, exponent, largest == 0)
        exponent = exponent.clamp(min=self.floors.get(kind, -100))
        return scaled(values, -exponent).round(), exponent


def least_exponent(largest, limit):
    """The least e with largest ≤ limit · 2^e."""
    fraction, exponent = torch.frexp(largest.double() / limit)
    return torch.where(fraction == 0.5, exponent - 1, exponent)


def scaled(values, exponent):
    """values · 2^exponent, exact for exponents of −126…127."""
    return values * ((exponent.to(torch.int32) + 127) << 23).view(torch.float32)


def exp2_neg(steps):
    """2³¹ · 2^(−steps / 2²⁰), rounded, in f64."""
    return torch.exp2(steps * -(2.0**-20) + 31).round()


def steps(x):
    """A distance ≥ 0 of exponents of e, in f32, as steps of exp2_neg."""
    return torch.trunc((x * LOG2E).clamp(max=31.99).double() * 2.0**20)


def absmax(values, limit):
    """Codes and scales of rows without a norm; `limit / M` for a norm's scale."""
    largest = values.abs().amax(-1, keepdim=True)
    inverse = limit / largest
    usable = torch.isfinite(inverse)
    codes = (values * torch.where(usable, inverse, 0.0)).round()
    return codes, torch.where(usable, largest, 0.0)


class Norm(torch.autograd.Function):
    """Codes of a norm and their scales; the gradient that arrives at the codes is the one of code · scale."""

    @staticmethod
    def forward(ctx, record, name, x, gain, eps):
        r = torch.sqrt(x.square().mean(-1, keepdim=True) + eps)
        codes, largest = absmax(x * gain, 127)
        scale = (largest / r) / 127
        ctx.record, ctx.name = record, name
        ctx.save_for_backward(x, gain, r)
        ctx.mark_non_differentiable(scale)
        return codes, scale

    @staticmethod
    def backward(ctx, dy, _):
        x, gain, r = ctx.saved_tensors
        inverse = 1 / r
        a = dy * gain
        k = ((a * x).sum(-1, keepdim=True) / x.shape[-1]) * (inverse * inverse)
        term = (dy * (x * inverse)).double()
        ctx.record.add(ctx.name, (term * 2.0**32).round().flatten(0, -2).sum(0) * 2.0**-32)
        return None, None, (a - x * k) * inverse, None, None


def weight_gradient(record, kind, gradient, codes, scale):
    """Exact sums, group by group of 64 positions × one output; operands are (sequences, positions, channels)."""
    groups = (gradient * scale).unflatten(1, (-1, PAGE))
    part, exponent = record.quantize(kind, groups, 2)
    part = scaled(part, exponent).flatten(0, 2).double()
    return part.T @ codes.double().flatten(0, 1)


class Linear(torch.autograd.Function):
    """A ternary matrix: codes of f32, one scale a tensor."""

    @staticmethod
    def forward(ctx, record, name, codes, scale, master, weight, weight_scale):
        ctx.record, ctx.name, ctx.weight_scale = record, name, weight_scale
        ctx.save_for_backward(codes, scale, weight)
        return ((codes @ weight.T) * weight_scale) * scale

    @staticmethod
    def backward(ctx, dy):
        codes, scale, weight = ctx.saved_tensors
        kind = ctx.name.split(".")[-1]
        ctx.record.add(ctx.name, weight_gradient(ctx.record, f"dw.{kind}", dy, codes, scale))
        part, exponent = ctx.record.quantize(f"dx.{kind}", dy, -1)
        dx = scaled((part @ weight) * ctx.weight_scale, exponent)
        return None, None, dx, None, None, None, None


class Head(torch.autograd.Function):
    """The embedding as a matrix: int8 codes and one scale a row."""

    @staticmethod
    def forward(ctx, record, name, codes, scale, master, rows, row_scale):
        ctx.record, ctx.name = record, name
        ctx.save_for_backward(codes, scale, rows, row_scale)
        return ((codes @ rows.T) * row_scale) * scale

    @staticmethod
    def backward(ctx, dy):
        codes, scale, rows, row_scale = ctx.saved_tensors
        ctx.record.add(ctx.name, weight_gradient(ctx.record, "dw.head", dy, codes, scale))
        part, exponent = ctx.record.quantize("dx.head", dy * row_scale, -1)
        return None, None, scaled(part @ rows, exponent), None, None, None, None


class Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, record, name, tokens, master, rows, row_scale):
        ctx.record, ctx.name, ctx.shape = record, name, rows.shape
        ctx.save_for_backward(tokens)
        return rows[tokens] * row_scale[tokens][..., None]

    @staticmethod
    def backward(ctx, dx):
        (tokens,) = ctx.saved_tensors
        terms = (dx.double() * 2.0**25).round().flatten(0, -2)
        sums = torch.zeros(ctx.shape, dtype=torch.float64).index_add_(0, tokens.flatten(), terms)
        ctx.record.add(ctx.name, sums * 2.0**-25)
        return None, None, None, None, None, None


class Gate(torch.autograd.Function):
    """silu(gate) · up."""

    @staticmethod
    def forward(ctx, gate, up):
        small = exp2_neg(steps(gate.abs())).float()
        whole = torch.tensor(2.0**31)
        positive = gate >= 0
        sigma = torch.where(positive, whole, small) / (whole + small)
        ctx.save_for_backward(gate, up, sigma, torch.where(positive, small, whole) / (whole + small))
        return (gate * sigma) * up

    @staticmethod
    def backward(ctx, dh):
        gate, up, sigma, tau = ctx.saved_tensors
        return (dh * up) * (sigma * (1 + gate * tau)), dh * (gate * sigma)


class Loss(torch.autograd.Function):
    """The sum of −ln softmax over targets."""

    @staticmethod
    def forward(ctx, logits, targets):
        largest = logits.amax(-1, keepdim=True)
        q = exp2_neg(steps(largest - logits))
        total = q.sum(-1, keepdim=True)
        ctx.save_for_backward(q, total, targets)
        picked = (largest - logits).gather(-1, targets[..., None]).double()
        return (picked + (total.log2() - 31) * 0.6931471805599453).sum().float()

    @staticmethod
    def backward(ctx, dloss):
        q, total, targets = ctx.saved_tensors
        gradient = q.float() / total.float()
        one = torch.ones_like(targets, dtype=torch.float32)[..., None]
        return gradient.scatter_add(-1, targets[..., None], -one) * dloss, None


class Attention(torch.autograd.Function):
    """Causal; q is (sequences, key heads, queries a key head, positions, head), k and v have one in the third place."""

    @staticmethod
    def forward(ctx, record, q, k, v):
        positions, width = q.shape[-2:]
        root = 1 / torch.sqrt(torch.tensor(float(width)))
        (q, q_scale), (k, k_scale), (v, v_scale) = absmax(q, 32512), absmax(k, 127), absmax(v, 127)
        q_scale, k_scale, v_scale = q_scale / 32512, (k_scale / 127).mT, (v_scale / 127).mT
        q_scale = q_scale * root
        score = (q.double() @ k.double().mT).float() * (q_scale * k_scale)
        hidden = torch.ones(positions, positions, dtype=torch.bool).triu(1)
        score = score.masked_fill(hidden, float("-inf"))
        p = torch.floor((exp2_neg(steps(score.amax(-1, keepdim=True) - score)) + 64) * 2.0**-7)
        p = p.masked_fill(hidden, 0.0)
        total = p.sum(-1, keepdim=True).float()
        p = p.float()
        a = (p * v_scale).unflatten(-1, (-1, PAGE))
        largest = a.amax(-1, keepdim=True)
        exponent = least_exponent(largest, 32767)
        top = exponent.masked_fill(largest == 0, -100).amax(-2, keepdim=True)
        exponent = torch.maximum(exponent.masked_fill(largest == 0, -100), top - 20)
        w = scaled(scaled(a, -exponent).round(), exponent - top + 20).flatten(-2)
        output = (w.double() @ v.double()).float() * scaled(1 / total, top.squeeze(-1) - 20)
        output = torch.where(largest.amax((-1, -2), keepdim=True).squeeze(-1) < 2.0**-100, 0.0, output)
        ctx.record, ctx.root = record, root
        ctx.save_for_backward(q, q_scale, k, k_scale, v, v_scale, p, total, output)
        return output

    @staticmethod
    def backward(ctx, do):
        q, q_scale, k, k_scale, v, v_scale, p, total, output = ctx.saved_tensors
        record = ctx.record
        p15 = torch.floor(p * 2.0**-9).clamp(max=32767).double()
        part, exponent = record.quantize("at.dv", (do * (512 / total)).unflatten(-2, (-1, PAGE)), -2)
        part = scaled(part, exponent).flatten(-3, -2).double()
        dv = (p15.mT @ part).sum(2, keepdim=True).float()

        inner = (do * output).sum(-1, keepdim=True)
        part, exponent = record.quantize("at.do", do, -1)
        dp = (part @ v.mT) * scaled(v_scale, exponent)
        ds = (p / total) * (dp - inner)

        part, exponent = record.quantize("at.dq", ds * k_scale, -1)
        dq = (part @ k) * scaled(ctx.root, exponent)

        part, exponent = record.quantize("at.dk", (ds * q_scale).unflatten(-2, (-1, PAGE)), -2)
        part = scaled(part, exponent).flatten(-3, -2).double()
        dk = (part.mT @ q.double()).sum(2, keepdim=True).float()
        return None, dq, dk, dv
