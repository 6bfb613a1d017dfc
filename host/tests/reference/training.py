"""A training step of a `bitnet` model restated in NumPy from the rules of core::model and core::train: the same bits.

usage: training.py MODEL LENGTH UPDATES FOLDER

MODEL    a GGUF file of architecture bitnet or bitnet-b1.58, matrices ternary and the embedding Q8_0, of one scale a tensor and a row
LENGTH   tokens of a sequence
UPDATES  how many updates are made of the same gradients
FOLDER   holds `tokens` and `targets` (u32), `weights` (f32, all tensors in the file's order) and `options` (f32: rate, beta1, beta2, eps,
         decay, clip), all little-endian; gets `sums` (i64, as the weights lie), `updated` (f32), `codes` (i8, 0 for gains) and
         `scales` (f32: one a matrix, one a row of the embedding, in the file's order)

Prints the cost of the batch as an integer. f32 is float32 all along, one rounding an operation; sums of integers are float64 below 2^53 (a
matrix product then is exact in whatever order) or int64.
"""

import math
import os
import sys
from decimal import ROUND_HALF_EVEN, Decimal, getcontext

import numpy as np
from language_forward import Model

f32, f64, i64 = np.float32, np.float64, np.int64
GROUP, PAGE, RUN = 64, 64, 65_536
LAYER = ["attn_norm", "attn_q", "attn_k", "attn_v", "attn_sub_norm", "attn_output"]
LAYER += ["ffn_norm", "ffn_gate", "ffn_up", "ffn_sub_norm", "ffn_down"]
FREE_FLOOR = -100
WEIGHT_FLOOR, WEIGHT_CEILING = -33, -4
ATTENTION_FLOOR, ATTENTION_CEILING = -41, -12
GAIN_UNIT = -32


# Numbers.

getcontext().prec = 60
TABLE = np.array([int((Decimal(2) ** (31 - Decimal(i) / 256)).to_integral_value(ROUND_HALF_EVEN)) for i in range(257)])


def exp2_neg(u):
    """2^(-u / 2^20) in units of 2^-31."""
    step, low = (u >> 12) % 256, u % 4096
    high, following = TABLE[step], TABLE[step + 1]
    chord = high - ((((high - following) >> 3) * low) >> 9)
    bend = (low * (4096 - low)) >> 12
    return (chord - (((high >> 18) * bend * 246) >> 20)) >> (u >> 20)


def steps(x):
    """What exp2_neg takes for e^-x."""
    return (np.minimum(x * f32(1.44269504), f32(31.99)) * f32(1 << 20)).astype(i64)


def lanes(terms):
    """Sums along the last axis: 64 lanes, halved; runs of 65,536 terms are added in order."""
    total = None
    for first in range(0, terms.shape[-1], RUN):
        run = terms[..., first : first + RUN]
        # -0 changes no sum.
        pad = np.full(run.shape[:-1] + (-run.shape[-1] % 64,), f32(-0.0))
        run = np.concatenate([run, pad], -1).reshape(run.shape[:-1] + (-1, 64))
        own = run[..., 0, :].copy()
        for row in range(1, run.shape[-2]):
            own += run[..., row, :]
        half = 32
        while half:
            own = own[..., :half] + own[..., half : 2 * half]
            half //= 2
        total = own[..., 0] if total is None else total + own[..., 0]
    return total


def least(magnitude, limit, floor):
    """The least e, no less than the floor, with magnitude <= limit * 2^e."""
    bits = math.ceil(math.log2(limit))
    mantissa, exponent = np.frexp(magnitude.astype(f64))
    found = exponent - bits + (mantissa * 2.0**bits > limit)
    return np.where(magnitude > 0, np.maximum(found, floor), floor)


def power(exponent):
    """2^e in f32; that of a whole array too."""
    return np.ldexp(f32(1), exponent).astype(f32)


def rounded(values, exponent):
    """Half even of v * 2^-e."""
    return np.rint(np.ldexp(values.astype(f64), -exponent))


def fixed(values, unit):
    """Half even in units of 2^unit."""
    found = rounded(values, unit)
    assert np.abs(found).max() < 2.0**43
    return found.astype(i64)


def log2(x):
    mantissa, exponent = math.frexp(x)
    mantissa, exponent = mantissa * 2, exponent - 1
    if mantissa >= math.sqrt(2):
        mantissa, exponent = mantissa / 2, exponent + 1
    s = (mantissa - 1) / (mantissa + 1)
    square, series = s * s, 0.0
    for odd in range(21, 1, -2):
        series = (series + 1 / odd) * square
    two_over_ln_2 = 2 * 1.4426950408889634
    return exponent + (s * two_over_ln_2 + s * (4.071054748186206e-17 + series * two_over_ln_2))


