"""Copies of weights that only move elements: the host makes them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.spyre.kernel import ComputeOp, ToDeviceOp
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.convert_spyre_loop_to_spyre_kernel import ConvertSpyreLoopToSpyreKernelPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops
from tests.unit.transforms.loop_to_kernel.planning import lowered
from tests.unit.transforms.regions.programs import parsed

Array = NDArray[np.float64]
PARAMETER = '{aten.kind = "parameter"}'


def values(*shape: int) -> Array:
    return np.random.default_rng(0).integers(-4, 5, shape).astype(np.float64)


def copy(name: str, loops: str, source: str, target: str, *, into: str = "", element: str = "f32") -> str:
    """A nest that copies: source and target are ``tensor[map] : type``."""
    operand, shape = (part.strip() for part in source.split(":"))
    place, result = (part.strip() for part in target.split(":"))
    dest = f"into {into} " if into else ""
    return (
        f"%{name} = spyre.loop.nest [{loops}] ins({operand} : {shape}) {dest}-> {place} : {result} {{\n"
        f"^bb0(%one: {element}):\nspyre.loop.yield %one : {element}\n}}"
    )


def converted(weight: str, *lines: str, result: str, last: str, notes: str = PARAMETER) -> ModuleOp:
    """A program that adds the last tensor to an input of its shape."""
    rank = result.split("<")[1].count("x")
    names = [f"d{n}" for n in range(rank)]
    extents = result.split("<")[1].split("x")[:rank]
    space = ", ".join(f"{name} = {extent}" for name, extent in zip(names, extents, strict=True))
    at = ", ".join(names)
    added = (
        f"%sum = spyre.loop.nest [{space}] ins(%{last}[{at}] : {result}, %x[{at}] : {result}) -> [{at}] : {result} {{\n"
        "^bb0(%p: f32, %q: f32):\n%c = arith.addf %p, %q : f32\nspyre.loop.yield %c : f32\n}"
    )
    body = "\n".join([*lines, added, f"func.return %sum : {result}"])
    module = parsed(
        f'func.func @main(%w: {weight} {notes}, %x: {result} {{aten.kind = "input"}}) -> {result} {{\n{body}\n}}'
    )
    ConvertSpyreLoopToSpyreKernelPass().apply(make_context(), module)
    verify_module(module)
    return module


def functions_of(module: ModuleOp) -> list[str]:
    return [op.function_name for op in ops(module, ComputeOp)]


def moves(module: ModuleOp) -> list[int]:
    """The number of moves of each transfer that has some."""
    return [len(op.moves) for op in ops(module, ToDeviceOp) if op.moves]


W, TURNED = "tensor<70x6xf32>", "tensor<6x70xf32>"
TURN = copy("t", "m = 6, n = 70", f"%w[n, m] : {W}", f"[m, n] : {TURNED}")


def test_a_permutation_is_the_hosts() -> None:
    module = converted(W, TURN, result=TURNED, last="t")
    assert functions_of(module) == ["add"]
    assert moves(module) == [1]
    w, x = values(70, 6), values(6, 70)
    assert np.array_equal(run_function(module, [w, x])[0], w.T + x)


@pytest.mark.parametrize("notes", ['{aten.kind = "input"}', ""])
def test_that_of_an_input_is_a_kernel(notes: str) -> None:
    module = converted(W, TURN, result=TURNED, last="t", notes=notes)
    assert moves(module) == []
    w, x = values(70, 6), values(6, 70)
    assert np.array_equal(run_function(module, [w, x])[0], w.T + x)


def test_copies_of_a_copy_follow_each_other() -> None:
    flat = copy("f", "m = 6, n = 70", f"%t[m, n] : {TURNED}", "[m * 70 + n] : tensor<420xf32>")
    module = converted(W, TURN, flat, result="tensor<420xf32>", last="f")
    assert functions_of(module) == ["add"]
    assert moves(module) == [2]
    w, x = values(70, 6), values(420)
    assert np.array_equal(run_function(module, [w, x])[0], w.T.reshape(-1) + x)


PADDED = "tensor<80x6xf32>"
EMPTY = f"%e = spyre.loop.empty : {PADDED}"
ZERO = "%z = spyre.loop.constant {} : f64 : tensor<10x6xf32>"


def filled(number: str = "0.0", *, first: bool = True, start: int = 70) -> list[str]:
    """A weight with ten rows behind it, which are written after it or before."""
    whole = copy("a", "m = 70, n = 6", f"%w[m, n] : {W}", f"[m, n] : {PADDED}", into="%e" if first else "%b")
    rows = copy(
        "b",
        "m = 10, n = 6",
        "%z[m, n] : tensor<10x6xf32>",
        f"[m + {start}, n] : {PADDED}",
        into="%a" if first else "%e",
    )
    return [EMPTY, ZERO.format(number), *((whole, rows) if first else (rows, whole))]


@pytest.mark.parametrize("first", [True, False])
def test_zeros_around_a_weight_are_the_hosts(first: bool) -> None:
    module = converted(W, *filled(first=first), result=PADDED, last="b" if first else "a")
    assert functions_of(module) == ["add"]
    w, x = values(70, 6), values(80, 6)
    assert np.array_equal(run_function(module, [w, x])[0], np.pad(w, ((0, 10), (0, 0))) + x)


@pytest.mark.parametrize(("number", "start"), [("1.0", 70), ("-0.0", 70), ("0.0", 65)])
def test_other_numbers_and_zeros_over_the_weight_are_written_by_kernels(number: str, start: int) -> None:
    module = converted(W, *filled(number, start=start), result=PADDED, last="b")
    assert moves(module) == []
    w, x = values(70, 6), values(80, 6)
    wanted = np.zeros((80, 6))
    wanted[:70] = w
    wanted[start : start + 10] = float(number)
    rows = start + 10  # those behind it have never been written
    if rows == 80:
        assert np.array_equal(run_function(module, [w, x])[0], wanted + x)


def test_two_weights_in_one_tensor_stay_two_kernels() -> None:
    halves = [
        "%e = spyre.loop.empty : tensor<140x6xf32>",
        copy("a", "m = 70, n = 6", f"%w[m, n] : {W}", "[m, n] : tensor<140x6xf32>", into="%e"),
        copy("b", "m = 70, n = 6", f"%w[m, n] : {W}", "[m + 70, n] : tensor<140x6xf32>", into="%a"),
    ]
    module = converted(W, *halves, result="tensor<140x6xf32>", last="b")
    assert functions_of(module) == ["identity", "identity", "add"]
    w, x = values(70, 6), values(140, 6)
    assert np.array_equal(run_function(module, [w, x])[0], np.concatenate([w, w]) + x)


def test_a_weight_that_the_program_writes_is_not_rearranged_at_load() -> None:
    text = f"""
    func.func @main(%w: {W} {{aten.kind = "buffer", aten.name = "w"}}) -> ({W} {{aten.mutates = "w"}}, {TURNED}) {{
      {TURN}
      %s = spyre.loop.nest [m = 70, n = 6] ins(%w[m, n] : {W}) -> [m, n] : {W} {{
      ^bb0(%a: f32):
        %c = arith.negf %a : f32
        spyre.loop.yield %c : f32
      }}
      func.return %s, %t : {W}, {TURNED}
    }}"""
    module = parsed(text)
    ConvertSpyreLoopToSpyreKernelPass().apply(make_context(), module)
    assert moves(module) == []
    assert "identity" in functions_of(module)


@pytest.mark.parametrize(("rows", "rearranged"), [(8, 0), (2, 1)])
def test_a_copy_that_takes_much_more_room_is_a_kernel(rows: int, rearranged: int) -> None:
    """Every row of a weight of 512 x 512 elements among others: a program has room for half a million more."""
    weight, wide = "tensor<512x512xf32>", f"tensor<512x{rows}x512xf32>"
    spread = [
        f"%e = spyre.loop.empty : {wide}",
        copy("t", "m = 512, n = 512", f"%w[m, n] : {weight}", f"[m, {rows - 1}, n] : {wide}", into="%e"),
    ]
    assert len(moves(converted(weight, *spread, result=wide, last="t"))) == rearranged


def test_operands_that_need_a_copy_have_it_from_the_host() -> None:
    """A product over part of a weight's rows: 70 of 100 elements, padded to whole sticks."""
    whole, part, left, out = (f"tensor<{shape}xf32>" for shape in ("100x5", "70x5", "3x70", "3x5"))
    module = lowered(
        f"%x: {left}, %w: {whole} {PARAMETER}",
        [
            f"slice.Tensor (%w) {{dim = 0 : i64, start = 10 : i64, end = 80 : i64}} : ({whole}) -> {part}",
            f"mm (%x, %0) : ({left}, {part}) -> {out}",
        ],
        out,
    )
    assert functions_of(module) == ["where3", "batchmatmul"]  # the first clears the padding of %x
    assert moves(module) == [1]
    x, w = values(3, 70), values(100, 5)
    assert np.array_equal(run_function(module, [x, w])[0], x @ w[10:80])
