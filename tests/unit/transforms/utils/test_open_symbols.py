"""Programs with symbols are refused below the import."""

import pytest

from spyre_mlir.errors import InputError
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.utils.open_symbols import check_closed
from spyre_mlir.universe import make_context

TEXT = "func.func @main() attributes {aten.symbols = {s0 = array<i64: 2>, s1 = array<i64: 2>}} { func.return }"


def test_symbols_are_named() -> None:
    with pytest.raises(InputError, match=r"without values: s0, s1\n  try: specialize-shapes\{s0=… s1=…\} first"):
        check_closed(parse_module(TEXT, make_context()))


def test_numbers_pass() -> None:
    check_closed(parse_module("func.func @main() { func.return }", make_context()))
