"""Products whose columns are read apart: how many there are, and that the results stay right."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import ComputeOp, ToDeviceOp
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops, passed

WIDTH, HEADS, ROWS = 128, 2, 64


class Attention(nn.Module):
    """Queries, keys and values of one linear layer, by slices or by a view of three."""

    def __init__(self, sliced: bool, bias: bool) -> None:
        super().__init__()
        self.sliced, self.qkv = sliced, nn.Linear(WIDTH, 3 * WIDTH, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        made = self.qkv(x)
        if self.sliced:
            parts = [part.view(1, -1, HEADS, WIDTH // HEADS) for part in made.split(WIDTH, -1)]
        else:
            parts = list(made.view(1, -1, 3, HEADS, WIDTH // HEADS).unbind(2))
        q, k, v = (part.transpose(1, 2) for part in parts)
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Gated(nn.Module):
    """A gate and what it gates, of one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.up(x).chunk(2, -1)
        return functional.silu(gate) * up


MODELS = {
    "slices": (lambda: Attention(sliced=True, bias=False), 3),
    "slices and bias": (lambda: Attention(sliced=True, bias=True), 3),
    "view of three": (lambda: Attention(sliced=False, bias=True), 3),
    "gate": (Gated, 2),
}


def tokens(rows: int = ROWS) -> Tensor:
    return torch.randn(1, rows, WIDTH, generator=torch.Generator().manual_seed(7))


def built(model: nn.Module, x: Tensor) -> tuple[CompiledModel, list[ComputeOp]]:
    """A compiled model, and its products with the weight."""
    program = import_program(model, (x,))
    levels = lower(program.module, make_context())
    products = [op for op in ops(levels.modules["spyre.kernel"], ComputeOp) if op.is_product]
    made = CompiledModel(program, levels, CompileOptions())
    return made, [op for op in products if isinstance(op.inputs[1].owner, ToDeviceOp)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_results_are_those_of_one_product(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    make, parts = MODELS[name]
    model, x = make().to(dtype), tokens().to(dtype)
    compiled, products = built(model, x)
    assert len(products) == parts
    assert (outcome := compiled.verify(x)), str(outcome)
    assert compiled.accuracy(x).worst < 0.01
    compiled.save(tmp_path / "bundle")
    assert torch.equal(spyre_mlir.load(tmp_path / "bundle")(x), compiled(x))


def test_products_read_their_columns_of_one_weight() -> None:
    """The weight is sent once; the products start at columns 0, 128 and 256 of it."""
    _, products = built(Attention(sliced=True, bias=False), tokens())
    assert len({op.inputs[1] for op in products}) == 1
    starts = [expr.const for op in products for expr in op.maps.data[1].data]
    assert sorted(starts) == [0, 0, 0, 0, WIDTH, 2 * WIDTH]


def test_few_rows_stay_in_one_product() -> None:
    """With a row less than the least, reading the weight takes the time."""
    x = tokens(ROWS - 1)
    compiled, products = built(Attention(sliced=True, bias=True), x)
    assert len(products) == 1
    assert (outcome := compiled.verify(x)), str(outcome)


def test_a_long_chain_behind_a_product_is_split_as_a_whole() -> None:
    """More nests than Python lets functions call each other."""
    kind, steps = "tensor<64x128xf32>", 1500
    product = "{\n^bb0(%p : f32, %q : f32):\n%s = arith.mulf %p, %q : f32\nspyre.loop.yield %s : f32\n}"
    read = "%x[m, k] : tensor<64x8xf32>, %w[n, k] : tensor<128x8xf32>"
    loops = "[m = 64, n = 128, k = 8]"
    lines = [f'%0 = spyre.loop.nest {loops} ins({read}) -> [m, n] : {kind} reduce "arith.addf" {product}']
    for n in range(steps):
        body = "{\n^bb0(%p : f32):\n%s = arith.negf %p : f32\nspyre.loop.yield %s : f32\n}"
        lines.append(f"%{n + 1} = spyre.loop.nest [m = 64, n = 128] ins(%{n}[m, n] : {kind}) -> [m, n] : {kind} {body}")
    both = f"%{steps}[m, n] : {kind}, %{steps}[m, n + 64] : {kind}"
    lines.append(f"%r = spyre.loop.nest [m = 64, n = 64] ins({both}) -> [m, n] : tensor<64x64xf32> {product}")
    head = "func.func @main(%x: tensor<64x8xf32>, %w: tensor<128x8xf32>) -> tensor<64x64xf32> {\n"
    text = head + "\n".join(lines) + "\nfunc.return %r : tensor<64x64xf32>\n}"
    made = ops(passed(text, "split-products", verify=False), NestOp)
    assert len(made) == 2 * (1 + steps) + 1
    assert {dict(op.space.extents)["n"] for op in made} == {64}


def test_a_layer_takes_less_time() -> None:
    """Gate and result stay in the scratchpads: two products of half the width, against one."""
    layer = nn.Sequential(nn.Linear(1024, 16_384, bias=False, device="meta"), _Halves()).half()
    x = torch.empty(1, 512, 1024, dtype=torch.float16, device="meta")
    program, times = import_program(layer, (x,)), list[float]()
    for least in (64, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("spyre_mlir.transforms.cut_nests.split_products.LEAST_ROWS", least)
            lowered = lower(program.module, make_context())
            times.append(module_timeline(lowered.modules["superdsc"], "calibrated").total_us)
    assert times[0] < 0.9 * times[1]


class _Halves(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        gate, up = x.chunk(2, -1)
        return functional.silu(gate) * up
