"""Programs with symbols, and static programs for values of these."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

from spyre_mlir.dialects.aten_sizes import SymbolRange
from spyre_mlir.dynamic.programs import specialized, symbols_of, with_sizes
from spyre_mlir.errors import InputError
from spyre_mlir.frontend import import_program


def test_programs_of_sizes() -> None:
    program = import_program(nn.ReLU(), (torch.zeros(4, 8),), dynamic_shapes=({0: Dim("rows", min=2, max=9)},))
    assert symbols_of(program) == {"s0": SymbolRange(2, 9)}
    assert specialized(program, {"s0": 6}).inputs[0].shape == (6, 8)


def test_sizes_are_for_programs_with_symbols() -> None:
    plain = import_program(nn.ReLU(), (torch.zeros(4, 8),))
    assert with_sizes(plain, {}) is plain
    with pytest.raises(InputError, match="sizes are given for s0, and the program has no symbols"):
        with_sizes(plain, {"s0": 3})


def test_symbols_are_kept_if_that_is_allowed() -> None:
    program = import_program(nn.ReLU(), (torch.zeros(4, 8),), dynamic_shapes=({0: Dim("rows")},))
    assert with_sizes(program, {}, keep_symbols=True) is program
    assert with_sizes(program, {"s0": 7}, keep_symbols=True).inputs[0].shape == (7, 8)
    with pytest.raises(InputError, match="symbol s0 has no value"):
        with_sizes(program, {})
