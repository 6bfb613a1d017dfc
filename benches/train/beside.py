"""Trains the model of a run of `tercet train` in PyTorch, by float gradients: with the same tokens, batches, first
weights, learning rates and held-out windows.

    tercet train input.txt -o tiny.gguf --preset tiny --steps 1000 --checkpoint run --json
    python beside.py --variant qat --model tiny.gguf --tokens run/tokens.bin --steps 1000

`--variant qat` is BitNet's training: the forward pass has the codes of the file, gradients go straight through them.
`--variant float` is a model of the same shape in f32. `--variant llama` is that without the norms that the architecture
`llama` lacks, which `--llama OUT.gguf` writes with the run's tokenizer: a float model to convert. `--variant repdl` is
`float` with RepDL's products, softmax and loss. Steps, batch, seed and what decides the learning rate are to be those of
the run and have the same defaults. The run's model is asked for its shape and vocabulary alone, not for its weights.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import gguf
import numpy as np
import torch

import llama
import model
import pytorch
import repdl

MAGIC = b"tercet tokens 1\n"
# Streams of draws, as the run numbers them.
ORDER, OFFSET, WEIGHTS = 1, 2, 3


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", choices=("qat", "float", "llama", "repdl"), default="qat")
    parser.add_argument("--model", required=True, help="the file that the run wrote, .gguf")
    parser.add_argument("--tokens", required=True, help="tokens.bin in the folder of the run's --checkpoint")
    for name, default in dict(steps=1000, batch=16, seed=1, threads=1).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, dest="lr", help="[default: 0.002 times the root of batch / 16]")
    parser.add_argument("--warmup", type=int, help="[default: a twentieth of all steps]")
    pytorch.learning(parser)
    parser.add_argument("--every", type=int, help="steps between evaluations [default: a tenth of all]")
    parser.add_argument("--stop-after", type=int, help="end after so many steps, for which the rate is not planned")
    parser.add_argument("--compile", action="store_true", help="with torch.compile, whose first steps are not counted")
    parser.add_argument("--repdl", metavar="DIR", help="with --variant repdl: a clone of github.com/microsoft/RepDL")
    parser.add_argument("--flags", default="", help="flags with which RepDL is compiled, besides -O3")
    parser.add_argument("--llama", metavar="OUT", help="with --variant llama: write the trained model, .gguf")
    parser.add_argument("--json", action="store_true", help="lines of JSON, one a step too")
    found = parser.parse_args()
    if found.llama and found.variant != "llama":
        parser.error("--llama needs --variant llama: the other variants have norms that a llama lacks")
    if bool(found.repdl) != (found.variant == "repdl"):
        parser.error("--variant repdl and --repdl DIR belong together")
    if found.lr is None:
        found.lr = 2e-3 * math.sqrt(found.batch / 16)
    if found.warmup is None:
        found.warmup = -(-found.steps // 20)
    found.warmup = min(found.warmup, found.steps)
    found.every = found.every or -(-found.steps // 10)
    return found


@dataclass
class Vocabulary:
    """The token that windows begin with, and how many bytes each token stands for."""

    begin: int | None
    lengths: np.ndarray


def read_model(path: str) -> tuple[dict[str, int], Vocabulary]:
    """A shape by the names of `model.py`, and a vocabulary."""
    fields = gguf.GGUFReader(path).fields

    def field(key: str):
        return fields[key].contents()

    if field("general.architecture") != "bitnet" or field("bitnet.rope.freq_base") != 10_000:
        raise SystemExit(f"{path}: not a model of tercet train")
    # A letter of GPT-2's stands for each byte.
    lengths = np.array([len(token) for token in field("tokenizer.ggml.tokens")])
    begins = "tokenizer.ggml.add_bos_token" in fields and field("tokenizer.ggml.add_bos_token")
    begin = field("tokenizer.ggml.bos_token_id") if begins else None
    shape = {
        "vocabulary": len(lengths),
        "context": field("bitnet.context_length"),
        "width": field("bitnet.embedding_length"),
        "ff": field("bitnet.feed_forward_length"),
        "layers": field("bitnet.block_count"),
        "heads": field("bitnet.attention.head_count"),
        "kv_heads": field("bitnet.attention.head_count_kv"),
    }
    if shape["width"] != shape["heads"] * field("bitnet.attention.key_length"):
        raise SystemExit(f"{path}: its heads are not as wide together as the model")
    return shape, Vocabulary(begin, lengths)


def read_tokens(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Tokens to train on, and those held out."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise SystemExit(f"{path}: not a file of tokens")
        _, held = np.fromfile(file, "<u8", 2)
        tokens = np.fromfile(file, "<u4").astype(np.int64)
    return tokens[int(held) :], tokens[: int(held)]


def counter(seed: int, stream: int, positions: np.ndarray) -> np.ndarray:
    """First words drawn at positions of a stream: Philox4x32-10 as `tercet_core::number::counter` takes it."""
    low = np.uint64(0xFFFF_FFFF)
    a, b = positions & low, positions >> np.uint64(32)
    c, d = np.full_like(a, stream), np.zeros_like(a)
    key = np.array([seed & 0xFFFF_FFFF, seed >> 32], np.uint64)
    for _ in range(10):
        left, right = a * np.uint64(0xD251_1F53), c * np.uint64(0xCD9E_8D57)
        a, c = right >> np.uint64(32) ^ b ^ key[0], left >> np.uint64(32) ^ d ^ key[1]
        b, d = right & low, left & low
        key = key + np.array([0x9E37_79B9, 0xBB67_AE85], np.uint64) & low
    return a


def permuted(count: int, seed: int) -> np.ndarray:
    """An order of 0..count: a Feistel network, walked until it is below the count."""
    half = np.uint64(max(1, ((count - 1).bit_length() + 1) // 2))
    mask = (np.uint64(1) << half) - np.uint64(1)

    def walk(place: np.ndarray) -> np.ndarray:
        left, right = place >> half, place & mask
        for turn in range(6):
            draw = counter(seed, ORDER, np.uint64(turn << 32) | right)
            left, right = right, left ^ draw & mask
        return left << half | right

    place = walk(np.arange(count, dtype=np.uint64))
    while (beyond := place >= count).any():
        place[beyond] = walk(place[beyond])
    return place.astype(np.int64)


def firsts(count: int, context: int, seed: int) -> Iterator[int]:
    """Where windows begin in the text, one after another of the whole run."""
    windows, epoch = (count - 1) // context - 1, 0
    while True:
        offset = int(counter(seed, OFFSET, np.array([epoch], np.uint64))[0]) % context
        # An epoch in the upper half of 64 bits: there are fewer than 2^32.
        yield from (offset + permuted(windows, seed ^ epoch << 32) * context).tolist()
        epoch += 1


def batches(config, tokens: np.ndarray, begin: int | None) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and targets of step after step."""
    order = firsts(len(tokens), config.context, config.seed)
    while True:
        at = np.array([next(order) for _ in range(config.batch)])[:, None] + np.arange(config.context)
        if begin is None:
            inputs, targets = tokens[at], tokens[at + 1]
        else:
            targets = tokens[at]
            inputs = np.insert(targets[:, :-1], 0, begin, 1)
        yield torch.from_numpy(inputs), torch.from_numpy(targets)


