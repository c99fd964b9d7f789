"""Indices of a call, against hand-written notes."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.argument_notes import NamedPlaces, places_attribute
from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.errors import InputError
from spyre_mlir.machine.levels.named_places import check_places, check_zeros
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


def function(*asked: NamedPlaces) -> FuncOp:
    note = places_attribute(asked)
    text = f"func.func @main(%x: tensor<2xi64>, %i: tensor<2xi64> {{aten.places = {note}}}) {{ func.return }}"
    return next(op for op in parse_module(text, make_context()).ops if isinstance(op, FuncOp))


ROWS = NamedPlaces("aten.index.Tensor", "model.py:12", 5, from_end=1)


def check(main: FuncOp, *values: int, **sizes: int) -> None:
    check_places(main, lambda number: np.array(values, np.int64) if number else np.zeros(2), sizes)


@pytest.mark.parametrize("values", [(0, 4), (-5, -1), ()])
def test_indices_that_name_places(values: tuple[int, ...]) -> None:
    check(function(ROWS), *values)


@pytest.mark.parametrize(("values", "found"), [((0, 5), r"5 at \[1\]"), ((-6, 0), r"-6 at \[0\]")])
def test_the_first_index_that_does_not(values: tuple[int, ...], found: str) -> None:
    with pytest.raises(InputError, match=rf"argument 1 holds {found}, and aten.index.Tensor takes -5 to 4") as one:
        check(function(ROWS), *values)
    assert one.value.where == "model.py:12"
    assert one.value.hint == "pass indices of entries that are there, or a tensor with more of them"


def test_a_single_index_has_no_position() -> None:
    with pytest.raises(InputError, match=r"holds 7, and aten.index.Tensor takes"):
        check_places(function(ROWS), lambda _: np.array(7))


def test_a_number_that_is_passed_over() -> None:
    main = function(NamedPlaces("aten.nll_loss_nd", "", 3, but=-100))
    check(main, -100, 2)
    with pytest.raises(InputError, match=r"holds 3 at \[1\], and aten.nll_loss_nd takes 0 to 2, and -100") as caught:
        check(main, -100, 3)
    assert caught.value.where is None


def test_every_operator_is_asked() -> None:
    main = function(ROWS, NamedPlaces("aten.gather", "", 3))
    check(main, 0, 2)
    with pytest.raises(InputError, match=r"holds -1 at \[0\], and aten.gather takes 0 to 2"):
        check(main, -1, 0)


def test_a_dimension_without_entries_takes_no_index() -> None:
    with pytest.raises(InputError, match=r"aten.gather takes none"):
        check(function(NamedPlaces("aten.gather", "", 0)), 0)


def test_sizes_with_symbols() -> None:
    main = function(NamedPlaces("aten.gather", "", SizeAttr("2 * s0")))
    check(main, 5, s0=3)
    with pytest.raises(InputError, match="takes 0 to 5"):
        check(main, 6, s0=3)


def test_arguments_without_a_note() -> None:
    check_places(function(ROWS), lambda number: None if number else np.array([99, -99]))


def test_what_the_program_takes_for_zeros_is_zero() -> None:
    text = 'func.func @main(%z: tensor<2x2xi8> {aten.zero = "aten.sub.Tensor"}, %o: tensor<2x2xi8>) { func.return }'
    main = next(op for op in parse_module(text, make_context()).ops if isinstance(op, FuncOp))
    zeros, others = np.zeros((2, 2), np.int8), np.array([[0, 0], [-3, 1]], np.int8)
    check_zeros(main, 0, "argument 0", zeros)
    check_zeros(main, 1, "argument 1", others)
    with pytest.raises(InputError, match=r"argument 0 holds -3 at \[1, 0\], .* leaves out the aten.sub.Tensor") as one:
        check_zeros(main, 0, "argument 0", others)
    assert one.value.hint == "compile the model with these weights"
