"""Tensors beyond a core's reach: layouts change until every step can be divided, and nothing is computed elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as PyTorch's own pages call it
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f64

import spyre_mlir
from spyre_mlir.backend.check import check_path
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, IterDim
from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.target import set_target
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.formats import DL16, FORMATS
from spyre_mlir.hw.spec import SPYRE, spec_with
from spyre_mlir.hw.sticks import LinearExpr, StickLayout
from spyre_mlir.ops.native import contractions
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import Lowered, lower
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.settling import reachable_layouts
from spyre_mlir.transforms.loop_to_kernel.settling.reachable_layouts import may_come_within_reach
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

REACH = 268_431_360  # 256 MiB less 4 KiB, as torch-spyre's documentation prints it


class Tied(nn.Module):
    """A table of embeddings that is the weight of the last product too."""

    def __init__(self, rows: int, width: int, device: str | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(rows, width, device=device)
        self.head = nn.Linear(width, rows, bias=False, device=device)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.embedding(tokens))


class Times(nn.Module):
    """``x @ w.t()``."""

    def __init__(self, rows: int, width: int, device: str | None = None) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.empty(rows, width, device=device))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w.t()


def lowered(model: nn.Module, *inputs: Tensor) -> Lowered:
    return lower(import_program(model, inputs).module, make_context(), until="spyre.kernel")


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp)]


def stick_of(tensor: DeviceTensor, element: list[int]) -> int:
    """The number of the stick that holds an element: row-major over the order of the layout."""
    layout, lanes = tensor.layout, 1024 // FORMATS[tensor.format].bits
    place = 0
    for dim in layout.order:
        if dim < 0:
            place = place * layout.unit_extent
        elif dim == layout.stick:
            place = place * (layout.extents[dim] // lanes) + element[dim] // lanes
        else:
            place = place * layout.extents[dim] + element[dim]
    return place


def touched_bytes(op: KernelOp, number: int) -> int:
    """Bytes from the first to the last stick of an operand that core 0 touches, by the corners of its slice."""
    corners = product(*((0, -(-d.extent // d.split) - 1) for d in op.space.data))
    names, sticks = [d.name for d in op.space.data], list[int]()
    for corner in corners:
        at = dict(zip(names, corner, strict=True))
        index = op.maps.data[number].data[: len(op.tensors[number].shape)]
        sticks.append(stick_of(op.tensors[number], [e.const + sum(c * at[n] for n, c in e.terms) for e in index]))
    return (max(sticks) - min(sticks) + 1) * 128


def check_reach(module: ModuleOp, reach: int = REACH) -> None:
    for op in kernels(module):
        for number in range(len(op.tensors)):
            if not isinstance(op, GatherOp):
                assert touched_bytes(op, number) <= reach, f"{op}"


VOCABULARIES = {
    "Granite": (4096, 49_155),
    "Qwen": (2048, 151_936),
    "Qwen, wide": (4096, 151_936),
    "Gemma": (2816, 262_144),
    "rows": (5120, 131_072),
}


@pytest.mark.parametrize(
    ("rows", "bias", "dtype"), [(1, False, torch.float16), (4, True, torch.float32), (512, True, torch.float16)]
)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_vocabularies_of_real_models(name: str, rows: int, bias: bool, dtype: torch.dtype) -> None:
    width, words = VOCABULARIES[name]
    head = nn.Linear(width, words, bias=bias, device="meta", dtype=dtype)
    made = lowered(head, meta(rows, width, dtype=dtype))
    assert made.host_steps == ()
    check_reach(made.modules["spyre.kernel"])
    products = [op for op in kernels(made.modules["spyre.kernel"]) if op.is_product]
    # A result as it is placed has no room behind it: columns that the cores cannot share are a second product.
    most = max(products, key=lambda op: op.tensors[1].layout.sticks(64))
    used = 1
    for dim in most.space.data:
        used *= dim.split
    assert used == SPYRE.cores_per_card
    assert len(products) <= 2
    (weight,) = {op.inputs[1] for op in products}
    assert device_tensor(weight).layout.sticks(64) * 64 <= 1.01 * (words + 63) * width


class Experts(nn.Module):
    """Rows times each matrix of a weight, of which every row takes a sum."""

    def __init__(self, matrices: int, width: int, made: int, device: str | None = None) -> None:
        super().__init__()
        self.w = nn.Parameter(random(matrices, made, width) if device is None else meta(matrices, made, width))

    def forward(self, x: Tensor, chosen: Tensor) -> Tensor:
        return torch.where(chosen[..., None], x @ self.w.mT, 0).sum(0)


def test_matrices_of_a_large_weight_lie_one_behind_another() -> None:
    """All cores share each product along rows and columns, none along the sum: Mixtral's experts, 1,024 rows."""
    model = Experts(8, 4096, 28_672, "meta").half()
    made = lowered(model, meta(1024, 4096, dtype=torch.float16), meta(8, 1024, dtype=torch.bool))
    assert made.host_steps == ()
    check_reach(made.modules["spyre.kernel"])
    (matmul,) = [op for op in kernels(made.modules["spyre.kernel"]) if op.is_product]
    assert matmul.tensors[1].layout.order == (0, 2, 1)
    splits = {dim.name: dim.split for dim in matmul.space.data}
    assert splits.pop("k") == 1
    assert prod(splits.values()) == SPYRE.cores_per_card


