"""Programs in which data decides sizes, divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.data_sizes.calls import import_divided
from spyre_mlir.frontend.data_sizes.dividing import DividedProgram, Piece
from spyre_mlir.frontend.data_sizes.padded import PaddedPiece
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from tests.functions import FunctionModel

# More rows than the tests have.
_BOUND = 20

X = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)


def division(function: Callable[..., Any], *args: Any) -> DividedProgram:
    given = args or (X,)
    with flat_dataclasses(given) as see:
        return import_divided("Divided", export_model(FunctionModel(function), given, {}, see))


def shifted(x: Tensor) -> Any:
    """Two pieces: the mask, and what is made of the selected numbers and their count."""
    found = x[x > 0]
    return found.reshape(found.shape[0], 1) + x.sum()


def masked(function: Callable[[Tensor], Any]) -> PaddedPiece:
    """What follows a selection of rows, of which there is one at least."""

    def program(x: Tensor) -> Any:
        y = x[x.sum(-1) > 0]
        torch._check(y.shape[0] != 0)
        return function(y)

    pieces = [step for step in division(program, X.repeat(4, 1)).steps if isinstance(step, Piece)]
    (symbol,) = PaddedPiece(pieces[-1], "Plain", masked=False).symbols
    return PaddedPiece(pieces[-1], "Masked", masked=True, bounds={symbol: _BOUND})


def check_masked(function: Callable[[Tensor], Any], rows: Tensor) -> None:
    """Compare with torch, whatever padding holds."""
    piece, count = masked(function), rows.shape[0]
    symbol, *_ = piece.symbols
    sizes = piece.with_derived({symbol: count})
    tensors = piece.arguments((rows,), sizes, piece.with_largest_derived({symbol: count + 3}))
    for place, filler in enumerate((7.5, -9.5, 0.25)):
        tensors[0][count + place] = filler
    results = piece.results(piece.model(*tensors), sizes)
    assert results is not None
    wanted = function(rows)
    results = results[len(results) - len(wanted) :]  # in front of them are those that checks of sizes read
    for place, (a, b) in enumerate(zip(results, wanted, strict=True)):
        assert a.dtype is b.dtype, place
        torch.testing.assert_close(a, b, msg=lambda text, place=place: f"result {place}: {text}")
    assert piece.is_masked
