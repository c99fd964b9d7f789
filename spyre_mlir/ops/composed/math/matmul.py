"""Operations made of matrix products: sums of products, forms in two vectors."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Ints, Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.numbers import scaled
from spyre_mlir.ops.ignored_arguments import UNROLL_DIM
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value


def weighted(value: Value, product: Value, beta: Number, alpha: Number) -> Value:
    """beta * value + alpha * product; integers take integer factors; a beta of 0 drops the value, NaN included."""
    if not product.is_float:
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (value if beta == 1 else scaled(value, beta))


def _addmm_shape(*, mat1: tuple[int, ...], mat2: tuple[int, ...], **_: object) -> tuple[int, ...]:
    return (mat1[0], mat2[1])


def _addmm_meaning(self: Lanes, mat1: Lanes, mat2: Lanes, *, beta: Number, alpha: Number) -> Lanes:
    if not np.issubdtype(mat1.dtype, np.floating):
        beta, alpha = int(beta), int(alpha)
    product = alpha * (mat1 @ mat2)
    return product + beta * self if beta else product


@ATEN.composed(aten=["addmm"], promote=True, meaning=_addmm_meaning, shape=_addmm_shape)
def addmm(b: Build, self: Value, mat1: Value, mat2: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """beta * self + alpha * mat1 @ mat2; integers take integer factors."""
    return weighted(self, b.call("mm", mat1, mat2), beta, alpha)


@ATEN.composed(aten=["baddbmm"])
def baddbmm(b: Build, self: Value, batch1: Value, batch2: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """beta * self + alpha * batch1 @ batch2."""
    return weighted(self, b.call("bmm", batch1, batch2), beta, alpha)


@ATEN.composed(aten=["addbmm"])
def addbmm(b: Build, self: Value, batch1: Value, batch2: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """beta * self + alpha times the sum of the products of a batch: one product over batch and features together."""
    batch, rows, features = batch1.shape
    left = batch1.transpose(0, 1).reshape(rows, batch * features)
    right = batch2.reshape(batch * features, batch2.shape[2])
    return weighted(self, b.call("mm", left, right), beta, alpha)


@ATEN.composed(aten=["addmv"])
def addmv(self: Value, mat: Value, vec: Value, *, beta: Number = 1, alpha: Number = 1) -> Value:
    """beta * self + alpha * mat @ vec."""
    return weighted(self, mat @ vec, beta, alpha)


@ATEN.composed(aten=["bilinear"])
def bilinear(b: Build, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """A bilinear form per output: input1 @ weight[output] @ input2, plus bias.

    Constraints:
        C1: the inputs agree outside their last dimension.
    """
    outer = input1.shape[:-1]
    require("C1", outer == input2.shape[:-1], f"inputs of shapes {input1.shape} and {input2.shape}")
    first = input1.reshape(-1, input1.shape[-1])
    second = input2.reshape(-1, input2.shape[-1])
    outputs = weight.shape[0]
    wide = first.unsqueeze(0).expand(outputs, *first.shape)
    out = b.call("t", (b.call("bmm", wide, weight) * second).sum(2))
    out = out if bias is None else out + bias
    return out.reshape(*outer, outputs)


@ATEN.composed(aten=["_trilinear"], ignores=[UNROLL_DIM])
def trilinear(
    i1: Value,
    i2: Value,
    i3: Value,
    *,
    expand1: Ints,
    expand2: Ints,
    expand3: Ints,
    sumdim: Ints,
) -> Value:
    """The product of three tensors, each with dimensions of extent 1 put in, summed over `sumdim`."""
    parts: list[Value] = []
    for given, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        part = given
        for dim in sorted(dims):
            part = part.unsqueeze(dim)
        parts.append(part)
    product = parts[0] * parts[1] * parts[2]
    return product if not sumdim else product.sum(sumdim)


_SCALED = {"beta": 2, "alpha": 0.5}
ATEN.samples(addmm, Sample(((4,), (3, 5), (5, 4))), Sample(((3, 4), (3, 5), (5, 4)), {"beta": 2, "alpha": 0.5}))
ATEN.samples(baddbmm, Sample(((2, 3, 5), (2, 3, 4), (2, 4, 5))), Sample(((5,), (2, 3, 4), (2, 4, 5)), _SCALED))
ATEN.samples(
    addbmm, Sample(((3, 5), (2, 3, 4), (2, 4, 5))), Sample(((1, 5), (2, 3, 4), (2, 4, 5)), {"beta": 0, "alpha": 3})
)
ATEN.samples(addmv, Sample(((3,), (3, 65), (65,))), Sample(((3,), (3, 4), (4,)), _SCALED))
ATEN.samples(
    bilinear,
    Sample(((2, 3), (2, 4), (5, 3, 4), (5,))),
    Sample(((2, 2, 3), (2, 2, 4), (1, 3, 4))),
    Sample(((2, 3), (3, 4), (5, 3, 4)), breaks="C1"),
)
ATEN.samples(
    trilinear,
    Sample(((2, 3), (5, 3, 4), (2, 4)), {"expand1": (1, 3), "expand2": (0,), "expand3": (1, 2), "sumdim": (2, 3)}),
)
