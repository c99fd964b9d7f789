"""Templates of ops that move elements, make tensors, or write to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from tests.op_cases.cases import Case
from tests.op_cases.notation import make, parse
from tests.op_cases.program import NotAProgramError, Program, apart, template, tensors_of

THIRDS = 3
ON_PART: dict[str, Callable[..., torch.Tensor]] = {
    "exp": lambda part, dim: torch.exp(part),
    "add": lambda part, dim: part + part,
    "add1": lambda part, dim: part + 1.0,
    "add2": lambda part, dim: part + part,
    "clone": lambda part, dim: part.clone(),
    "chunk": lambda part, dim: part.clone(),
    "to_dtype": lambda part, dim: part.to(torch.float32),
    "sum": torch.sum,
    "amax": torch.amax,
    "copy_": lambda part, dim: torch.zeros_like(part).copy_(part),
}


def on_part(case: Case, dim: int) -> tuple[Callable[..., torch.Tensor], bool]:
    """What becomes of a part of a tensor, and whether it is a sum; the test may name another dimension."""
    word = case.test.rpartition("_dim")[2]
    return partial(ON_PART[str(case.op)], dim=int(word) if word.isdecimal() else dim), case.op == "sum"


@template("test_split_cpu")
def one_of_three(case: Case, arguments: list[Any]) -> Program:
    dim, number, x = arguments
    function, is_sum = on_part(case, dim)
    cut = torch.chunk if case.op == "chunk" else lambda x, n, dim: torch.split(x, x.shape[dim] // n, dim)
    sized = (lambda x: function(cut(x.abs(), THIRDS, dim)[number])) if is_sum else None
    return Program(lambda x: function(cut(x, THIRDS, dim)[number]), (x,), sized=sized)


@template("test_slice_cpu")
def a_slice(case: Case, arguments: list[Any]) -> Program:
    dim, start, end, x = arguments
    function, is_sum = on_part(case, dim)
    sized = (lambda x: function(x.abs().narrow(dim, start, end - start))) if is_sum else None
    return Program(lambda x: function(x.narrow(dim, start, end - start)), (x,), sized=sized)


@template("test_slice_synthetic_dims_cpu")
def slices_of_five(case: Case, arguments: list[Any]) -> Program:
    return Program(lambda x: x[:, 1:, :, 1:3, 64:128] * 2.0, tuple(arguments))


@template("test_t_1d_cpu", "test_t_2d_cpu")
def transposed(case: Case, arguments: list[Any]) -> Program:
    return Program(torch.t, tuple(arguments))


@template("test_t_1d_contiguous_cpu", "test_t_2d_contiguous_cpu")
def transposed_copy(case: Case, arguments: list[Any]) -> Program:
    return Program(lambda x: x.t().contiguous(), tuple(arguments))


@template("test_transpose_2d_cpu", "test_transpose_3d_cpu", "test_transpose_4d_cpu")
def exchanged(case: Case, arguments: list[Any]) -> Program:
    a, b, x = arguments
    return Program(lambda x: x.transpose(a, b), (x,))


@template("test_transpose_2d_contiguous_cpu", "test_transpose_3d_contiguous_cpu", "test_transpose_4d_contiguous_cpu")
def exchanged_copy(case: Case, arguments: list[Any]) -> Program:
    a, b, x = arguments
    return Program(lambda x: x.transpose(a, b).contiguous(), (x,))


@template("test_restickify_add_transpose_cpu")
def added_to_transposed(case: Case, arguments: list[Any]) -> Program:
    return Program(lambda x, y: x + y.t(), tuple(arguments), sized=lambda x, y: x.abs() + y.t().abs())


@template("test_permute")
def permuted(case: Case, arguments: list[Any]) -> Program:
    """The case gives a shape and no tensor."""
    shape, order = arguments
    x = make(parse(f"f16[{'x'.join(map(str, shape))}]"), torch.Generator().manual_seed(0))
    return Program(lambda x: x.permute(order), (x,))


@template("test_view_permute_mul")
def viewed_permuted_multiplied(case: Case, arguments: list[Any]) -> Program:
    def split(x: torch.Tensor) -> torch.Tensor:
        viewed = x.view(*x.shape[:-1], 2, -1).permute(0, 2, 1, 3)
        return viewed * 2.0

    return Program(split, tuple(arguments))


@template("test_flatten_cpu")
def flattened(case: Case, arguments: list[Any]) -> Program:
    start, end, x = arguments
    return Program(lambda x: torch.flatten(x, start, end), (x,))


@template("test_clone", "test_copy_roundtrip")
def copied(case: Case, arguments: list[Any]) -> Program:
    """To the device and back: a program that returns what it is given, through device memory."""
    return Program(torch.clone, tuple(arguments))


@template("test_overwrite_cpu")
def overwritten(case: Case, arguments: list[Any]) -> Program:
    (source, target), (dims, starts) = apart(arguments)

    def write(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        window = target
        for dim, start in zip(dims, starts, strict=True):
            window = window.narrow(dim, start, source.shape[dim])
        window.copy_(source)
        return target

    return Program(write, (source, target))


@template("test_inplace_op_cpu")
def written_in_place(case: Case, arguments: list[Any]) -> Program:
    """The first tensor is written to; it is an input of the program, and its new value is the result."""
    write = getattr(torch.Tensor, f"{case.op}_")
    return Program(lambda target, source: write(target, source), tuple(arguments), wide=False)


@template("test_inplace_copy_noncontiguous_cpu")
def written_in_place_transposed(case: Case, arguments: list[Any]) -> Program:
    def write(target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        target.t().copy_(source)
        return target

    return Program(write, tuple(arguments))


@template("test_fill_scalar_cpu")
def filled(case: Case, arguments: list[Any]) -> Program:
    number, x, _ = arguments
    return Program(lambda x: x.fill_(number), (x,))


@template("test_cat_cpu")
def joined(case: Case, arguments: list[Any]) -> Program:
    dim, *tensors = arguments
    return Program(lambda *parts: torch.cat(parts, dim), tuple(tensors))


@template("test_pad_cpu")
def padded(case: Case, arguments: list[Any]) -> Program:
    x, widths = arguments
    return Program(lambda x: functional.pad(x, widths), (x,))


@template("test_repeat_cpu")
def repeated(case: Case, arguments: list[Any]) -> Program:
    (x,), times = apart(arguments)
    return Program(lambda x: x.repeat(*times), (x,))


@template("test_unfold_cpu")
def windows(case: Case, arguments: list[Any]) -> Program:
    dim, size, step, x = arguments
    return Program(lambda x: x.unfold(dim, size, step), (x,))


@template("test_unbind_cpu")
def taken_apart(case: Case, arguments: list[Any]) -> Program:
    dim, x = arguments
    return Program(lambda x: torch.unbind(x, dim), (x,))


@template("test_tril_cpu", "test_triu_cpu")
def triangle(case: Case, arguments: list[Any]) -> Program:
    (x,), diagonal = apart(arguments)
    function = getattr(torch, case.test.removeprefix("test_"))
    return Program(lambda x: function(x, *diagonal), (x,))


@template("test_embedding_cpu")
def rows_of_a_table(case: Case, arguments: list[Any]) -> Program:
    numbers, table, padding = arguments
    return Program(lambda numbers, table: functional.embedding(numbers, table, padding), (numbers, table))


@template("test_isin_cpu", "test_isin_out_cpu")
def is_in(case: Case, arguments: list[Any]) -> Program:
    return Program(torch.isin, tuple(arguments))


@template("test_dropout_functional")
def dropout(case: Case, arguments: list[Any]) -> Program:
    x, options = arguments
    return Program(lambda x: functional.dropout(x, **options), (x,))


@template("test_arange_cpu", "test_ones_cpu", "test_zeros_cpu", "test_full_cpu")
def made(case: Case, arguments: list[Any]) -> Program:
    """A program makes its tensor beside one it is given: with nothing to read there is nothing to launch."""
    function = getattr(torch, case.template.removeprefix("test_").removesuffix("_cpu"))
    return Program(lambda x: (function(*arguments, dtype=torch.float16), x + x), (torch.ones(1, dtype=torch.float16),))


@template("test_new_ones_cpu")
def ones_like(case: Case, arguments: list[Any]) -> Program:
    x, size = arguments
    return Program(lambda x: x + x.new_ones(size), (x,), sized=lambda x: x.abs() + 1)


@template("test_empty_like_cpu", "test_empty_like_memory_format_cpu")
def empty_like(case: Case, arguments: list[Any]) -> Program:
    """What an empty tensor holds is nobody's promise: it is filled first."""
    return Program(lambda x: torch.empty_like(x).fill_(1.0) + x, tensors_of(arguments), sized=lambda x: x.abs() + 1)


@template("test_empty_like_dtype_override_cpu")
def empty_like_of_dtype(case: Case, arguments: list[Any]) -> Program:
    dtype = getattr(torch, {"fp32": "float32", "fp16": "float16"}[case.name.rpartition("_")[2]])
    return Program(lambda x: torch.empty_like(x, dtype=dtype).fill_(1.0), tensors_of(arguments), wide=False)


@template("test_where_eager_default_fallback")
def places(case: Case, arguments: list[Any]) -> Program:
    raise NotAProgramError("the result's shape depends on data")


@template("test_item_cpu")
def as_number(case: Case, arguments: list[Any]) -> Program:
    raise NotAProgramError("the result is a Python number, which leaves the program")


@template("test_numel_cpu")
def counted(case: Case, arguments: list[Any]) -> Program:
    """The number of elements is known when the program is made: it is a factor."""
    raise NotAProgramError("the result is a Python number, known when the program is made")
