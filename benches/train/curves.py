"""Draws the curves of runs beside one another, held out and in training, from the JSON lines of `tercet train` and of `beside.py`.

    pip install matplotlib==3.11.2
    python curves.py -o curves.svg "tercet train=tiny.jsonl" "PyTorch, quantization-aware=qat.jsonl" "PyTorch, f32=float.jsonl"
"""

import argparse
import json
import math

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

# Steps over which losses of training are averaged.
SMOOTH = 20


def lines(path: str) -> list[dict]:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, help="the picture, .svg")
    parser.add_argument("runs", nargs="+", metavar="NAME=FILE")
    found = parser.parse_args()
    # Text stays text, and the same input gives the same bytes.
    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tercet", "font.size": 9})
    figure, (held, training) = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for run in found.runs:
        name, _, path = run.rpartition("=")
        told = lines(path)
        points = [(line["evaluated"], line["bits_per_byte"]) for line in told if "evaluated" in line]
        held.plot(*zip(*points), marker=".", label=name)
        steps = [(line["step"], line["mean"] / math.log(2)) for line in told if "step" in line]
        groups = [steps[at : at + SMOOTH] for at in range(0, len(steps), SMOOTH)]
        means = [(group[-1][0], sum(cost for _, cost in group) / len(group)) for group in groups]
        training.plot(*zip(*means), label=name)
    held.set_ylabel("held out, bits per byte")
    training.set_ylabel("in training, bits a token")
    for axes in (held, training):
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
    held.legend()
    figure.savefig(found.output, metadata={"Date": None})


if __name__ == "__main__":
    main()
