"""RepDL (Xie and others, 2025, arXiv 2510.09180): f32 training with the same bits on every machine, by one order of
additions. Its products, softmax and loss in the decoder of `model.py`; for the rest, which it has not, PyTorch's."""

import glob
import os

import torch
from torch.utils import cpp_extension

import model

FUNCTIONS = None


def load(folder: str, flags: list[str]) -> None:
    """Builds the functions for the processor from a clone of github.com/microsoft/RepDL."""
    global FUNCTIONS
    sources = sorted(glob.glob(os.path.join(folder, "backend", "cpu", "*.cpp")))
    if not sources:
        raise SystemExit(f"{folder}: it has no backend/cpu/*.cpp, so it is no clone of RepDL")
    name = "repdl_cpu" + "".join(flags).replace("-", "_").replace("=", "_")
    cflags = ["-O3", "-fopenmp", *flags]
    FUNCTIONS = cpp_extension.load(name, sources, extra_cflags=cflags, extra_ldflags=["-fopenmp"])


class Product(torch.autograd.Function):
    """a · b, or a · bᵀ."""

    @staticmethod
    def forward(context, a, b, across):
        context.save_for_backward(a, b)
        context.across = across
        return FUNCTIONS.mm(a, b, False, across)

    @staticmethod
    def backward(context, gradient):
        a, b = context.saved_tensors
        gradient = gradient.contiguous()
        of_a = FUNCTIONS.mm(gradient, b, False, not context.across)
        of_b = FUNCTIONS.mm(gradient, a, True, False) if context.across else FUNCTIONS.mm(a, gradient, True, False)
        return of_a, of_b, None


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(context, scores):
        shares = FUNCTIONS.softmax(scores)
        context.save_for_backward(shares)
        return shares

    @staticmethod
    def backward(context, gradient):
        (shares,) = context.saved_tensors
        return shares * (gradient - (shares * gradient).sum(-1, keepdim=True))


class Loss(torch.autograd.Function):
    """The sum of the costs, of which RepDL computes the mean."""

    @staticmethod
    def forward(context, logits, targets):
        context.save_for_backward(logits, targets)
        return FUNCTIONS.cross_entropy(logits, targets) * targets.numel()

    @staticmethod
    def backward(context, gradient):
        logits, targets = context.saved_tensors
        shares = FUNCTIONS.softmax(logits)
        shares[torch.arange(len(targets)), targets] -= 1
        return shares * gradient, None


class RepDL(model.Float):
    def linear(self, name, y):
        flat = y.reshape(-1, y.shape[-1])
        return Product.apply(flat, self.used[name], True).unflatten(0, y.shape[:-1])

    head = linear

    def attention(self, q, k, v):
        k, v = (x.expand_as(q) for x in (k, v))
        shape, (length, width) = q.shape, q.shape[-2:]
        later = torch.full((length, length), -torch.inf).triu(1)
        heads = []
        for q, k, v in zip(*(x.reshape(-1, length, width) for x in (q, k, v))):
            scores = Product.apply(q.contiguous(), k.contiguous(), True) / width**0.5 + later
            heads.append(Product.apply(Softmax.apply(scores), v.contiguous(), False))
        return torch.stack(heads).reshape(shape)

    def loss(self, logits, targets):
        return Loss.apply(logits.flatten(0, 1), targets.flatten())


model.KINDS["repdl"] = RepDL
