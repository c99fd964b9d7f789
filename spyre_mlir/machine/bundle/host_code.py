"""A host program that Python code walks through, step by step, in place of the interpreter.

The steps are those of the program that is there: layouts, places and weights are read from it, and the same rules run
them.

Decision: docs/decisions/0133-host-code-drives-the-program.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from spyre_mlir.dialects.spyre.host import KernelHostOp
from spyre_mlir.dialects.spyre.kernel import AllocOp, FromDeviceOp, KernelConstantOp, LaunchOp, ToDeviceOp
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.errors import InputError

KINDS: dict[str, type[Operation]] = {
    "to_device": ToDeviceOp,
    "constant": KernelConstantOp,
    "alloc": AllocOp,
    "block_number": BlockNumberOp,
    "tile": TileOp,
    "launch": LaunchOp,
    "from_device": FromDeviceOp,
    "host": KernelHostOp,
}


@dataclass(frozen=True)
class Card:
    """A card, and the steps of a host program; what its methods give is there to be passed to other methods of it.

    Attributes:
        interpreter: runs single steps.
        steps: of the host function, in order.
    """

    interpreter: Interpreter
    steps: tuple[Operation, ...]

    def to_device(self, step: int, value: Any) -> Any:
        """Send a tensor of the host, or a weight, in the layout that the step has; give its buffer."""
        return self._run(step, "to_device", value)

    def constant(self, step: int) -> Any:
        """Send the numbers that the step has; give their buffer."""
        return self._run(step, "constant")

    def alloc(self, step: int) -> Any:
        """Give a buffer without contents."""
        return self._run(step, "alloc")

    def block_number(self, step: int, position: Any) -> int:
        """Give the number of the block that holds a position."""
        return self._run(step, "block_number", position)

    def tile(self, step: int, buffer: Any, number: int) -> Any:
        """Give the block of a buffer that has a number."""
        return self._run(step, "tile", buffer, number)

    def launch(self, step: int, *buffers: Any) -> None:
        """Run kernels on buffers."""
        self._run(step, "launch", *buffers)

    def from_device(self, step: int, buffer: Any) -> Any:
        """Read a buffer back; give a tensor of the host."""
        return self._run(step, "from_device", buffer)

    def host(self, step: int, *values: Any) -> Any:
        """Run an operator on the host; give its result, or a tuple of several."""
        return self._run(step, "host", *values)

    def _run(self, step: int, kind: str, *values: Any) -> Any:
        if not 0 <= step < len(self.steps):
            raise _stale(f"there is no step {step}, the program has {len(self.steps)}")
        op = self.steps[step]
        if not isinstance(op, KINDS[kind]):
            raise _stale(f"step {step} is {op.name}, not {kind}")
        if len(values) != len(op.operands):
            raise _stale(f"step {step}, {op.name}, takes {len(op.operands)} values, got {len(values)}")
        results = self.interpreter.run_op(op, values)
        return results[0] if len(results) == 1 else results or None


def _stale(message: str) -> InputError:
    return InputError(f"the host code does not fit the program: {message}", hint="emit the code of this bundle again")


HostCode = Callable[..., Any]


def driven(code: HostCode, interpreter: Interpreter, main: FuncOp, arguments: PythonValues) -> PythonValues:
    """Run a host function by code that takes a `Card` and the arguments, and returns the results.

    Raises:
        InputError: the code asks for steps that the program does not have, or gives another number of results.
    """
    *steps, _ = main.body.block.ops
    returned = code(Card(interpreter, tuple(steps)), *arguments)
    results = cast("PythonValues", returned if isinstance(returned, tuple) else (returned,))
    if len(results) != len(main.function_type.outputs):
        raise _stale(f"it returns {len(results)} tensors, the program {len(main.function_type.outputs)}")
    return results