def softmax_chain(x: Tensor) -> Tensor:
    return F.softmax(torch.exp(F.softmax(x, 0)), 1)


WHOLE_MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]] = {
    "x @ w.t()": (lambda: Times(49_155, 4096, "meta"), ((4, 4096),)),
    "inputs": (lambda: FunctionModel(lambda x, w: x @ w), ((4, 4096), (4096, 49_155))),
    "computed": (lambda: FunctionModel(lambda x, w: x @ (w * 2)), ((4, 4096), (4096, 49_155))),
    "computed rows": (lambda: FunctionModel(lambda x, w: (x * 2) @ (w * 2)), ((4, 49_155), (49_155, 4096))),
    "long rows": (lambda: nn.Linear(5120, 1024, bias=False, device="meta"), ((131_072, 5120),)),
    "softmax": (lambda: FunctionModel(lambda x: F.softmax(x, -1)), ((512, 151_936),)),
    "softmax of columns": (lambda: FunctionModel(lambda x: F.softmax(x, 0)), ((4096, 49_155),)),
    "softmax of both": (lambda: FunctionModel(softmax_chain), ((4099, 49_155),)),
    "add": (lambda: FunctionModel(torch.add), ((131_072, 5120), (131_072, 5120))),
    "add of primes": (lambda: FunctionModel(torch.add), ((4099, 49_155), (49_155,))),
    "sum": (lambda: FunctionModel(lambda x: (x * 2).sum()), ((49_155, 4099),)),
    "sum of rows": (lambda: FunctionModel(lambda x: x.sum(0)), ((131_072, 5120),)),
    "layer norm": (lambda: nn.LayerNorm(5120, device="meta"), ((131_072, 5120),)),
    "transposed": (lambda: FunctionModel(lambda x: (x * 2).t() + 1), ((49_155, 4099),)),
    "batches": (lambda: FunctionModel(torch.matmul), ((31, 4099, 4099), (31, 4099, 128))),
    "scores": (lambda: FunctionModel(lambda q, k: q @ k.mT), ((31, 4099, 128), (31, 4099, 128))),
    "cat": (lambda: FunctionModel(lambda x, y: torch.cat([x * 2, y * 2], 1) + 1), ((4099, 40_009), (4099, 9146))),
}


@pytest.mark.parametrize("name", WHOLE_MODELS)
def test_large_tensors_need_no_host(name: str) -> None:
    model, shapes = WHOLE_MODELS[name]
    made = lowered(model(), *(meta(*shape) for shape in shapes))
    assert made.host_steps == ()
    check_reach(made.modules["spyre.kernel"])


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


WORDS = 37 * 64 - 5  # 37 sticks: more than there are cores, and prime


def negative(x: Tensor, w: Tensor) -> Tensor:
    """The largest of negative numbers: zeros behind them would be larger."""
    return (x.abs() @ -(w.abs() + 1).t()).amax(-1)


