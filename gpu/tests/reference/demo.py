"""Reads the files that `tercet demo` wrote with the formats' own packages, and prints each file's accuracy.

    python demo.py FOLDER_OF_THE_DEMO FOLDER_OF_THE_DATA

One line a file: its name and the number of held-out digits read right. GGUF files with types that the `gguf`
package does not know are left out.

    python demo.py clusters FOLDER_OF_THE_DATA

What scikit-learn finds when it clusters all digits, three lines of a name, the adjusted Rand index and the purity: `pixels`
as they are; `recipe`, the pixels standardized, as in its user guide's example "A demo of K-Means clustering on the handwritten
digits data"; and `labels`, those of an npy file, where one is named after the folder.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader, dequantize
from safetensors.numpy import load_file

NAMES = ["hidden.weight", "hidden.bias", "head.weight", "head.bias"]


def features(images):
    square = images.astype(np.float32).reshape(-1, 8, 8)
    right, below, across = (np.zeros_like(square) for _ in range(3))
    right[:, :, :-1] = square[:, :, 1:]
    below[:, :-1] = square[:, 1:]
    across[:, :-1, :-1] = square[:, 1:, 1:]
    planes = [square, square - right, square - below, square - across]
    return np.concatenate([plane.reshape(-1, 64) for plane in planes], axis=1)


def from_gguf(path):
    found = {}
    for tensor in GGUFReader(path).tensors:
        shape = tensor.shape.tolist()[::-1]
        found[tensor.name] = dequantize(tensor.data, tensor.tensor_type).reshape(shape)
    return [found[name].astype(np.float32) for name in NAMES]


def from_palette(packed, codebooks, scales, shape):
    """Indices from the lowest bit up, rows on whole bytes; a codebook and a scale for each group of rows."""
    rows, columns = shape
    width = codebooks.shape[1].bit_length() - 1
    bits = np.unpackbits(packed.reshape(rows, -1), axis=1, bitorder="little")[:, : columns * width]
    indices = bits.reshape(rows, columns, width) @ (1 << np.arange(width))
    group = np.arange(rows) // (rows // len(codebooks))
    return codebooks[group[:, None], indices] * scales.reshape(-1)[group][:, None]


def from_safetensors(path):
    found = load_file(path)
    tensors = []
    for name in NAMES:
        values = found[name]
        if name + "_palette" in found:
            values = from_palette(values, *(found[name + end] for end in ("_palette", "_palette_scale", "_palette_shape")))
        elif values.dtype == np.int8:
            values = values * found[name + "_scale"].reshape(-1, 1)
        elif values.dtype == np.uint8:
            # Hugging Face BitNet: quarter i of the rows lies in bits 2i and 2i + 1; the scale divides.
            quarters = [(values >> 2 * i & 3).astype(np.float32) - 1 for i in range(4)]
            values = np.concatenate(quarters) / found[name + "_scale"]
        tensors.append(values.astype(np.float32))
    return tensors


def main(demo, data):
    images, labels = np.load(data / "images.npy")[898:], np.load(data / "labels.npy")[898:]
    x = features(images)
    for path in sorted(demo.iterdir()):
        # Integer networks are read by host/tests/reference/network.py.
        if path.suffix not in (".gguf", ".safetensors") or path.name.startswith("digits-network-"):
            continue
        try:
            w1, b1, w2, b2 = from_gguf(path) if path.suffix == ".gguf" else from_safetensors(path)
        except ValueError as error:
            if "GGMLQuantizationType" in str(error):
                continue
            raise
        scores = np.maximum(x @ w1.T + b1, 0) @ w2.T + b2
        print(path.name, int((scores.argmax(axis=1) == labels).sum()))


def clusters(data):
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score
    from sklearn.metrics.cluster import contingency_matrix
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    images, digits = np.load(data / "images.npy"), np.load(data / "labels.npy")

    def kmeans():
        return KMeans(init="k-means++", n_clusters=10, n_init=4, random_state=0)

    found = {
        "pixels": kmeans().fit(images.astype(np.float64)).labels_,
        "recipe": make_pipeline(StandardScaler(), kmeans()).fit(images.astype(np.float64))[-1].labels_,
    }
    if len(sys.argv) > 3:
        found["labels"] = np.load(sys.argv[3])
    for name, labels in found.items():
        purity = contingency_matrix(digits, labels).max(axis=0).sum() / len(digits)
        print(name, adjusted_rand_score(digits, labels), purity)


if __name__ == "__main__":
    if sys.argv[1] == "clusters":
        clusters(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
