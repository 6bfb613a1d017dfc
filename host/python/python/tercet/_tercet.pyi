from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypedDict, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

class Info(TypedDict):
    version: str
    backend: str
    backends: list[str]
    threads: int

class Figures(TypedDict):
    mse: float
    relative_error: float
    sqnr_db: float
    cosine: float
    max_error: float

class Written(TypedDict):
    text: str
    tokens: list[int]
    ended: bool
    digest: str

class Trained(TypedDict):
    bytes: int
    steps: int
    loss: float

class Cost(TypedDict):
    perplexity: float
    bits_per_byte: float
    sum: int
    count: int

class Verified(TypedDict):
    engine: str
    operations: int
    agreed: int
    differ: list[str]
    seconds: float

def info() -> Info: ...
def verify() -> list[Verified]: ...
def quantize(
    array: ArrayLike, format: str, rule: str | None, rows: bool, measure: bool
) -> Quantized: ...
def tensors(path: str | PathLike[str]) -> list[tuple[str, str, list[int]]]: ...
def read(path: str | PathLike[str], tensor: str | None) -> NDArray[np.float32]: ...
def quantize_file(
    input: str | PathLike[str],
    output: str | PathLike[str],
    *,
    to: str,
    bits: float | None,
    include: list[str],
    exclude: list[str],
    force: bool,
    on_progress: Callable[[int, int], object] | None,
) -> str: ...
def encode(array: ArrayLike, format: str, rule: str | None, measure: bool) -> Blocks: ...
def write_gguf(
    path: str | PathLike[str],
    parts: list[tuple[str, tuple[int, ...], str, NDArray[np.uint8]]],
    metadata: list[tuple[str, str | list[str] | NDArray[Any]]],
    *,
    force: bool,
) -> int: ...
def read_gguf(
    path: str | PathLike[str], names: list[str] | None
) -> tuple[dict[str, Blocks | tuple[str, list[int], NDArray[np.uint8]]], dict[str, Any]]: ...
def train(
    text: bytes,
    output: str | PathLike[str],
    *,
    preset: str,
    steps: int,
    tokens: int,
    batch: int,
    seed: int,
    teacher: tuple[str | PathLike[str], float, float] | None,
    lean: bool,
    zeros: float | None,
    keep: float | None,
    clusters: int | None,
    force: bool,
    on_step: Callable[[int, float], object] | None,
) -> Trained: ...
def assign(
    x: NDArray[np.float32], codes: NDArray[np.int8], grid: tuple[float, int], spherical: bool
) -> NDArray[np.uint32]: ...

@final
class Quantized:
    def __init__(
        self,
        format: str,
        codes: NDArray[np.int8],
        scales: NDArray[np.float32],
        zero_points: NDArray[np.int8],
        error: float | None = None,
    ) -> None: ...
    @property
    def codes(self) -> NDArray[np.int8]: ...
    @property
    def scales(self) -> NDArray[np.float32]: ...
    @property
    def zero_points(self) -> NDArray[np.int8]: ...
    @property
    def format(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def error(self) -> float: ...
    def save(self, path: str | PathLike[str], name: str = "weight", *, force: bool = False) -> None: ...
    def restore(self) -> NDArray[np.float32]: ...
    def compare(self, original: ArrayLike) -> Figures: ...
    def matvec(self, x: ArrayLike) -> NDArray[np.float32]: ...

@final
class Blocks:
    def __init__(
        self, format: str, shape: Sequence[int], data: NDArray[np.uint8], error: float | None = None
    ) -> None: ...
    @property
    def codes(self) -> NDArray[np.int8]: ...
    @property
    def scales(self) -> NDArray[np.float32]: ...
    @property
    def data(self) -> NDArray[np.uint8]: ...
    @property
    def format(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def error(self) -> float: ...
    def save(self, path: str | PathLike[str], name: str = "weight", *, force: bool = False) -> None: ...
    def restore(self) -> NDArray[np.float32]: ...
    def compare(self, original: ArrayLike) -> Figures: ...
    def matvec(self, x: ArrayLike) -> NDArray[np.float32]: ...

@final
class KMeansFit:
    def __init__(
        self,
        x: NDArray[np.float32],
        clusters: int,
        *,
        restarts: int,
        max_iter: int,
        tolerance_ppm: int,
        seed: int,
        random: bool,
        spherical: bool,
        batch: int | None,
        weights: NDArray[np.uint32] | None,
        centroids: NDArray[np.float32] | None,
        engine: str,
        on_step: Callable[[int, float], object] | None,
    ) -> None: ...
    @property
    def labels(self) -> NDArray[np.uint32]: ...
    @property
    def centroids(self) -> NDArray[np.float32]: ...
    @property
    def codes(self) -> NDArray[np.int8]: ...
    @property
    def grid(self) -> tuple[float, int]: ...
    @property
    def inertia(self) -> float: ...
    @property
    def iterations(self) -> int: ...
    @property
    def engine(self) -> str: ...

@final
class Index:
    def __init__(self, rows: NDArray[np.float32], metric: str) -> None: ...
    def __len__(self) -> int: ...
    @property
    def dims(self) -> int: ...
    def search(
        self, queries: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...

@final
class Model:
    def __init__(self, path: str | PathLike[str]) -> None: ...
    @property
    def context(self) -> int: ...
    def generate(
        self,
        prompt: str,
        *,
        tokens: int = 128,
        temperature: float = 0.0,
        top_k: int = 0,
        penalty: float = 1.0,
        seed: int = 0,
        on_text: Callable[[str], object] | None = None,
    ) -> Written: ...
    def tokenize(self, text: str, *, ends: bool, special: bool) -> list[int]: ...
    def detokenize(self, tokens: NDArray[np.uint32], *, special: bool) -> str: ...
    def logits(self, tokens: NDArray[np.uint32], *, each: bool) -> NDArray[np.float32]: ...
    def evaluate(self, text: str) -> Cost: ...