def logits(x: Tensor, w: Tensor) -> Tensor:
    return F.softmax(x @ w.t(), -1)


def linear(rows: int, bias: bool, dtype: torch.dtype) -> tuple[nn.Module, tuple[Tensor, ...]]:
    torch.manual_seed(rows)
    return nn.Linear(200, WORDS, bias=bias, dtype=dtype), (random(rows, 200, dtype=dtype),)


def function(called: Callable[..., Tensor], *args: Tensor) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return FunctionModel(called), args


def tied() -> tuple[nn.Module, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    return Tied(WORDS, 200), (torch.tensor([1, 5, WORDS - 1, 3]),)


RUN: dict[str, Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]] = {
    "linear 4": lambda: linear(4, True, torch.float32),
    "tied": tied,
    "negative": lambda: function(negative, random(3, 200), random(WORDS, 200)),
    "softmax": lambda: function(logits, random(37, 200), random(WORDS, 200)),
    "computed": lambda: function(lambda x, w: x @ (w * 2), random(3, 200), random(200, WORDS)),
    "columns": lambda: function(lambda x: F.softmax(x, 0), random(131, WORDS)),
    "batches": lambda: function(lambda x, y: (x * 2) @ (y * 2), random(7, 131, 131), random(7, 131, 67)),
    "experts": lambda: (Experts(4, 200, WORDS), (random(64, 200), random(4, 64) > 0)),
}


@pytest.mark.parametrize("name", RUN)
def test_numbers_with_a_shorter_reach(name: str, tmp_path: Path) -> None:
    """The same changes where a core reaches less, so that the machine can run them at every level."""
    reach = 120_000 if name == "batches" else 700_000
    context = make_context(replace(SPYRE, span_bytes=reach))
    model, args = RUN[name]()
    program = import_program(model, args)
    levels = lower(program.module, context)
    assert [step.op for step in levels.host_steps] == ["aten.embedding"] * (name == "tied")
    check_reach(levels.modules["spyre.kernel"], reach)
    assert any(t.sticks * 128 > reach for op in kernels(levels.modules["spyre.kernel"]) for t in op.tensors)
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(*args)), str(outcome)
    assert made.accuracy(*args).worst < 0.01
    made.save(tmp_path / "bundle")
    assert [finding for finding in check_path(tmp_path / "bundle", context) if finding.severity == "error"] == []


def test_what_is_in_reach_stays_as_it_is() -> None:
    """Layouts and loops change only where they have to: the files of everything else are the same."""

    def run(reach: int) -> Any:
        program = import_program(nn.Linear(200, WORDS), (random(4, 200),))
        made = lower(program.module, make_context(replace(SPYRE, span_bytes=reach))).modules["superdsc"]
        set_target(made, SPYRE)
        return str(made)

    assert run(REACH) == run(2**40)


def rows_of(table: Tensor, tokens: Tensor) -> Tensor:
    return torch.exp(torch.index_select(table, 0, tokens))


@pytest.mark.parametrize("keep_float32", [False, True])
def test_rows_of_a_table_beyond_reach_are_chosen_by_the_host(keep_float32: bool) -> None:
    """All cores gather from one start, so the table is in reach as a whole or not at all."""
    table, tokens = random(4000, 70), torch.tensor([0, 5, 3999, 2])
    program = import_program(FunctionModel(rows_of), (table, tokens))
    # 4,000 rows of two sticks of DL16, and of four of float32, which only the layout of a later level tells.
    for reach, steps in ((4000 * 2 * 128, int(keep_float32)), (4000 * 2 * 128 - 1, 1), (4000 * 4 * 128, 0)):
        options = CompileOptions(keep_float32=keep_float32)
        levels = lower(program.module, make_context(replace(SPYRE, span_bytes=reach)), options=options.passes())
        assert [step.op for step in levels.host_steps] == ["aten.index_select"] * steps
        assert all("any row" in step.reason for step in levels.host_steps)
        made = CompiledModel(program, levels, options)
        assert (outcome := made.verify(table, tokens)), str(outcome)
        assert made.timeline().is_lower_bound == bool(steps)


