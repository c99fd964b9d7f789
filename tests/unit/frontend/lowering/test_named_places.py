"""What is asked of integer arguments: by which operators, and up to which arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
import torch
from torch import Tensor
from torch.export import Dim
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.argument_notes import NamedPlaces, places_of
from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.specializing import static_program
from spyre_mlir.transforms.specialize_shapes import SpecializeShapesPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

Function = Callable[[Tensor, Tensor], Tensor]

X, ROWS, COLUMNS = torch.ones(5, 4), torch.tensor([0, 1]), torch.tensor([2, 3])


def main_of(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")


def asked(function: Function, *args: Tensor, number: int = 1) -> list[NamedPlaces]:
    return places_of(main_of(import_program(FunctionModel(function), args).module), number)


def test_operator_and_place_in_the_model() -> None:
    (one,) = asked(lambda x, i: x.index_select(1, i), X, ROWS)
    assert (one.op, one.size, one.from_end) == ("aten.index_select", 4, 0)
    assert one.at.startswith("functions.py:")


def test_a_choice_of_rows_is_the_index_that_the_model_wrote() -> None:
    """It becomes an `index_select`, whose indices eager does not count from the end."""
    (one,) = asked(lambda x, i: x[i], X, ROWS)
    assert (one.op, one.from_end) == ("aten.index.Tensor", 1)


def test_equal_demands_are_noted_once() -> None:
    assert len(asked(lambda x, i: x[i] + x.clone()[i] * x[i], X, ROWS)) == 1
    assert len(asked(lambda x, i: x[i] + x[:, i].sum() + x.index_select(0, i), X, ROWS)) == 3


def test_each_of_several_indices() -> None:
    model = FunctionModel(lambda x, i, j: x[i, j])
    main = main_of(import_program(model, (X, ROWS, COLUMNS)).module)
    assert [places_of(main, n)[0].size for n in (1, 2)] == [5, 4]


MADE_OF_IT: list[tuple[Function, list[tuple[int, int]]]] = [
    (lambda x, i: x[i + 2], [(2, 1)]),
    (lambda x, i: x[i - 2 + 5], [(3, 1)]),
    (lambda x, i: x[torch.sub(i, 2, alpha=3)], [(-6, 1)]),
    (lambda x, i: x[torch.where(i < 0, i + 5, i)], [(0, 2)]),
    (lambda x, i: x[torch.where(i < 0, i + 5, i).flip(0)[None]], [(0, 2)]),
    (lambda x, i: x[torch.cat([i, i + 2, i])], [(0, 1), (2, 1)]),
    (lambda x, i: x[torch.where(i - 1 < 0, i - 1 + 5, i - 1)], [(0, 1)]),  # by steps: three sums, and not one
]


@pytest.mark.parametrize("number", range(len(MADE_OF_IT)))
def test_indices_made_of_an_argument(number: int) -> None:
    function, expected = MADE_OF_IT[number]
    assert [(one.plus, one.from_end) for one in asked(function, X, ROWS)] == expected


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_sums_that_wrap_around_are_steps(kind: torch.dtype) -> None:
    (one,) = asked(lambda x, i: x[(i + 2).long()], X, ROWS.to(kind))
    assert (one.plus, one.by is None) == ((2, True) if kind is torch.int32 else (0, False))


START = torch.tensor(1)
COUNTED: list[tuple[Function, Tensor, list[tuple[int, int]]]] = [
    (lambda x, i: x[torch.arange(3) + i], START, [(0, 1), (2, 1)]),
    (lambda x, i: x[i + torch.arange(1, 6, 2)[None].flip(1)], START[None], [(1, 1), (5, 1)]),
    (lambda x, i: x.index_select(0, torch.arange(3, -1, -1) + i - 2), START, [(-2, 0), (1, 0)]),
    (lambda x, i: x[torch.arange(1) + i], START, [(0, 1)]),
    (lambda x, i: x[torch.arange(2) + i], ROWS, [(0, 1)]),  # by steps: each start has a number of its own
    (lambda x, i: x[torch.add(i, torch.arange(2), alpha=2)], START, [(0, 1)]),
    (lambda x, i: x[torch.arange(2.0).long() + i], START, []),
    (lambda x, i: x[(torch.arange(2) + i) * 1], START, [(0, 1)]),
]


@pytest.mark.parametrize("number", range(len(COUNTED)))
def test_counts_from_an_argument_have_ends(number: int) -> None:
    function, start, expected = COUNTED[number]
    assert sorted((one.plus, one.from_end) for one in asked(function, X, start)) == expected


NOT_FOLLOWED: list[Function] = [
    lambda x, i: x[i.float().sin().long()],
    lambda x, i: x[i + x[:2, 0].exp().long()],
    lambda x, i: x[i * x.sum().long()],
    lambda x, i: x[i.half().mul(2).long()],
    lambda x, i: x[torch.add(i, i / 3, alpha=3).long()],
    lambda x, i: x[(i / 3 == i).long() + i],
    lambda x, i: x[2**i],
    lambda x, i: x[i.view(torch.int32) * 2],
    lambda x, i: x[sum([i * n for n in range(40)], i)],  # too long
    lambda x, i: x[:, :0][i],
    lambda x, i: x + i.sum(),
]


COMPUTED: list[tuple[Function, list[str]]] = [
    (lambda x, i: x[i * 2], ["mul"]),
    (lambda x, i: x[i * 2 + 1], ["add", "mul"]),
    (lambda x, i: x[(i * 2 + 1).view(2, 1).expand(2, 3)], ["add", "mul"]),  # in the shape before views
    (lambda x, i: x[i[:1]], ["slice"]),
    (lambda x, i: x[torch.ops.aten.slice(i, 0, None, 1)], ["slice"]),
    (lambda x, i: x[i.to(torch.int32)], ["to"]),
    (lambda x, i: x[torch.where(i < 0, i + 4, i)], ["add", "lt", "where"]),
    (lambda x, i: x[(i != 1).cumsum(0)], ["cumsum", "ne"]),
]


@pytest.mark.parametrize("number", range(len(COMPUTED)))
def test_arithmetic_on_an_argument_becomes_steps(number: int) -> None:
    function, expected = COMPUTED[number]
    (one,) = asked(function, X, ROWS)
    assert one.by is not None
    calls = [str(cast(DictionaryAttr, step).data["call"]).strip('"').removeprefix("aten.") for step in one.by]
    assert sorted(call.replace("_to_copy", "to") for call in calls) == expected
    assert NamedPlaces.read(one.attribute()) == one


def test_steps_read_other_arguments_by_name() -> None:
    model = FunctionModel(lambda x, i, j: x[(i * 2 + j) + (j * 0.5).floor().long()])
    main = main_of(import_program(model, (X, ROWS, COLUMNS)).module)
    (one,) = places_of(main, 1)
    assert one.others == ["args_2"]
    assert NamedPlaces.read(one.attribute()) == one
    assert places_of(main, 2) == []


def test_results_of_several_are_steps() -> None:
    def function(x: Tensor, i: Tensor) -> Tensor:
        low, high = i.split([1, 1])
        return x[torch.cat([low * high, i.unbind()[0] - i.sort(descending=True)[0] * i.min(0)[0]])]

    steps = [cast(DictionaryAttr, step) for one in asked(function, X, ROWS) for step in one.by or ()]
    names = {str(step.data["call"]).strip('"').removeprefix("aten.") for step in steps}
    assert names == {"slice", "squeeze", "mul", "sub", "sort", "amin"}


@pytest.mark.parametrize("number", range(len(NOT_FOLLOWED)))
def test_what_is_not_followed(number: int) -> None:
    assert asked(NOT_FOLLOWED[number], X, ROWS) == []


def test_masks_name_nothing() -> None:
    mask = torch.tensor([1, 0, 1, 0, 0], dtype=torch.uint8)
    assert asked(lambda x, m: x.index_put((m,), torch.tensor(1.0)), X, mask) == []


def test_losses_pass_a_number_over() -> None:
    (one,) = asked(
        lambda x, t: torch.nn.functional.nll_loss(x, t, ignore_index=7), X, torch.zeros(5, dtype=torch.int64)
    )
    assert (one.size, one.but) == (4, 7)
    assert asked(lambda x, t: torch.nn.functional.cross_entropy(x, t), X, torch.ones(5, 4)) == []  # chances of classes


def test_sizes_with_symbols_become_numbers() -> None:
    shapes = (({0: Dim("rows", min=2, max=64)}, None),)
    program = import_program(FunctionModel(torch.take), (X, ROWS), None, shapes)
    (one,) = places_of(main_of(program.module), 1)
    assert one.size == SizeAttr("4 * s0")
    module = program.module.clone()
    SpecializeShapesPass({"s0": 9}).apply(make_context(), module)
    (one,) = places_of(main_of(static_program(program, module, {"s0": 9}).module), 1)
    assert (one.op, one.size, one.from_end) == ("aten.take", 36, 1)


def test_branches_ask_nothing_of_the_arguments_of_the_program() -> None:
    def function(x: Tensor, i: Tensor) -> Tensor:
        def some(x: Tensor, i: Tensor) -> Tensor:
            return x[i]

        def others(x: Tensor, _: Tensor) -> Tensor:
            return x[:2] + 1

        return torch.cond(x.sum() > 0, some, others, (x, i))

    assert asked(function, X, ROWS) == []


def test_a_count_to_a_size_with_a_symbol_is_a_step() -> None:
    model = FunctionModel(lambda x, i: x.index_select(0, torch.arange(x.shape[1]) + i))
    program = import_program(model, (X, START), None, (({1: Dim("n", max=5)}, {}),))
    (one,) = places_of(main_of(program.module), 1)
    assert one.by is not None and one.size == 5
    (count, _) = (cast(DictionaryAttr, step).data for step in one.by)
    assert (count["call"], count["end"]) == (StringAttr("aten.arange"), SizeAttr("s0"))


def test_a_size_with_a_symbol_is_no_index_of_an_argument() -> None:
    model = FunctionModel(lambda x, i: x.index_select(0, torch.arange(2) + x.shape[1] - 2) + i)
    program = import_program(model, (X, START), None, (({1: Dim("n", max=5)}, {}),))
    assert places_of(main_of(program.module), 1) == []


def test_numbers_of_64_bits_are_no_source() -> None:
    """Runs in device numerics have floats of 32 bits."""

    def function(x: Tensor, f: Tensor) -> Tensor:
        return x[(f * 2).long()]

    assert len(asked(function, X, torch.ones(2))) == 1
    assert asked(function, X, torch.ones(2, dtype=torch.float64)) == []
