"""`--dim NAME=NUMBER`."""

import argparse

import pytest
import torch
from torch import nn
from torch.export import Dim

from spyre_mlir.cli.support.dims import add_dims, read_dims, with_sizes
from spyre_mlir.errors import InputError
from spyre_mlir.frontend import import_program

X = torch.zeros(4, 8)


def test_the_flag_may_be_given_again() -> None:
    parser = argparse.ArgumentParser()
    add_dims(parser)
    assert read_dims(parser.parse_args(["--dim", "s0=33", "--dim", "s1=2"]).dim) == {"s0": 33, "s1": 2}
    assert read_dims(parser.parse_args([]).dim) == {}


@pytest.mark.parametrize("text", ["s0", "s0=", "s0=x", "s0=-1", "s0=1.5"])
def test_a_value_is_a_whole_number(text: str) -> None:
    with pytest.raises(InputError, match="--dim is NAME=NUMBER"):
        read_dims([text])


def test_a_symbol_comes_once() -> None:
    with pytest.raises(InputError, match="gives s0 twice, 3 and 4"):
        read_dims(["s0=3", "s0=4"])


def test_sizes_are_for_programs_with_symbols() -> None:
    plain = import_program(nn.ReLU(), (X,))
    assert with_sizes(plain, {}, keep_symbols=False) is plain
    with pytest.raises(InputError, match="--dim means nothing"):
        with_sizes(plain, {"s0": 3}, keep_symbols=False)


def test_symbols_are_kept_if_that_is_allowed() -> None:
    program = import_program(nn.ReLU(), (X,), dynamic_shapes=({0: Dim("rows")},))
    assert with_sizes(program, {}, keep_symbols=True) is program
    assert with_sizes(program, {"s0": 7}, keep_symbols=True).inputs[0].shape == (7, 8)
    with pytest.raises(InputError, match="symbol s0 has no value"):
        with_sizes(program, {}, keep_symbols=False)
