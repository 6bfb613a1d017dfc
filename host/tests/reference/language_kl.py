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


def log_softmax(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def main(reference, other):
    a, b = (np.load(path).astype(np.float64) for path in (reference, other))
    if a.shape != b.shape or a.ndim != 2:
        sys.exit(f"{reference} is {a.shape}, {other} is {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        sys.exit("a logit is not finite")
    p, q = log_softmax(a), log_softmax(b)
    kl = (np.exp(p) * (p - q)).sum(-1)
    print("positions", len(a))
    print("kl", kl.mean())
    print("kl_max", kl.max())
    print("argmax", int((a.argmax(-1) == b.argmax(-1)).sum()))
    print("difference", np.abs(a - b).max())
    print("spread", a.max() - a.min())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
