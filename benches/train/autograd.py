"""Writes what PyTorch's autograd says of each step that `tercet_core::train` takes backwards, in f64 and without quantization, on draws that a test
makes again: `core/tests/train_autograd.rs` compares, and says the largest differences.

    pip install numpy torch==2.15.0
    python autograd.py > ../../core/tests/train_autograd.txt
"""

import torch
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu

torch.set_default_dtype(torch.float64)


def draws(seed: int, *shape: int) -> torch.Tensor:
    """From -1 to 1 in steps of 2^-23: exact in f32."""
    count = torch.Size(shape).numel()
    h = (torch.arange(count, dtype=torch.int64) * 2654435761 + seed * 40503) % 2**32
    for shift, factor in ((15, 2246822519), (13, 3266489917)):
        h ^= h >> shift
        # In two halves: a product of 64 bits would wrap.
        h = ((h & 0xFFFF) * factor + (((h >> 16) * factor % 2**16) << 16)) % 2**32
    h ^= h >> 16
    return (((h >> 8) - 2**23) / 2**23).reshape(shape)


def codes(seed: int, most: int, *shape: int) -> torch.Tensor:
    return torch.floor(draws(seed, *shape) * most + 0.5)


def told(name: str, values: torch.Tensor) -> None:
    print(name, *(f"{value:.9g}" for value in values.flatten().tolist()))


def leaf(values: torch.Tensor) -> torch.Tensor:
    return values.clone().requires_grad_()


def norm() -> None:
    x, gains, dy = leaf(draws(1, 48)), leaf(draws(2, 48) + 1), draws(3, 48)
    (x * torch.rsqrt((x * x).mean() + 0.0078125) * gains).backward(dy)
    told("norm.x", x.grad)
    told("norm.gains", gains.grad)


def gates() -> None:
    for name, of in (("silu", silu), ("squared_relu", lambda x: torch.relu(x) ** 2)):
        x, up, dh = leaf(draws(4, 64) * 8), leaf(draws(5, 64)), draws(6, 64)
        (of(x) * up).backward(dh)
        told(f"{name}.x", x.grad)
        told(f"{name}.up", up.grad)


def loss() -> None:
    logits = leaf(draws(7, 60) * 4)
    cross_entropy(logits[None], torch.tensor([7])).backward()
    told("loss.logits", logits.grad)


def linear() -> None:
    """70 rows of one sequence, 24 codes each with a scale a row; 12 outputs of ternary weights with one scale."""
    x, scales = codes(8, 127, 70, 24), (draws(9, 70, 1) + 2) / 128
    weights, dy = leaf(codes(10, 1, 12, 24) * 0.0625), draws(11, 70, 12)
    x = leaf(x * scales)
    (x @ weights.T).backward(dy)
    told("linear.x", x.grad)
    told("linear.weights", weights.grad)


def attention() -> None:
    """A sequence of 70 positions, four heads of queries on two of keys and values, 24 values a head; some rows are told."""
    # The test's scales of queries are by 1 / sqrt(24) already.
    queries = leaf(codes(12, 32767, 70, 4, 24) * ((draws(13, 70, 4, 1) + 2) / 131072 * 24**0.5))
    keys = leaf(codes(14, 127, 70, 2, 24) * ((draws(15, 70, 2, 1) + 2) / 128))
    values = leaf(codes(16, 127, 70, 2, 24) * ((draws(17, 70, 2, 1) + 2) / 128))
    by_head = [x.transpose(0, 1) for x in (queries, keys.repeat_interleave(2, 1), values.repeat_interleave(2, 1))]
    out = scaled_dot_product_attention(*by_head, is_causal=True)
    out.backward(draws(18, 70, 4, 24).transpose(0, 1))
    for name, x in (("queries", queries), ("keys", keys), ("values", values)):
        told(f"attention.{name}", x.grad[[0, 1, 31, 63, 64, 69]])


def rotation() -> None:
    """A head of 16 values by angles of simple fractions, which `core/src/train/backward.rs` makes again."""
    place = torch.arange(16)
    dy, pair = (place * 5 % 11 - 5) / 8, torch.arange(8)
    cosine, sine = (pair - 3) / 8, (7 - pair) / 16
    for name, shape, axis in (("halves", (2, 8), 0), ("neighbours", (8, 2), 1)):
        x = leaf(draws(23, 16))
        a, b = x.reshape(shape).unbind(axis)
        torch.stack((a * cosine - b * sine, b * cosine + a * sine), axis).flatten().backward(dy)
        told(f"rotation.{name}", x.grad)


def adamw() -> None:
    """Three updates with clipping; the second gradient is too small to be cut."""
    weights = leaf(draws(19, 40) / 16)
    optimizer = torch.optim.AdamW([weights], betas=(0.875, 0.96875), eps=2.0**-27, weight_decay=0.125)
    for step, (rate, size) in enumerate(((0.0078125, 1.0), (0.015625, 0.015625), (0.00390625, 2.0))):
        optimizer.param_groups[0]["lr"] = rate
        weights.grad = draws(20 + step, 40) * size
        torch.nn.utils.clip_grad_norm_([weights], 0.5)
        optimizer.step()
        told(f"adamw.{step + 1}", weights.detach())


if __name__ == "__main__":
    for made in (norm, gates, loss, linear, rotation, attention, adamw):
        made()
