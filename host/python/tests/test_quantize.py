import copy
import pickle

import numpy as np
import pytest
import tercet


def test_int8_is_what_numpy_computes(rng):
    x = rng.normal(size=(40, 64)).astype(np.float32)
    quantized = tercet.quantize(x)
    scales = np.abs(x).max(axis=1) / np.float32(127)
    assert np.array_equal(quantized.scales, scales)
    assert np.array_equal(quantized.codes, np.rint(x / scales[:, None]).astype(np.int8))
    restored = quantized.restore()
    assert restored.dtype == np.float32 and restored.shape == x.shape
    assert np.array_equal(restored, quantized.codes * quantized.scales[:, None])
    figures = quantized.compare(x)
    error = ((x.astype(float) - restored) ** 2).sum()
    assert figures["relative_error"] == pytest.approx(error / (x.astype(float) ** 2).sum(), rel=1e-12)


@pytest.mark.parametrize("format", ["int8", "int8_affine", "int4", "ternary", "bitnet"])
@pytest.mark.parametrize("axis", [0, None])
def test_formats_lose_as_much_as_they_should(rng, format, axis):
    x = rng.normal(size=(16, 256)).astype(np.float32)
    quantized = tercet.quantize(x, format, axis=axis)
    assert quantized.format == format and quantized.shape == (16, 256)
    assert quantized.scales.shape == quantized.zero_points.shape == ((16 if axis == 0 else 1),)
    least = {"int8": 38, "int8_affine": 38, "int4": 12, "ternary": 7, "bitnet": 5}[format]
    assert quantized.compare(x)["sqnr_db"] > least


def test_arrays_of_any_layout_and_type_give_the_same(rng):
    x = rng.integers(-99, 99, size=(6, 8)).astype(np.float32)
    expected = tercet.quantize(x)
    for other in [x.astype(np.float64), np.asfortranarray(x), x[::-1][::-1], x.astype(np.int64), x.tolist(),
                  np.repeat(x, 2, axis=1)[:, ::2], x.astype(np.float16)]:
        found = tercet.quantize(other)
        assert np.array_equal(found.codes, expected.codes)
        assert np.array_equal(found.scales, expected.scales)


def test_products_are_exact_sums(rng):
    w = rng.normal(size=(24, 96)).astype(np.float32)
    for format in ["int8", "ternary"]:
        quantized = tercet.quantize(w, format)
        x = rng.integers(-127, 128, size=(5, 96)).astype(np.float32)
        x[:, 0] = 127
        sums = x.astype(np.int64) @ quantized.codes.T.astype(np.int64)
        expected = (sums * quantized.scales.astype(np.float64)).astype(np.float32)
        assert np.array_equal(quantized.matvec(x), expected)
        assert np.array_equal(quantized.matvec(x[2]), expected[2])


def test_views_hold_their_object_and_cannot_be_written(rng):
    codes = tercet.quantize(rng.normal(size=(3, 4))).codes
    before = codes.copy()
    with pytest.raises(ValueError):
        codes[0, 0] = 1
    tercet.quantize(rng.normal(size=(300, 400)))
    assert np.array_equal(codes, before)


def test_what_cannot_be_quantized_is_refused_in_a_sentence():
    x = np.zeros((3, 4), dtype=np.float32)
    x[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"the value at \[1, 2\] is not finite"):
        tercet.quantize(x)
    with pytest.raises(ValueError, match="no format is called `int9`; there are int8"):
        tercet.quantize([1.0], "int9")
    for empty in [np.zeros((0, 4)), np.zeros((4, 0)), []]:
        with pytest.raises(ValueError):
            tercet.quantize(empty)
    with pytest.raises(ValueError, match="not numbers"):
        tercet.quantize(["a"])
    quantized = tercet.quantize(np.ones((2, 4), dtype=np.float32))
    with pytest.raises(ValueError, match="last axis needs 4 values"):
        quantized.matvec(np.ones(3, dtype=np.float32))
    with pytest.raises(ValueError):
        quantized.compare(np.ones(3, dtype=np.float32))


def test_nothing_leaks(rng):
    import resource

    x = rng.normal(size=(64, 64)).astype(np.float32)
    half = x.astype(np.float16)

    def peak(calls):
        for _ in range(calls):
            quantized = tercet.quantize(x)
            quantized.codes, quantized.restore(), quantized.matvec(x)
            blocks = tercet.quantize(half, "q8_0")
            blocks.codes, blocks.scales, copy.copy(blocks), pickle.loads(pickle.dumps(blocks))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = peak(1000)
    # A leak of one of these arrays would be 40 MiB.
    assert peak(10_000) - before < 8 << 10


