"""Loops at the kernel level: hand-written programs on tiles, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.scf import ForOp
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.kernel_loop import TileOp, launch_origin, uses_with_tiles
from spyre_mlir.dialects.spyre.static_loop import loop_bounds, trips_of
from spyre_mlir.errors import MachineFault, UnsupportedError
from tests.unit.machine.modules import close, main, numbers, parse, run

HOST = "tensor<512x128xf16>"
CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 128))


def tensor(shape: tuple[int, int], order: str, reserved: tuple[int, int] | None = None, space: str = "hbm") -> str:
    """Text of a type with the columns in the lanes."""
    extents = "" if reserved is None else f", extents {list(reserved)}"
    return f"!spyre.tensor<{list(shape)} x SEN169_FP16, order [{order}], stick 1{extents}, {space}>"


def op(function: str, sources: list[tuple[str, str]], target: tuple[str, str], rows: str = "128") -> str:
    """One element-wise op over [rows, 128]."""
    reads = ", ".join(f"{name}[m, n] : {type_}" for name, type_ in sources)
    outs = f"{target[0]}[m, n] : {target[1]}"
    return f'spyre.kernel.compute "{function}" [m = {rows}, n = 128] ins({reads}) outs({outs})\n'


def over_rows(order: str, body: str, trips: str = "to %c4 step %c1", step: int = 128) -> str:
    """Tiles %dt and %ot of %d and %o, 128 rows a trip; %out is what the host reads back."""
    whole, part = tensor((512, 128), order), tensor((128, 128), order, (512, 128))
    text = f"""{CONSTANTS}
    %d = spyre.kernel.to_device %x : {HOST} to {whole}
    %o = spyre.kernel.alloc : {whole}
    scf.for %i = %c0 {trips} {{
      %dt = spyre.kernel.tile %d dim 0 at %i * {step} : {whole} to {part}
      %ot = spyre.kernel.tile %o dim 0 at %i * {step} : {whole} to {part}
      {body}
    }}
    %out = spyre.kernel.from_device %o : {whole} to {HOST}"""
    return main(f"%x: {HOST}", text, HOST)


@pytest.mark.parametrize("order", ["1, 0", "0, 1"])
def test_a_chain_with_its_middle_in_the_scratchpads(order: str) -> None:
    part, local = tensor((128, 128), order, (512, 128)), tensor((128, 128), order, space="lx")
    rows = "128 over 32"
    body = f"%t = spyre.kernel.alloc at 0 : i64 : {local}\n"
    body += op("exp", [("%dt", part)], ("%t", local), rows) + op("neg", [("%t", local)], ("%ot", part), rows)
    x = numbers(512, 128)
    close(run(over_rows(order, body), x), -np.exp(x))


def test_the_induction_variable_counts_in_steps() -> None:
    part = tensor((128, 128), "1, 0", (512, 128))
    text = over_rows("1, 0", op("exp", [("%dt", part)], ("%ot", part)), "to %c4 step %c1")
    stepped = text.replace("arith.constant 4", "arith.constant 512").replace("step %c1 {", "step %c128 {")
    x = numbers(512, 128)
    close(run(stepped.replace("* 128", "* 1"), x), np.exp(x))


def test_two_nested_loops() -> None:
    rows, part = tensor((128, 128), "1, 0", (512, 128)), tensor((128, 64), "1, 0", (512, 128))
    body = f"""scf.for %j = %c0 to %c2 step %c1 {{
      %dp = spyre.kernel.tile %dt dim 1 at %j * 64 : {rows} to {part}
      %op = spyre.kernel.tile %ot dim 1 at %j * 64 : {rows} to {part}
      {op("exp", [("%dp", part)], ("%op", part)).replace("n = 128", "n = 64")}
    }}"""
    x = numbers(512, 128)
    text = over_rows("1, 0", body)
    close(run(text, x), np.exp(x))
    module = parse(text)
    (kernel,) = (o for o in module.walk() if o.name == "spyre.kernel.compute")
    origin = launch_origin(kernel.operands[0])
    # 128 rows of one stick; then a column of sticks, which is 512 rows of one stick.
    assert [step for _, step in origin.steps] == [128 * 128, 512 * 128]
    assert trips_of(kernel) == 8
    assert {u.operation.name for u in uses_with_tiles(origin.buffer)} == {"spyre.kernel.compute"}


def test_a_tile_of_fewer_trips_leaves_the_rest_unwritten() -> None:
    part = tensor((128, 128), "1, 0", (512, 128))
    text = over_rows("1, 0", op("exp", [("%dt", part)], ("%ot", part)), "to %c3 step %c1")
    with pytest.raises(MachineFault, match=r"unwritten-output: the source: element \[384, 0\]"):
        run(text, numbers(512, 128))


def test_a_buffer_of_the_trip_before_is_gone() -> None:
    part, local = tensor((128, 128), "1, 0", (512, 128)), tensor((128, 128), "1, 0", space="lx")
    body = f"%t = spyre.kernel.alloc at 0 : i64 : {local}\n"
    body += op("neg", [("%t", local)], ("%ot", part)) + op("exp", [("%dt", part)], ("%t", local))
    with pytest.raises(MachineFault, match="uninitialised-read: neg computes"):
        run(over_rows("1, 0", body), numbers(512, 128))


def test_an_accumulator_lives_through_the_loop() -> None:
    """sum over tiles of 128 rows: an accumulator in LX, started before the loop, added to in every trip."""
    whole, part = tensor((512, 128), "1, 0"), tensor((128, 128), "1, 0", (512, 128))
    local, small = tensor((128, 128), "1, 0", space="lx"), tensor((128, 128), "1, 0")
    text = f"""{CONSTANTS}
    %d = spyre.kernel.to_device %x : {HOST} to {whole}
    %z = spyre.kernel.constant 0.0 : f16 : {small}
    %a = spyre.kernel.alloc at 0 : i64 : {local}
    {op("identity", [("%z", small)], ("%a", local))}
    scf.for %i = %c0 to %c4 step %c1 {{
      %dt = spyre.kernel.tile %d dim 0 at %i * 128 : {whole} to {part}
      {op("add", [("%a", local), ("%dt", part)], ("%a", local))}
    }}
    %o = spyre.kernel.alloc : {small}
    {op("identity", [("%a", local)], ("%o", small))}
    %out = spyre.kernel.from_device %o : {small} to tensor<128x128xf16>"""
    x = numbers(512, 128)
    close(run(main(f"%x: {HOST}", text, "tensor<128x128xf16>"), x), x.reshape(4, 128, 128).sum(0))


def test_the_tile_of_a_freed_tensor() -> None:
    part = tensor((128, 128), "1, 0", (512, 128))
    body = f"spyre.kernel.free %d : {tensor((512, 128), '1, 0')}\n" + op("exp", [("%dt", part)], ("%ot", part))
    with pytest.raises(MachineFault, match="use-after-free: input 0 was freed"):
        run(over_rows("1, 0", body), numbers(512, 128))


def test_the_most_trips_a_loop_makes() -> None:
    part = tensor((128, 128), "1, 0", (512, 128))
    loops = over_rows("1, 0", op("exp", [("%dt", part)], ("%ot", part)))
    last = loops.replace("arith.constant 4 ", "arith.constant 65535 ").replace(" * 128 :", " * 0 :")
    (loop,) = (o for o in parse(last).walk() if isinstance(o, ForOp))
    assert loop_bounds(loop).trips == 65535
    with pytest.raises(VerifyException, match="makes 65536 trips, the device counts 1 to 65535"):
        parse(last.replace("65535", "65536"))


def test_loops_that_the_machine_does_not_run() -> None:
    """Only tiles have the verifier look at a loop: one that has none is looked at when it runs."""
    loops = {
        "scf.for %i = %c0 to %c4 step %c0 {}": "loop-step: a loop with step 0 has no end\n",
        "scf.for %i = %c0 to %many step %c1 {}": "trip-count: the loop makes 65536 trips, the device counts to",
        "%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %c0) -> (index) { scf.yield %a : index }": (
            "a loop that carries 1 values from trip to trip\n"
        ),
        "%h = arith.constant 0.5 : f32": "expected an integer as a constant between kernels, got 5.0+",
    }
    for loop, message in loops.items():
        body = f"{CONSTANTS}\n%many = arith.constant 65536 : index\n{loop}"
        text = main(f"%x: {HOST}", body, HOST).replace("func.return %out", "func.return %x")
        with pytest.raises((MachineFault, UnsupportedError), match=message):
            run(text, numbers(512, 128))


def test_bytes_per_trip_follow_the_layout() -> None:
    part = tensor((128, 128), "0, 1", (512, 128))
    text = over_rows("0, 1", op("exp", [("%dt", part)], ("%ot", part)))
    tiles = [o for o in parse(text).walk() if isinstance(o, TileOp)]
    # Rows outermost: 128 rows of two sticks of 128 bytes.
    assert [t.step_bytes for t in tiles] == [128 * 2 * 128] * 2
