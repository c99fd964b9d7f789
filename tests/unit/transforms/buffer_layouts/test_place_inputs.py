"""Pass `place-inputs`: which inputs and results have the default layout, and what follows from that."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as PyTorch's own pages call it
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import spyre_mlir
from spyre_mlir.dialects.argument_notes import NAME, note_of, placed_arguments, placed_results
from spyre_mlir.dialects.spyre.kernel import ComputeOp, FromDeviceOp, KernelOp, ToDeviceOp, device_tensor
from spyre_mlir.errors import InputError
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.buffer_layouts.place_inputs import PlaceInputsPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def lowered(model: nn.Module, *inputs: Tensor, level: str = "spyre.kernel", **options: Any) -> ModuleOp:
    chosen = CompileOptions(**{"inputs": "default"} | options).passes()
    return lower(import_program(model, inputs).module, make_context(), until=level, options=chosen).modules[level]


def noted(module: ModuleOp, function: str = "main") -> tuple[set[str], set[int]]:
    """Names of arguments with the default layout, and numbers of results."""
    (found,) = [op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == function]
    names = {str(note_of(found, number, NAME)).strip('"') for number in placed_arguments(found)}
    return names, placed_results(found)


def kernels(module: ModuleOp) -> list[str]:
    """Hardware functions of compute ops, and names of the others."""
    found = [op for op in module.walk() if isinstance(op, KernelOp)]
    return [op.function_name if isinstance(op, ComputeOp) else op.name.split(".")[-1] for op in found]


class Mixed(nn.Module):
    """An input, an index, a weight and a buffer that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(numbers(70, 40))
        self.register_buffer("seen", numbers(40))

    def forward(self, x: Tensor, mask: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        self.seen.add_(1)  # pyright: ignore[reportCallIssue]
        return torch.where(mask, x @ self.weight, self.seen), x[rows]


def test_floating_point_inputs_and_results_are_placed() -> None:
    inputs = numbers(5, 70), numbers(5, 40) > 0, torch.tensor([1, 4])
    names, results = noted(lowered(Mixed(), *inputs, level="spyre.loop"))
    assert names == {"x", "mask"}
    # The new value of the buffer comes first, and is free as that is.
    assert len(results) == 2
    assert noted(lowered(Mixed(), *inputs, level="spyre.loop", inputs="free")) == (set(), set())


class Cached(nn.Module):
    """Attention over keys and values that other calls have made, and over one more of each."""

    def forward(self, q: Tensor, keys: Tensor, values: Tensor, k: Tensor) -> Tensor:
        keys, values = torch.cat([keys, k], 2), values.repeat_interleave(2, 1)[:, :2]
        values = torch.cat([values, k], 2)
        return F.scaled_dot_product_attention(q, keys, values)


@pytest.mark.parametrize(("queries", "placed"), [(1, {"q"}), (3, {"q", "keys", "values", "k"})])
def test_caches_are_free(queries: int, placed: set[str]) -> None:
    """Of one query: several at once are a prompt, whose keys are inputs like any other."""
    inputs = numbers(1, 2, queries, 64), numbers(1, 2, 30, 64), numbers(1, 1, 30, 64), numbers(1, 2, 1, 64)
    names, _ = noted(lowered(Cached(), *inputs, level="spyre.loop"))
    assert names == placed


def test_caches_in_pages_are_free() -> None:
    """A token's keys and values are placed; what it is stored in lies as the next call takes it."""
    text = """
    func.func @main(%k: tensor<1x1x2x16xf16> {aten.name = "k", aten.kind = "input"},
                    %v: tensor<1x1x2x16xf16> {aten.name = "v", aten.kind = "input"},
                    %ks: tensor<4x64x2x16xf16> {aten.name = "ks", aten.kind = "input"},
                    %vs: tensor<4x64x2x16xf16> {aten.name = "vs", aten.kind = "input"},
                    %at: tensor<1x1xi64> {aten.name = "at", aten.kind = "input"})
        -> (tensor<4x64x2x16xf16>, tensor<4x64x2x16xf16>, tensor<1x1x2x16xf16>) {
      %0, %1 = aten.call "spyre::paged_attn_store"(%k, %v, %ks, %vs, %at) :
          (tensor<1x1x2x16xf16>, tensor<1x1x2x16xf16>, tensor<4x64x2x16xf16>, tensor<4x64x2x16xf16>, tensor<1x1xi64>)
          -> (tensor<4x64x2x16xf16>, tensor<4x64x2x16xf16>)
      func.return %0, %1, %k : tensor<4x64x2x16xf16>, tensor<4x64x2x16xf16>, tensor<1x1x2x16xf16>
    }"""
    context = make_context()
    module = Parser(context, text).parse_module()
    PlaceInputsPass().apply(context, module)
    assert noted(module) == ({"k", "v"}, {2})


def test_a_weight_that_every_call_hands_over_is_free() -> None:
    """As graphs of torch.compile take parameters: they stay on the card, laid out as products read them."""
    weight = nn.Parameter(numbers(40, 70), requires_grad=False)
    model = FunctionModel(lambda x, w: F.linear(x, w))
    module = lowered(model, numbers(5, 70), weight)
    assert noted(module) == ({"args_0"}, {0})
    assert "restickify" not in kernels(module)
    assert "restickify" in kernels(lowered(model, numbers(5, 70), weight.detach()))


def test_what_is_beyond_reach_is_free() -> None:
    least = SPYRE.span_bytes // 128  # rows of one stick

    def placed(rows: int) -> set[str]:
        x = torch.empty(rows, 64, dtype=torch.float16, device="meta")
        return noted(lowered(FunctionModel(torch.neg), x, level="spyre.loop"))[0]

    assert placed(least) == {"args_0"}
    assert placed(least + 1) == set()


def test_an_empty_tensor_has_no_layout() -> None:
    module = lowered(FunctionModel(lambda x: torch.cat([x, x])), torch.zeros(0, 5), level="spyre.loop")
    assert noted(module) == (set(), set())


TRANSPOSED = {
    # 64 columns are whole sticks: one kernel lays them out. Others are copied first, and what is too long behind.
    (128, 64): ["restickify", "add"],
    (70, 64): ["identity", "restickify", "add"],
}


@pytest.mark.parametrize("shape", TRANSPOSED, ids=str)
def test_what_is_read_otherwise_is_laid_out_by_a_kernel(shape: tuple[int, int]) -> None:
    model, inputs = FunctionModel(lambda x, y: x.t() + y), (numbers(*shape), numbers(*reversed(shape)))
    module = lowered(model, *inputs)
    assert kernels(module) == TRANSPOSED[shape]
    assert kernels(lowered(model, *inputs, inputs="free")) == ["add"]
    for op in module.walk():
        if isinstance(op, ToDeviceOp | FromDeviceOp):
            tensor = device_tensor(op.result if isinstance(op, ToDeviceOp) else op.source)
            assert tensor.is_default
    assert spyre_mlir.compile(model, inputs, inputs="default").verify(*inputs)


def test_a_table_is_copied_with_its_rows_outermost() -> None:
    table, rows = numbers(40, 130), torch.tensor([3, 39, 0])
    model = FunctionModel(lambda t, i: torch.index_select(t, 0, i))
    assert kernels(lowered(model, table, rows)) == ["identity", "gather"]
    assert spyre_mlir.compile(model, (table, rows), inputs="default").verify(table, rows)


def test_a_table_of_one_stick_lies_like_that_already() -> None:
    table, rows = numbers(40, 30), torch.tensor([3, 39, 0])
    assert kernels(lowered(FunctionModel(lambda t, i: torch.index_select(t, 0, i)), table, rows)) == ["gather"]


def test_an_input_in_a_form_that_nothing_reads_is_not_sent() -> None:
    module = lowered(FunctionModel(lambda x: x.exp()), numbers(5, 70), keep_float32=True)
    assert sum(isinstance(op, ToDeviceOp) for op in module.walk()) == 1


class Layers(nn.Module):
    """Layers that are one function, and read an input of the program beside what the layer before has made."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(numbers(70, 70) / 8) for _ in range(12))

    def forward(self, x: Tensor, turned: Tensor) -> Tensor:
        for weight in self.weights:
            y = F.softmax(torch.tanh(x @ weight) * torch.sigmoid(x) + turned.t(), -1)
            x = F.layer_norm(y + x, (70,))
        return x


def test_layers_read_inputs_as_they_are_placed() -> None:
    """What every layer lays out again is laid out by the one function of all of them."""
    inputs = numbers(66, 70), numbers(70, 66)
    compiled = spyre_mlir.compile(Layers(), inputs, inputs="default", cache=False)
    assert "func.call" in compiled.mlir("spyre.loop")
    assert compiled.report().layouts == ()
    assert compiled.verify(*inputs)


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(InputError, match="inputs must be one of default, free, got 'both'"):
        CompileOptions(inputs="both")  # pyright: ignore[reportArgumentType]
