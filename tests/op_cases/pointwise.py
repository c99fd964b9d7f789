"""Templates of ops that work element by element, casts among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from tests.op_cases.cases import Case
from tests.op_cases.program import Program, template

UNARY: dict[str, Callable[..., torch.Tensor]] = {
    "relu": torch.relu,
    "silu": functional.silu,
    "gelu": functional.gelu,
    "mish": functional.mish,
    "pow": lambda x: torch.pow(x, 2),
    "double": lambda x: x + x,
    "square": lambda x: x * x,
    "cube": lambda x: x * x * x,
    "triple": lambda x: x + x + x,
    "add_scalar_5": lambda x: x + 5.0,
    "add_scalar_neg": lambda x: x + -3.5,
    "add_scalar_zero": lambda x: x + 0.0,
    "sub_scalar_5": lambda x: x - 5.0,
    "sub_scalar_neg": lambda x: x - -3.5,
    "sub_scalar_zero": lambda x: x - 0.0,
}
BINARY: dict[str, Callable[..., torch.Tensor]] = {
    f"{op}_alpha_{word}": partial(getattr(torch, op), alpha=alpha)
    for op in ("add", "sub")
    for word, alpha in (("2", 2), ("0.5", 0.5), ("neg", -1))
}
# Sums and differences are judged by what they are sums of.
SUMS = ("add", "sub")
SCALAR: dict[str, Callable[..., torch.Tensor]] = {
    "add": lambda x, number: x + number,
    "sub": lambda x, number: x - number,
    "mul": lambda x, number: x * number,
    "div": lambda x, number: x / number,
    "true_divide": torch.true_divide,
    "combined": lambda x, number: (x + number) * number - number / 2,
}


def unary(name: str) -> Callable[..., torch.Tensor]:
    """The function of one tensor that a case calls by this name."""
    return UNARY.get(name) or getattr(torch, name)


def binary(name: str) -> Callable[..., torch.Tensor]:
    """The function of two tensors that a case calls by this name."""
    return BINARY.get(name) or getattr(torch, name)


def magnitudes(*tensors: torch.Tensor) -> torch.Tensor:
    """The sum of magnitudes, which a sum or difference of the tensors may be much smaller than."""
    return sum((t.abs() for t in tensors[1:]), tensors[0].abs())


@template("test_unary_op", "test_unary_op_cpu", "test_fallback_unary_op_cpu")
def one_tensor(case: Case, arguments: list[Any]) -> Program:
    name = str(case.op)
    sized = (lambda x: x.abs() + 5.0) if name.startswith(SUMS) else None
    return Program(unary(name), (arguments[0],), sized=sized)


@template("test_binary_op", "test_binary_op_cpu", "test_fallback_binary_op_cpu", "test_mm_relaxed")
def two_tensors(case: Case, arguments: list[Any]) -> Program:
    name = str(case.op)
    if name in ("mm", "bmm", "matmul"):
        product = getattr(torch, name)
        return Program(product, tuple(arguments), sized=lambda a, b: product(a.abs(), b.abs()))
    if name == "einsum":
        return Program(
            lambda a, b: torch.einsum("mk,kn->mn", a, b), tuple(arguments), sized=lambda a, b: a.abs() @ b.abs()
        )
    return Program(binary(name), tuple(arguments), sized=magnitudes if name.startswith(SUMS) else None)


@template("test_add_broadcast", "test_add_broadcast_cpu")
def plain_sum(case: Case, arguments: list[Any]) -> Program:
    return Program(torch.add, tuple(arguments), sized=magnitudes)


@template("test_range_op")
def clamped(case: Case, arguments: list[Any]) -> Program:
    x, low, high, _ = arguments
    return Program(lambda x: torch.clamp(x, low, high), (x,))


@template("test_activation_cls")
def activation_module(case: Case, arguments: list[Any]) -> Program:
    """Far below zero the result is an exponential, whose relative error is the absolute one of its argument."""
    x, options, _ = arguments
    module = torch.nn.GELU(**options)

    def sized(x: torch.Tensor) -> torch.Tensor:
        return module(x).abs() * (1 + 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3).abs())

    return Program(module, (x,), sized=sized)


@template("test_activation_fn")
def activation(case: Case, arguments: list[Any]) -> Program:
    return Program(unary(str(case.op)), (arguments[0],))


@template("test_softplus_cpu")
def softplus(case: Case, arguments: list[Any]) -> Program:
    return Program(functional.softplus, (arguments[0],))


@template("test_scalar_cpu")
def with_a_number(case: Case, arguments: list[Any]) -> Program:
    x, number = arguments
    function = SCALAR[str(case.op)]
    return Program(lambda x: function(x, number), (x,), sized=lambda x: (x.abs() + abs(number)) * max(1, abs(number)))


@template("test_add_constant_cpu")
def with_a_constant(case: Case, arguments: list[Any]) -> Program:
    """A tensor that the program itself makes."""
    return Program(lambda x: x + torch.ones(x.shape, dtype=x.dtype), tuple(arguments), sized=lambda x: x.abs() + 1)


@template("test_fallback_cpu")
def between_two_of_the_device(case: Case, arguments: list[Any]) -> Program:
    """An op that those who wrote the case leave to the host, between two that they do not."""
    return Program(lambda x: torch.neg(torch.sin(torch.abs(x))), tuple(arguments))


@template("test_cmp_scalar_int64_cpu")
def compared_integers(case: Case, arguments: list[Any]) -> Program:
    x, number = arguments
    return Program(lambda x: binary(str(case.op))(x, number), (x,))


@template("test_scalar_comparison_base", "test_scalar_multidim_base")
def equal_to_a_number(case: Case, arguments: list[Any]) -> Program:
    number, x = arguments
    return Program(lambda x: x == number, (x,))


@template("test_scalar_vs_tensor_base")
def equal_to_both(case: Case, arguments: list[Any]) -> Program:
    x, y, number = arguments
    return Program(lambda x, y: (x == y, x == number), (x, y))


@template("test_is_nonzero_cpu")
def is_nonzero(case: Case, arguments: list[Any]) -> Program:
    """The truth value stays a tensor: what a branch of Python reads is no result of a program."""
    if len(arguments) == 2:
        return Program(lambda x, y: (x + y != 0).reshape(()), tuple(arguments))
    return Program(lambda x: (x != 0).reshape(()), tuple(arguments))


@template("test_where_cpu")
def chosen_by_comparison(case: Case, arguments: list[Any]) -> Program:
    compare = binary(str(case.op))
    return Program(lambda x, y: torch.where(compare(x, y), x, y), tuple(arguments))


@template("test_where_eager", "test_where_eager_scalar")
def chosen(case: Case, arguments: list[Any]) -> Program:
    """Either branch may be a number."""
    held = [a for a in arguments if isinstance(a, torch.Tensor)]

    def where(*tensors: torch.Tensor) -> torch.Tensor:
        rest = iter(tensors)
        return torch.where(*(next(rest) if isinstance(a, torch.Tensor) else a for a in arguments))

    return Program(where, tuple(held), wide=len(held) > 1)


@template("test_where_eager_selfout")
def chosen_into(case: Case, arguments: list[Any]) -> Program:
    """The last tensor is written to."""

    def where(condition: torch.Tensor, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return out.copy_(torch.where(condition, x, y))

    return Program(where, tuple(arguments))


@template("test_to_dtype_cpu")
def cast(case: Case, arguments: list[Any]) -> Program:
    x, dtype = arguments
    return Program(lambda x: x.to(dtype), (x,), wide=False)


@template("test_to_dtype_op_map")
def cast_of_any(case: Case, arguments: list[Any]) -> Program:
    """The case names two dtypes and no tensor: a few values of the first become the second."""
    source, dtype = arguments
    values = torch.tensor([[0.0, 1.0, -1.5, 2.0], [0.25, -0.0, 3.0, 64.0]]).to(source)
    return Program(lambda x: x.to(dtype), (values,), wide=False)


@template("test_round_trip_to_dtype_cpu")
def there_and_back(case: Case, arguments: list[Any]) -> Program:
    x, dtype = arguments
    return Program(lambda x: binary(str(case.op))(x.to(dtype), x.to(dtype)).to(x.dtype), (x,), wide=False)


@template("test_round_trip_to_dtype_implicit_cpu", "test_round_trip_to_dtype_implicit_invalid_cpu")
def mixed(case: Case, arguments: list[Any]) -> Program:
    """Operands of two dtypes: torch's promotion widens the narrow one."""
    x, dtype = arguments
    return Program(lambda x: binary(str(case.op))(x, x.to(dtype)).to(x.dtype), (x,), wide=False)
