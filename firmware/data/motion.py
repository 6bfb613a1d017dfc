"""Make what the motion application carries: recordings, the scales of its features, and its classifier.

    pip install numpy==2.* safetensors
    pip install --no-deps sktime==1.2.*           # its recordings alone are read
    python firmware/data/motion.py                # wants cargo; writes the files below beside this one, and src/motion/scales.rs
    python firmware/data/motion.py --check        # compares the recordings here with those of sktime; writes nothing

    motion.npy            i16 (60, 100, 6): recordings as the sensor's registers would hold them
    motion-labels.npy     u8 (60): 0 standing, 1 walking, 2 running, 3 badminton
    motion.safetensors    the classifier, four f32 tensors; its weights are ternary already
    motion-calibrate.npy  i8 (280, 18): codes of the training windows
    motion.gguf           what `tercet network build` makes of those two

The recordings are BasicMotions of the UEA archive: a smart watch's acceleration and angular rate at 10 Hz, 100 samples each,
40 to train and 40 to test. Their units are nowhere written; they show. A recording's largest angular rate is 34.87, and 2000
degrees per second, where the sensors of watches end, are 34.91 rad/s: so rad/s. Acceleration reaches 29.4 and -27.8 in a game of
badminton, which is 3 g in m/s² and beyond any watch in g; somebody who stands has a mean below 0.4 along every axis, so
gravity was taken out: m/s², as Android's linear acceleration. They are converted to what an LSM6DSOX set to ±8 g and
±2000 degrees per second gives: 0.244 mg and 0.07 degrees per second.

Replayed are the training recordings of standing and walking, which the firmware learns from, and all 40 of the test half,
in the order of the file. Which of the four people moved is not recorded, so both halves may hold the same ones.

Everything that is chosen (scales, weights) is chosen on the training half; the test half is counted once, by the firmware.
Features and codes come from the firmware's own code, by `examples/motion_codes.rs`. The margin of the threshold, `MARGIN` in
`src/motion/detector.rs`, is asked of the training half by `examples/motion_margin.rs`, whose table this prints.

The classifier: 18 codes -> 32 hidden (ReLU) -> 4 scores. Weights are ternary while they train: the forward pass uses the
ternary row nearest to each float row in squares (the rule `optimal` of Tercet), the gradient goes to the float row as if it were that
(Bengio et al., arXiv:1308.3432). Training repeats to the bit on one NumPy build.
"""

import argparse
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NAMES = ["Standing", "Walking", "Running", "Badminton"]
GRAVITY = 9.80665  # m/s² in a g
ACCELERATION, RATE = 0.000244, 0.07  # g and degrees per second in a step of the sensor
FEATURES, HIDDEN, CLASSES = 18, 32, 4
SEED, EPOCHS, BATCH, STEP, DECAY = 2019, 40, 64, 3e-3, 1e-3


def read(half):
    """(40, 100, 6) values and (40) labels of a half, from the text file in sktime."""
    package = Path(find_spec("sktime").submodule_search_locations[0])
    text = (package / f"datasets/data/BasicMotions/BasicMotions_{half}.ts").read_text()
    rows = [line.split(":") for line in text.split("@data\n")[1].splitlines() if line]
    values = np.array([[np.array(axis.split(","), float) for axis in row[:6]] for row in rows])
    return values.transpose(0, 2, 1), np.array([NAMES.index(row[6]) for row in rows], np.uint8)


def registers(values):
    """Values as the sensor's registers, and how many had to be saturated."""
    steps = np.concatenate(
        [values[..., :3] / GRAVITY / ACCELERATION, np.degrees(values[..., 3:]) / RATE], axis=-1
    )
    steps = np.rint(steps)
    return np.clip(steps, -32768, 32767).astype("<i2"), int((np.abs(steps) > 32767).sum())


def convert():
    """Training registers and labels, and what the firmware replays."""
    train, train_labels = read("TRAIN")
    test, test_labels = read("TEST")
    (train, low), (test, high) = registers(train), registers(test)
    print(f"{low + high} of {train.size + test.size} values saturated; largest {max(np.abs(train).max(), np.abs(test).max())}")
    usual = np.concatenate([np.flatnonzero(train_labels == 0), np.flatnonzero(train_labels == 1)])
    replayed = np.concatenate([train[usual], test])
    return train, train_labels, replayed, np.concatenate([train_labels[usual], test_labels])


def firmware(example, recordings):
    """What an example of the firmware's makes of recordings."""
    command = ["cargo", "run", "-q", "--release", "--target", host(), "--example", *example]
    run = subprocess.run(command, cwd=HERE.parent, input=recordings.tobytes(), stdout=subprocess.PIPE, check=True)
    return run.stdout


