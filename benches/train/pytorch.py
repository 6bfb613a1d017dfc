"""Trains a small language model of bytes by float gradients, by quantization-aware training, or by the rules of
training in integers.

    python pytorch.py --variant integer --seed 1 --text TEXT

Prints the held-out bits per byte every 100 steps, and at the end a line of JSON. The last 5 % of TEXT are held out. All
variants begin with the same weights and see the same windows in the same order. `--check` compares the gradients of one
batch at the end: `--steps 0 --check` those of the initial weights.
"""

import argparse
import json
import math
import time

import numpy
import torch

import model

BOS = 256


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", choices=model.KINDS, default="integer")
    parser.add_argument("--text", required=True)
    numbers = dict(seed=1, steps=1000, warmup=50, batch=8, context=128, width=128, ff=384, layers=4, heads=4, every=100)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--kv-heads", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=259)
    parser.add_argument("--lr", type=float, default=2e-3)
    learning(parser)
    parser.add_argument("--deviation", type=float, default=0.06, help="of initial weights")
    parser.add_argument("--floor-weights", type=int, default=-25)
    parser.add_argument("--floor-values", type=int, default=-33)
    parser.add_argument("--floor-keys", type=int, default=-33)
    parser.add_argument("--head-bits", type=int, default=16, help="of the codes for the gradient of the head's input")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def learning(parser):
    """The options of `AdamW` that have one default for all runs."""
    parser.add_argument("--schedule", choices=("cosine", "two-stage"), default="cosine")
    for name, default in dict(last=0.1, decay=0.1, clip=1.0).items():
        parser.add_argument(f"--{name}", type=float, default=default)


def quantizers(config):
    """Floors of exponents and largest codes, by kind of group."""
    kinds = ("q", "k", "v", "o", "gate", "up", "down", "head")
    found = {f"dw.{kind}": config.floor_weights for kind in kinds}
    found |= {"at.dv": config.floor_values, "at.dk": config.floor_keys}
    return found, {"dx.head": 2 ** (config.head_bits - 1) - 1}


def windows(text, context):
    """Inputs and targets of all whole windows: BOS and all bytes but the last; each byte is a target once."""
    targets = torch.from_numpy(text[: len(text) // context * context].reshape(-1, context).astype(numpy.int64))
    return torch.cat((torch.full((len(targets), 1), BOS), targets[:, :-1]), 1), targets


def batches(config, count):
    """Indices of windows, batch by batch: a permutation an epoch."""
    epoch, order = 0, torch.empty(0, dtype=torch.long)
    while True:
        while len(order) < config.batch:
            generator = torch.Generator().manual_seed(1_000_003 * config.seed + epoch)
            order = torch.cat((order, torch.randperm(count, generator=generator)))
            epoch += 1
        yield order[: config.batch]
        order = order[config.batch :]


def nats(kind, weights, config, inputs, targets):
    """What all targets cost together by the forward pass of a kind."""
    total = 0.0
    with torch.no_grad():
        ops = model.KINDS[kind](weights, ({}, {}))
        for some, wanted in zip(inputs.split(config.batch), targets.split(config.batch)):
            logits = model.forward(ops, config, some).double()
            total -= logits.log_softmax(-1).gather(-1, wanted[..., None]).sum().item()
    return total


def bits_per_byte(kind, weights, config, held):
    """Over all windows held out, whose tokens are bytes."""
    return nats(kind, weights, config, *held) / math.log(2) / held[1].numel()


class AdamW:
    """Each operation in f32, rounded once; the powers of β and the total of the norm in f64."""

    def __init__(self, weights, config):
        self.weights, self.config, self.step_number, self.powers = weights, config, 0, [1.0, 1.0]
        self.m = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        self.v = {name: torch.zeros_like(weight) for name, weight in weights.items()}

    def rate(self):
        config, at = self.config, self.step_number
        if at < config.warmup:
            return config.lr * (at + 1) / config.warmup
        done = (at - config.warmup) / max(1, config.steps - config.warmup)
        left = 1 - done if config.schedule == "two-stage" else 0.5 * (1 + math.cos(math.pi * done))
        return config.lr * (config.last + (1 - config.last) * left) * (2 / 3 if self.is_second() else 1)

    def is_second(self):
        """Whether the second of two stages has begun, in which nothing decays."""
        return self.config.schedule == "two-stage" and self.step_number >= self.config.steps // 2

    @torch.no_grad()
    def step(self, sums, count):
        lr, (b1, b2) = self.rate(), (0.9, 0.95)
        decay = 0.0 if self.is_second() else self.config.decay
        self.step_number += 1
        self.powers = [self.powers[0] * b1, self.powers[1] * b2]
        inverse = torch.tensor(1 / count, dtype=torch.float32)
        gradients = {name: sums[name].float() * inverse for name in self.weights}
        norm = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients.values()))
        c = min(1.0, self.config.clip / norm) if norm else 1.0
        for name, weight in self.weights.items():
            gradient, m, v = gradients[name] * c, self.m[name], self.v[name]
            m.mul_(b1).add_(gradient * (1 - b1))
            v.mul_(b2).add_((gradient * gradient) * (1 - b2))
            change = (m / (1 - self.powers[0])) / ((v / (1 - self.powers[1])).sqrt() + 1e-8)
            if weight.dim() == 2:
                weight.sub_(weight * (lr * decay))
            weight.sub_(change * lr)
        return norm


