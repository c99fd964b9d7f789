"""The border of a program with complex numbers, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.capture.complex_pairs.rewriting import in_pairs
from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.capture.liveness import live_nodes
from tests.functions import FunctionModel
from tests.unit.frontend.capture.complex_pairs.paired import agrees, finite

Z = finite().reshape(4, 6)


def test_a_program_without_complex_numbers_is_the_same_object() -> None:
    program = decompose(torch.export.export(FunctionModel(torch.relu), (Z.real.contiguous(),)))
    assert in_pairs(program, live_nodes(list(program.graph.nodes))) == (program, [])


def test_arguments_and_results_say_that_they_are_interleaved() -> None:
    program = import_program(FunctionModel(lambda z: (z * 2, z.abs())), (Z,))
    text = str(program.module)
    assert text.count('aten.complex = "interleaved"') == 2
    assert "tensor<4x6x2xf32>" in text
    assert program.inputs[0].given_form == ((4, 6), torch.complex64)
    assert program.complex_results == {0}


def test_inputs_constants_and_one_result_in_several_places() -> None:
    agrees(lambda z: (z, z * torch.tensor([1j, 2, 3j, 4, 5, 6]), z.conj().conj()), Z)


@torch.library.custom_op("paired::turned", mutates_args=())
def turned(z: torch.Tensor, count: int) -> torch.Tensor:
    return z * count


@turned.register_fake
def _(z: torch.Tensor, count: int) -> torch.Tensor:
    return torch.empty_like(z)


def test_operators_without_a_form_are_named_once_each() -> None:
    """A call that the host makes has numbers, and this one the number of rows of an input."""
    rows = ({0: torch.export.Dim("rows", min=2, max=8)},)
    with pytest.raises(UnsupportedError) as caught:
        import_program(FunctionModel(lambda z: turned(z, z.shape[0]).atanh()), (Z,), dynamic_shapes=(rows,))
    text = str(caught.value)
    assert "1 x paired.turned: it has no form for complex numbers (torch.complex64)" in text
    assert "atanh" not in text.replace(".atanh()", "")  # what only follows is not the cause


def test_a_shape_that_depends_on_data_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="complex numbers of a shape that depends on the data have no form"):
        import_program(FunctionModel(lambda z: torch.tensor_split(z, torch.tensor([1, 2]))[0] * 2), (Z,))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize(
    "function",
    [
        lambda z: z * z.conj() + z,
        lambda z: (z - 1j).abs(),
        lambda z: torch.cat([z, -z.mT.contiguous().mT]),
        lambda z: torch.complex(z.imag, z.real) * z.real,
        lambda z: torch.view_as_complex(torch.view_as_real(z).flip(-1).contiguous()),
        lambda z: (z.to(torch.complex64) @ z.to(torch.complex64).mT).to(torch.complex32),
    ],
)
def test_half_precision_is_pairs_of_float16(function: Any) -> None:
    z = Z.to(torch.complex32)
    compiled = spyre_mlir.compile(FunctionModel(function), (z,), numerics="exact")
    got, wanted = compiled(z), function(z)
    assert got.dtype is wanted.dtype
    torch.testing.assert_close(got.to(torch.complex64), wanted.to(torch.complex64), rtol=2e-3, atol=2e-3)
    verification = compiled.verify(z)
    assert verification, str(verification)
