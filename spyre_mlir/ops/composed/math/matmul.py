"""Operations made of matrix products: sums of products, forms in two vectors."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import Ints, Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.numbers import scaled
from spyre_mlir.ops.helpers.reduction_dims import is_float
from spyre_mlir.ops.table import Sample, require


def weighted(b: Build, value: Any, product: Any, beta: Number, alpha: Number) -> Any:
    """beta * value + alpha * product; of integers with whole factors; a beta of 0 drops the value, whatever it is."""
    if not is_float(b, product):
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else scaled(b, product, alpha)
    if beta == 0:
        return product
    return b.call("add.Tensor", product, value if beta == 1 else scaled(b, value, beta))


def _addmm_shape(self: tuple[int, ...], mat1: tuple[int, ...], mat2: tuple[int, ...], **_: object) -> tuple[int, ...]:
    return (mat1[0], mat2[1])


def _addmm_meaning(self: Lanes, mat1: Lanes, mat2: Lanes, *, beta: Number, alpha: Number) -> Lanes:
    if not np.issubdtype(mat1.dtype, np.floating):
        beta, alpha = int(beta), int(alpha)
    return beta * self + alpha * (mat1 @ mat2)


@ATEN.composed(aten=["addmm"], promote=True, meaning=_addmm_meaning, shape=_addmm_shape)
def addmm(b: Build, self: Lanes, mat1: Lanes, mat2: Lanes, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """beta * self + alpha * mat1 @ mat2; of integers with whole factors."""
    return weighted(b, self, b.call("mm", mat1, mat2), beta, alpha)


@ATEN.composed(aten=["baddbmm"])
def baddbmm(b: Build, self: Lanes, batch1: Lanes, batch2: Lanes, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """beta * self + alpha * batch1 @ batch2."""
    return weighted(b, self, b.call("bmm", batch1, batch2), beta, alpha)


@ATEN.composed(aten=["addbmm"])
def addbmm(b: Build, self: Lanes, batch1: Lanes, batch2: Lanes, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """beta * self + alpha times the sum of the products of a batch: one product over batch and features together."""
    batch, rows, features = b.shape(batch1)
    left = b.call("reshape", b.call("transpose.int", batch1, dim0=0, dim1=1), size=(rows, batch * features))
    right = b.call("reshape", batch2, size=(batch * features, b.shape(batch2)[2]))
    return weighted(b, self, b.call("mm", left, right), beta, alpha)


@ATEN.composed(aten=["addmv"])
def addmv(b: Build, self: Lanes, mat: Lanes, vec: Lanes, *, beta: Number = 1, alpha: Number = 1) -> Any:
    """beta * self + alpha * mat @ vec."""
    return weighted(b, self, b.call("matmul", mat, vec), beta, alpha)


@ATEN.composed(aten=["bilinear"])
def bilinear(b: Build, input1: Lanes, input2: Lanes, weight: Lanes, bias: Lanes | None = None) -> Any:
    """A bilinear form per output: input1 @ weight[output] @ input2, plus bias.

    Constraints:
        C1: the inputs agree outside their last dimension.
    """
    outer = b.shape(input1)[:-1]
    require("C1", outer == b.shape(input2)[:-1], f"inputs of shapes {b.shape(input1)} and {b.shape(input2)}")
    first = b.call("reshape", input1, size=(-1, b.shape(input1)[-1]))
    second = b.call("reshape", input2, size=(-1, b.shape(input2)[-1]))
    outputs = b.shape(weight)[0]
    wide = b.call("expand", b.call("unsqueeze", first, dim=0), size=(outputs, *b.shape(first)))
    half = b.call("mul.Tensor", b.call("bmm", wide, weight), second)
    out = b.call("t", b.call("sum.dim_IntList", half, dim=(2,)))
    out = out if bias is None else b.call("add.Tensor", out, bias)
    return b.call("reshape", out, size=(*outer, outputs))


@ATEN.composed(aten=["_trilinear"])
def trilinear(
    b: Build,
    i1: Lanes,
    i2: Lanes,
    i3: Lanes,
    *,
    expand1: Ints,
    expand2: Ints,
    expand3: Ints,
    sumdim: Ints,
    unroll_dim: int = 1,
) -> Any:
    """The product of three tensors, each with dimensions of extent 1 put in, summed over `sumdim`."""
    parts: list[Any] = []
    for given, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        part: Any = given
        for dim in sorted(dims):
            part = b.call("unsqueeze", part, dim=dim)
        parts.append(part)
    product = b.call("mul.Tensor", b.call("mul.Tensor", parts[0], parts[1]), parts[2])
    return product if not sumdim else b.call("sum.dim_IntList", product, dim=sumdim)


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
