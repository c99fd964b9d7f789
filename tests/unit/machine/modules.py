"""Hand-written modules for the tests of the upper levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.machine.levels import run_function
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.universe import make_context

Array = NDArray[Any]


def parse(text: str) -> ModuleOp:
    module = parse_module(text, make_context())
    verify_module(module)
    return module


def main(arguments: str, body: str, result: str) -> str:
    """A function @main; `body` defines %out of type `result`."""
    return f"func.func @main({arguments}) -> {result} {{\n{body}\nfunc.return %out : {result}\n}}"


def run(text: str, *inputs: Array) -> Array:
    (out,) = run_function(parse(text), inputs)
    return out


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-2, 2, shape)


def close(got: Array, wanted: Array, tolerance: float = 0.0) -> None:
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=max(1e-12, tolerance), atol=max(1e-12, tolerance))


__all__: Sequence[str] = ["Array", "close", "main", "numbers", "parse", "run"]
