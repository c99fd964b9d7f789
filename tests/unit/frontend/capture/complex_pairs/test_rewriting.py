"""The border of a program with complex numbers, and what is refused."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.capture.complex_pairs.rewriting import in_pairs
from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.lowering.liveness import live_nodes
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


def test_operators_without_a_form_are_named_once_each() -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_program(FunctionModel(lambda z: torch.acos(z).atanh() + torch.linalg.inv(z @ z.mH).sum()), (Z,))
    text = str(caught.value)
    assert "1 x aten.acos: it has no form for complex numbers (torch.complex64)" in text
    assert "1 x aten.linalg_inv: it has no form for complex numbers (torch.complex64)" in text
    assert "atanh" not in text.replace(".atanh()", "")  # what only follows is not the cause


def test_a_shape_that_depends_on_data_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="complex numbers of a shape that depends on the data have no form"):
        import_program(FunctionModel(lambda z: torch.tensor_split(z, torch.tensor([1, 2]))[0] * 2), (Z,))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_half_precision_has_no_form() -> None:
    with pytest.raises(UnsupportedError, match=r"half precision \(torch.complex32\)") as caught:
        import_program(FunctionModel(lambda z: (z.to(torch.complex32) * 2).abs()), (Z,))
    assert "convert to torch.complex64 first" in str(caught.value)
