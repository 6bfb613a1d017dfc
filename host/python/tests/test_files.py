import numpy as np
import pytest
import tercet


def test_a_quantized_file_is_what_gguf_reads(rng, tmp_path):
    x = rng.normal(size=(8, 512)).astype(np.float32)
    np.save(tmp_path / "w.npy", x)
    report = tercet.quantize_file(tmp_path / "w.npy", tmp_path / "w.gguf", "tq2_0")
    assert report["tensors"][0]["to"] == "tq2_0"
    gguf = pytest.importorskip("gguf")
    (tensor,) = gguf.GGUFReader(tmp_path / "w.gguf").tensors
    restored = gguf.dequantize(tensor.data, tensor.tensor_type)
    assert np.array_equal(tercet.read(tmp_path / "w.gguf"), restored.reshape(8, 512))
    assert tercet.tensors(tmp_path / "w.gguf") == [(tensor.name, "tq2_0", [8, 512])]
    with pytest.raises(ValueError, match="exists already"):
        tercet.quantize_file(tmp_path / "w.npy", tmp_path / "w.gguf", "q8_0")
    tercet.quantize_file(tmp_path / "w.npy", tmp_path / "w.gguf", "q8_0", force=True)


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(OSError, match="cannot open"):
        tercet.read(tmp_path / "none.npy")
    with pytest.raises(OSError, match="cannot open"):
        tercet.tensors(tmp_path / "none.npy")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(ValueError):
        tercet.tensors(tmp_path / "text.gguf")
    np.save(tmp_path / "w.npy", np.ones((2, 256), dtype=np.float32))
    with pytest.raises(ValueError):
        tercet.quantize_file(tmp_path / "w.npy", tmp_path / "w.gguf", "q99")
