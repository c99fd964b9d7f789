"""A part with a bound: which bound counts, how often it is built, and what it is refused for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.frontend import Program, import_program, size_makers
from spyre_mlir.frontend.data_sizes.dividing import Piece
from spyre_mlir.options import CompileOptions
from spyre_mlir.parted.bounded import BoundedPart, Bounding, check_conditions
from tests.unit.frontend.data_sizes.programs import X, division


def bounded(function: Callable[[Tensor], Any], built: list[Program], max_size: Any = 64) -> BoundedPart:
    """The last part of a program; a compiler that only notes what it is given."""
    program = division(function)
    pieces = [step for step in program.steps if isinstance(step, Piece)]

    def build(made: Program) -> Any:
        built.append(made)
        return made

    return Bounding(CompileOptions(max_size=max_size), size_makers(program), build).part(pieces[-1], "Last")


def rows(x: Tensor) -> Tensor:
    return x[x.sum(-1) > 0] * 2


@pytest.mark.parametrize(("given", "bound"), [(1, 1), (64, 3), ("known", 3)])
def test_the_lesser_bound_counts(given: object, bound: int) -> None:
    """A mask of three rows selects three at most; the program is never for less, as it is compared with one for two."""
    built = list[Program]()
    part = bounded(rows, built, given)
    assert [*part.most.values()] == [bound]
    (program,) = built
    assert [argument.shape for argument in program.arguments if argument.kind == "input"] == [(3, 4)]
    assert not part.piece.is_masked


def test_masks_are_only_put_where_padding_counts() -> None:
    part = bounded(lambda x: x[x.sum(-1) > 0].amax(0), [])
    assert part.piece.is_masked


def test_a_size_above_the_bound_is_refused() -> None:
    part = bounded(rows, [], 2)
    with pytest.raises(InputError, match=r"aten\.index\.Tensor gives a size of 3 in this call, expected 2 at most"):
        part.run((torch.ones(3, 4),), lambda _program, inputs: inputs)


def test_a_size_that_a_table_has_is_tried_apart_from_it() -> None:
    """Numbers of all rows of a table, and those of the bound, would be one constant: there is no program for three."""
    built = list[Program]()

    def added(x: Tensor) -> Tensor:
        return x[(x.sum(-1) > 0).nonzero().flatten()].cumsum(0)

    part = bounded(added, built)
    (program,) = built
    assert part.apart
    assert [*part.most.values()] == [3]
    assert sorted(argument.shape for argument in program.arguments if argument.kind == "input") == [(3, 4), (7, 1)]
    assert not bounded(rows, []).apart


def test_two_sizes_are_proved_one_by_one() -> None:
    built = list[Program]()
    part = bounded(lambda x: torch.outer(x[x > 0], x[x < 0]), built)
    assert len(part.most) == 2
    assert len(built) == 1
    with pytest.raises(UnsupportedError, match=r"Last, behind aten\.index\.Tensor, has no program for all sizes: "):
        bounded(lambda x: torch.outer(x[x > 0], x[x < 0])[..., None].expand(-1, -1, 3).reshape(-1) * 2, built)


def test_sizes_of_a_program_are_apart() -> None:
    """Equal constants are one argument: those of two sizes stay two, in each program that is compared."""
    built = list[Program]()
    part = bounded(lambda x: torch.cat([x[x > 0], x[x < 0], x[x < 0.5]]) * 2, built)
    assert sorted(part.most.values()) == [12, 12, 12, 36]
    assert sorted(a.shape[0] for a in built[0].arguments if a.name.startswith("inputs") and a.shape)[:3] == [12, 12, 16]


def test_small_sizes_are_apart_from_the_one_that_is_proved() -> None:
    """Rows of four kinds, whose counts the call says: four sizes, one of which is compared beside small ones."""

    def by_kind(x: Tensor) -> Tensor:
        kind = (x[:, 0] * 2).long().abs()
        order = kind.argsort(stable=True)
        parts = x[order].split(torch.bincount(kind, minlength=4).tolist())
        out = torch.empty_like(x)
        out[order] = torch.cat([part * number for number, part in enumerate(parts)])
        return out

    built = list[Program]()
    bounded(by_kind, built, 12)
    assert len(built) == 1


def test_long_merged_dimensions_are_refused() -> None:
    """Each place of a result would be compared with each, 65 x 64 of them."""

    def columns(x: Tensor) -> Tensor:
        return x[:, :1].repeat_interleave((x[:, 0] > 0).long(), 0).repeat(1, 65).t().reshape(-1) * 2

    with pytest.raises(UnsupportedError, match=r"Last, behind aten\.repeat_interleave\.Tensor, has no program"):
        bounded(columns, [], 64)


class Conditional(nn.Module):
    """Takes for granted that a size is not five."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] != 5 else x * 3


def test_conditions_hold_for_all_sizes() -> None:
    shapes = ({0: Dim.AUTO},)
    program = import_program(Conditional(), (torch.ones(3, 4),), None, shapes)
    check_conditions(program, {"s0": 2}, {"s0": 4})
    with pytest.raises(UnsupportedError, match="s0"):
        check_conditions(program, {"s0": 2}, {"s0": 5})


def test_small_sizes_are_asked_once() -> None:
    """The part asks torch about the shapes of a size of one, and pads to two elements at least."""
    ran = list[tuple[Tensor, ...]]()

    def run(_program: object, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        ran.append(inputs)
        return (inputs[0] * 2,)

    part = bounded(rows, [])
    for _ in range(2):
        (result,) = part.run((X[1:2],), run)
        assert torch.equal(result, X[1:2] * 2)
    assert [given[0].shape[0] for given in ran] == [3, 3]
