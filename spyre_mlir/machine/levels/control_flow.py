"""Rules for control flow, the same at every level: the host looks at a truth value or counts, and calls a function."""

from __future__ import annotations

from typing import cast

from typing_extensions import override
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Operation

from spyre_mlir.dialects.ir.control import CondOp, ForLoopOp, WhileLoopOp
from spyre_mlir.machine.arrays import HostArray
from spyre_mlir.machine.memory.exact import Memory, MemoryRegion


@register_impls
class ControlFunctions(InterpreterFunctions):
    """Semantics of the ops of control flow."""

    @impl(CondOp)
    def run_cond(self, interpreter: Interpreter, op: CondOp, args: PythonValues) -> PythonValues:
        """Run one of two functions."""
        predicate, *inputs = args
        before = self.begin()
        results = interpreter.call_op(op.then if _is_true(predicate, op) else op.otherwise, tuple(inputs))
        self.end(before, results)
        return results

    @impl(WhileLoopOp)
    def run_while_loop(self, interpreter: Interpreter, op: WhileLoopOp, args: PythonValues) -> PythonValues:
        """Run the body as long as the condition holds."""
        carried, others, before = tuple(args[: len(op.outputs)]), args[len(op.outputs) :], self.begin()
        while True:
            (holds,) = interpreter.call_op(op.condition, (*carried, *others))
            self.end(before, carried)
            if not _is_true(holds, op):
                return carried
            carried = interpreter.call_op(op.body, (*carried, *others))
            self.end(before, carried)

    @impl(ForLoopOp)
    def run_for_loop(self, interpreter: Interpreter, op: ForLoopOp, args: PythonValues) -> PythonValues:
        """Run the body once per entry of what is sliced."""
        _, count, sliced = op.numbers
        carried, others = tuple(args[:count]), args[count + sliced :]
        wholes, rows = cast("tuple[HostArray, ...]", args[count : count + sliced]), list[PythonValues]()
        before = self.begin()
        for number in op.order:
            entries = [whole.part(number) for whole in wholes]
            results = interpreter.call_op(op.body, (*carried, *entries, *others))
            carried = results[:count]
            rows.append(results[count:])
            self.end(before, carried)
        rows = rows if op.backwards is None else rows[::-1]
        stacked = (HostArray.joined(cast("tuple[HostArray, ...]", column)) for column in zip(*rows, strict=True))
        return (*carried, *stacked)

    def begin(self) -> object:
        """Called before a function is; what it returns is told to `end`."""
        return None

    def end(self, before: object, kept: PythonValues) -> None:
        """Called behind a function; `kept` is what later ones may read of what functions have made."""


@register_impls
class CardControlFunctions(ControlFunctions):
    """Same rules in a host program: device memory of a function is free again behind it, but for what it returns.

    Args:
        memory: of the card.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @override
    def begin(self) -> object:
        return self._memory.regions

    @override
    def end(self, before: object, kept: PythonValues) -> None:
        bases = {cast("int | None", getattr(value, "base", None)) for value in kept}
        stay = {id(region) for region in cast("tuple[MemoryRegion, ...]", before)}
        memory = self._memory
        gone = [r for r in memory.regions if id(r) not in stay and r.base not in (*bases, memory.scratchpad_base)]
        memory.release(gone)


def _is_true(value: object, op: Operation) -> bool:
    known = cast(HostArray, value).known(op, "the predicate")
    return bool(known.reshape(()).item())


__all__ = ["CardControlFunctions", "ControlFunctions"]
