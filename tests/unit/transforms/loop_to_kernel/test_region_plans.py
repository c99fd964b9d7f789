"""Functions of regions on the device: parameters in the layouts asked for, results in buffers of the caller."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.spyre.kernel import (
    AllocOp,
    ComputeOp,
    FromDeviceOp,
    KernelConstantOp,
    ToDeviceOp,
    device_tensor,
)
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.convert_spyre_loop_to_spyre_kernel import ConvertSpyreLoopToSpyreKernelPass
from spyre_mlir.transforms.host_program.keep_on_device import KeepOnDevicePass
from spyre_mlir.universe import make_context
from tests.unit.transforms.regions.programs import calls, functions, parsed

T, W = "tensor<3x5xf32>", "tensor<5x5xf32>"
WEIGHT = f'{W} {{aten.kind = "parameter"}}'
LAYER = f"""
func.func private @layers(%p: {T}, %w: {WEIGHT}) -> ({T}, {T}) {{
  %0 = spyre.loop.nest [m = 3, n = 5, k = 5] ins(%p[m, k] : {T}, %w[k, n] : {W}) -> [m, n] : {T} reduce "arith.addf" {{
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    spyre.loop.yield %c : f32
  }}
  func.return %0, %p : {T}, {T}
}}"""
MAIN = f"""
func.func @main(%x: {T} {{aten.kind = "input"}}, %w0: {WEIGHT}, %w1: {WEIGHT}) -> {T} {{
  %a, %b = func.call @layers(%x, %w0) : ({T}, {W}) -> ({T}, {T})
  %c, %d = func.call @layers(%a, %w1) : ({T}, {W}) -> ({T}, {T})
  %e = spyre.loop.nest [m = 3, n = 5] ins(%c[m, n] : {T}, %d[m, n] : {T}) -> [m, n] : {T} {{
  ^bb0(%f: f32, %g: f32):
    %h = arith.addf %f, %g : f32
    spyre.loop.yield %h : f32
  }}
  func.return %e : {T}
}}"""


@pytest.fixture
def converted() -> ModuleOp:
    module = parsed(MAIN + LAYER)
    ConvertSpyreLoopToSpyreKernelPass().apply(make_context(), module)
    verify_module(module)
    return module


def test_values_are_those_of_the_calls(converted: ModuleOp) -> None:
    generator = np.random.default_rng(0)
    x, *weights = (generator.standard_normal(shape) for shape in ((3, 5), (5, 5), (5, 5)))
    (found,) = run_function(converted, [x, *weights])
    assert np.allclose(found, x @ weights[0] @ weights[1] + x @ weights[0], rtol=1e-6)


def test_the_function_takes_device_tensors_and_gives_nothing(converted: ModuleOp) -> None:
    layer = functions(converted)["layers"]
    assert not layer.function_type.outputs.data
    assert all(device_tensor(argument).space == "hbm" for argument in layer.body.block.args)
    inside = list(layer.body.block.ops)
    assert not any(isinstance(op, ToDeviceOp | KernelConstantOp) for op in inside)
    # The result that is a parameter is a copy of it: the last two parameters are written.
    written = {op.output for op in inside if isinstance(op, ComputeOp)}
    assert set(layer.body.block.args[-2:]) <= written


def test_calls_share_constants_and_not_weights(converted: ModuleOp) -> None:
    first, second = (list(call.arguments) for call in calls(converted))
    owners = [type(one.owner) for one, other in zip(first, second, strict=True) if one is other]
    assert owners
    assert set(owners) == {KernelConstantOp}


def test_a_result_is_handed_over_as_it_lies(converted: ModuleOp) -> None:
    first, second = calls(converted)
    handed = second.arguments[0]
    assert isinstance(handed.owner, AllocOp)
    # The first call made it, and no kernel of the caller touched it.
    assert handed in first.arguments
    assert {use.operation for use in handed.uses} == {first, second}


def test_a_call_inside_a_region_is_refused() -> None:
    inner = LAYER.replace("@layers", "@inner")
    outer = f"""
func.func private @outer(%p: {T}, %w: {WEIGHT}) -> {T} {{
  %a, %b = func.call @inner(%p, %w) : ({T}, {W}) -> ({T}, {T})
  func.return %a : {T}
}}"""
    main = f"""
func.func @main(%x: {T}, %w: {WEIGHT}) -> {T} {{
  %a = func.call @outer(%x, %w) : ({T}, {W}) -> {T}
  func.return %a : {T}
}}"""
    with pytest.raises(UnsupportedError, match="a call of @inner"):
        ConvertSpyreLoopToSpyreKernelPass().apply(make_context(), parsed(main + outer + inner))


@pytest.mark.parametrize(("operand", "type_"), [("%w", W), ("%0", T)], ids=["weight", "computed"])
def test_a_step_of_the_host_inside_a_region_is_refused(operand: str, type_: str) -> None:
    step = f'%h = spyre.loop.host "acme.step" because "" ({operand}) {{self = #aten.operands<1>}} : ({type_}) -> {T}'
    layer = LAYER.replace("  func.return %0", f"  {step}\n  func.return %h")
    with pytest.raises(LoweringError, match=r"the host would have to run acme\.step in the middle of a launch"):
        ConvertSpyreLoopToSpyreKernelPass().apply(make_context(), parsed(MAIN + layer))


def test_what_a_loop_carries_comes_back_as_it_was_handed_over() -> None:
    """A product reads the new value of `%p`, padded for it; a call takes the old one with the same extents."""
    layer = f"""
func.func private @layers(%x: {T}, %p: {W}) -> ({T}, {W}) {{
  %0 = spyre.loop.nest [k = 5, n = 5] ins(%p[k, n] : {W}, %p[k, n] : {W}) -> [k, n] : {W} {{
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    spyre.loop.yield %c : f32
  }}
  %1 = spyre.loop.nest [m = 3, n = 5, k = 5] ins(%x[m, k] : {T}, %0[k, n] : {W}) -> [m, n] : {T} reduce "arith.addf" {{
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    spyre.loop.yield %c : f32
  }}
  func.return %1, %0 : {T}, {W}
}}"""
    state = f"tensor<f32>, {T}, {W}, {W}"
    arguments = f"%n: tensor<f32>, %x: {T}, %p: {W}, %q: {W}"
    main = f"""
func.func @main({arguments}) -> {T} {{
  %0:4 = control.while_loop @goes_on do @step(%n, %x, %p, %q) : ({state}) -> ({state})
  func.return %0#1 : {T}
}}
func.func private @goes_on({arguments}) -> tensor<i1> {{
  %0 = spyre.loop.nest [] ins(%n[] : tensor<f32>, %n[] : tensor<f32>) -> [] : tensor<i1> {{
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf olt, %a, %b : f32
    spyre.loop.yield %c : i1
  }}
  func.return %0 : tensor<i1>
}}
func.func private @step({arguments}) -> ({state}) {{
  %0, %1 = func.call @layers(%x, %p) : ({T}, {W}) -> ({T}, {W})
  %2, %3 = func.call @layers(%0, %q) : ({T}, {W}) -> ({T}, {W})
  func.return %n, %2, %1, %3 : {state}
}}"""
    module = parsed(main + layer)
    ConvertSpyreLoopToSpyreKernelPass().apply(make_context(), module)
    KeepOnDevicePass().apply(make_context(), module)
    verify_module(module)
    assert not any(isinstance(op, ToDeviceOp | FromDeviceOp) for op in functions(module)["step"].walk())
