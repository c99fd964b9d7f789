"""`--dim NAME=NUMBER`."""

import argparse

import pytest

from spyre_mlir.cli.flags.dims import add_dims, read_dims
from spyre_mlir.errors import InputError


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
