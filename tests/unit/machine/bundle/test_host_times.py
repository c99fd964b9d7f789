"""Host steps in time: what they move over the link, counted in sticks by hand."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.hw.cost_parameters import CALIBRATED, PEAK
from spyre_mlir.machine.bundle.host_times import HostStepTime, host_times
from tests.unit.machine.modules import device, host, main, parse

MATRIX = device((8, 64), 1)  # eight sticks
ROW = device((64,), 0)  # one


def step(
    result: str, operator: str, operand: str, shape: tuple[int, ...] = (8, 64), out: tuple[int, ...] = (8, 64)
) -> str:
    """A step that takes one tensor."""
    types = f"({host(shape)}) -> {host(out)}"
    return f'%{result} = spyre.kernel.host "aten.{operator}" because "no" (%{operand}) {{self = #aten.operands<1>}} : {types}'


def program(body: str) -> ModuleOp:
    text = f"%d = spyre.kernel.to_device %x : {host((8, 64))} to {MATRIX}\n" + body
    return parse(main(f"%x: {host((8, 64))}", text, host((8, 64))))


def fetched(name: str, source: str = "d") -> str:
    return f"%{name} = spyre.kernel.from_device %{source} : {MATRIX} to {host((8, 64))}\n"


def test_the_link_moves_63_bytes_a_nanosecond() -> None:
    assert CALIBRATED.link_us(63_000) == pytest.approx(1.0)
    assert PEAK.link_us(126_000) == pytest.approx(2.0)
    assert CALIBRATED.link_us(0) == 0.0


def test_a_step_moves_what_it_reads_and_what_is_made_of_its_results() -> None:
    """Eight sticks to the host, and one back."""
    body = fetched("a") + step("s", "sum", "a", out=(64,)) + ' loc("/home/me/model.py":4:1)\n'
    body += f"%e = spyre.kernel.to_device %s : {host((64,))} to {ROW}\n" + fetched("out")
    (found,) = host_times(program(body))
    assert found == HostStepTime("aten.sum", 0, 9 * 128, pytest.approx(9 * 128 / 63 / 1000), "model.py:4")


def test_what_stays_on_the_host_moves_nothing() -> None:
    (found,) = host_times(program(step("out", "neg", "x") + "\n"))
    assert (found.moved_bytes, found.least_us) == (0, 0.0)


def test_a_tensor_that_two_steps_read_is_brought_for_the_first() -> None:
    body = fetched("a") + fetched("b") + step("s", "neg", "a") + "\n" + step("out", "exp", "b") + "\n"
    assert [(one.op, one.moved_bytes) for one in host_times(program(body))] == [("aten.neg", 1024), ("aten.exp", 0)]


def test_steps_are_told_by_the_launches_before_them() -> None:
    text = f"""func.func private @sdsc_bundle({MATRIX})
    func.func @main(%x: {host((8, 64))}) -> {host((8, 64))} {{
    %d = spyre.kernel.to_device %x : {host((8, 64))} to {MATRIX}
    {step("s", "neg", "x")}
    LAUNCH LAUNCH
    {fetched("a")}
    {step("out", "neg", "a")}
    func.return %out : {host((8, 64))}
    }}"""
    launch = f"spyre.kernel.launch @sdsc_bundle (%d) : {MATRIX}\n"
    found = host_times(parse(text.replace("LAUNCH", launch)))
    assert [(one.op, one.after, one.moved_bytes) for one in found] == [("aten.neg", 0, 0), ("aten.neg", 2, 1024)]
