"""How far one model's logits are from another's: the mean Kullback-Leibler divergence in nats a token.

usage: language_kl.py REFERENCE OTHER

Both are .npy [positions, vocabulary] of one length. KL(reference || other) is taken over softmax(logits) in float64. Printed, one a line:

    positions 12
    kl 0.000123          mean over the positions, nats
    kl_max 0.000456      the largest of a position
    argmax 12            positions whose largest logit is of one token
    difference 0.0123    the largest of a logit
    spread 7.89          the largest reference logit less the smallest, which the difference is to be held against
"""

import sys

import numpy as np

ROWS = 256


def log_softmax(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def main(reference, other):
    # Block by block: of thousands of positions they are more than memory holds.
    a, b = (np.load(path, mmap_mode="r") for path in (reference, other))
    if a.shape != b.shape or a.ndim != 2:
        sys.exit(f"{reference} is {a.shape}, {other} is {b.shape}")
    kl, argmax, difference, least, largest = [], 0, 0.0, np.inf, -np.inf
    for first in range(0, len(a), ROWS):
        x, y = (rows[first : first + ROWS].astype(np.float64) for rows in (a, b))
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            sys.exit("a logit is not finite")
        p, q = log_softmax(x), log_softmax(y)
        kl.extend((np.exp(p) * (p - q)).sum(-1))
        argmax += int((x.argmax(-1) == y.argmax(-1)).sum())
        difference = max(difference, np.abs(x - y).max())
        least, largest = min(least, x.min()), max(largest, x.max())
    print("positions", len(a))
    print("kl", np.mean(kl))
    print("kl_max", np.max(kl))
    print("argmax", argmax)
    print("difference", difference)
    print("spread", largest - least)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