@pytest.mark.parametrize("name", ["tq1_0", "tq2_0", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"])
def test_blocks_are_ggufs(rng, name):
    gguf = pytest.importorskip("gguf")
    x = rng.normal(size=(6, 512)).astype(np.float32)
    blocks = tercet.quantize(x, name)
    kind = gguf.GGMLQuantizationType[name.upper()]
    expected = gguf.quants.quantize(x, kind)
    assert np.array_equal(blocks.data, expected.reshape(-1))
    restored = blocks.restore()
    assert np.array_equal(restored, gguf.quants.dequantize(expected, kind))
    assert blocks.shape == (6, 512) and blocks.format == name
    vectors = rng.integers(-127, 128, size=(3, 512)).astype(np.float32)
    vectors[:, 0] = 127
    assert np.allclose(blocks.matvec(vectors), vectors @ restored.T, rtol=1e-4, atol=1e-2)
    if name.startswith("tq"):
        better = tercet.quantize(x, name, rule="optimal").compare(x)
        assert better["mse"] < blocks.compare(x)["mse"]


def test_what_has_no_blocks_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="no whole blocks of 256"):
        tercet.quantize(np.ones((2, 255)), "tq2_0")
    for name in ["q4_k", "q9"]:
        with pytest.raises(ValueError, match=f"no format is called `{name}`; there are int8, .*, q8_0"):
            tercet.quantize(np.ones(256), name)
    with pytest.raises(ValueError, match="q8_0 has a scale in each block"):
        tercet.quantize(np.ones(256), "q8_0", axis=None)
    x = np.zeros((2, 256))
    x[1, 7] = np.inf
    with pytest.raises(ValueError, match=r"the value at \[1, 7\] is not finite"):
        tercet.quantize(x, "tq2_0")


@pytest.mark.parametrize("name", ["tq1_0", "tq2_0", "q2_0", "q4_0", "q5_0", "q8_0"])
def test_blocks_are_codes_times_scales(rng, name):
    x = rng.normal(size=(2, 3, 256)).astype(np.float32)
    blocks = tercet.quantize(x, name)
    codes, scales = blocks.codes, blocks.scales
    assert codes.shape == x.shape and codes.dtype == np.int8 and scales.dtype == np.float32
    assert scales.shape[:2] == (2, 3)
    product = codes * np.repeat(scales, 256 // scales.shape[2], axis=2)
    assert np.array_equal(product, blocks.restore()) and np.array_equal(product, tercet.dequantize(blocks))


def test_blocks_with_a_minimum_have_no_codes_alone(rng):
    for name in ["q4_1", "q5_1"]:
        blocks = tercet.quantize(rng.normal(size=(2, 32)), name)
        for missing in ["codes", "scales"]:
            with pytest.raises(AttributeError, match=f"{name} adds a minimum"):
                getattr(blocks, missing)
    broken = tercet.Blocks("q8_0", (1, 32), np.full(34, 255, np.uint8))
    for use in [broken.restore, lambda: broken.scales, lambda: broken.matvec(np.ones(32))]:
        with pytest.raises(ValueError, match="scale"):
            use()


def test_rules_differ_as_they_should(rng):
    x = rng.normal(size=(8, 256)).astype(np.float32)
    errors = {rule: tercet.quantize(x, "ternary", rule=rule).error for rule in ["absmax", "absmean", "twn", "optimal"]}
    assert errors["optimal"] <= errors["twn"] < errors["absmean"] < errors["absmax"]
    assert tercet.quantize(x, "ternary").error == errors["optimal"]
    assert tercet.quantize(x, "bitnet").error == errors["absmean"]
    for name in ["tq1_0", "tq2_0", "q2_0"]:
        ggml = tercet.quantize(x, name)
        assert np.array_equal(ggml.data, tercet.quantize(x, name, rule="absmax").data)
        assert tercet.quantize(x, name, rule="optimal").error < ggml.error
    # absmean by hand, a scale per row and for all.
    for axis in [0, None]:
        found = tercet.quantize(x, "ternary", rule="absmean", axis=axis)
        scales = np.abs(x.astype(float)).mean(axis=1 if axis == 0 else None, keepdims=True)
        assert np.array_equal(found.codes, np.clip(np.rint(x / scales), -1, 1))
    for name in ["int8", "int4", "q8_0"]:
        with pytest.raises(ValueError, match=f"{name} has no rule"):
            tercet.quantize(x, name, rule="optimal")
    for name in ["ternary", "tq2_0"]:
        with pytest.raises(ValueError, match="no rule is called `best`; there are absmax"):
            tercet.quantize(x, name, rule="best")


def test_rows_are_along_the_last_axis(rng, tmp_path):
    x = rng.normal(size=(4, 3, 5)).astype(np.float32)
    quantized = tercet.quantize(x, axis=0)
    flat = tercet.quantize(x.reshape(12, 5))
    assert quantized.codes.shape == x.shape and quantized.scales.shape == (12,)
    assert np.array_equal(quantized.codes.reshape(12, 5), flat.codes)
    assert tercet.quantize(x[0, 0]).scales.shape == tercet.quantize(3.0).scales.shape == (1,)
    assert tercet.quantize(x, axis=None).scales.shape == (1,)
    quantized.save(tmp_path / "m.gguf")
    again = tercet.read_gguf(tmp_path / "m.gguf")[0]["weight"]
    assert np.array_equal(again.restore(), quantized.restore())
    assert np.array_equal(tercet.read(tmp_path / "m.gguf", "weight"), quantized.restore())
    for axis in [1, -1, 2, "rows"]:
        with pytest.raises(ValueError, match="it takes 0 .* or None"):
            tercet.quantize(x, axis=axis)