# Rotation: angles are fractions of a turn in 64 bits.

SINE = [1_686_629_713, -173_399_667, 5_348_082, -78_547, 673, -4]
COSINE = [1 << 31, -662_337_939, 34_046_945, -700_062, 7_711, -53]


def sin_cos(phase):
    quarter = ((phase + (1 << 61)) >> 62) % 4
    rest = (phase - (quarter << 62) + (1 << 63)) % (1 << 64) - (1 << 63)
    x = ((rest >> 29) + 1) >> 1
    square = (x * x) >> 31

    def series(terms):
        total = terms[-1]
        for term in terms[-2::-1]:
            total = term + ((total * square) >> 31)
        return total

    sine, cosine = (f32(value) * f32(2.0**-31) for value in ((x * series(SINE)) >> 31, series(COSINE)))
    return [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][quarter]


def rope_step(base, pair, dims):
    """base^(-2 pair / dims) / 2 pi in 2^-64 of a turn: a logarithm by squaring, a power by square roots of a half."""
    mantissa, exponent = math.frexp(float(f32(base)))
    log, mantissa = exponent - 1, int(mantissa * 2**64)
    for _ in range(57):
        square = mantissa * mantissa
        two = square >> 127
        log, mantissa = log << 1 | two, square >> (64 if two else 63)
    exponent = log * 2 * pair // dims + 382_120_863_381_307_115
    result, root = 1 << 63, 1 << 127
    for bit in range(57):
        root = math.isqrt(root)
        if exponent >> (56 - bit) & 1:
            result = (result * root) >> 64
        root <<= 64
    return result >> ((exponent >> 57) - 1)


# Steps forwards.


def quantize(x, limit, gains=None, eps=None):
    """Codes and scales of rows, and 1 / r of those that are normalized."""
    y, root = (x, f32(1)) if gains is None else (x * gains, mean_root(x, eps))
    most = np.abs(y).max(-1)
    with np.errstate(divide="ignore"):
        factor = f32(limit) / most
    zero = ~np.isfinite(factor)
    codes = np.rint(y * np.where(zero, f32(0), factor)[..., None])
    return codes, np.where(zero, f32(0), most / root / f32(limit))


def mean_root(x, eps):
    return np.sqrt(lanes(x * x) / f32(x.shape[-1]) + eps)


def product(codes, scales, weights):
    """`weights`: codes, and a scale for all or for each output."""
    sums = codes.astype(f64) @ weights[0].T.astype(f64)
    return (sums * weights[1]).astype(f32) * scales[:, None]


def sigmoid(x):
    """n / D, the other's part, and both are f32."""
    one, e = f32(1 << 31), exp2_neg(steps(np.abs(x))).astype(f32)
    whole = one + e
    return np.where(x >= 0, one, e) / whole, np.where(x >= 0, e, one) / whole


def rotate(x, angles):
    a, b = np.split(x, 2, -1)
    cos, sin = angles
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def rotate_back(x, angles):
    a, b = np.split(x, 2, -1)
    cos, sin = angles
    return np.concatenate([a * cos + b * sin, b * cos - a * sin], -1)


