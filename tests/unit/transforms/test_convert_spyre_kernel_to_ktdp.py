"""KTIR of every class of kernels: the text keeps the rules, reads back, runs on all cores, and equals torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects.func import FuncOp

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.ktdp import ConstructMemoryViewOp, LoadOp, StoreOp
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.ops import ATEN
from spyre_mlir.text.ktir_program import program_text
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.transforms.convert_spyre_kernel_to_ktdp import ConvertSpyreKernelToKtdpPass
from spyre_mlir.transforms.kernel_to_ktdp.hardware_functions import known_functions
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.ktir_cpu.interpreter import checkout, run
from tests.unit.transforms.ktir_programs import TOLERANCE, Program, half, ktir_of, program_of

functional = nn.functional


def rows(count: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(3))


Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...], tuple[str, ...]]

# What is computed, from what, and what its KTIR must have.
CASES: dict[str, Case] = {
    "bias": (lambda a, b: a + b, (half(128, 256), half(256)), ("grid = [32]", "linalg.broadcast", "arith.addf")),
    "whole_numbers": (lambda a, b: a * 2 + b, (rows(400, 64, 100), rows(500, 64, 100)), ("xf32>", "arith.addf")),
    "column": (lambda a, b: a * b, (half(64, 128), half(64, 1)), ("linalg.broadcast", "arith.mulf")),
    "scalar": (lambda a, b: a * b + 2, (half(64, 128), half()), ("tensor.extract", "linalg.fill", "dense<2.0")),
    "select": (lambda a, b: torch.where(a > b, a, b * 2), (half(64, 128), half(64, 128)), ("arith.select",)),
    "functions": (
        lambda a: functional.gelu(a) + functional.silu(a) + torch.sigmoid(a) + torch.relu(a),
        (half(64, 128),),
        ("math.erf", "arith.truncf", "arith.maximumf"),
    ),
    "more_functions": (
        lambda a: (
            a.clamp(-0.5, 0.5)
            + torch.reciprocal(a.abs() + 1)
            - torch.tanh(a)
            + torch.rsqrt(a * a + 1)
            + functional.mish(a)
            + functional.softplus(a, 2.0, 1.0)
        ),
        (half(64, 128),),
        ("math.tanh", "math.rsqrt", "arith.divf", "math.absf", "math.log"),
    ),
    "sum_on_the_stick": (lambda a: a.sum(-1), (half(128, 200),), ("linalg.reduce", "dimensions = [0, 2]")),
    "sum_off_the_stick": (lambda a: a.sum(0), (half(128, 256),), ("linalg.reduce",)),
    "max_and_min": (lambda a: (a.amax(-1), a.amin(0)), (half(64, 100),), ("arith.maximumf", "arith.minimumf")),
    "mean": (lambda a: a.mean(-1), (half(128, 200),), ("arith.divf", "arith.addf")),
    "sum_of_all": (lambda a: a.sum(), (half(32, 128),), ("linalg.reduce",)),
    "matmul": (lambda a, b: a @ b, (half(64, 192), half(192, 128)), ("linalg.matmul", "xf32>")),
    "matmul_split": (lambda a, b: a @ b, (half(1, 2048), half(2048, 64)), ("inter_tile_reduce", "scf.if")),
    "matmul_batches": (lambda a, b: a @ b, (half(3, 40, 70), half(3, 70, 100)), ("scf.for", "linalg.matmul")),
    "matmul_vector": (lambda a, b: a @ b, (half(64, 256), half(256)), ("linalg.matmul",)),
    "mask": (  # a number beyond the largest half is infinite there
        lambda a, b: a.float().masked_fill(b > 0, -3.0e38).softmax(-1),
        (half(64, 128), half(64, 128)),
        ("arith.constant dense<0xFC00>",),
    ),
    "softmax": (lambda a: a.softmax(-1), (half(64, 200),), ("math.exp", "arith.subf")),
    "softmax_of_columns": (lambda a: a.softmax(0), (half(64, 128),), ("math.exp",)),
    "layer_norm": (
        lambda a, w, b: functional.layer_norm(a, (128,), w, b),
        (half(64, 128), half(128), half(128)),
        ("math.rsqrt",),
    ),
    "rms_norm": (lambda a, w: functional.rms_norm(a, (128,), w), (half(64, 128), half(128)), ("linalg.reduce",)),
    "gather": (functional.embedding, (rows(1000, 128), half(1000, 256)), ("construct_indirect_access_tile",)),
    "gather_of_sentences": (functional.embedding, (rows(50, 3, 40), half(50, 100)), ("ind(",)),
    "transpose": (lambda a: a.t().softmax(-1) @ a, (half(64, 128),), ()),
    "concatenation": (lambda a, b: torch.cat([a, b], 0).exp(), (half(64, 128), half(32, 128)), ("@main_1",)),
    "attention": (
        functional.scaled_dot_product_attention,
        (half(1, 2, 64, 64), half(1, 2, 64, 64), half(1, 2, 64, 64)),
        ("linalg.matmul", "math.exp"),
    ),
}


@pytest.fixture(scope="module")
def compiled() -> Callable[[str], CompiledModel]:
    known: dict[str, CompiledModel] = {}

    def get(name: str) -> CompiledModel:
        if name not in known:
            function, inputs, _ = CASES[name]
            model = spyre_mlir.compile(FunctionModel(function), inputs)
            assert isinstance(model, CompiledModel)
            known[name] = model
        return known[name]

    return get


def expect(program: Program, name: str) -> None:
    function, inputs, _ = CASES[name]
    wanted = function(*(x.double() if x.is_floating_point() else x for x in inputs))
    got = program.run([x.numpy() for x in inputs])
    for one, other in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        reference = other.numpy()
        assert one.shape == reference.shape
        assert np.abs(one.astype(np.float64) - reference).max() <= TOLERANCE * max(1.0, np.abs(reference).max())


SLOW = {
    *("column", "scalar", "more_functions", "mean", "sum_of_all", "max_and_min", "matmul_vector"),
    *("softmax_of_columns", "rms_norm", "attention", "concatenation"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow(reason="a larger program of the same kind")] if n in SLOW else [])
        for n in CASES
    ],
)
def test_a_program_equals_torch(name: str, compiled: Callable[[str], CompiledModel]) -> None:
    model = compiled(name)
    program = program_of(model.mlir("spyre.kernel"), model.ktir())
    for part in CASES[name][2]:
        assert part in program.text, part
    expect(program, name)


@pytest.mark.parametrize(
    "tile", [100, pytest.param(1000, marks=pytest.mark.slow(reason="a larger tile of the same program"))]
)
@pytest.mark.parametrize(
    "name", ["bias", "sum_on_the_stick", "sum_off_the_stick", "matmul", "softmax", "gather_of_sentences"]
)
def test_small_tiles_make_loops_and_change_nothing(
    name: str, tile: int, compiled: Callable[[str], CompiledModel]
) -> None:
    kernels = compiled(name).mlir("spyre.kernel")
    module = parse_module(kernels.encode(), make_context(), name)
    ConvertSpyreKernelToKtdpPass(tile=tile).apply(make_context(), module)
    verify_module(module)
    text = program_text(module)
    assert tile > 100 or "scf.for" in text
    expect(program_of(kernels, text), name)


SPLIT = """
!a = !spyre.tensor<[8, 512] x SEN169_FP16, order [1, 0], stick 1, hbm>
!b = !spyre.tensor<[512, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!c = !spyre.tensor<[8, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @main(%x: tensor<8x512xf16>, %y: tensor<512x64xf16>) -> tensor<8x64xf16> {
  %a = spyre.kernel.to_device %x : tensor<8x512xf16> to !a
  %b = spyre.kernel.to_device %y : tensor<512x64xf16> to !b
  %c = spyre.kernel.alloc : !c
  spyre.kernel.compute "batchmatmul" [m = 8 over 4, n = 64, k = 512 over 8]
    ins(%a[m, k] : !a, %b[k, n] : !b) outs(%c[m, n] : !c)
  %r = spyre.kernel.from_device %c : !c to tensor<8x64xf16>
  func.return %r : tensor<8x64xf16>
}
"""


def test_partial_sums_are_combined_by_the_eight_cores_of_a_team() -> None:
    text = ktir_of(SPLIT)
    assert "d0 - 8 * s0 >= 0" in text
    assert "groups = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>" in text
    a, b = half(8, 512).numpy(), half(512, 64).numpy()
    (got,) = program_of(SPLIT, text).run([a, b])
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(got - wanted).max() <= TOLERANCE * np.abs(wanted).max()


LOOP = """
!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!rows = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
!part = !spyre.tensor<[128, 64] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
!lx = !spyre.tensor<[128, 64] x SEN169_FP16, order [1, 0], stick 1, lx>
func.func @main(%x: tensor<512x128xf16>) -> tensor<512x128xf16> {
  %d = spyre.kernel.to_device %x : tensor<512x128xf16> to !t
  %o = spyre.kernel.alloc : !t
  %l = spyre.kernel.alloc at 0 : i64 : !lx
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %dt = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !rows
    %ot = spyre.kernel.tile %o dim 0 at %i * 128 : !t to !rows
    scf.for %j = %c0 to %c2 step %c1 {
      %dp = spyre.kernel.tile %dt dim 1 at %j * 64 : !rows to !part
      %op = spyre.kernel.tile %ot dim 1 at %j * 64 : !rows to !part
      spyre.kernel.compute "exp" [m = 128 over 32, n = 64] ins(%dp[m, n] : !part) outs(%l[m, n] : !lx)
      spyre.kernel.compute "neg" [m = 128 over 32, n = 64] ins(%l[m, n] : !lx) outs(%op[m, n] : !part)
    }
  }
  %r = spyre.kernel.from_device %o : !t to tensor<512x128xf16>
  func.return %r : tensor<512x128xf16>
}
"""


def test_a_loop_of_kernels_is_a_loop_of_tiles() -> None:
    text = ktir_of(LOOP)
    assert text.count("scf.for") == 2 and text.count("func.func") == 1
    x = half(512, 128).numpy()
    (got,) = program_of(LOOP, text).run([x])
    np.testing.assert_allclose(got, -np.exp(x.astype(np.float64)), rtol=2e-3)


WIDE = """
!t = !spyre.tensor<[64, 64] x IEEE_FP32, order [1, 0], stick 1, hbm>
!s = !spyre.tensor<[64] x IEEE_FP32, order [unit, 0], stick unit, hbm>
func.func @main(%x: tensor<64x64xf32>) -> tensor<64xf32> {
  %a = spyre.kernel.to_device %x : tensor<64x64xf32> to !t
  %b = spyre.kernel.alloc : !t
  %s = spyre.kernel.alloc : !s
  spyre.kernel.compute "mul" [m = 64 over 32, n = 64] ins(%a[m, n] : !t, %a[m, n] : !t) outs(%b[m, n] : !t)
  spyre.kernel.compute "sum" [m = 64 over 32, n = 64] ins(%b[m, n] : !t) outs(%s[m] : !s)
  %r = spyre.kernel.from_device %s : !s to tensor<64xf32>
  func.return %r : tensor<64xf32>
}
"""


def test_single_precision_stays_single_precision() -> None:
    text = ktir_of(WIDE)
    assert "f16" not in text.split("builtin.module")[1]
    x = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    (got,) = program_of(WIDE, text).run([x])
    np.testing.assert_allclose(got, (x.astype(np.float64) ** 2).sum(-1), rtol=1e-5)


def test_what_is_between_kernels_is_a_tensor(compiled: Callable[[str], CompiledModel]) -> None:
    """A softmax is one function: one load, one store, and no memory in between."""
    text = compiled("softmax").ktir()
    assert text.count("func.func") == 1
    module = parse_module(text.encode(), make_context(), "softmax")
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    assert len(function.args) == 2
    views = [op for op in function.walk() if isinstance(op, ConstructMemoryViewOp)]
    assert len(views) == 2 and not any(v.memory_space.is_local for v in views)
    assert sum(isinstance(op, LoadOp | StoreOp) for op in function.walk()) == 2


def test_every_function_of_the_op_table_has_ktir() -> None:
    """All but `clip`, which is never a kernel, as clamp becomes maximum and minimum, and sums of 32-bit integers."""
    functions = {entry.opfunc for entry in ATEN if entry.opfunc is not None}
    assert functions - {*known_functions()} == {"batchmatmul", "clip", "addi32toi32"}


def test_everything_without_ktir_is_listed() -> None:
    text = WIDE.replace("IEEE_FP32", "BFLOAT16").replace("xf32", "xbf16")
    with pytest.raises(UnsupportedError, match=r"2 kernels have no KTIR: mul .*BFLOAT16; sum .*BFLOAT16") as raised:
        ktir_of(text)
    assert raised.value.exit_code == 2
    assert "SEN169_FP16" in str(raised.value)


UPPER = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = aten.neg(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""


def test_another_level_is_refused() -> None:
    with pytest.raises(LoweringError, match="not legal at the level ktir"):
        ktir_of(UPPER)


def test_an_op_of_another_level_among_kernels_is_named() -> None:
    text = SPLIT.replace("%r =", "%n = aten.neg(%x) : (tensor<8x512xf16>) -> tensor<8x512xf16>\n  %r =")
    module = parse_module(text, make_context())
    with pytest.raises(LoweringError, match=r"aten\.neg among kernel ops\n.*\n  try: run the passes"):
        ConvertSpyreKernelToKtdpPass().apply(make_context(), module)


def test_a_program_without_kernels_has_no_functions() -> None:
    assert "func" not in ktir_of("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }")


def test_ktir_itself_stays_as_it_is() -> None:
    text = ktir_of(SPLIT)
    assert ktir_of(text).split("builtin.module")[1] == text.split("builtin.module")[1]


def test_the_older_spelling_of_memory_spaces(compiled: Callable[[str], CompiledModel]) -> None:
    text = compiled("softmax").ktir(older_spaces=True)
    assert "#ktdp.spyre_memory_space<HBM>" in text
    assert "#ktdp.memory_space" not in text


def test_comments_say_what_arguments_are(compiled: Callable[[str], CompiledModel]) -> None:
    lines = compiled("bias").ktir().splitlines()
    assert "// @main on 32 cores" in lines
    assert "//   %function0: input [128, 256], on the device f16[4, 128, 64]" not in lines
    assert any("input [128, 256], on the device f16[4, 128, 64]" in line for line in lines)
    assert any("output [128, 256]" in line for line in lines)


@pytest.mark.parametrize("name", ["bias", "sum_off_the_stick", "matmul", "matmul_split", "softmax", "gather"])
def test_another_interpreter_agrees(name: str, compiled: Callable[[str], CompiledModel]) -> None:
    """A second opinion where a checkout of ktir-cpu is at hand."""
    checkout()
    model, inputs = compiled(name), [x.numpy() for x in CASES[name][1]]
    program = program_of(model.mlir("spyre.kernel"), model.ktir())
    assert program.text.count("func.func") == 1
    program.fill(inputs)
    names = [n for n in program.arrays if f"%{n}: index" in program.text]
    program.arrays |= run(program.text, "main", {n: program.arrays[n] for n in names})
    second = program.outputs()
    for one, other in zip(second, program.run(inputs), strict=True):
        assert np.abs(one - other).max() <= TOLERANCE * max(1.0, np.abs(other).max())
