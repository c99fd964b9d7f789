"""Kernels that are divided together and put into loops: bytes counted by hand, values against numpy and torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp

import spyre_mlir
from spyre_mlir.backend.directory import split_module
from spyre_mlir.cli.compile import run
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.static_loop import loop_bounds, trips_of
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.transforms.kernel_plans.row_groups import grow
from spyre_mlir.universe import make_context
from tests.unit.transforms.test_place_lx import softmax

Array = NDArray[Any]
PLACED = ("plan", "divide-work", "place-lx", "assign-pool")
LAST = "convert-spyre-kernel-to-superdsc"


def through(text: str, *passes: str, lx_bytes: int = SPYRE.lx_usable_bytes, loops: str = "loop") -> ModuleOp:
    """A module after some passes, on a machine whose cores have `lx_bytes` for the program."""
    context = make_context(replace(SPYRE, lx_usable_bytes=lx_bytes))
    module = parse_module(text, context)
    for name in passes:
        options: dict[str, Any] = {"loops": loops} if name == LAST else {"shortest_us": 0} if name == "plan" else {}
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


# With 4,096 bytes a core, one row of 2,048 + 128 bytes fits and two do not: 32 rows a trip.
@pytest.mark.parametrize("loops", ["loop", "unroll"])
def test_every_level_agrees(loops: str) -> None:
    x = np.random.default_rng(1).uniform(-4, 4, (128, 1024))
    placed = through(softmax(128, 1024), *PLACED, lx_bytes=4096)
    assert trips(placed) == [4]
    (got,) = run_function(placed, [x])
    np.testing.assert_allclose(got, numpy_softmax(x), rtol=1e-12)
    module = through(softmax(128, 1024), *PLACED, LAST, lx_bytes=4096, loops=loops)
    np.testing.assert_allclose(bundle_results(module, [x]), numpy_softmax(x), rtol=1e-6)
    # Six kernels a trip, the copy of the tile included.
    assert len(split_module(module)[2]) == (6 if loops == "loop" else 6 * 4)


def test_loops_and_their_trips_one_by_one_give_the_same_bits() -> None:
    x = np.random.default_rng(2).uniform(-4, 4, (128, 1024))
    options = MachineOptions(numerics="device")
    loop, unrolled, flat = (
        bundle_results(through(softmax(128, 1024), *passes, LAST, lx_bytes=4096, loops=loops), [x], options)
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


def test_what_has_no_rows_is_read_in_every_trip() -> None:
    """A batch of 64 rows of 256 bytes is 16,384 bytes, 512 a core; x and one result of it are alive together."""
    shape = (4, 64, 128)
    module = through(chain(shape), *PLACED, lx_bytes=1024)
    assert trips(module) == [4]
    assert traffic(module) == 2 * (4 * 64 * 256) + 4 * 256
    x, c = np.random.default_rng(3).uniform(-1, 1, shape), np.arange(128.0)
    (got,) = run_function(module, [x, c])
    np.testing.assert_allclose(got, np.exp(x) * x + c, rtol=1e-12)
    module = through(chain(shape), *PLACED, LAST, lx_bytes=1024)
    np.testing.assert_allclose(bundle_results(module, [x, c]), np.exp(x) * x + c, rtol=1e-6)


def test_a_chain_that_fits_stays_as_it_is() -> None:
    text = str(through(softmax(512, 1024), "divide-work", "place-lx"))
    assert str(through(softmax(512, 1024), "plan", "divide-work", "place-lx")) == text


def test_blocks_keep_all_cores_busy() -> None:
    """96 rows of one stick are 3 a core on 32 cores. Two of them fit, beside two results: 48 rows in 2 trips would do,
    but on 24 cores only."""
    assert trips(through(chain((96, 1, 64)), *PLACED, lx_bytes=512)) == [3]


def test_rows_that_give_no_equal_blocks_stay_as_they_are() -> None:
    """65,537 is a prime: blocks would be single rows, and a loop makes 65,535 trips."""
    assert trips(through(softmax(65_537, 1024), *PLACED)) == []


def kernels(text: str) -> list[KernelOp]:
    return [op for op in through(text).walk() if isinstance(op, KernelOp)]


def test_a_group_ends_where_its_rows_are_folded() -> None:
    """The maximum folds m, so a group over m ends before it; one over n goes on."""
    t = "!spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>"
    s = "!spyre.tensor<[128] x SEN169_FP16, order [0], stick 0, hbm>"
    exp, top, sub = kernels(f"""func.func @main(%x: {t}, %y: {t}, %s: {s}, %z: {t}) {{
    spyre.kernel.compute "exp" [m = 128, n = 128] ins(%x[m, n] : {t}) outs(%y[m, n] : {t})
    spyre.kernel.compute "max" [n = 128, m = 128] ins(%y[m, n] : {t}) outs(%s[n] : {s})
    spyre.kernel.compute "sub" [m = 128, n = 128] ins(%y[m, n] : {t}, %s[n] : {s}) outs(%z[m, n] : {t})
    func.return
    }}""")
    over_m, over_n = grow(exp, [top, sub])
    assert (over_m.loops, over_m.ops) == (["m"], [exp])
    assert (over_n.loops, over_n.ops) == (["n", "n", "n"], [exp, top, sub])
    assert over_n.pieces == 2


def test_a_group_ends_where_another_row_would_be_overwritten() -> None:
    """The second op writes column n of what the first reads as row m; in a block of rows, later rows are still due."""
    t = "!spyre.tensor<[2, 2, 128] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>"
    first, second = kernels(f"""func.func @main(%x: {t}, %y: {t}) {{
    spyre.kernel.compute "exp" [a = 2, b = 2, n = 128] ins(%x[a, b, n] : {t}) outs(%y[a, b, n] : {t})
    spyre.kernel.compute "neg" [a = 2, b = 2, n = 128] ins(%y[a, b, n] : {t}) outs(%x[a, b, n] : {t})
    func.return
    }}""")
    assert [g.ops for g in grow(first, [second])] == [[first, second]] * 3
    crossed = """ins(%y[a, b, n]""", """ins(%y[b, a, n]"""
    first, second = kernels(
        f"""func.func @main(%x: {t}, %y: {t}, %z: {t}) {{
    spyre.kernel.compute "exp" [a = 2, b = 2, n = 128] ins(%x[a, b, n] : {t}) outs(%z[a, b, n] : {t})
    spyre.kernel.compute "neg" [a = 2, b = 2, n = 128] ins(%y[a, b, n] : {t}) outs(%x[b, a, n] : {t})
    func.return
    }}""".replace(*crossed)
    )
    # Over a, op 2 has the loop b: it writes x where op 1 has read it. Both are fine, x[a, …] in one trip.
    assert [g.loops for g in grow(first, [second])] == [["a", "b"], ["b", "a"], ["n", "n"]]


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
    lowered = lower(program.module, context, options=options.passes() | {"plan": {"shortest_us": 0}})
    plain = lower(program.module, context, until="spyre.kernel", options={"plan": {"loops": False}})
    assert trips(lowered.modules["spyre.kernel"]) == [4]
    # q, k, v and the result, once each.
    assert lowered.records[2].traffic_bytes == 4 * (4 * 64 * 64 * 2) < plain.records[2].traffic_bytes
    assert lowered.records[2].traffic_bytes == traffic(lowered.modules["spyre.kernel"])
    compiled = CompiledModel(program, lowered, options)
    assert compiled.verify(*inputs)
    files = list(compiled.bundle_directory().glob("sdsc_*.json"))
    assert ("scf.for" in (compiled.bundle_directory() / "bundle.mlir").read_text()) == (loops == "loop")
    assert (len(files) > lowered.records[2].kernels) == (loops == "unroll")


class Shared(nn.Module):
    """Attention of eight heads, four of which share keys and values."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def test_heads_that_share_keys_run_in_one_trip() -> None:
    """The loop of the scores has 8 heads, that of the products 2 of keys with 4 of queries each."""
    generator = torch.Generator().manual_seed(1)
    inputs = tuple(torch.rand(1, heads, 64, 64, generator=generator) for heads in (8, 2, 2))
    program = import_program(Shared(), inputs)
    context = make_context(replace(SPYRE, lx_usable_bytes=4096))
    lowered = lower(program.module, context, options={"plan": {"shortest_us": 0}})
    assert trips(lowered.modules["spyre.kernel"])[0] == 2
    assert CompiledModel(program, lowered, CompileOptions()).verify(*inputs)


class Softmax(nn.Module):
    """Softmax of rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


def test_loops_are_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.empty(65_536, 1024, dtype=torch.float16)
    tiled = spyre_mlir.compile(Softmax(), (x,), loops="unroll", addresses="concrete")
    assert isinstance(tiled, CompiledModel)
    assert "scf.for" in tiled.mlir("spyre.kernel")
    assert "scf.for" not in tiled.mlir("superdsc")
    assert "scf.for" not in spyre_mlir.compile(Softmax(), (x,), addresses="concrete").mlir("spyre.kernel")
    torch.export.save(torch.export.export(Softmax(), (x,)), tmp_path / "m.pt2")
    assert run([str(tmp_path / "m.pt2"), "--emit", "superdsc"]) == 0
    assert "scf.for" in capsys.readouterr().out
    assert run([str(tmp_path / "m.pt2"), "--no-tile", "--emit", "superdsc"]) == 0
    assert "scf.for" not in capsys.readouterr().out


def test_a_softmax_of_odd_rows_reads_once_and_writes_once() -> None:
    """8,191 rows cannot be divided, 16 sticks of columns can: alone, each kernel takes another division.

    A stick of rows each for 1,000 columns are 128 sticks of rows in the lanes: 32 cores have 4 each.
    """
    module = import_program(Softmax(), (torch.empty(8191, 1000, dtype=torch.float16),)).module
    planned = lower(module, make_context(), until="spyre.kernel")
    alone = lower(module, make_context(), until="spyre.kernel", options={"plan": {"together": False}})
    whole = 1000 * 8192 * 2
    assert traffic(planned.modules["spyre.kernel"]) == 2 * whole
    assert traffic(alone.modules["spyre.kernel"]) >= 6 * whole


def test_kernels_that_are_divided_stay_so() -> None:
    text = softmax(512, 1024).replace('"exp" [m = 512, n = 1024]', '"exp" [m = 512 over 4, n = 1024]')
    assert text != softmax(512, 1024)
    module = through(text, "plan", "divide-work")
    found = {op.function_name: op.space_splits() for op in module.walk() if isinstance(op, KernelOp)}
    assert found["exp"] == {"m": 4, "n": 1} and found["max"]["m"] == 32


def test_what_no_division_brings_within_reach_is_left_to_the_next_pass() -> None:
    small = make_context(replace(SPYRE, span_bytes=128, cores_per_card=2))
    module = parse_module(softmax(512, 1024), small)
    before = str(module)
    get_all_passes()["plan"]()().apply(small, module)
    assert "scf.for" not in str(module) and before.count("spyre.kernel.alloc") == str(module).count("kernel.alloc")
