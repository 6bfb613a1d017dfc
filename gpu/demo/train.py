"""Make what `tercet demo` carries: the digits as npy, and a classifier trained on their first half.

    pip install numpy==2.* scikit-learn==1.* safetensors
    python train.py            # writes images.npy, labels.npy and digits.safetensors beside this file

The classifier is an ordinary float one. Nothing in its training knows of low-bit weights, so what a format
loses in the demo is what it would lose on any weights handed to it. The seed was fixed before the first run
and the held-out half is used for nothing but the accuracy printed at the end.

The network: 256 features -> 64 hidden (ReLU) -> 10 scores, two weight matrices and two biases. The features are
the 8 x 8 pixels (integers 0..16) and their differences to the right, the lower and the lower right neighbour
(0 beyond the edge), so they are integers in -16..16, and a row is one block of 256 of TQ1_0 and TQ2_0.
The head's rows have 64 columns: Q2_0, Q4_0 and Q8_0 take them, TQ1_0 and TQ2_0 fall back to another type.

Training runs in float64 and is rounded to float32 once. It repeats to the bit on one NumPy build; another BLAS
sums in another order and ends in weights that differ in their last bits.
"""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
TRAIN = 898  # the first 898 of 1,797 images train, the last 899 are held out
SEED = 1998
HIDDEN, EPOCHS, BATCH, RATE, DECAY = 64, 60, 64, 3e-3, 1e-3


def features(images):
    """(n, 64) pixels -> (n, 256): pixels, then differences right, down and down-right."""
    square = images.astype(np.int64).reshape(-1, 8, 8)
    edge = np.pad(square, ((0, 0), (0, 1), (0, 1)))
    parts = [square, square - edge[:, :8, 1:], square - edge[:, 1:, :8], square - edge[:, 1:, 1:]]
    return np.stack(parts, axis=1).reshape(-1, 256)


def scores(x, weights):
    w1, b1, w2, b2 = weights
    return np.maximum(x @ w1.T + b1, 0) @ w2.T + b2


def train(x, labels):
    """Adam with decoupled weight decay and a cosine learning rate; cross-entropy."""
    random = np.random.default_rng(SEED)
    weights = [
        random.standard_normal((HIDDEN, 256)) * np.sqrt(2 / 256) / 8,
        np.zeros(HIDDEN),
        random.standard_normal((10, HIDDEN)) * np.sqrt(2 / HIDDEN),
        np.zeros(10),
    ]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    step = 0
    for epoch in range(EPOCHS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = random.permutation(len(x))
        for start in range(0, len(x), BATCH):
            batch = order[start : start + BATCH]
            w1, b1, w2, b2 = weights
            hidden = np.maximum(x[batch] @ w1.T + b1, 0)
            z = hidden @ w2.T + b2
            p = np.exp(z - z.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            p[np.arange(len(batch)), labels[batch]] -= 1
            p /= len(batch)
            back = (p @ w2) * (hidden > 0)
            gradients = [back.T @ x[batch], back.sum(axis=0), p.T @ hidden, p.sum(axis=0)]
            step += 1
            for i, gradient in enumerate(gradients):
                first[i] = 0.9 * first[i] + 0.1 * gradient
                second[i] = 0.999 * second[i] + 0.001 * gradient**2
                move = first[i] / (1 - 0.9**step) / (np.sqrt(second[i] / (1 - 0.999**step)) + 1e-8)
                decay = DECAY * weights[i] if weights[i].ndim == 2 else 0
                weights[i] = weights[i] - rate * (move + decay)
    return [w.astype(np.float32) for w in weights]


def main():
    images, labels = load_digits(return_X_y=True)
    images, labels = images.astype(np.uint8), labels.astype(np.uint8)
    x = features(images)
    weights = train(x[:TRAIN].astype(np.float64), labels[:TRAIN].astype(np.int64))
    np.save(HERE / "images.npy", images)
    np.save(HERE / "labels.npy", labels)
    names = ["hidden.weight", "hidden.bias", "head.weight", "head.bias"]
    save_file(
        dict(zip(names, weights)),
        HERE / "digits.safetensors",
        metadata={"trained_on": "UCI optical digits, images 0..897"},  # one entry: the writer keeps no order
    )
    right = scores(x.astype(np.float32), weights).argmax(axis=1) == labels
    print(f"training half {right[:TRAIN].mean():.2%}, held-out half {right[TRAIN:].mean():.2%}")


if __name__ == "__main__":
    main()
