"""Plans of all functions of a module, before any of them is written."""

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.text.render import module_text
from spyre_mlir.transforms.buffer_layouts.choose_layouts import ChooseLayoutsPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.loop_to_kernel.test_region_plans import LAYER, MAIN


def test_functions_of_regions_are_planned_before_their_callers_and_nothing_is_written() -> None:
    module = passed(MAIN + LAYER)
    before = module_text(module)
    planned = ChooseLayoutsPass().planned(make_context(), module)
    assert [p.function.sym_name.data for p in planned] == ["layers", "main"]
    assert [p.region is not None for p in planned] == [True, False]
    assert module_text(module) == before
    # The product of the layer and the sum of the program.
    assert [len(p.planner.chosen.choices()) for p in planned] == [1, 1]
    for one in planned:
        one.write()
    assert [op.function_name for op in ops(module, KernelOp)].count("batchmatmul") == 1


def test_a_function_that_cannot_be_planned_leaves_all_functions_as_they_are() -> None:
    text = MAIN.replace("func.return", "%z = aten.relu(%e) : (tensor<3x5xf32>) -> tensor<3x5xf32>\n  func.return")
    module = passed(text + LAYER)
    before = module_text(module)
    with pytest.raises(UnsupportedError, match=r"aten\.relu at the loop level"):
        ChooseLayoutsPass().planned(make_context(), module)
    assert module_text(module) == before


def test_a_program_of_kernels_is_not_planned_again() -> None:
    kernels = module_text(passed(MAIN + LAYER, "choose-layouts", "convert-spyre-loop-to-spyre-kernel"))
    with pytest.raises(LoweringError, match=r"spyre\.kernel\.\w+ is an op of a level behind this pass") as refused:
        ChooseLayoutsPass().planned(make_context(), passed(kernels))
    assert refused.value.hint == "--to goes on from where a program is"
