"""A part: one program with symbols, and a few for single sizes. Compilers that count what they are asked for."""

from __future__ import annotations

from typing import Any

import torch

from spyre_mlir.api import compile as compile_model
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.data_sizes.dividing import Piece
from spyre_mlir.parted.part import Part
from tests.unit.frontend.data_sizes.programs import division


def part(asked: list[Any], kept: int = 2) -> Part:
    """The part behind a mask, of a compiler that knows no symbols."""

    def compiled(model: Any, inputs: tuple[Any, ...], symbols: Any) -> CompiledModel:
        asked.append([tuple(x.shape) for x in inputs])
        if symbols is not None:
            raise UnsupportedError("no symbols")
        made = compile_model(model, inputs, numerics="exact")
        assert isinstance(made, CompiledModel)
        return made

    piece = division(lambda x: x[x > 0] + 1).steps[-1]
    assert isinstance(piece, Piece)
    made = Part(piece, "Behind", compiled, kept)
    made.prepare()
    return made


def test_what_has_no_symbols_is_compiled_for_each_size() -> None:
    asked = list[Any]()
    behind = part(asked)
    assert behind.made is None
    for count in (2, 2, 3):
        (got,) = behind.program((torch.ones(count),))(torch.ones(count))
        assert got.tolist() == [2.0] * count
    assert asked == [[(8,)], [(2,)], [(3,)]]
    assert behind.program((torch.ones(2),)).name == "Behind"


def test_programs_that_were_not_called_for_longest_are_dropped() -> None:
    asked = list[Any]()
    behind = part(asked)
    for count in (2, 3, 2, 4, 2, 3):
        behind.program((torch.ones(count),))
    assert asked[1:] == [[(2,)], [(3,)], [(4,)], [(3,)]]
    assert len(list(behind.programs())) == 2
