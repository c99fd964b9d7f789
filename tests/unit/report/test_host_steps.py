"""What the host does for a program, counted in a program by hand."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation

from spyre_mlir.dialects.spyre.host import KernelHostOp
from spyre_mlir.dialects.spyre.kernel import AllocOp, FromDeviceOp, KernelConstantOp, LaunchOp, ToDeviceOp
from spyre_mlir.machine.bundle.host_times import HostStepTime
from spyre_mlir.report.host_steps import HostWork, host_steps, left_out
from tests.unit.backend.programs import BYTES, DEVICE, HOST, read

STEP = f'spyre.kernel.host "aten.topk" {{}} (%r) {{{{self = #aten.operands<1>}}}} : ({HOST}) -> {HOST}'
PROGRAM = f"""func.func @main(%x: {HOST}, %y: {HOST}) -> {HOST} {{
  %0 = spyre.kernel.to_device %x : {HOST} to {DEVICE}
  %1 = spyre.kernel.alloc : {DEVICE}
  %2 = spyre.kernel.to_device %y : {HOST} to {DEVICE}
  %3 = spyre.kernel.constant #spyre.first_ones<33> : {DEVICE}
  spyre.kernel.launch @sdsc_bundle(%0, %1) : {DEVICE}, {DEVICE}
  %r = spyre.kernel.from_device %1 : {DEVICE} to {HOST}
  %4 = {STEP.format('because "too hard"')}
  %5 = {STEP.format("")}
  %6 = arith.constant 1 : index
  func.return %r : {HOST}
}}"""


def test_steps_by_kind_in_the_order_of_their_first_use() -> None:
    """Bytes over a link of 63 bytes per nanosecond."""
    sent = HostWork("send a tensor to the device, in the layout its kernels read", 2, 2 * BYTES, ToDeviceOp)
    work = host_steps(read(PROGRAM))
    assert [(one.what, one.count, one.bytes, one.kind.name) for one in work] == [
        (sent.what, 2, 2 * BYTES, "spyre.kernel.to_device"),
        ("reserve device memory", 1, BYTES, "spyre.kernel.alloc"),
        ("write known numbers to device memory", 1, BYTES, "spyre.kernel.constant"),
        ("launch a bundle", 1, 0, "spyre.kernel.launch"),
        ("bring a result back", 1, BYTES, "spyre.kernel.from_device"),
        ("run aten.topk: too hard", 1, 0, "spyre.kernel.host"),
        ("run aten.topk: it reads what is here", 1, 0, "spyre.kernel.host"),
        ("arith.constant", 1, 0, "arith.constant"),
    ]
    assert [one.us for one in work] == [
        pytest.approx(2 * BYTES / 63e3), None, None, None, pytest.approx(BYTES / 63e3), None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "us", "text"),
    [
        (ToDeviceOp, 1.234, "at least 1.23 us"),
        (FromDeviceOp, 0.0, "at least 0.00 us"),
        (LaunchOp, None, ""),
        (Operation, None, ""),
        (KernelHostOp, None, "unknown"),
    ],
)
def test_time_in_words(kind: type[Operation], us: float | None, text: str) -> None:
    assert HostWork("", 1, 0, kind, us).time == text


def test_work_is_a_value() -> None:
    assert {HostWork("what", 1, 2), HostWork("what", 1, 2)} == {HostWork("what", 1, 2, Operation, None)}


MOVED = [
    HostWork("", 1, 3000, ToDeviceOp),
    HostWork("", 1, 1000, FromDeviceOp),
    HostWork("", 1, 10**9, AllocOp),
    HostWork("", 1, 10**9, KernelConstantOp),
]


WITHOUT = "without transfers between host and device"
UNKNOWN = "of inputs and results, and the unknown time that"


@pytest.mark.parametrize(
    ("host", "steps", "text"),
    [
        ([], 0, WITHOUT),
        (MOVED, 0, f"{WITHOUT} (4 kB)"),
        (MOVED, 1, f"{WITHOUT} (2.5 kB) {UNKNOWN} 1 host step takes"),
        (MOVED, 2, f"{WITHOUT} (1 kB) {UNKNOWN} 2 host steps take"),
        (MOVED[:1], 2, f"{WITHOUT} {UNKNOWN} 2 host steps take"),
    ],
)
def test_what_the_predicted_time_leaves_out(host: list[HostWork], steps: int, text: str) -> None:
    assert left_out(host, [HostStepTime("aten.topk", 0, 1500, 1.0)] * steps) == text
