"""What errors of torch say."""

from __future__ import annotations

import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.tracing.torch_errors import first_line, reason_of
from tests.functions import FunctionModel


def test_the_reason_of_an_error_without_one() -> None:
    assert reason_of(RuntimeError("shapes differ\nand more")) == "shapes differ"
    assert reason_of(RuntimeError("captured:\n\nBreak\n  Explanation: too deep\n  Hint: none")) == "Break: too deep"
    assert reason_of(RuntimeError("captured:")) == "captured:"
    assert reason_of(RuntimeError()) == ""
    assert reason_of(RuntimeError("failed\n  call f(): got ValueError('a \\'b\\'\\n c')")) == "a 'b' c"


def test_an_error_is_told_by_its_first_line() -> None:
    assert first_line(ValueError("\none\ntwo")) == "one"


def test_a_number_of_python_is_read_by_item() -> None:
    with pytest.raises(UnsupportedError, match=r"try: write x.item\(\) for float\(x\)"):
        spyre_mlir.compile(FunctionModel(lambda x: x * float(x[0])), (torch.ones(2),))