def batch_gradients(ops, config, inputs, targets):
    """The loss (a sum) of a batch and its gradients."""
    for weight in ops.weights.values():
        weight.grad = None
    loss = ops.loss(model.forward(ops, config, inputs), targets)
    loss.backward()
    return loss.item(), ops.gradients()


def summary(counts, floor):
    """Of groups, their exponents: least, median, largest, quantiles of 1 in 10,000, and the share below the floor."""
    counts, zeros = counts[:256].double(), counts[256].item()
    total = counts.sum().item()
    if not total:
        return {"groups": 0, "zeros": zeros}
    seen, along = counts.nonzero().flatten() - 128, counts.cumsum(0) / total
    quantile = [int((along >= share).nonzero()[0]) - 128 for share in (1e-4, 0.5, 1 - 1e-4)]
    found = {"min": int(seen[0]), "q0.0001": quantile[0], "median": quantile[1], "q0.9999": quantile[2]}
    found |= {"max": int(seen[-1]), "groups": int(total), "zeros": zeros}
    if floor is not None:
        found["floor"], found["below_floor"] = floor, round(counts[: floor + 128].sum().item() / total, 6)
    return found


def check(weights, config, inputs, targets):
    """Cosines of each tensor's gradient, and lengths, of `integer` against `reference` and against `qat`."""
    kinds = ("integer", "reference", "qat")
    losses, found = {}, {}
    for kind in kinds:
        ops = model.KINDS[kind](weights, quantizers(config))
        losses[kind], gradients = batch_gradients(ops, config, inputs, targets)
        found[kind] = {name: gradient.double().flatten().clone() for name, gradient in gradients.items()}
    print("losses", {kind: round(loss / targets.numel() / math.log(2), 6) for kind, loss in losses.items()}, "bits")
    print(f"{'tensor':20} cosine: reference         qat  length ÷ reference's")
    for name in weights:
        a, b, c = (found[kind][name] for kind in kinds)
        cosine = [(a @ other / (a.norm() * other.norm())).item() for other in (b, c)]
        print(f"{name:20} {cosine[0]:17.6f} {cosine[1]:11.6f} {(a.norm() / b.norm()).item():14.6f}")


def main():
    config = options()
    torch.set_num_threads(config.threads)
    text = numpy.fromfile(config.text, dtype=numpy.uint8)
    cut = len(text) - len(text) // 20
    (inputs, targets), held = windows(text[:cut], config.context), windows(text[cut:], config.context)
    weights = model.initial(config, torch.Generator().manual_seed(config.seed))
    optimizer, order = AdamW(weights, config), batches(config, len(inputs))
    curve, exponents, spent, norms = [], {}, 0.0, []
    for step in range(1, config.steps + 1):
        begun, picked = time.perf_counter(), next(order)
        ops = model.KINDS[config.variant](weights, quantizers(config))
        loss, sums = batch_gradients(ops, config, inputs[picked], targets[picked])
        norms.append(optimizer.step(sums, targets[picked].numel()))
        spent += time.perf_counter() - begun
        if config.variant == "integer":
            for kind, counts in ops.record.exponents.items():
                exponents[kind] = exponents.get(kind, 0) + counts
        if step % config.every == 0 or step == config.steps:
            curve.append((step, round(bits_per_byte(config.variant, weights, config, held), 4)))
            loss = loss / math.log(2) / targets[picked].numel()
            pace = f"norm {norms[-1]:.3f} {1000 * spent / step:.0f} ms a step"
            print(f"{step} held-out {curve[-1][1]:.4f} batch {loss:.4f} {pace}", flush=True)
    if config.check:
        picked = next(order)
        check(weights, config, inputs[picked], targets[picked])
    result = vars(config) | {"parameters": sum(weight.numel() for weight in weights.values()), "curve": curve}
    result["ms_a_step"] = round(1000 * spent / max(1, config.steps), 1)
    if config.variant != "float":
        result["by_the_rules"] = round(bits_per_byte("integer", weights, config, held), 4)
    if norms:
        result["clipped"] = round(sum(norm > config.clip for norm in norms) / len(norms), 4)
    found, _ = quantizers(config)
    result["exponents"] = {kind: summary(counts, found.get(kind)) for kind, counts in sorted(exponents.items())}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
