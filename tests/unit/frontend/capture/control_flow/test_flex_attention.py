"""Attention with functions of scores as plain operators: what stays as it was, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.capture.control_flow.flex_attention import write_out_flex_attention
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.randn(1, 2, 8, 4, generator=torch.Generator().manual_seed(1))


def relative(x: Tensor) -> Any:
    return flex_attention(x, x, x, score_mod=lambda score, _b, head, row, column: score + head * (row - column))


def exported(function: Any, x: Tensor, *, strict: bool = False) -> ExportedProgram:
    with torch.no_grad():
        return torch.export.export(FunctionModel(function), (x,), strict=strict)


@pytest.mark.parametrize("strict", [False, True])
def test_the_program_given_stays(strict: bool) -> None:
    program = exported(relative, X, strict=strict)
    before = str(program.graph)
    made = write_out_flex_attention(program)
    assert str(program.graph) == before
    assert not any(node.op == "get_attr" or "flex" in str(node.target) for node in made.graph.nodes)
    names = [spec.arg.name for spec in program.graph_signature.output_specs]
    assert [spec.arg.name for spec in made.graph_signature.output_specs] == names
    torch.testing.assert_close(made.module(check_guards=False)(X), relative(X))


def test_a_program_without_attention_is_itself() -> None:
    program = exported(torch.exp, X)
    assert write_out_flex_attention(program) is program


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 1, 0, 3), (3, 2, 1, 0)])
def test_results_lie_in_the_order_of_the_queries(order: tuple[int, ...]) -> None:
    drawn = torch.randn(8, 8, 8, 8, generator=torch.Generator().manual_seed(2))
    x = drawn.permute(order)
    made = write_out_flex_attention(exported(relative, x))
    expected = relative(x)
    found = made.module(check_guards=False)(x)
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride()


def test_masks_of_positions_are_constants() -> None:
    mask = create_block_mask(lambda _b, _h, row, column: row >= column, None, None, 8, 8, device="cpu")
    program = import_program(FunctionModel(lambda x: flex_attention(x, x, x, block_mask=mask)), (X,))
    text = str(program.module)
    assert "aten.where" in text
    assert "aten.arange" not in text
    assert "aten.ge" not in text


def test_large_tensors_of_numbers_are_refused() -> None:
    def tabled(x: Tensor) -> Any:
        return flex_attention(x, x, x, score_mod=lambda score, _b, _h, row, _c: score * torch.tensor([0.5] * 65)[row])

    with pytest.raises(UnsupportedError, match="a function makes a tensor of 65 numbers; it may have 64") as caught:
        import_program(FunctionModel(tabled), (X,))
    assert "register the tensor as a buffer" in str(caught.value.hint)
    assert "functions.py:" in str(caught.value)


def test_parts_of_a_program_in_which_data_decides_sizes_have_it(tmp_path: Any) -> None:
    def kept(x: Tensor, flags: Tensor) -> Any:
        return relative(x)[:, :, flags.nonzero()[:, 0]]

    flags = torch.tensor([1, 0, 1, 1, 0, 0, 0, 1])
    compiled = spyre_mlir.compile(FunctionModel(kept), (X, flags), numerics="exact")
    torch.testing.assert_close(compiled(X, flags), kept(X, flags))
    loaded = spyre_mlir.load(compiled.save(tmp_path / "parts"), numerics="exact")
    torch.testing.assert_close(loaded(X, 1 - flags), kept(X, 1 - flags))