def test_a_table_that_is_the_last_weight_too() -> None:
    """Granite: the host chooses the rows. Products of 768 sticks of columns, and of 3 columns, are on the device."""
    made = lowered(Tied(49_155, 4096, "meta"), torch.zeros(4, dtype=torch.int64, device="meta"))
    assert [step.op for step in made.host_steps] == ["aten.embedding"]
    check_reach(made.modules["spyre.kernel"])
    assert [op.function_name for op in kernels(made.modules["spyre.kernel"])] == ["batchmatmul", "batchmatmul"]


def test_longer_sums_add_zeros() -> None:
    """Both operands are computed, by functions that make ones of zeros."""
    x, w = random(3, 37 * 64), random(37 * 64, 70)

    def function(x: Tensor, w: Tensor) -> Tensor:
        return torch.exp(x * 0.1) @ torch.exp(w * 0.1)

    program = import_program(FunctionModel(function), (x, w))
    levels = lower(program.module, make_context(replace(SPYRE, span_bytes=100_000)))
    assert levels.host_steps == ()
    (matmul,) = [op for op in kernels(levels.modules["spyre.kernel"]) if op.is_product]
    assert matmul.space.extents["k"] > 37 * 64
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(x, w)), str(outcome)


def step(function: str, loops: dict[str, int], *operands: str) -> PlannedKernel:
    """A step whose operands have one dimension per letter, the last of them in the lanes."""
    uses = list[Any]()
    for letters in operands:
        shape = tuple(loops[letter] for letter in letters)
        layout = StickLayout.published(shape, len(shape) - 1, DL16.elements_per_stick())
        buffer = PlannedBuffer(shape, DL16.name, layout, constant=FloatAttr(0.0, f64))
        uses.append((buffer, tuple(LinearExpr.of(letter) for letter in letters)))
    space = tuple(IterDim(name, extent) for name, extent in loops.items())
    return PlannedKernel(function, space, uses[:-1], uses[-1], None)


@pytest.mark.parametrize(
    ("made", "cores", "sticks"),
    [
        (step("exp", {"i": 65, "j": 64}, "ij", "ij"), 32, 3),  # rows of a stick: 65 over 32 cores
        (
            step("exp", {"i": 65, "j": 128}, "ij", "ij"),
            32,
            5,
        ),  # two sticks a row: 65 rows over 16 cores, a column for each
        (step("sum", {"i": 8, "j": 640}, "ij", "i"), 32, 10),  # a sum stays on its core
        (step("exp", {"i": 8, "j": 640}, "ij", "ij"), 1, 80),
        # The sum over 32 cores leaves each 32 rows of the right operand.
        (step(contractions.matmul.opfunc, {"i": 2, "j": 64, "k": 1024}, "ik", "kj", "ij"), 32, 32),
    ],
)
def test_the_least_of_the_largest_operand(made: PlannedKernel, cores: int, sticks: int) -> None:
    def within(reach: int) -> bool:
        return may_come_within_reach(made, spec_with({"cores_per_card": cores, "span_bytes": reach * 128}))

    assert within(sticks)
    assert not within(sticks - 1)


def test_a_dimension_that_a_loop_shares_bounds_nothing() -> None:
    """A diagonal of 64 rows touches as few sticks as its lanes tell, and nothing is claimed of it."""
    made = step("exp", {"i": 64}, "ii", "i")
    assert may_come_within_reach(made, spec_with({"span_bytes": 128}))


def test_layouts_are_not_tried_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, judged = list[PlannedKernel](), reachable_layouts._cores

    def counted(made: PlannedKernel, spec: Any) -> int | None:
        tried.append(made)
        assert len(tried) < 1000  # without the bound 60,000
        return judged(made, spec)

    monkeypatch.setattr(reachable_layouts, "_cores", counted)

    def attend(q: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, q, q)

    spec = spec_with({"span_bytes": 1024})
    spyre_mlir.compile(FunctionModel(attend), (torch.zeros(1, 2, 65, 64),), spec=spec, host_fallback="allow")
    assert tried
