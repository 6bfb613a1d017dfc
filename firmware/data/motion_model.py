"""Make what the language model that reads motion is made of, and the model.

    pip install numpy==2.* safetensors
    pip install --no-deps sktime==1.2.*           # its recordings alone are read
    python firmware/data/motion_model.py          # wants cargo; writes the files below beside this one

    motion-letters.npy    i8 (64, 6): the centroids of changes by which letters are told apart
    motion-text.txt       20 lines of 99 letters: the training recordings of standing and walking in turns
    motion-model.gguf     what `tercet train` makes of the first ten lines; the other ten are held out

Recordings are those of motion.py. Letters come from the firmware's own code, by `examples/motion_letters.rs`; centroids of all
changes of the training half from `tercet kmeans`. Everything is chosen on the training half: the number of steps by the cost of
the held-out lines, and `LIMIT` in `src/motion/surprisal.rs` by what this prints at the end. It is 5/4 of the largest window of the
held-out lines, rounded from the middle between that and the smallest window of running and badminton (1.24).
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from motion import HERE, ROOT, firmware, read, registers

LETTERS = 64


def tercet(*words):
    subprocess.run(["cargo", "run", "-q", "--locked", "-p", "tercet-gpu", "--", *map(str, words)], cwd=ROOT, check=True)


def main():
    values, labels = read("TRAIN")
    recordings, _ = registers(values)
    with tempfile.TemporaryDirectory() as folder:
        changes = Path(folder) / "changes.npy"
        codes = np.frombuffer(firmware(["motion_letters", "--", "changes"], recordings), "i1")
        np.save(changes, codes.reshape(-1, recordings.shape[2]))
        kmeans = ["kmeans", changes, "-k", LETTERS, "--seed", 1, "--n-init", 8]
        tercet(*kmeans, "--centroids", HERE / "motion-letters.npy", "--force")
    standing, walking, running, badminton = (recordings[labels == kind] for kind in range(4))
    # Standing, walking, standing, …
    usual = np.stack([standing, walking], axis=1).reshape(-1, *recordings.shape[1:])
    text = HERE / "motion-text.txt"
    text.write_bytes(firmware(["motion_letters", "--", "letters"], usual))
    train = ["train", text, "--preset", "micro", "--vocabulary", 259, "--context", 64, "--batch", 4]
    train += ["--hold", 0.5, "--steps", 80, "--to", "tq1_0"]
    tercet(*train, "-o", HERE / "motion-model.gguf", "--force")
    told = np.concatenate([usual, running, badminton])
    print("the lines trained on, those held out, running, badminton:")
    print(firmware(["motion_letters", "--", "surprisals"], told).decode())


if __name__ == "__main__":
    main()
