"""Programs that were changed by hand so that a kernel reads what nothing has written yet, or a loop leaves rows out."""

from __future__ import annotations

import pytest

from spyre_mlir.errors import LoweringError
from tests.unit.transforms.levels import passed

T = "!spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>"
P = "!spyre.tensor<[16, 128] x SEN169_FP16, order [1, 0], stick 1, extents [64, 128], hbm>"
LAST = "convert-spyre-kernel-to-superdsc"
LOWER = ("divide-work", "place-lx", "assign-pool", LAST)


def program(kernels: str) -> str:
    return f"""func.func @main(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {{
    %0 = spyre.kernel.to_device %x : tensor<64x128xf16> to {T}
    %1 = spyre.kernel.alloc : {T}
    %2 = spyre.kernel.alloc : {T}
    {kernels}
    %9 = spyre.kernel.from_device %2 : {T} to tensor<64x128xf16>
    func.return %9 : tensor<64x128xf16>
    }}"""


def kernel(function: str, source: str, result: str) -> str:
    return f'spyre.kernel.compute "{function}" [m = 64, n = 128] ins({source}[m, n] : {T}) outs({result}[m, n] : {T})\n'


def loop(name: str, trips: int, first: int = 0, step: int = 16) -> str:
    """A loop that writes blocks of 16 rows of the result, from a block on."""
    return f"""%l{name} = arith.constant {first} : index
    %u{name} = arith.constant {first + trips} : index
    %s{name} = arith.constant 1 : index
    scf.for %i{name} = %l{name} to %u{name} step %s{name} {{
      %a{name} = spyre.kernel.tile %1 dim 0 at %i{name} * {step} : {T} to {P}
      %b{name} = spyre.kernel.tile %2 dim 0 at %i{name} * {step} : {T} to {P}
      spyre.kernel.compute "neg" [m = 16, n = 128] ins(%a{name}[m, n] : {P}) outs(%b{name}[m, n] : {P})
    }}
    """


def test_kernels_in_another_order_are_refused_where_one_reads_what_comes_behind() -> None:
    right = kernel("exp", "%0", "%1"), kernel("neg", "%1", "%2")
    passed(program("".join(right)), *LOWER)
    with pytest.raises(LoweringError, match=r"neg reads a buffer that exp at .*:6:1 writes behind it") as refused:
        passed(program("".join(reversed(right))), *LOWER)
    assert refused.value.hint == "move the kernel behind it"
    assert refused.value.where is not None and refused.value.where.startswith("neg at ")


@pytest.mark.parametrize(
    ("kernels", "reader"),
    [
        (kernel("neg", "%1", "%2"), "neg at "),
        (kernel("exp", "%0", "%1"), "spyre.kernel.from_device at "),
        (kernel("exp", "%0", "%2") + f"spyre.kernel.free %1 : {T}\n" + kernel("neg", "%1", "%2"), "neg at "),
    ],
)
def test_a_buffer_that_nothing_writes_is_not_read(kernels: str, reader: str) -> None:
    with pytest.raises(LoweringError, match="reads a buffer that nothing writes") as refused:
        passed(program(kernels), *LOWER)
    assert refused.value.where is not None and refused.value.where.startswith(reader)


def test_a_buffer_that_nothing_reads_needs_no_writer() -> None:
    passed(program(kernel("exp", "%0", "%2")), *LOWER)


def test_functions_write_what_they_are_handed() -> None:
    call = f"func.call @fill(%1) : ({T}) -> ()\n"
    fill = f"""func.func private @fill(%1: {T}) {{
    {kernel("exp", "%1", "%1")}
    func.return
    }}"""
    passed(program(call + kernel("neg", "%1", "%1") + call + kernel("neg", "%1", "%2")) + fill, *LOWER)


@pytest.mark.parametrize("loops", [loop("a", 4), loop("a", 1) + loop("b", 3, first=1), loop("a", 7, step=8)])
def test_trips_that_write_all_of_a_result_are_as_good_as_one_kernel(loops: str) -> None:
    passed(program(kernel("exp", "%0", "%1") + loops), *LOWER)


@pytest.mark.parametrize(
    ("loops", "first", "end"),
    [
        (loop("a", 2), 32, 64),
        (loop("a", 3, first=1), 0, 16),
        (loop("a", 1) + loop("b", 2, first=2), 16, 32),
        (loop("a", 4, step=8), 40, 64),
    ],
)
def test_trips_that_leave_rows_out_are_refused(loops: str, first: int, end: int) -> None:
    message = f"leave elements {first} to {end} of dimension 0 of a buffer unwritten, which has 64"
    with pytest.raises(LoweringError, match=message) as refused:
        passed(program(kernel("exp", "%0", "%1") + loops), *LOWER)
    assert refused.value.hint is not None and "spyre.hint = {tile" in refused.value.hint


def test_rows_beside_a_kernel_that_writes_everything_are_not_left_out() -> None:
    passed(program(kernel("exp", "%0", "%1") + kernel("abs", "%0", "%2") + loop("a", 2)), *LOWER)