def held_windows(config, held: np.ndarray, begin: int | None) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and targets that an evaluation scores: the whole windows, and what is left as a shorter one.

    A window has the context's positions, `begin` among them; nothing follows its last token, which is no input."""
    own = config.context - (begin is not None)
    whole = len(held) // own * own
    found = []
    for windows in (held[:whole].reshape(-1, own), held[None, whole:]):
        if begin is not None:
            windows = np.insert(windows, 0, begin, 1)
        if windows.size and windows.shape[1] > 1:
            found.append((torch.from_numpy(windows[:, :-1].copy()), torch.from_numpy(windows[:, 1:].copy())))
    return found


def first_weights(config) -> dict[str, torch.Tensor]:
    """Gains of 1, and for the rest uniform draws by place, of root mean square 0.02."""
    made, place = {}, 0
    for name, shape in model.shapes(config).items():
        count = math.prod(shape)
        values = np.ones(count, np.float32)
        if len(shape) == 2:
            draws = counter(config.seed, WEIGHTS, np.arange(place, place + count, dtype=np.uint64))
            units = (draws >> np.uint64(8)).astype(np.int64) - (1 << 23)
            values = units.astype(np.float32) * np.float32(2.0**-23) * (np.float32(3**0.5) * np.float32(0.02))
        made[name] = torch.from_numpy(values.reshape(shape)).requires_grad_()
        place += count
    return made


