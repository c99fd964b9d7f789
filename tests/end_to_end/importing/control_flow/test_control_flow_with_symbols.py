"""Branches and loops by values whose sizes are symbols: imported once for all sizes, and every level is as eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.while_loop import while_loop

import spyre_mlir
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.torch_compile.history import compilations
from tests.end_to_end.importing.against_eager import close, eager, results
from tests.end_to_end.importing.control_flow.symbolic_rows import FEW, MANY, SHAPES, WEIGHT, N, rows
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")


def zero() -> Tensor:
    return torch.zeros((), dtype=torch.int64)


def a_branch(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda x: x.softmax(-1), lambda x: x @ WEIGHT, (x,)).exp()


def a_branch_that_knows_the_size(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda x: x + x.shape[0], lambda x: x * torch.arange(x.shape[0]).unsqueeze(1), (x,))


def a_branch_between_kernels(x: Tensor, n: Tensor) -> Any:
    y = x @ WEIGHT
    z = torch.cond(y.sum() > n, lambda y: y.cumsum(0), lambda y: y - y.mean(0), (y,))
    return z.T @ y, z.shape[0]


def branches_in_branches(x: Tensor, n: Tensor) -> Any:
    def outer(x: Tensor, n: Tensor) -> Tensor:
        return torch.cond(n > 2, lambda x: x * 3, lambda x: x - 1, (x,))

    return torch.cond(x.sum() > 0, outer, lambda x, n: x + n, (x, n))


def a_branch_by_the_size(x: Tensor, n: Tensor) -> Any:
    return torch.cond(x.shape[0] > 5, lambda x: (x + 1).softmax(0), lambda x: x * 2, (x,)) * n


def results_of_other_sizes(x: Tensor, n: Tensor) -> Any:
    doubled = torch.cond(n > 2, lambda x: torch.cat([x, x]), lambda x: torch.cat([x + x.shape[0], x]), (x,))
    return doubled.sum(0), doubled


def a_loop(x: Tensor, n: Tensor) -> Any:
    return while_loop(lambda i, _y: i < n, lambda i, y: (i + 1, torch.tanh(y @ WEIGHT)), (zero(), x))


def a_loop_over_the_rows(x: Tensor, n: Tensor) -> Any:
    count = torch.tensor(x.shape[0])
    return while_loop(lambda i, _y: i < count, lambda i, y: (i + 1, y * 0.5 + 1), (zero(), x.sum(0)))


def a_branch_in_a_loop(x: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, y: Tensor) -> Any:
        return i + 1, torch.cond(i % 2 == 0, lambda y: torch.sin(y), lambda y: y + 0.5, (y,))

    return while_loop(lambda i, _y: i < n, step, (zero(), x))


def a_mask_in_a_loop(x: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, y: Tensor) -> Any:
        size = y.shape[0]
        return i + 1, torch.tanh(torch.ones(size, size).tril() @ y / size)

    return while_loop(lambda i, _y: i < n, step, (zero(), x))


def a_loop_that_begins_with_the_size(x: Tensor, _n: Tensor) -> Any:
    return while_loop(lambda i, _y: i > 0, lambda i, y: (i - 1, y * 0.5 + i), (x.shape[0], x))[1]


def a_loop_up_to_the_size(x: Tensor, _n: Tensor) -> Any:
    size = x.shape[0]
    return while_loop(lambda i, _y: i < size - 1, lambda i, y: (i + 1, y * 0.5 + x[i] + size), (0, x[0]))[1]


def rows_written_by_number(x: Tensor, _n: Tensor) -> Any:
    size = x.shape[0]

    def step(i: Any, y: Tensor) -> Any:
        y = y.clone()
        y[i] = y[i] * 2 + i
        return i + 1, y

    return while_loop(lambda i, _y: i < size, step, (0, x))[1]


def columns_written_by_number(x: Tensor, _n: Tensor) -> Any:
    def step(i: Any, y: Tensor) -> Any:
        y = y.clone()
        y.select(1, i).fill_(2)
        return i + 1, y

    return while_loop(lambda i, _y: i < 3, step, (0, x))[1]


def a_size_handed_over_twice(x: Tensor, n: Tensor) -> Any:
    size = x.shape[0]
    return while_loop(lambda i, _y: i < n + size * 0, lambda i, y: (i + 1, y * size), (zero(), x))[1]


def drawn(x: Tensor, n: Tensor) -> Any:
    y = torch.cond(n > 2, lambda x: x + torch.rand_like(x), lambda x: x - 1, (x,))
    return y, torch.rand(x.shape[0])


PROGRAMS: tuple[Callable[..., Any], ...] = (
    a_branch, a_branch_that_knows_the_size, a_branch_between_kernels, branches_in_branches, a_branch_by_the_size,
    results_of_other_sizes, a_loop, a_loop_over_the_rows, a_branch_in_a_loop, a_mask_in_a_loop,
    a_loop_that_begins_with_the_size, a_loop_up_to_the_size, rows_written_by_number, columns_written_by_number,
    a_size_handed_over_twice, drawn,
)  # fmt: skip
# Dynamo captures no number that a loop carries as a place.
CAPTURED = tuple(
    p for p in PROGRAMS if p not in (a_loop_up_to_the_size, rows_written_by_number, columns_written_by_number)
)


def compiled_with_symbols(program: Callable[..., Any], **options: Any) -> tuple[nn.Module, DynamicModel]:
    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, FEW, dynamic_shapes=SHAPES, numerics="exact", **options)
    assert isinstance(compiled, DynamicModel)
    return model, compiled


def compare(got: list[Any], wanted: list[Any]) -> None:
    close([torch.as_tensor(r) for r in got], [torch.as_tensor(r) for r in wanted])


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    """Eager control flow is compiled by Dynamo, which gives up after some."""
    torch._dynamo.reset()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    model, compiled = compiled_with_symbols(program)
    assert "control." in str(compiled.mlir("aten"))
    for args in (FEW, MANY):
        compare(results(compiled, args), eager(model, args))
        torch._dynamo.reset()
        verification = compiled.verify(*args)
        assert verification, str(verification)


@pytest.mark.parametrize("program", CAPTURED, ids=lambda p: p.__name__)
def test_torch_compile(program: Callable[..., Any]) -> None:
    model = FunctionModel(program)
    compiled = torch.compile(model, backend="spyre", dynamic=True, options={"numerics": "exact"})
    for args in (FEW, MANY):
        compare(results(compiled, args), eager(model, args))


def test_torch_compile_exports_once(monkeypatch: pytest.MonkeyPatch) -> None:
    exports, export = list[object](), torch.export.export

    def counted(model: Any, *args: Any, **kwargs: Any) -> Any:
        exports.append(model)
        return export(model, *args, **kwargs)

    monkeypatch.setattr(torch.export, "export", counted)
    before = len(compilations())
    compiled = torch.compile(FunctionModel(a_loop), backend="spyre", dynamic=True, options={"numerics": "exact"})
    for count in (4, 5, 7):
        compiled(rows(count), N)
    assert len(compilations()) == before + 3
    assert len(exports) == 1


def test_one_row() -> None:
    """Torch treats it apart."""
    for program in (a_branch_that_knows_the_size, a_loop):
        model, compiled = compiled_with_symbols(program)
        compare(results(compiled, (rows(1), N)), eager(model, (rows(1), N)))


@pytest.mark.parametrize("program", [a_branch_that_knows_the_size, a_loop], ids=lambda p: p.__name__)
def test_from_disk(program: Callable[..., Any], tmp_path: Path) -> None:
    model, compiled = compiled_with_symbols(program)
    results(compiled, FEW)
    loaded = spyre_mlir.load(compiled.save(tmp_path / "saved"), numerics="exact")
    for args in (FEW, MANY):
        compare(results(loaded, args), eager(model, args))


def test_an_exported_program() -> None:
    exported = torch.export.export(FunctionModel(a_branch), FEW, dynamic_shapes=SHAPES)
    compiled = spyre_mlir.compile(exported, numerics="exact")
    for args in (FEW, MANY):
        compare(results(compiled, args), results(a_branch, args))


def test_the_branch_that_a_size_decides_is_all_that_its_program_has() -> None:
    _, compiled = compiled_with_symbols(a_branch_by_the_size)
    text = compiled.mlir()
    assert 'aten.scalar_tensor"() {s = #aten.size<"s0 > 5">' in text
    for size in (4, 9):
        assert "control." not in compiled.specialize(s0=size).mlir("aten")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((rows(65), N), r"symbol s0 is 65, expected 2 to 64"),
        ((rows(6).reshape(4, 9), N), r"dimension 1 of 'args_0' is 9, expected 6|expected float32\[4, 6\]"),
        ((rows(6)[0], N), r"argument 'args_0' has 1 dimensions, expected 2"),
    ],
)
def test_other_sizes_are_refused(args: tuple[Tensor, Tensor], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compiled_with_symbols(a_branch)[1](*args)


def kept_at_zero(x: Tensor, n: Tensor) -> Any:
    return while_loop(lambda i, _y: i < n, lambda i, y: (i + 1, y * 0.5), (zero(), x))[1].sum(0)


def as_long_as_a_sum_is_large(x: Tensor, _n: Tensor) -> Any:
    return while_loop(lambda y: y.abs().sum() > 1, lambda y: (y * 0.5,), (x,))[0]


def summed_in_branches(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda x: x.sum(0), lambda x: (x * 2).sum(0), (x,)), x + 1


@pytest.mark.parametrize(
    "program", [kept_at_zero, as_long_as_a_sum_is_large, summed_in_branches, a_branch], ids=lambda p: p.__name__
)
def test_buckets(program: Callable[..., Any]) -> None:
    model, compiled = compiled_with_symbols(program, buckets=[8, 20])
    for args in (FEW, MANY, (rows(7), N), (rows(20), N)):
        compare(results(compiled, args), eager(model, args))
    assert len(compiled.programs) == 2


def lost_in_a_trip(x: Tensor, n: Tensor) -> Any:
    return while_loop(lambda i, _y: i < n, lambda i, y: (i + 1, y * 0.5 + 1), (zero(), x))[1].sum(0)


def lost_in_one_branch(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda x: x * 2, lambda x: x + 1, (x,)).sum(0)


def counted_by_a_condition(x: Tensor, _n: Tensor) -> Any:
    return while_loop(lambda y: y.exp().sum() > 30, lambda y: (y - 0.5,), (x,))[0]


@pytest.mark.parametrize(
    "program", [lost_in_a_trip, lost_in_one_branch, counted_by_a_condition], ids=lambda p: p.__name__
)
def test_padding_that_would_reach_a_result_is_refused(program: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="addf takes in padding, which holds any numbers"):
        compiled_with_symbols(program, buckets=[8])
