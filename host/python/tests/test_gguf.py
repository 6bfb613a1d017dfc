import numpy as np
import pytest
import tercet

gguf = pytest.importorskip("gguf")

FORMATS = ["tq1_0", "tq2_0", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"]
PLAIN = ["float64", "float32", "float16", "int64", "int32", "int16", "int8"]


def written(writer):
    """Writes the file of a GGUFWriter."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_gguf_reads_what_is_written(rng, tmp_path):
    x = rng.normal(size=(4, 512)).astype(np.float32)
    arrays = {f"a.{kind}": (x[:3, :5] * 9).astype(kind) for kind in PLAIN}
    arrays |= {"one": np.float32(7), "three": x.reshape(2, 4, 256)[..., ::3], "swapped": x.astype(">f4")}
    blocks = {f"b.{name}": tercet.quantize(x, name) for name in FORMATS}
    metadata = {
        "text": "für", "yes": True, "count": 7, "below": -7, "large": 2**40, "rate": 0.25, "exact": np.float64(0.1),
        "byte": np.uint8(3), "texts": ["a", "", "c"], "ints": [1, -2], "floats": [0.5, 1], "bools": [True, False],
        "array": np.arange(5, dtype=np.uint16), "none": [],
    }
    path = tmp_path / "m.gguf"
    assert tercet.write_gguf(path, arrays | blocks, metadata) == path.stat().st_size
    reader = gguf.GGUFReader(path)
    assert [tensor.name for tensor in reader.tensors] == [*arrays, *blocks]
    for tensor in reader.tensors:
        if tensor.name in arrays:
            expected = np.atleast_1d(arrays[tensor.name])
            assert tensor.data.dtype == expected.dtype.newbyteorder("=")
        else:
            expected = blocks[tensor.name].restore()
            assert tensor.tensor_type.name.lower() == blocks[tensor.name].format
        found = gguf.dequantize(tensor.data, tensor.tensor_type) if tensor.name in blocks else tensor.data
        assert np.array_equal(found, expected)
    for key, value in metadata.items():
        found = reader.fields[key].contents()
        assert (np.array_equal(found, value) if isinstance(value, np.ndarray) else found == value), key
    kinds = {key: reader.fields[key].types[-1].name for key in metadata if key != "none"}
    assert kinds == {
        "text": "STRING", "yes": "BOOL", "count": "UINT32", "below": "INT32", "large": "UINT64", "rate": "FLOAT32",
        "exact": "FLOAT64", "byte": "UINT8", "texts": "STRING", "ints": "INT32", "floats": "FLOAT32", "bools": "BOOL",
        "array": "UINT16",
    }
    assert reader.fields["general.architecture"].contents() == "tercet"


def test_what_gguf_writes_is_read(rng, tmp_path):
    path = tmp_path / "m.gguf"
    x = rng.normal(size=(4, 512)).astype(np.float32)
    writer = gguf.GGUFWriter(path, "demo")
    plain = {kind: (x[:, :7] * 9).astype(kind) for kind in PLAIN}
    for kind, array in plain.items():
        writer.add_tensor(kind, array)
    brain = gguf.quants.quantize(x, gguf.GGMLQuantizationType.BF16)
    writer.add_tensor("bfloat16", brain, raw_dtype=gguf.GGMLQuantizationType.BF16)
    for name in FORMATS:
        kind = gguf.GGMLQuantizationType[name.upper()]
        writer.add_tensor(name, gguf.quants.quantize(x, kind), raw_dtype=kind)
    writer.add_uint8("u8", 200)
    writer.add_int64("i64", -(2**40))
    writer.add_float64("f64", 0.1)
    writer.add_bool("yes", True)
    writer.add_array("texts", ["a", "ü"])
    writer.add_array("floats", [0.5, 1.5])
    written(writer)
    tensors, metadata = tercet.read_gguf(path)
    assert list(tensors) == [*PLAIN, "bfloat16", *FORMATS]
    for kind, array in plain.items():
        assert tensors[kind].dtype == kind and np.array_equal(tensors[kind], array)
        tensors[kind][0, 0] = 1
    assert tensors["bfloat16"].dtype == np.float32
    assert np.array_equal(tensors["bfloat16"], gguf.dequantize(brain, gguf.GGMLQuantizationType.BF16))
    for name in FORMATS:
        assert np.array_equal(tensors[name].data, tercet.quantize(x, name).data)
        assert tensors[name].format == name and tensors[name].shape == (4, 512)
    assert metadata["u8"] == 200 and metadata["u8"].dtype == np.uint8 and metadata["i64"] == -(2**40)
    assert metadata["f64"] == 0.1 and metadata["yes"] is True and metadata["texts"] == ["a", "ü"]
    assert metadata["floats"].tolist() == [0.5, 1.5] and metadata["general.architecture"] == "demo"
    some, _ = tercet.read_gguf(path, ["tq2_0", "float32"])
    assert list(some) == ["tq2_0", "float32"]


@pytest.mark.parametrize("format", ["int8", "int8_affine", "int4", "ternary", "bitnet"])
@pytest.mark.parametrize("axis", [0, None])
def test_quantized_arrays_come_back(rng, tmp_path, format, axis):
    x = rng.normal(size=(3, 40)).astype(np.float32)
    quantized = tercet.quantize(x, format, axis=axis)
    path = tmp_path / "m.gguf"
    quantized.save(path)
    tensors, metadata = tercet.read_gguf(path)
    again = tensors.pop("weight")
    assert not tensors and metadata.keys() == {"general.architecture", "general.quantization_version"}
    assert isinstance(again, tercet.Quantized) and again.format == format
    for a, b in [(again.codes, quantized.codes), (again.scales, quantized.scales),
                 (again.zero_points, quantized.zero_points), (tercet.read(path, "weight"), quantized.restore()),
                 (again.restore(), quantized.restore())]:
        assert np.array_equal(a, b)
    if axis == 0 and format != "int8_affine":
        assert np.array_equal(again.matvec(x), quantized.matvec(x))
    with pytest.raises(AttributeError, match=r"compare\(x\) measures it"):
        again.error
    tensors, metadata = tercet.read_gguf(path, "weight")
    tercet.write_gguf(tmp_path / "n.gguf", tensors, metadata)
    assert (tmp_path / "n.gguf").read_bytes() == path.read_bytes()


def test_a_model_passes_unchanged(nano, tmp_path):
    tensors, metadata = tercet.read_gguf(nano)
    path = tmp_path / "again.gguf"
    tercet.write_gguf(path, tensors, metadata)
    assert tercet.tensors(path) == tercet.tensors(nano)
    a, b = gguf.GGUFReader(path), gguf.GGUFReader(nano)
    assert {key: field.contents() for key, field in a.fields.items() if not key.startswith("GGUF.")} == {
        key: field.contents() for key, field in b.fields.items() if not key.startswith("GGUF.")
    }
    assert all(np.array_equal(x.data, y.data) for x, y in zip(a.tensors, b.tensors))
    texts = [tercet.Model(it).write("ROMEO:", tokens=8) for it in (path, nano)]
    assert texts[0] == texts[1]


def test_the_error_is_what_compare_measures(rng):
    # More values than are compared at a time, and rows that do not divide them.
    x = rng.normal(size=(300, 1001)).astype(np.float32)
    for axis in [0, None]:
        quantized = tercet.quantize(x, "ternary", axis=axis)
        assert quantized.error == quantized.compare(x)["relative_error"]
    whole = x[:, :512]
    blocks = tercet.quantize(np.repeat(whole, 2, axis=0), "tq2_0")
    assert blocks.error == blocks.compare(np.repeat(whole, 2, axis=0))["relative_error"]
    restored = tercet.quantize(whole, "q8_0").restore().astype(float)
    expected = ((restored - whole) ** 2).sum() / (whole.astype(float) ** 2).sum()
    assert tercet.quantize(whole, "q8_0").error == pytest.approx(expected, rel=1e-9)
    for made in [tercet.quantize(x, measure=False), tercet.quantize(whole, "q8_0", measure=False)]:
        assert not hasattr(made, "error")
    with pytest.raises(ValueError, match="512 values are compared with"):
        blocks.compare(whole[0])


def test_what_cannot_be_written_is_refused_in_a_sentence(rng, tmp_path):
    path = tmp_path / "m.gguf"
    ones = np.ones((2, 3), dtype=np.float32)
    quantized = tercet.quantize(ones)
    for tensors, metadata, words in [
        ({"w": ones.astype(complex)}, None, "tensor w: GGUF has no type complex128"),
        ({"w": ones.astype(np.uint8)}, None, "no type uint8"),
        ({"w": np.ones((1,) * 5)}, None, "`w`: .*dimensions"),
        ({"x" * 65: ones}, None, "at most 64"),
        ({"w": quantized, "w_scale": ones}, None, "two tensors have the name w_scale"),
        ({"w": ones}, {"a": None}, "no type for the metadata a"),
        ({"w": ones}, {"a": {}}, "no type for the metadata a"),
        ({"w": ones}, {"a": [1, "b"]}, "no type for the metadata a"),
        ({"w": ones}, {"a": 2**64}, "no type for the metadata a"),
        ({"w": ones}, {"a": np.ones((2, 2))}, "no type for the metadata a"),
        ({"w": ones}, {"": 1}, "a key of 0 bytes"),
        ({"w": ones}, {"general.alignment": 3}, "alignment is 3"),
    ]:
        with pytest.raises(ValueError, match=words):
            tercet.write_gguf(path, tensors, metadata)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="end the name in .gguf"):
        quantized.save(tmp_path / "m.safetensors")
    quantized.save(path)
    with pytest.raises(ValueError, match="exists already"):
        quantized.save(path)
    quantized.save(path, "v", force=True)
    assert [name for name, *_ in tercet.tensors(path)] == ["v", "v_scale", "v_zero_point"]
    with pytest.raises(OSError):
        quantized.save(tmp_path / "none" / "m.gguf")


def test_what_cannot_be_read_is_refused_in_a_sentence(rng, tmp_path):
    path = tmp_path / "m.gguf"
    tercet.write_gguf(path, {"w": tercet.quantize(rng.normal(size=(4, 64))), "b": np.ones(300)}, {"a": ["x", "y"]})
    whole = path.read_bytes()
    for length in range(0, len(whole) - 32, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError):
            tercet.read_gguf(path)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            tercet.read_gguf(path)
        except ValueError:
            pass
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="no tensor named `c`"):
        tercet.read_gguf(path, ["c"])
    with pytest.raises(OSError, match="cannot open"):
        tercet.read_gguf(tmp_path / "none.gguf")
    np.save(tmp_path / "w.npy", np.ones(3))
    with pytest.raises(ValueError, match="npy file, not a GGUF file"):
        tercet.read_gguf(tmp_path / "w.npy")
    writer = gguf.GGUFWriter(path, "demo")
    kind = gguf.GGMLQuantizationType.Q3_K
    writer.add_tensor("k", np.zeros((1, 110), dtype=np.uint8), raw_dtype=kind)
    writer.add_tensor("f", np.ones(3, dtype=np.float32))
    written(writer)
    with pytest.raises(ValueError, match="`k`: the type q3_k is not decoded"):
        tercet.read_gguf(path)
    assert tercet.read_gguf(path, ["f"])[0]["f"].tolist() == [1, 1, 1]


def test_parts_make_objects_and_wrong_ones_are_refused(rng):
    x = rng.normal(size=(2, 512)).astype(np.float32)
    blocks = tercet.quantize(x, "q8_0")
    again = tercet.Blocks("q8_0", (2, 512), blocks.data)
    assert np.array_equal(again.restore(), blocks.restore())
    for format, shape in [("q8_0", (2, 511)), ("q8_0", (512, 2)), ("q8_0", (0, 512)), ("q8_0", ()), ("q4_0", (2, 512)),
                          ("q8_0", (2**40, 2**40)), ("int8", (2, 512))]:
        with pytest.raises(ValueError, match="blocks"):
            tercet.Blocks(format, shape, blocks.data)
    quantized = tercet.quantize(x)
    codes, scales, zeros = quantized.codes, quantized.scales, quantized.zero_points
    for parts, words in [
        ((codes, scales[:0], zeros[:0]), "0 scales"),
        ((codes, np.ones(3, np.float32), zeros), "3 scales"),
        ((codes, scales, zeros[:1]), "buffer holds 1"),
        ((codes, scales * np.nan, zeros), "range"),
        ((codes[:0], scales[:1], zeros[:1]), "no values"),
        ((codes[:, ::2], scales, zeros), "not C-contiguous"),
    ]:
        with pytest.raises(ValueError, match=words):
            tercet.Quantized("int8", *parts)
    with pytest.raises(ValueError, match="no format is called `q4`"):
        tercet.Quantized("q4", codes, scales, zeros)