class Attention:
    """Of a sequence and a head of keys: queries [heads, rows, head], keys and values [rows, head]."""

    def __init__(self, queries, keys, values):
        rows, head = keys.shape
        self.inverse = f32(1) / np.sqrt(f32(head))
        self.q, scales = quantize(queries, 32_512)
        self.qs = scales * self.inverse
        (self.k, self.ks), (self.v, self.vs) = quantize(keys, 127), quantize(values, 127)
        dots = (self.q.astype(f64) @ self.k.T.astype(f64)).astype(f32)
        scores = dots * (self.qs[..., None] * self.ks)
        self.attended = np.tri(rows, dtype=bool)
        most = np.where(self.attended, scores, f32(-np.inf)).max(-1, keepdims=True)
        below = np.where(self.attended, most - scores, f32(0))
        self.p = np.where(self.attended, (exp2_neg(steps(below)) + 64) >> 7, 0)
        self.total = self.p.sum(-1)
        self.out = self.weighed()

    def weighed(self):
        a = self.p.astype(f32) * self.vs
        pages = range(0, a.shape[-1], PAGE)
        exponents = np.stack([least(a[..., first : first + PAGE].max(-1), 32_767, -1000) for first in pages])
        most = exponents.max(0)
        sums = 0
        for exponent, first in zip(np.maximum(exponents, most - 20), pages):
            weights = rounded(a[..., first : first + PAGE], exponent[..., None])
            page = (weights @ self.v[first : first + PAGE].astype(f64)).astype(i64)
            sums = sums + (page << (exponent - most + 20)[..., None])
        scale = power(most - 20) / self.total.astype(f32)
        return np.where((a.max(-1) < 2.0**-100)[..., None], f32(0), sums.astype(f32) * scale[..., None])

    def gradients(self, d_out):
        """Of queries, keys and values, from those of `out`."""
        total = self.total.astype(f32)
        floor, unit = ATTENTION_FLOOR, power(ATTENTION_FLOOR)
        d_values = self.grouped(np.minimum(32_767, self.p >> 9), d_out * (f32(512) / total)[..., None], None)
        exponent = least(np.abs(d_out).max(-1), 127, FREE_FLOOR)[..., None]
        codes = rounded(d_out, exponent)
        whole = lanes(codes.astype(f32) * self.out) * power(exponent)[..., 0]
        sums = codes @ self.v.T.astype(f64)
        dp = sums.astype(f32) * (power(exponent) * self.vs)
        ds = (self.p.astype(f32) / total[..., None]) * (dp - whole[..., None])
        ds = np.where(self.attended, ds, f32(0))
        by_key = ds * self.ks
        exponent = least(np.abs(by_key).max(-1), 127, FREE_FLOOR)[..., None]
        sums = rounded(by_key, exponent) @ self.k.astype(f64)
        d_queries = sums.astype(f32) * (power(exponent) * self.inverse)
        d_keys = self.grouped(ds * self.qs[..., None], self.q, floor)
        return d_queries, d_keys.astype(f32) * unit, d_values.astype(f32) * unit

    def grouped(self, left, right, of_left):
        """Sums over rows of left [heads, rows, positions] and right [heads, rows, head]: one of both becomes codes by groups of rows."""
        sums = 0
        for first in range(0, left.shape[1], GROUP):
            rows = slice(first, first + GROUP)
            parts = [left[:, rows], right[:, rows]]
            which = 1 if of_left is None else 0
            exponent = least(np.abs(parts[which]).max(1), 127, ATTENTION_FLOOR)
            assert exponent.max() <= ATTENTION_CEILING
            parts[which] = rounded(parts[which], exponent[:, None])
            own = (parts[0].astype(f64).transpose(0, 2, 1) @ parts[1].astype(f64)).astype(i64)
            shift = exponent - ATTENTION_FLOOR
            sums = sums + (own << (shift[:, None] if which else shift[..., None])).sum(0)
        return sums


# Steps backwards.


def norm_back(x, gains, eps, dy):
    """The gradients of x and, summed, of gains."""
    v = f32(1) / mean_root(x, eps)
    a = dy * gains
    k = (lanes(a * x) / f32(x.shape[-1])) * (v * v)
    dx = (a - x * k[:, None]) * v[:, None]
    return dx, fixed(dy * (x * v[:, None]), GAIN_UNIT).sum(0)


def input_back(dy, weights):
    exponent = least(np.abs(dy).max(-1), 127, FREE_FLOOR)[:, None]
    sums = rounded(dy, exponent) @ weights[0].astype(f64)
    return (sums.astype(f32) * f32(weights[1])) * power(exponent)


def weights_back(dy, codes, scales, length):
    sums = 0
    for sequence in range(0, len(dy), length):
        for first in range(sequence, sequence + length, GROUP):
            rows = slice(first, min(first + GROUP, sequence + length))
            g = dy[rows] * scales[rows, None]
            exponent = least(np.abs(g).max(0), 127, WEIGHT_FLOOR)
            assert exponent.max() <= WEIGHT_CEILING
            own = rounded(g, exponent).T @ codes[rows].astype(f64)
            sums = sums + (own.astype(i64) << (exponent - WEIGHT_FLOOR)[:, None])
    return sums


