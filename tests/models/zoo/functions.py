"""Families of functions, each family one program: a program for every ATen op would hide how they meet."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.entry import Built, entries

Tensors = tuple[torch.Tensor, ...]


class Activations(nn.Module):
    def forward(self, x: torch.Tensor) -> Tensors:
        f = nn.functional
        plain = (f.relu, f.relu6, f.gelu, f.silu, f.mish, f.elu, f.selu, f.celu, f.leaky_relu, f.hardtanh)
        rest = (f.hardswish, f.hardsigmoid, f.softplus, f.softsign, f.logsigmoid, f.tanhshrink, f.softshrink)
        return (
            *(function(x) for function in (*plain, *rest, f.hardshrink, f.glu)),
            f.gelu(x, approximate="tanh"),
            f.threshold(x, 0.1, 0.0),
            f.prelu(x, torch.tensor(0.2)),
            x.sigmoid(),
            x.tanh(),
            f.softmax(x, -1),
            f.log_softmax(x, -1),
            f.softmin(x, 0),
        )


def activations() -> Built:
    return Activations(), (torch.randn(4, 6),)


class Losses(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, classes: torch.Tensor) -> Tensors:
        f = nn.functional
        log = f.log_softmax(x, 1)
        return (
            f.cross_entropy(x, classes),
            f.nll_loss(log, classes),
            f.mse_loss(x, y),
            f.l1_loss(x, y),
            f.smooth_l1_loss(x, y),
            f.huber_loss(x, y),
            f.kl_div(log, f.softmax(y, 1), reduction="batchmean"),
            f.binary_cross_entropy_with_logits(x, y.sigmoid()),
            f.cosine_similarity(x, y),
            f.cross_entropy(x, classes, label_smoothing=0.1),
        )


def losses() -> Built:
    return Losses(), (torch.randn(4, 5), torch.randn(4, 5), torch.randint(0, 5, (4,)))


class Indexing(nn.Module):
    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> Tensors:
        written = x.clone()
        written[:, 1:3] = 0.0
        written[rows, rows + 1] = 1.0
        column = rows.unsqueeze(1)
        read = x[rows], x[:, rows], x.gather(0, column.expand(-1, x.shape[1])), x.index_select(0, rows)
        scattered = x.scatter(0, column, 2.0), x.index_add(0, rows, x[: rows.shape[0]])
        chosen = torch.where(x > 0, x, -x), x.masked_fill(x < 0, 0.0), x.topk(2).values, x.sort(0).indices
        moved = x.roll(1, 0), x.flip(0), x.repeat(2, 1), x.repeat_interleave(2, 0), torch.stack([x, x])
        views = *x.chunk(2), *x.unbind(1), x.view(-1, 2), x.diagonal(), x.unfold(0, 2, 1)
        rest = x.cumsum(0), x.tril(), x.argmax(-1), x.new_full((2,), 3.0), x.amax(0), x.std(), x.var(0)
        return *read, written, *scattered, *chosen, *moved, *views, *rest


def indexing() -> Built:
    return Indexing(), (torch.randn(4, 6), torch.tensor([0, 2, 3]))


class Elementwise(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, numbers: torch.Tensor, truths: torch.Tensor) -> Tensors:
        arithmetic = x + y, x - 2, 1 - x, x * y, x / y, x // y, x % 3, x**2, x.abs().pow(0.5), x.neg(), x.reciprocal()
        functions = (
            x.exp(),
            x.abs().log(),
            x.sin(),
            x.cos(),
            x.tan(),
            x.rsqrt(),
            x.sqrt(),
            x.erf(),
            x.expm1(),
            x.log1p(),
        )
        steps = x.floor(), x.ceil(), x.round(), x.trunc(), x.sign(), x.clamp(-1, 1), x.nan_to_num()
        pairs = (
            torch.maximum(x, y),
            torch.minimum(x, y),
            torch.atan2(x, y),
            torch.lerp(x, y, 0.3),
            torch.addcmul(x, x, y),
        )
        comparisons = x == y, x != y, x < y, x >= 0, x.isnan(), x.isinf(), truths & ~truths, truths | truths
        integers = numbers + 1, numbers // 2, numbers % 2, numbers << 1, truths.long().sum()
        casts = numbers.float(), x.to(torch.bfloat16), numbers.to(torch.int32), x.double()
        sums = x.any(), x.all(), x.sum(), x.mean(0), x.prod(), x.logsumexp(0), x.norm(), torch.where(truths, x, y)
        return *arithmetic, *functions, *steps, *pairs, *comparisons, *integers, *casts, *sums


def elementwise() -> Built:
    shape = (3, 4)
    return Elementwise(), (torch.randn(shape), torch.randn(shape), torch.randint(0, 9, shape), torch.rand(shape) > 0.5)


class Products(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, vector: torch.Tensor, batch: torch.Tensor) -> Tensors:
        return (
            a @ b,
            a @ vector,
            vector @ vector,
            batch @ b,
            torch.bmm(batch, batch.mT),
            torch.einsum("bij,jk->bik", batch, b),
            torch.addmm(a.new_zeros(5), a, b),
            torch.outer(vector, vector),
            torch.einsum("bij,bkj->bik", batch, batch),
            torch.baddbmm(batch.new_zeros(2, 3, 3), batch, batch.mT),
            torch.tensordot(a, b, 1),
        )


def matmuls() -> Built:
    return Products(), (torch.randn(3, 4), torch.randn(4, 5), torch.randn(4), torch.randn(2, 3, 4))


FUNCTIONS = entries("module", (activations, losses, indexing, elementwise, matmuls))
