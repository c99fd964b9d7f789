"""Kernels that are divided together and put into loops: bytes counted by hand, values against numpy and torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp

import spyre_mlir
from spyre_mlir.backend.directory import split_module
from spyre_mlir.cli.compile import run
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.static_loop import loop_bounds, trips_of
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.errors import InputError
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower, passes_to
from spyre_mlir.pipeline.order import pass_factories
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.transforms import get_all_passes, plan
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.transforms.planned_loops import loop_search
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.test_place_lx import softmax

Array = NDArray[Any]
PLACED = ("plan", "materialize-plan", "divide-work", "place-lx", "assign-pool")
LAST = "convert-spyre-kernel-to-superdsc"


def through(text: str, *passes: str, lx_bytes: int = SPYRE.lx_usable_bytes, loops: str = "loop") -> ModuleOp:
    """A module after some passes, on a machine whose cores have `lx_bytes` for the program."""
    context = make_context(replace(SPYRE, lx_usable_bytes=lx_bytes))
    module = parse_module(text, context)
    for name in passes:
        options = {LAST: {"loops": loops}, "plan": {"shortest_us": 0}}.get(name, {})
        get_all_passes()[name]()(**options).apply(context, module)
        verify_module(module)
    return module


def traffic(module: ModuleOp) -> int:
    return sum(op.hbm_bytes() * trips_of(op) for op in module.walk() if isinstance(op, KernelOp))


def trips(module: ModuleOp) -> list[int]:
    return [loop_bounds(op).trips for op in module.walk() if isinstance(op, ForOp)]


def spaces(module: ModuleOp) -> list[str]:
    """Memories of the buffers of loops."""
    allocs = [op for op in module.walk() if isinstance(op, AllocOp) and isinstance(op.parent_op(), ForOp)]
    return [device_tensor(op.result).space for op in allocs]


def bundle_results(module: ModuleOp, inputs: list[Array], options: MachineOptions | None = None) -> Array:
    host, bundle, files = split_module(module)
    (got,) = run_program(DeviceProgram(host, bundle, lambda name: describe(files[name])), inputs, options)
    return got


def numpy_softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_softmax_of_many_rows_reads_once_and_writes_once() -> None:
    """65,536 rows of 2,048 bytes; a core holds one maximum or sum, a stick of 128 bytes, beside each row."""
    rows = 65_536
    before = through(softmax(rows, 1024), *PLACED[1:])
    # Five readings and three writings of the whole tensor; the statistics fit, 2,048 sticks a core.
    assert traffic(before) == 8 * rows * 2048
    after = through(softmax(rows, 1024), *PLACED)
    # Blocks of a half, 1,024 rows a core, would take 1,024 * 2,176 = 2,228,224 bytes of 1,589,376; quarters fit.
    assert trips(after) == [4]
    assert set(spaces(after)) == {"lx"}
    assert traffic(after) == 2 * rows * 2048


# With 4,000 bytes a core, one row of 2,048 bytes fits and two do not: 32 rows a trip.
@pytest.mark.parametrize("loops", ["loop", "unroll"])
def test_every_level_agrees(loops: str) -> None:
    x = np.random.default_rng(1).uniform(-4, 4, (128, 1024))
    placed = through(softmax(128, 1024), *PLACED, lx_bytes=4000)
    assert trips(placed) == [4]
    (got,) = run_function(placed, [x])
    np.testing.assert_allclose(got, numpy_softmax(x), rtol=1e-12)
    module = through(softmax(128, 1024), *PLACED, LAST, lx_bytes=4000, loops=loops)
    np.testing.assert_allclose(bundle_results(module, [x]), numpy_softmax(x), rtol=1e-6)
    # Six kernels a trip, the copy of the tile included.
    assert len(split_module(module)[2]) == (6 if loops == "loop" else 6 * 4)


def test_loops_and_their_trips_one_by_one_give_the_same_bits() -> None:
    x = np.random.default_rng(2).uniform(-4, 4, (128, 1024))
    options = MachineOptions(numerics="device")
    loop, unrolled, flat = (
        bundle_results(through(softmax(128, 1024), *passes, LAST, lx_bytes=4000, loops=loops), [x], options)
        for passes, loops in ((PLACED, "loop"), (PLACED, "unroll"), (PLACED[1:], "loop"))
    )
    np.testing.assert_array_equal(loop, unrolled)
    np.testing.assert_array_equal(loop, flat)


def chain(shape: tuple[int, int, int]) -> str:
    """exp(x) * x + b, the bias along the last dimension, with two intermediates."""
    t = f"!spyre.tensor<{list(shape)} x SEN169_FP16, order [1, 2, 0], stick 2, hbm>"
    b = f"!spyre.tensor<[{shape[2]}] x SEN169_FP16, order [0], stick 0, hbm>"
    host, bias, loops = (
        f"tensor<{'x'.join(map(str, shape))}xf32>",
        f"tensor<{shape[2]}xf32>",
        f"[b = {shape[0]}, m = {shape[1]}, n = {shape[2]}]",
    )
    return f"""func.func @main(%x: {host}, %c: {bias}) -> {host} {{
    %0 = spyre.kernel.to_device %x : {host} to {t}
    %1 = spyre.kernel.alloc : {t}
    spyre.kernel.compute "exp" {loops} ins(%0[b, m, n] : {t}) outs(%1[b, m, n] : {t})
    %2 = spyre.kernel.alloc : {t}
    spyre.kernel.compute "mul" {loops} ins(%1[b, m, n] : {t}, %0[b, m, n] : {t}) outs(%2[b, m, n] : {t})
    %3 = spyre.kernel.to_device %c : {bias} to {b}
    %4 = spyre.kernel.alloc : {t}
    spyre.kernel.compute "add" {loops} ins(%2[b, m, n] : {t}, %3[n] : {b}) outs(%4[b, m, n] : {t})
    %5 = spyre.kernel.from_device %4 : {t} to {host}
    func.return %5 : {host}
    }}"""


def test_a_loop_may_go_over_columns() -> None:
    """256 rows of 256 bytes are 2,048 bytes a core, of which half fit; a trip reads one stick of the bias."""
    shape = (4, 64, 128)
    module = through(chain(shape), *PLACED, lx_bytes=1024)
    assert trips(module) == [2]
    (bias,) = [op for op in module.walk() if isinstance(op, KernelOp) and op.function_name == "add"]
    assert trips_of(bias) == 2
    assert bias.tensors[1].shape == (64,)
    x, c = np.random.default_rng(3).uniform(-1, 1, shape), np.arange(128.0)
    (got,) = run_function(module, [x, c])
    np.testing.assert_allclose(got, np.exp(x) * x + c, rtol=1e-12)
    module = through(chain(shape), *PLACED, LAST, lx_bytes=1024)
    np.testing.assert_allclose(bundle_results(module, [x, c]), np.exp(x) * x + c, rtol=1e-6)


def test_a_chain_that_fits_stays_in_no_loop() -> None:
    module = through(softmax(512, 1024), *PLACED)
    assert trips(module) == []
    assert traffic(module) == 2 * 512 * 2048


def test_rows_that_give_no_equal_blocks_stay_in_one() -> None:
    """65,537 is a prime: blocks would be single rows, and a loop makes 65,535 trips."""
    assert trips(through(softmax(65_537, 1024), *PLACED)) == []


def test_a_time_alone_is_that_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, context = [softmax(65_536, 1024), softmax(512, 1024)], make_context()
    expected = [PlanPass().recorded(context, parse_module(text, context)).us for text in texts]
    monkeypatch.setattr(plan, "without_room", None)  # no place is looked for
    assert [PlanPass().predicted_us(context, parse_module(text, context)) for text in texts] == expected


def splits(module: ModuleOp) -> list[list[int]]:
    """Slices of the loops of every kernel."""
    return [[d.split for d in op.space.data] for op in module.walk() if isinstance(op, KernelOp)]


def planned(text: str, **options: Any) -> ModuleOp:
    context = make_context()
    module = parse_module(text, context)
    PlanPass(**options).recorded(context, module)
    verify_module(module)
    return module


def test_loops_only_where_they_are_asked_for_and_long_enough() -> None:
    text = softmax(65_536, 1024)
    assert len(trips(planned(text))) == 1
    assert trips(planned(text, loops=False)) == []
    assert trips(planned(text, shortest_us=1_000_000)) == []


def test_numbers_of_the_cost_model_are_an_option() -> None:
    """What a loop saves here is some milliseconds: iterations that take a second are worth none."""
    text = softmax(65_536, 1024)
    assert len(trips(planned(text, numbers=("trip_fixed_us=1",)))) == 1
    assert trips(planned(text, numbers=("trip_fixed_us=1000000",))) == []
    # A kernel's own overhead counts in every trip.
    assert trips(planned(text, numbers=("kernel_fixed_us=1000000",))) == []
    with pytest.raises(InputError, match="no number 'trip_us'"):
        planned(text, numbers=("trip_us=1",))


def test_kernels_that_are_divided_already_stay() -> None:
    """All of them over 2 cores: a plan would use 32, and a loop."""
    text = softmax(65_536, 1024).replace("m = 65536,", "m = 65536 over 2,")
    module = planned(text)
    assert trips(module) == []
    assert splits(module) == [[2, 1]] * 5


@pytest.mark.parametrize(
    ("inputs", "sticks"),
    [
        # The rows are in the lanes: 128 sticks of 64, one padding row among them, for each of 1,000 columns.
        ("free", 2 * 1000 * 128),
        # Rows of 16 sticks, of which the last 31 are read twice.
        ("default", (2 * 8191 + 31) * 16),
    ],
)
def test_softmax_has_one_division_for_all_kernels(inputs: str, sticks: int) -> None:
    """8,191 rows are a prime number, so no core count divides them as they are: alone, kernels disagree."""
    program = import_program(Softmax(), (torch.empty(8191, 1000, dtype=torch.float16),))
    lowered = lower(program.module, make_context(), options={"place-inputs": {"inputs": inputs}})
    module = lowered.modules["spyre.kernel"]
    tensors = [op for op in module.walk() if isinstance(op, AllocOp)]
    # All intermediates are in the scratchpads; the result alone is in device memory.
    assert [device_tensor(op.result).space for op in tensors].count("hbm") == 1
    assert traffic(module) == sticks * 128


class Bottleneck(nn.Module):
    """Convolutions whose first product would gain by loops, on slices that nothing behind it can take."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (256, 64, 1), (64, 64, 3), (64, 256, 1)
        self.layers = nn.ModuleList(
            nn.Conv2d(c, o, k, padding=k // 2, bias=False, dtype=torch.half) for c, o, k in sizes
        )

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for layer in self.layers:
            y = torch.relu(layer(y))
        return y + x


def test_no_loops_cost_the_kernels_around_them_more_than_they_gain() -> None:
    with torch.device("meta"):
        model, x = Bottleneck(), torch.empty(1, 256, 56, 56, dtype=torch.half)
    module, placed = import_program(model, (x,)).module, {"place-inputs": {"inputs": "default"}}
    alone = lower(module, make_context(), options={**placed, "plan": {"loops": False}}).modules["spyre.kernel"]
    chosen = lower(module, make_context(), options=placed).modules["spyre.kernel"]
    assert trips(chosen) == []
    assert str(chosen) == str(alone)


class Attention(nn.Module):
    """Attention without a mask: two products and a softmax, whose scores exceed what a core has."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


@pytest.mark.parametrize("loops", ["loop", "unroll"])
def test_attention_head_by_head(loops: Any) -> None:
    """4 heads of 64 by 64 scores, 8,192 bytes each, on 32 cores of 768 bytes: three heads' worth.

    The bundle on disk is held against the schema and the oracles by the fixture that sees every bundle.
    """
    generator = torch.Generator().manual_seed(0)
    inputs = tuple(torch.rand(4, 64, 64, generator=generator) for _ in range(3))
    program, options = import_program(Attention(), inputs), CompileOptions(loops=loops)
    context = make_context(replace(SPYRE, lx_usable_bytes=768))
    lowered = lower(program.module, context, options={**options.passes(), "plan": {"shortest_us": 0}})
    plain = lower(program.module, context, until="spyre.kernel")
    # Scores of two heads are 512 bytes a core, those of four are 1,024.
    assert trips(lowered.modules["spyre.kernel"]) == [2]
    assert lowered.records[2].traffic_bytes < plain.records[2].traffic_bytes
    assert lowered.records[2].traffic_bytes == traffic(lowered.modules["spyre.kernel"])
    compiled = CompiledModel(program, lowered, options)
    assert compiled.verify(*inputs)
    files = list(compiled.bundle_directory().glob("sdsc_*.json"))
    assert ("scf.for" in (compiled.bundle_directory() / "bundle.mlir").read_text()) == (loops == "loop")
    assert (len(files) > lowered.records[2].kernels) == (loops == "unroll")


@pytest.mark.parametrize("loops", ["loop", "unroll"])
@pytest.mark.parametrize("stride", [1, 2])
def test_taps_of_rows_are_gathered_in_the_loop_that_multiplies_them(loops: Any, stride: int) -> None:
    """Rows of 9 taps of 64 channels are 18,432 bytes; a core that has two of them at once has no room."""
    model, generator = nn.Conv2d(64, 64, 3, stride=stride, padding=1), torch.Generator().manual_seed(0)
    model.weight.data = torch.randn(64, 64, 3, 3, generator=generator) / 24
    x = torch.randn(1, 64, 64 * stride, 16 * stride, generator=generator)
    program, options = import_program(model, (x,)), CompileOptions(loops=loops)
    context = make_context(replace(SPYRE, lx_usable_bytes=40_000))
    lowered = lower(program.module, context, options={**options.passes(), "plan": {"shortest_us": 0}})
    (loop,) = (op for op in lowered.modules["spyre.kernel"].walk() if isinstance(op, ForOp))
    tiles = [(t.step.value.data, device_tensor(t.result).shape[1]) for t in loop.walk() if isinstance(t, TileOp)]
    assert (32 * stride, 31 * stride + 3) in tiles
    assert CompiledModel(program, lowered, options).verify(x)


class Softmax(nn.Module):
    """Softmax of rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


def test_both_entry_points_tile_unless_told_not_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.empty(65_536, 1024, dtype=torch.float16)
    tiled = spyre_mlir.compile(Softmax(), (x,), loops="unroll", addresses="concrete")
    assert isinstance(tiled, CompiledModel)
    assert "scf.for" in tiled.mlir("spyre.kernel")
    assert "scf.for" not in tiled.mlir("superdsc")
    torch.export.save(torch.export.export(Softmax(), (x,)), tmp_path / "m.pt2")
    assert run([str(tmp_path / "m.pt2"), "--emit", "superdsc"]) == 0
    assert "scf.for" in capsys.readouterr().out
    assert run([str(tmp_path / "m.pt2"), "--no-tile", "--emit", "superdsc"]) == 0
    assert "scf.for" not in capsys.readouterr().out


def test_scores_of_shared_heads_stay_in_the_scratchpads() -> None:
    """Eight heads of keys for 32 queries: cores divide both loops over heads, and softmax the one that they make."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    generator = torch.Generator().manual_seed(5)
    shapes = (1, 32, 1, 128), *[(1, 8, 2048, 128)] * 2
    args = tuple(torch.randn(*shape, generator=generator) for shape in shapes)
    program = import_program(FunctionModel(attend), args)
    levels = lower(program.module, make_context())
    kernels = [op for op in levels.modules["spyre.kernel"].walk() if isinstance(op, KernelOp)]
    first, second = (op for op in kernels if op.is_product)
    for op in (first, second):
        assert {d.name: d.split for d in op.space.data if d.name.startswith("b")} == {"b1_1": 4, "b1_0": 8}
    assert (first.tensors[-1].space, second.tensors[0].space) == ("lx", "lx")
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(*args)), str(outcome)
    assert made.accuracy(*args).worst < 0.01


@pytest.mark.parametrize("length", [40_009, 70_001])
def test_kernels_that_two_cores_share_at_most_are_not_divided_anew(length: int) -> None:
    """626 and 1,094 sticks are twice a prime number."""
    x, model = torch.linspace(-1, 1, length), FunctionModel(lambda x: (x.softmax(0), x.var(0)))
    compiled = spyre_mlir.compile(model, (x,), numerics="exact", cache=False)
    torch.testing.assert_close(compiled(x), model(x))


def test_loops_lose_what_a_kernel_behind_them_would_find_in_the_scratchpads() -> None:
    """Behind a loop, relu reads from device memory what it is handed without one, so it takes as long as by itself."""
    x, y, z = (torch.zeros(8, *shape, dtype=torch.float16) for shape in ((512, 128), (128, 512), (512, 512)))
    tried = recorded(lambda a, b, c: ((a @ b).exp() @ c).relu(), x, y, z).loops
    usual = {len(loops.ops): loops.usual_us for loops in tried if loops.ops[0] is tried[0].ops[0]}
    (alone_us,) = recorded(lambda a: a.relu(), z).us
    assert usual[4] - usual[3] == pytest.approx(alone_us, rel=1e-3)


def recorded(function: Callable[..., Any], *inputs: Tensor) -> PlanRecord:
    """What the planner looks at."""
    context, module = make_context(), import_program(FunctionModel(function), inputs).module
    for name in passes_to("spyre.kernel").split(","):
        if name == PlanPass.name:
            return PlanPass().recorded(context, module)
        pass_factories()[name]()().apply(context, module)
    raise AssertionError("no pass plans")


def test_no_groups_are_grown_of_kernels_that_fit_and_take_little(monkeypatch: pytest.MonkeyPatch) -> None:
    grown, grow = list[KernelOp](), loop_search.grow

    def watched(op: KernelOp, *given: Any) -> list[RowGroup]:
        grown.append(op)
        return grow(op, *given)

    monkeypatch.setattr(loop_search, "grow", watched)
    through(softmax(512, 1024), *PLACED)
    assert not grown
    through(softmax(512, 1024), *PLACED, lx_bytes=1024)  # what one kernel hands to the next has no room
    assert grown
