"""Which failed calls are compiled again."""

from __future__ import annotations

import re

import pytest
import torch

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import FaultKind, IntegerRangeError, MachineFault
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.runtime.larger_integers import LargerIntegersWarning, exact_options
from tests.functions import FunctionModel

BEYOND = IntegerRangeError("x holds 2^40")
PLAIN = import_program(FunctionModel(lambda a: a + 1), (torch.tensor([1]),), None).module
DRAWS = import_program(FunctionModel(lambda a: a + torch.randint(0, 3, (1,))), (torch.tensor([1]),), None).module


@pytest.mark.parametrize("met", [BEYOND, MachineFault(FaultKind.INT32_OVERFLOW, "3 integers")])
def test_integers_beyond_the_device_are(met: IntegerRangeError | MachineFault) -> None:
    with pytest.warns(LargerIntegersWarning, match=re.escape(met.message)):
        options = exact_options(met, CompileOptions(numerics="exact"), PLAIN)
    assert options == CompileOptions(numerics="exact", integers="exact")


@pytest.mark.parametrize(
    "options",
    [CompileOptions(integers="device"), CompileOptions(integers="exact"), CompileOptions(host_fallback="error")],
)
def test_not_with_other_options(options: CompileOptions) -> None:
    assert exact_options(BEYOND, options, PLAIN) is None


def test_nor_other_faults_draws_and_programs_from_files() -> None:
    assert exact_options(MachineFault(FaultKind.STALE_READ, "stale"), CompileOptions(), PLAIN) is None
    assert exact_options(BEYOND, CompileOptions(), DRAWS) is None
    empty = PLAIN.clone()
    for op in list(empty.ops):
        op.detach()
    assert exact_options(BEYOND, CompileOptions(), empty) is None


def test_numerics_are_exact_after_a_call_was_compiled_again() -> None:
    """Device numerics are wrong by a thousandth here."""

    def both(number: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return number + 1, torch.exp(x)

    beyond, x = torch.tensor([2**40]), torch.linspace(0, 1, 64).reshape(1, 64)
    compiled = spyre_mlir.compile(FunctionModel(both), (torch.tensor([1]), x), host_fallback="allow")
    assert isinstance(compiled, CompiledModel)
    with pytest.warns(LargerIntegersWarning):
        assert (compiled(beyond, x)[1] - torch.exp(x)).abs().max() > 1e-4
    number, exponent = compiled.in_exact_numerics()(beyond, x)
    assert number == 2**40 + 1
    torch.testing.assert_close(exponent, torch.exp(x), rtol=1e-6, atol=0)
