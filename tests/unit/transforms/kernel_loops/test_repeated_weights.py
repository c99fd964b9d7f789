"""Weights of few bits that several cores make."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.hints import Hint
from spyre_mlir.dialects.spyre.kernel import ConvertOp, KernelOp, device_tensor
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.kernel_loops.repeated_weights import copies_of, repeat_weights, shared_rows
from spyre_mlir.transforms.kernel_plans.divided_blocks import kernels_in
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.utils.kernels.widened_weights import is_widened
from tests.unit.transforms.kernel_loops.test_row_blocks import product
from tests.unit.transforms.levels import ops


def repeated(module: ModuleOp) -> list[KernelOp]:
    (function,) = functions(module)
    repeat_weights(function.body.block, is_widened, KernelForms(kernels_in(function.body.block)), SPYRE)
    verify_module(module)
    return ops(module, KernelOp)


def test_each_copy_multiplies_rows_of_its_own() -> None:
    """256 columns are two sticks of eight bits, so sixteen cores make each of them, for 128 of 2,048 rows."""
    convert, multiplied, exp = repeated(product(2048))
    assert isinstance(convert, ConvertOp)
    assert convert.space.extents == {"copy": 16, "d0": 256, "d1": 64}
    assert convert.maps.data[0].data == (LinearExpr.of("d0"), LinearExpr.of("d1"))
    wide = device_tensor(convert.output)
    assert wide.shape == (16, 256, 64) and wide.layout.order[0] == 0
    assert multiplied.space.extents == {"copy": 16, "m": 128, "n": 256, "k": 64}
    assert multiplied.inputs[1] is convert.output
    rows = LinearExpr(0, (("copy", 128), ("m", 1)))
    assert [multiplied.maps.data[n].data[0] for n in (0, 2)] == [rows, rows]
    assert exp.space.extents == {"m": 2048, "n": 256}
    assert copies_of([convert, multiplied], ["d0", "n"]) == 16
    assert copies_of([convert, multiplied], ["copy", "copy"]) == 1


def test_weights_with_columns_for_all_cores_are_made_once() -> None:
    """4,096 columns are a stick on each core; of 16 rows no copy gains what it costs; DL16 is not made at all."""
    for module in (product(1024, columns=4096), product(16), product(2048, weight="f16")):
        assert all("copy" not in op.space.extents for op in repeated(module))


def test_cores_may_share_the_rows_of_whole_weights_in_loops_over_columns() -> None:
    convert, multiplied, exp = ops(product(96), KernelOp)
    assert shared_rows([convert, multiplied, exp], ["d0", "n", "n"]) == 96
    # Rows go by in the loop; the conversion is outside; there is no weight; a hint says how to divide.
    assert shared_rows([multiplied, exp], ["m", "m"]) == shared_rows([multiplied], ["n"]) == 1
    assert shared_rows([exp], ["n"]) == 1
    Hint({"d0": 2}).put(convert)
    assert shared_rows([convert, multiplied], ["d0", "n"]) == 1


def test_a_weight_that_something_else_reads_is_made_once() -> None:
    module = product(2048)
    first, _, exp = ops(module, KernelOp)
    exp.operands[0] = first.output
    (function,) = functions(module)
    repeat_weights(function.body.block, is_widened, KernelForms(kernels_in(function.body.block)), SPYRE)
    assert all("copy" not in op.space.extents for op in ops(module, KernelOp))
