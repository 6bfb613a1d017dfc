import array
import ctypes
import pathlib
import sys
import types

import numpy as np
import pytest
import tercet


class OnlyDlpack:
    """An array that has nothing but DLPack."""

    def __init__(self, values, device=1):
        self.values, self.device = values, device

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return (self.device, 0)


class Tensor:
    """What of a tensor of PyTorch is used: NumPy takes it, but not with a gradient, nor bfloat16."""

    def __init__(self, values, dtype="torch.float32", requires_grad=True, device=1):
        self.values, self.dtype, self.requires_grad, self.device = values, dtype, requires_grad, device

    def detach(self):
        return Tensor(self.values, self.dtype, False, self.device)

    def view(self, dtype):
        return Tensor(self.values.view(np.int16), dtype, self.requires_grad)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad or self.dtype == "torch.bfloat16":
            raise TypeError("not taken")
        return self.values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return (self.device, 0)


def bits(x):
    """The bits of float32 values that bfloat16 holds exactly."""
    return (x.view(np.uint32) >> 16).astype(np.uint16)


@pytest.fixture
def whole(rng):
    """Numbers that every type below holds exactly, in groups whose largest magnitudes are 127."""
    x = rng.integers(-100, 100, size=(4, 256)).astype(np.float32)
    x[:, 0] = 127
    return x


def uses(x):
    """All that is computed of an array."""
    quantized, blocks = tercet.quantize(x), tercet.quantize(x, "q8_0")
    scores, rows = tercet.Index(x).search(x, 2)
    kmeans = tercet.KMeans(2).fit(x)
    return [
        quantized.codes, quantized.scales, quantized.matvec(x), list(quantized.compare(x).values()),
        blocks.data, blocks.matvec(x), list(blocks.compare(x).values()),
        scores, rows, kmeans.labels_, kmeans.predict(x), kmeans.transform(x),
    ]


def test_all_that_holds_numbers_is_taken(whole, monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(int16="torch.int16"))
    expected = uses(whole)
    frozen = whole.copy()
    frozen.flags.writeable = False
    flat = whole.reshape(-1)
    others = {
        "read-only": frozen,
        "float16": whole.astype(np.float16),
        "bfloat16": whole.astype(ml_dtypes.bfloat16),
        "strided bfloat16": np.repeat(whole, 2, axis=1).astype(ml_dtypes.bfloat16)[:, ::2],
        "big-endian": whole.astype(">f4"),
        "buffer of bytes": memoryview(whole.tobytes()).cast("f", (4, 256)),
        "mapped": np.frombuffer(whole.tobytes(), dtype=np.float32).reshape(4, 256),
        "ctypes": ((ctypes.c_float * 256) * 4).from_buffer_copy(whole),
        "lists of array.array": [array.array("f", row) for row in whole],
        "DLPack": OnlyDlpack(whole),
        "strided DLPack": OnlyDlpack(np.asfortranarray(whole)),
        "float16 by DLPack": OnlyDlpack(whole.astype(np.float16)),
        "tensor": Tensor(whole),
        "bfloat16 tensor": Tensor(bits(whole), "torch.bfloat16"),
    }
    for name, other in others.items():
        for found, right in zip(uses(other), expected):
            assert np.array_equal(found, right), name
    assert np.array_equal(tercet.quantize(array.array("d", flat)).codes, tercet.quantize(flat).codes)


def test_what_is_taken_is_not_changed_nor_copied(whole):
    # 64 MiB. NumPy's copies are traced; what Rust allocates is not.
    import tracemalloc

    large = np.broadcast_to(whole[:1, :1], (1 << 12, 1 << 12)).copy()
    before = large.copy()
    large.flags.writeable = False
    tracemalloc.start()
    for x in [large, OnlyDlpack(before), Tensor(large)]:
        tercet.quantize(x, "bitnet", axis=None, measure=False)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert np.array_equal(large, before) and not large.flags.writeable


def test_bfloat16_needs_no_package(whole, monkeypatch):
    # A dtype of that name, as ml_dtypes has it.
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(int16="torch.int16"))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    found = tercet.quantize(Tensor(bits(whole), "torch.bfloat16"))
    assert np.array_equal(found.codes, tercet.quantize(whole).codes)
    nan = bits(whole)
    nan[1, 5] = 0x7FC0
    for format in ["int8", "tq2_0"]:
        with pytest.raises(ValueError, match=r"\[1, 5\] is not finite"):
            tercet.quantize(Tensor(nan, "torch.bfloat16"), format)


def test_bfloat16_is_written_as_it_is(whole, tmp_path):
    gguf = pytest.importorskip("gguf")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    path = tmp_path / "m.gguf"
    tercet.write_gguf(path, {"w": whole.astype(ml_dtypes.bfloat16), "v": OnlyDlpack(whole)})
    w, v = gguf.GGUFReader(path).tensors
    assert w.tensor_type == gguf.GGMLQuantizationType.BF16 and v.tensor_type == gguf.GGMLQuantizationType.F32
    assert np.array_equal(gguf.dequantize(w.data, w.tensor_type), whole)
    assert np.array_equal(tercet.read_gguf(path)[0]["w"], whole)


def test_what_is_no_array_of_the_processor_is_refused_in_a_sentence(whole):
    cuda = types.SimpleNamespace(__cuda_array_interface__={})
    for elsewhere in [OnlyDlpack(whole, device=2), Tensor(whole, device=2), cuda]:
        for use in [tercet.quantize, tercet.Index, tercet.KMeans(2).fit, tercet.quantize(whole).matvec,
                    lambda x: tercet.write_gguf("none.gguf", {"x": x})]:
            with pytest.raises(ValueError, match="is in the memory of a device; copy it"):
                use(elsewhere)
    for none, words in [(b"bytes", "not numbers"), ("points.csv", "is a str, not numbers; tercet.read returns"),
                        (pathlib.Path("points.csv"), "is a .*Path, not numbers"), (None, "not numbers"),
                        ({}, "not numbers"), (whole.astype(complex), "not numbers"), ([[1], [1, 2]], "inhomogeneous"),
                        (np.zeros(3, dtype="datetime64[s]"), "not numbers"), (np.zeros(3, dtype="V2"), "not numbers"),
                        (OnlyDlpack(np.array([object()])), "not taken as an array")]:
        for use in [tercet.quantize, tercet.quantize(whole).matvec, tercet.quantize(whole, "q8_0").compare]:
            with pytest.raises(ValueError, match=words):
                use(none)