def main() -> None:
    config = options()
    torch.set_num_threads(config.threads)
    shape, vocabulary = read_model(config.model)
    vars(config).update(shape)
    tokens, held = read_tokens(config.tokens)
    windows = held_windows(config, held, vocabulary.begin)
    scored_bytes = sum(int(vocabulary.lengths[targets.numpy()].sum()) for _, targets in windows)
    weights = first_weights(config)
    if config.repdl:
        repdl.load(config.repdl, config.flags.split())

    def cost(weights: dict[str, torch.Tensor], inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        ops = model.KINDS[config.variant](weights, ({}, {}))
        return ops.loss(model.forward(ops, config, inputs), targets)

    if config.compile:
        cost = torch.compile(cost)
    optimizer = pytorch.AdamW(weights, config)

    def told(line: dict, text: str) -> None:
        print(json.dumps(line) if config.json else text, flush=True)

    parameters = sum(weight.numel() for weight in weights.values())
    begun = vars(config) | {"parameters": parameters, "tokens": len(tokens), "held_out_tokens": len(held)}
    text = f"{config.variant}: {parameters} parameters, {len(tokens)} tokens, {len(held)} held out"
    told(begun, f"{text}\n{'step':>6} {'nats':>8} {'rate':>9} {'norm':>8} {'tokens/s':>9} {'held-out bits per byte':>21}")
    last, spent, done = min(config.stop_after or config.steps, config.steps), 0.0, 0
    order = batches(config, tokens, vocabulary.begin)
    for step in range(1, last + 1):
        inputs, targets = next(order)
        start, rate = time.perf_counter(), optimizer.rate()
        for weight in weights.values():
            weight.grad = None
        loss = cost(weights, inputs, targets)
        loss.backward()
        loss = loss.item()
        none = torch.zeros_like
        sums = {name: none(weight) if weight.grad is None else weight.grad for name, weight in weights.items()}
        norm = optimizer.step(sums, targets.numel())
        own = time.perf_counter() - start
        # PyTorch's first step sets things up, and with --compile the second too.
        if step > 1 + config.compile or last == 1:
            spent, done = spent + own, done + targets.numel()
        mean = loss / targets.numel()
        if config.json:
            pace = targets.numel() / own
            told({"step": step, "mean": mean, "rate": rate, "norm": norm, "tokens_per_second": pace}, "")
        if step % config.every == 0 or step == last:
            held_cost = sum(pytorch.nats(config.variant, weights, config, *some) for some in windows)
            count = sum(targets.numel() for _, targets in windows)
            bits, pace = held_cost / math.log(2) / scored_bytes, done / max(spent, 1e-9)
            line = {"evaluated": step, "mean": held_cost / count, "count": count, "bytes": scored_bytes}
            row = f"{step:6} {mean:8.4f} {rate:9.6f} {norm:8.3f} {pace:9.0f} {bits:21.5f}"
            told(line | {"bits_per_byte": bits, "tokens_per_second": pace}, row)
    if config.llama:
        llama.write(config.llama, config, weights, config.model)


if __name__ == "__main__":
    main()
