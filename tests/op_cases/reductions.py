"""Templates of ops that make one number of many, and of those that order numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tests.op_cases.cases import Case
from tests.op_cases.program import Program, Tensors, template

NORMS: dict[str, Callable[..., torch.Tensor]] = {
    "vector_norm": torch.linalg.vector_norm,
    "matrix_norm": torch.linalg.matrix_norm,
    "linalg_norm": torch.linalg.norm,
}
SUMS = ("sum", "mean")


def reduced(name: str, x: torch.Tensor, dim: Any, keepdim: bool) -> Program:
    """A reduction over dimensions, or over one and with indices."""
    function = getattr(torch, name)
    sized = (lambda x: function(x.abs(), dim, keepdim=keepdim)) if name in SUMS else None
    chosen = selected(dim, keepdim) if name in ("max", "min") else None
    return Program(lambda x: tuple_of(function(x, dim, keepdim=keepdim)), (x,), sized=sized, chosen=chosen)


def tuple_of(result: Any) -> Any:
    """A plain tuple of one that has names."""
    return tuple(result) if isinstance(result, tuple) else result


def selected(dim: int, keepdim: bool) -> Callable[[Tensors, Sequence[torch.Tensor]], list[torch.Tensor]]:
    """Replaces the indices that a result ends with by the elements they select."""

    def replace(inputs: Tensors, results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        values, where = results
        where = where if keepdim else where.unsqueeze(dim)
        found = torch.gather(inputs[0], dim, where)
        return [values, found if keepdim else found.squeeze(dim)]

    return replace


@template("test_reduce_cpu")
def over_everything(case: Case, arguments: list[Any]) -> Program:
    return Program(getattr(torch, str(case.op)), tuple(arguments))


@template("test_reduce_keepdim0_cpu", "test_reduce_multidim_keepdim0_cpu", "test_tuple_reduce_keepdim0_cpu")
def without_dimension(case: Case, arguments: list[Any]) -> Program:
    return _over(case, arguments, keepdim=False)


@template("test_reduce_keepdim1_cpu", "test_reduce_multidim_keepdim1_cpu", "test_tuple_reduce_keepdim1_cpu")
def with_dimension(case: Case, arguments: list[Any]) -> Program:
    return _over(case, arguments, keepdim=True)


def _over(case: Case, arguments: list[Any], *, keepdim: bool) -> Program:
    dim, x = arguments
    if case.op == "aminmax":
        return Program(lambda x: tuple_of(torch.aminmax(x, dim=dim, keepdim=keepdim)), (x,))
    return reduced(str(case.op), x, dim, keepdim)


@template("test_sum_eager", "test_mean_eager", "test_max_eager", "test_min_eager")
def over_one(case: Case, arguments: list[Any]) -> Program:
    dim, keepdim, x = arguments
    return reduced(str(case.op), x, dim, keepdim)


@template("test_mean_cpu")
def averaged(case: Case, arguments: list[Any]) -> Program:
    dim, keepdim, x = arguments
    return reduced("mean", x, dim, keepdim)


@template("test_mean_default_cpu")
def averaged_whole(case: Case, arguments: list[Any]) -> Program:
    return Program(torch.mean, tuple(arguments), sized=lambda x: x.abs().mean())


@template("test_norm_keepdim0_cpu", "test_norm_keepdim1_cpu")
def norm(case: Case, arguments: list[Any]) -> Program:
    order, dim, x = arguments
    keepdim = case.template.endswith("keepdim1_cpu")
    function = NORMS[str(case.op)]
    return Program(lambda x: function(x, order, dim=dim, keepdim=keepdim), (x,))


@template("test_topk_cpu")
def largest(case: Case, arguments: list[Any]) -> Program:
    x, count, dim = arguments
    chosen = selected(dim, keepdim=True)
    return Program(lambda x: tuple_of(torch.topk(x, count, dim=dim)), (x,), chosen=chosen)


@template("test_max_sub_broadcast")
def less_the_largest(case: Case, arguments: list[Any]) -> Program:
    dim, x = arguments
    return Program(
        lambda x: x - torch.amax(x, dim, keepdim=True),
        (x,),
        sized=lambda x: x.abs() + torch.amax(x, dim, keepdim=True).abs(),
    )


@template("test_dim_op_cpu", "test_dim_op_cpu_eager")
def along(case: Case, arguments: list[Any]) -> Program:
    """One template for softmax, squeeze and unsqueeze: the test says which."""
    dim, *tensors = arguments
    if case.op == "softmax":
        return Program(lambda x: torch.softmax(x, dim), tuple(tensors))
    if case.op == "sum":
        return Program(
            lambda x: torch.squeeze(torch.sum(x, dim, keepdim=True), dim),
            tuple(tensors),
            sized=lambda x: x.abs().sum(dim),
        )
    view = getattr(torch, case.test.split("_")[1])
    if case.op == "add":
        return Program(lambda x, y: x + view(y, dim), tuple(tensors), sized=lambda x, y: x.abs() + view(y.abs(), dim))
    if case.op == "combined":
        return Program(lambda x: view(x + x, dim) * 2.0, tuple(tensors))
    return Program(lambda x: view(x, dim), tuple(tensors))
