"""Host steps: what the executor is handed, and what is made of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import Interpreter

from spyre_mlir.dialects.host_call import HostCall, OperandSlot
from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.arrays import HostArray
from spyre_mlir.machine.levels.host_ops import HostStepFunctions, run_on_host
from tests.unit.machine.modules import parse

Array = NDArray[Any]


def step(level: str = "loop", operand: str = "f32", mark: str = "") -> HostOp:
    """A step that takes three numbers and gives the two largest and where they are."""
    text = f"""func.func @main(%x: tensor<3x{operand}>) -> tensor<2x{operand}> {{
      %v, %i = spyre.{level}.host "aten.topk" because "no such function" (%x) {{self = #aten.operands<1>, k = 2}}{mark}
        : (tensor<3x{operand}>) -> (tensor<2x{operand}>, tensor<2xi64>)
      func.return %v : tensor<2x{operand}>
    }}"""
    return next(op for op in parse(text).walk() if isinstance(op, HostOp))


class Executor:
    """Answers with given arrays, and keeps what it was asked."""

    def __init__(self, *answer: Array) -> None:
        self.answer, self.seen = [*answer], list[tuple[HostCall, list[Array], bool]]()

    def __call__(self, call: HostCall, operands: Sequence[Array], *, wide: bool) -> list[Array]:
        self.seen.append((call, [*operands], wide))
        return self.answer


def right() -> Executor:
    return Executor(np.asarray([0.1, 2.0], np.float32), np.asarray([2, 0], np.int32))


X = HostArray(np.asarray([0.1, 0.25, 2.0]))


def test_the_executor_gets_the_call_and_the_numbers() -> None:
    executor = right()
    run_on_host(step(), (X,), executor)
    ((call, operands, wide),) = executor.seen
    assert (call.overload, call.arguments) == ("topk", {"self": OperandSlot(0), "k": 2})
    assert [array.tolist() for array in operands] == [[0.1, 0.25, 2.0]]
    assert operands[0].dtype == np.float64
    assert not wide


def test_results_are_in_the_numbers_of_the_machine() -> None:
    values, places = run_on_host(step(), (X,), right())
    assert (values.values.dtype, places.values.dtype) == (np.float64, np.int64)
    assert values.values.tolist() == [np.float32(0.1), 2.0]
    assert places.values.tolist() == [2, 0]
    assert values.defined is None


def test_narrow_numbers_stay_narrow() -> None:
    executor, narrow = right(), HostArray(np.asarray([0.1, 0.25, 2.0], np.float32))
    values, places = run_on_host(step(), (narrow,), executor, narrow=True)
    assert executor.seen[0][1][0].dtype == np.float32
    assert (values.values.dtype, places.values.dtype) == (np.float32, np.int64)
    assert right().answer[0].dtype == np.float32
    executor = right()
    run_on_host(step(), (narrow,), executor)
    assert executor.seen[0][1][0].dtype == np.float64


@pytest.mark.parametrize(("operand", "mark"), [("f16", ""), ("f32", " wide")])
@pytest.mark.parametrize("narrow", [False, True])
def test_a_step_that_rounds_nothing_is_wide_in_wide_numerics(operand: str, mark: str, narrow: bool) -> None:
    executor = right()
    run_on_host(step(operand=operand, mark=mark), (X,), executor, narrow=narrow)
    assert executor.seen[0][2] is not narrow


def test_an_operand_has_values() -> None:
    unsure = HostArray(np.zeros(3), np.asarray([True, False, True]))
    with pytest.raises(MachineFault, match=r"operand 0: element \[1\] has no value") as caught:
        run_on_host(step(), (unsure,), right())
    assert caught.value.kind == FaultKind.UNINITIALISED_READ


def test_nobody_to_run_it() -> None:
    with pytest.raises(UnsupportedError, match="this interpreter has no host to run topk on") as caught:
        run_on_host(step(), (X,), None)
    assert caught.value.hint == "run the whole program"
    assert caught.value.where is not None
    assert caught.value.where.startswith("spyre.loop.host")


def test_an_answer_of_another_number_of_tensors() -> None:
    with pytest.raises(MachineFault, match="topk gave 1 tensors, expected 2") as caught:
        run_on_host(step(), (X,), Executor(np.zeros(2)))
    assert caught.value.kind == FaultKind.HOST_STEP


def test_an_answer_of_another_shape() -> None:
    with pytest.raises(MachineFault, match=r"a result of topk has shape \(3,\), its type is tensor<2xi64>") as caught:
        run_on_host(step(), (X,), Executor(np.zeros(2), np.zeros(3)))
    assert caught.value.kind == FaultKind.WRONG_SHAPE


@pytest.mark.parametrize("level", ["loop", "kernel"])
@pytest.mark.parametrize("narrow", [False, True])
def test_steps_of_both_levels_run_in_the_interpreter(level: str, narrow: bool) -> None:
    executor, interpreter = right(), Interpreter(ModuleOp([]))
    interpreter.register_implementations(HostStepFunctions(executor, narrow))
    values, places = interpreter.run_op(step(level), (HostArray(X.values.astype(np.float32)),))
    assert values.values.dtype == (np.float32 if narrow else np.float64)
    assert places.values.tolist() == [2, 0]
    alone = Interpreter(ModuleOp([]))
    alone.register_implementations(HostStepFunctions())
    with pytest.raises(UnsupportedError, match="no host to run topk"):
        alone.run_op(step(level), (X,))