class Step(Model):
    def __init__(self, path, length):
        super().__init__(path)
        self.length, self.eps = length, f32(self.eps)
        self.weights, self.sums = {}, {}
        names = [f"blk.{layer}.{part}" for layer in range(self.layers) for part in LAYER]
        self.names = ["token_embd", *names, "output_norm"]
        for name in self.names:
            values = self.get(f"{name}.weight")
            if "norm" in name:
                self.weights[name] = values.astype(f32)
            elif name == "token_embd":
                # Each row has a code of 127 or -127.
                scales = np.abs(values).max(-1) / 127
                self.weights[name] = np.rint(values / scales[:, None]), scales
            else:
                scale = np.abs(values).max()
                self.weights[name] = np.rint(values / scale), scale
        dims, base = self.head, self.key("rope.freq_base", 10_000.0)
        turns = [rope_step(base, pair, dims) for pair in range(dims // 2)]
        angles = [[sin_cos(position * turn % 2**64) for turn in turns] for position in range(length)]
        sin, cos = np.moveaxis(np.array(angles, f32), -1, 0)
        # [positions, 1, pairs], for heads between.
        self.angles = cos[:, None], sin[:, None]

    def heads_of(self, x, heads):
        """[sequences, positions, heads, head]"""
        return x.reshape(-1, self.length, heads, self.head)

    def norm(self, x, name):
        return quantize(x, 127, self.weights[name], self.eps)

    def activate(self, gate):
        return np.where(gate < 0, f32(0), gate * gate) if self.relu2 else gate * sigmoid(gate)[0]

    def layer(self, x, name):
        """What goes out of a layer, and what its gradients need."""
        own = {part: self.weights[f"{name}.{part}"] for part in LAYER}
        normed = self.norm(x, f"{name}.attn_norm")
        q, k, v = (product(*normed, own[f"attn_{part}"]) for part in "qkv")
        q, k = (rotate(self.heads_of(part, heads), self.angles) for part, heads in ((q, self.heads), (k, self.kv_heads)))
        v = self.heads_of(v, self.kv_heads)
        shared = self.heads // self.kv_heads
        attended = np.empty((len(v), self.length, self.heads, self.head), f32)
        attentions = {}
        for sequence in range(len(v)):
            for kv in range(self.kv_heads):
                heads = slice(kv * shared, (kv + 1) * shared)
                own_q = q[sequence, :, heads].transpose(1, 0, 2)
                found = Attention(own_q, k[sequence, :, kv], v[sequence, :, kv])
                attentions[sequence, kv] = found, heads
                attended[sequence, :, heads] = found.out.transpose(1, 0, 2)
        attended = attended.reshape(len(x), -1)
        subnormed = self.norm(attended, f"{name}.attn_sub_norm")
        middle = x + product(*subnormed, own["attn_output"])
        gated = self.norm(middle, f"{name}.ffn_norm")
        gate, up = product(*gated, own["ffn_gate"]), product(*gated, own["ffn_up"])
        h = self.activate(gate) * up
        last = self.norm(h, f"{name}.ffn_sub_norm")
        return middle + product(*last, own["ffn_down"]), (x, normed, attentions, attended, subnormed, middle, gated, gate, up, h, last)

    def matrix_back(self, name, dy, inputs):
        self.sums[name] = weights_back(dy, *inputs, self.length)
        return input_back(dy, self.weights[name])

    def norm_back(self, name, x, dy):
        dx, self.sums[name] = norm_back(x, self.weights[name], self.eps, dy)
        return dx

    def layer_back(self, name, kept, dx):
        x, normed, attentions, attended, subnormed, middle, gated, gate, up, h, last = kept
        dh = self.norm_back(f"{name}.ffn_sub_norm", h, self.matrix_back(f"{name}.ffn_down", dx, last))
        if self.relu2:
            value, slope = np.where(gate < 0, f32(0), (gate * gate, f32(2) * gate))
        else:
            sigma, tau = sigmoid(gate)
            value, slope = gate * sigma, sigma * (f32(1) + gate * tau)
        d_gate, d_up = (dh * up) * slope, dh * value
        d = self.matrix_back(f"{name}.ffn_gate", d_gate, gated) + self.matrix_back(f"{name}.ffn_up", d_up, gated)
        dx = dx + self.norm_back(f"{name}.ffn_norm", middle, d)
        d = self.matrix_back(f"{name}.attn_output", dx, subnormed)
        d = self.heads_of(self.norm_back(f"{name}.attn_sub_norm", attended, d), self.heads)
        dq, dk, dv = (np.empty((len(d), self.length, heads, self.head), f32) for heads in (self.heads, self.kv_heads, self.kv_heads))
        for (sequence, kv), (attention, heads) in attentions.items():
            own = attention.gradients(d[sequence, :, heads].transpose(1, 0, 2))
            dq[sequence, :, heads] = own[0].transpose(1, 0, 2)
            dk[sequence, :, kv], dv[sequence, :, kv] = own[1:]
        d = [part.reshape(len(x), -1) for part in (rotate_back(dq, self.angles), rotate_back(dk, self.angles), dv)]
        q, k, v = (self.matrix_back(f"{name}.attn_{part}", own, normed) for part, own in zip("qkv", d))
        return dx + self.norm_back(f"{name}.attn_norm", x, (q + k) + v)

    def gradients(self, tokens, targets):
        """Fills `sums`, and gives the cost."""
        codes, scales = self.weights["token_embd"]
        x = (codes * scales[:, None])[tokens].astype(f32)
        kept = []
        for layer in range(self.layers):
            x, own = self.layer(x, f"blk.{layer}")
            kept.append(own)
        inputs = self.norm(x, "output_norm")
        logits = product(*inputs, (codes, scales))
        most = logits.max(-1)
        q = exp2_neg(steps(most[:, None] - logits))
        total = q.sum(-1)
        cost = 0
        for row, target in enumerate(targets):
            below = float(most[row]) - float(logits[row, target])
            nats = below + (log2(float(total[row])) - 31) * math.log(2)
            # Half even.
            cost += round(nats * 2**32)
        dy = q.astype(f32) / total.astype(f32)[:, None]
        dy[np.arange(len(dy)), targets] -= f32(1)
        self.sums["token_embd"] = weights_back(dy, *inputs, self.length)
        dy = dy * scales.astype(f32)
        # 16 bits: 256 times as fine.
        exponent = least(np.abs(dy).max(-1), 127, FREE_FLOOR)[:, None] - 8
        d = (rounded(dy, exponent) @ codes).astype(f32) * power(exponent)
        dx = self.norm_back("output_norm", x, d)
        for layer in reversed(range(self.layers)):
            dx = self.layer_back(f"blk.{layer}", kept[layer], dx)
        np.add.at(self.sums["token_embd"], tokens, fixed(dx, WEIGHT_FLOOR))
        return cost

    # The update.

    def update(self, weights, targets, count, rate, beta1, beta2, eps, decay, clip):
        """Updates `weights`, an array for each name, so many times."""
        g = {}
        total = 0.0
        for name in self.names:
            unit = power(GAIN_UNIT if "norm" in name else WEIGHT_FLOOR) / f32(targets)
            g[name] = self.sums[name].ravel().astype(f32) * unit
            total += float(lanes(g[name] * g[name]))
        with np.errstate(divide="ignore"):
            cut = np.minimum(clip / f32(math.sqrt(total)), f32(1))
        first = {name: np.zeros_like(values) for name, values in weights.items()}
        second = {name: np.zeros_like(values) for name, values in weights.items()}
        power1 = power2 = 1.0
        for _ in range(count):
            power1, power2 = power1 * float(beta1), power2 * float(beta2)
            correction1, correction2 = f32(1 - power1), f32(1 - power2)
            for name, w in weights.items():
                own = g[name] * cut
                m = first[name] = beta1 * first[name] + (f32(1) - beta1) * own
                v = second[name] = beta2 * second[name] + (f32(1) - beta2) * (own * own)
                step = (m / correction1) / (np.sqrt(v / correction2) + eps)
                lost = f32(0) if "norm" in name else rate * decay
                weights[name] = (w - lost * w) - rate * step

    def encode(self, weights):
        """Codes of all values, and scales."""
        codes, scales = [], []
        for name in self.names:
            w = weights[name]
            if "norm" in name:
                codes.append(np.zeros(len(w)))
                continue
            if name == "token_embd":
                w = w.reshape(self.weights[name][0].shape)
                scale = (np.abs(w).max(-1) / f32(127)).astype(np.float16).astype(f32)
                found = np.clip(w * (f32(1) / scale)[:, None], -127, 127).astype(f64)
                # Half away from zero.
                found = np.copysign(np.floor(np.abs(found) + 0.5), found)
            else:
                mean = f32(math.fsum(np.abs(w).astype(f64)) / len(w))
                scale = np.array([f32(np.float16(mean))])
                found = np.rint(np.clip(w * (f32(1) / scale), -1, 1))
            codes.append(found.ravel())
            scales.append(scale)
        return np.concatenate(codes).astype(np.int8), np.concatenate(scales)


def main(model, length, updates, folder):
    def read(name, kind):
        return np.fromfile(os.path.join(folder, name), kind)

    def write(name, kind, values):
        values.astype(kind).tofile(os.path.join(folder, name))

    step = Step(model, int(length))
    tokens, targets = read("tokens", "<u4"), read("targets", "<u4")
    print(step.gradients(tokens, targets))
    write("sums", "<i8", np.concatenate([step.sums[name].ravel() for name in step.names]))
    weights, rest = {}, read("weights", "<f4")
    for name in step.names:
        size = step.sums[name].size
        weights[name], rest = rest[:size], rest[size:]
    step.update(weights, len(targets), int(updates), *read("options", "<f4"))
    write("updated", "<f4", np.concatenate([weights[name] for name in step.names]))
    codes, scales = step.encode(weights)
    write("codes", "i1", codes)
    write("scales", "<f4", scales)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