def host():
    """The target that runs here."""
    version = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return version.split("host: ")[1].splitlines()[0]


def windows(recordings, hop):
    """The firmware's values and codes of every window, recordings first."""
    record = np.dtype([("values", "<f4", FEATURES), ("codes", "i1", FEATURES)])
    records = firmware(["motion_codes", "--", str(hop)], recordings)
    return np.frombuffer(records, record).reshape(len(recordings), -1)


def write_scales(values):
    """1/254 of each feature's largest value: 0 is -127 and the largest 127."""
    scales = values.reshape(-1, FEATURES).max(axis=0) / np.float32(254)
    path = HERE.parent / "src/motion/scales.rs"
    head = path.read_text().split("[f32; FEATURES]")[0]
    body = "".join(f"    {scale!s},\n" for scale in scales)
    path.write_text(f"{head}[f32; FEATURES] = [\n{body}];\n")
    subprocess.run(["rustfmt", "--edition", "2024", path], check=True)


def ternary(rows):
    """The nearest ternary row, least squares: the k largest |w| at their mean, k maximizing their squared sum / k."""
    size = np.abs(rows)
    falling = -np.sort(-size, axis=1)
    sums = np.cumsum(falling, axis=1)
    k = np.argmax(sums**2 / np.arange(1, rows.shape[1] + 1), axis=1)[:, None]
    least, scale = np.take_along_axis(falling, k, 1), np.take_along_axis(sums, k, 1) / (k + 1)
    return np.where(size >= least, np.sign(rows) * scale, 0)


def scores(x, weights):
    w1, b1, w2, b2 = weights
    return np.maximum(x @ w1.T + b1, 0) @ w2.T + b2


def train(x, labels):
    """Adam with decoupled weight decay and a cosine learning rate; cross-entropy; ternary forward, straight through."""
    random = np.random.default_rng(SEED)
    weights = [
        random.standard_normal((HIDDEN, FEATURES)) * np.sqrt(2 / FEATURES),
        np.zeros(HIDDEN),
        random.standard_normal((CLASSES, HIDDEN)) * np.sqrt(2 / HIDDEN),
        np.zeros(CLASSES),
    ]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    step = 0
    for epoch in range(EPOCHS):
        rate = STEP * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = random.permutation(len(x))
        for start in range(0, len(x), BATCH):
            batch = order[start : start + BATCH]
            w1, b1, w2, b2 = ternary(weights[0]), weights[1], ternary(weights[2]), weights[3]
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
    return [ternary(weights[0]), weights[1], ternary(weights[2]), weights[3]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the recordings with sktime's and write nothing")
    check = parser.parse_args().check
    recordings, labels, replayed, replayed_labels = convert()
    if check:
        assert np.array_equal(np.load(HERE / "motion.npy"), replayed)
        assert np.array_equal(np.load(HERE / "motion-labels.npy"), replayed_labels)
        print("motion.npy and motion-labels.npy are sktime's recordings")
        return
    np.save(HERE / "motion.npy", replayed)
    np.save(HERE / "motion-labels.npy", replayed_labels)
    # Every window of the training half for scales and weights, as though recordings began anywhere.
    write_scales(windows(recordings, 1)["values"])
    told = np.concatenate([recordings[labels == kind] for kind in (0, 1, 3)])
    print(firmware(["motion_margin"], told).decode())
    every = windows(recordings, 1)["codes"]
    x = every.reshape(-1, FEATURES).astype(float) / 64
    weights = train(x, np.repeat(labels, every.shape[1]))
    right = scores(x, weights).argmax(axis=1) == np.repeat(labels, every.shape[1])
    print(f"of the training windows {right.mean():.2%} right")
    # The network takes codes as they are.
    weights[0] = weights[0] / 64
    names = ["hidden.weight", "hidden.bias", "head.weight", "head.bias"]
    tensors = {name: weight.astype(np.float32) for name, weight in zip(names, weights)}
    save_file(tensors, HERE / "motion.safetensors", metadata={"trained_on": "BasicMotions, training half"})
    np.save(HERE / "motion-calibrate.npy", windows(recordings, 10)["codes"].reshape(-1, FEATURES))
    build = "cargo run -q --locked -p tercet-gpu -- network build firmware/data/motion.safetensors --layer hidden:relu --layer head"
    build += " --to ternary_lanes --calibrate firmware/data/motion-calibrate.npy --output firmware/data/motion.gguf --force"
    subprocess.run(build.split(), cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
