"""Tensors of PyTorch itself, if it is installed."""

import numpy as np
import pytest
import tercet

torch = pytest.importorskip("torch")


@pytest.fixture
def whole(rng):
    """Numbers that every type below holds exactly, in groups whose largest magnitudes are 127."""
    x = torch.from_numpy(rng.integers(-100, 100, size=(16, 256)).astype(np.float32))
    x[:, 0] = 127
    return x


def uses(x, path):
    """All that is computed of a tensor."""
    quantized, blocks = tercet.quantize(x), tercet.quantize(x, "q8_0")
    scores, rows = tercet.Index(x).search(x, 2)
    kmeans = tercet.KMeans(2).fit(x)
    tercet.write_gguf(path, {"w": x}, force=True)
    return [
        quantized.codes, quantized.scales, quantized.matvec(x), list(quantized.compare(x).values()),
        tercet.quantize(x, "bitnet", axis=None).codes, tercet.quantize(x, "tq2_0", rule="optimal").data,
        blocks.data, blocks.matvec(x), list(blocks.compare(x).values()),
        scores, rows, kmeans.labels_, kmeans.predict(x), kmeans.transform(x), kmeans.score(x),
        tercet.read_gguf(path)[0]["w"],
    ]


def forms(x):
    """Tensors of the same values."""
    with torch.inference_mode():
        inference = x.clone()
    yield "plain", x
    yield "transposed", x.t().contiguous().t()
    yield "strided", torch.repeat_interleave(x, 2, dim=1)[:, ::2]
    yield "of a later offset", torch.cat([x[:1], x])[1:]
    yield "negated as it is read", torch._neg_view(-x)
    yield "of inference mode", inference
    if x.is_floating_point():
        yield "with a gradient", x.clone().requires_grad_()
        yield "parameter", torch.nn.Parameter(x.clone())
        yield "of a graph", x.clone().requires_grad_() * 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "int8"])
def test_tensors_are_as_arrays(whole, tmp_path, dtype):
    path = tmp_path / "m.gguf"
    expected = uses(whole.numpy(), path)
    for name, x in forms(whole.to(getattr(torch, dtype))):
        before, gradient = x.detach().clone(), x.requires_grad
        for found, right in zip(uses(x, path), expected, strict=True):
            assert np.array_equal(found, right), name
        assert torch.equal(x.detach(), before) and x.requires_grad == gradient, name


def test_tensors_are_not_copied():
    x = torch.ones(16, 256)
    for dtype in [torch.float32, torch.float16, torch.bfloat16]:
        y = x.to(dtype)
        assert tercet._arrays.numbers(y).__array_interface__["data"][0] == y.data_ptr()


def test_a_number_of_bfloat16_is_an_array():
    assert tercet.quantize(torch.tensor(3.0).bfloat16()).restore() == 3
    with pytest.raises(ValueError, match="an index takes two dimensions"):
        tercet.Index(torch.tensor(3.0).bfloat16())


@pytest.mark.filterwarnings("ignore")
def test_tensors_that_are_no_arrays_are_refused_in_a_sentence(tmp_path):
    square = torch.eye(4)
    for x in [
        square.to("meta"), square.bfloat16().to("meta"), square.to_sparse(), square.bfloat16().to_sparse(),
        square.to_sparse_csr(), square.to(torch.float8_e4m3fn), torch.nested.nested_tensor([square[0], square[1, :2]]),
        [square[0].requires_grad_()], square.to(torch.complex64),
    ]:
        for use in [tercet.quantize, tercet.Index, tercet.KMeans(2).fit, tercet.quantize(square).matvec,
                    lambda x: tercet.write_gguf(tmp_path / "none.gguf", {"x": x})]:
            with pytest.raises(ValueError, match="not taken as an array|(?i:complex)"):
                use(x)
    assert not (tmp_path / "none.gguf").exists()
