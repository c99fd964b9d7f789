"""A host program, the bundle that it launches, and what comes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.ir.functions import functions, functions_by_name
from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.places import Rebase
from spyre_mlir.dialects.sdscbundle import SdscExecuteOp
from spyre_mlir.dialects.spyre.kernel import ArgumentOp, LaunchOp, ToDeviceOp
from spyre_mlir.errors import InputError
from spyre_mlir.machine.arrays import Array
from spyre_mlir.machine.bundle.host_code import HostCode
from spyre_mlir.machine.bundle.run import LaunchWatch, Loader
from spyre_mlir.machine.levels.host_ops import HostExecutor
from spyre_mlir.machine.levels.run import find_function
from spyre_mlir.machine.options import MachineOptions

# What runs in other numerics than the device's compute on.
_NUMBERS = {"exact": "exact numbers", "none": "numbers that nothing rounded"}


@dataclass(frozen=True)
class DeviceProgram:
    """A host program with the bundle it launches.

    Attributes:
        host: module with the host function `main`.
        bundle: module with the bundle functions, one per launch.
        load: gives the descriptor of a file the bundle names.
        weights: per buffer of the launch that a weight fills, what gives the weight as the device has it: codes,
            [sticks, lanes].
        watch: sees every launch after it ran.
        before: sees every launch before it runs.
        executor: runs host steps.
        tensors: per op that runs a file, which tensor each operand is, where the op itself does not say it.
        code: walks through the host function in place of the interpreter.
    """

    host: ModuleOp
    bundle: ModuleOp
    load: Loader
    weights: Mapping[int, Callable[[], Array]] = field(default_factory=dict[int, "Callable[[], Array]"])
    watch: LaunchWatch | None = None
    before: LaunchWatch | None = None
    executor: HostExecutor | None = None
    tensors: Mapping[Operation, Sequence[str]] = field(default_factory=dict[Operation, Sequence[str]])
    code: HostCode | None = None
    _rebases: dict[LaunchOp, Rebase] = field(default_factory=dict[LaunchOp, Rebase], compare=False)

    def weight(self, op: Operation) -> Callable[[], Array] | None:
        """Source of the codes that a transfer sends, if they are stored with the program."""
        number = self._numbers.get(op.results[0]) if isinstance(op, ToDeviceOp) else None
        return None if number is None else self.weights.get(number)

    def rebase(self, op: LaunchOp) -> Rebase:
        """Return how a launch names the places of the files that it runs."""
        if op not in self._rebases:
            self._rebases[op] = Rebase.of(self._executes.get(op.bundle.root_reference.data, []), op)
        return self._rebases[op]

    def tensor_number(self, op: Operation) -> int:
        """Return the number of a tensor in device memory: its place in the text of the host program."""
        return self._tensor_numbers[op]

    @cached_property
    def _tensor_numbers(self) -> dict[Operation, int]:
        made = (op for op in ops_in(self.host) if isinstance(op, ArgumentOp))
        return {op: number for number, op in enumerate(made)}

    @cached_property
    def _executes(self) -> dict[str, list[Operation]]:
        named = functions_by_name(self.bundle)
        return {name: [op for op in f.walk() if isinstance(op, SdscExecuteOp)] for name, f in named.items()}

    @cached_property
    def _numbers(self) -> dict[SSAValue, int]:
        buffers = [b for f in functions(self.host) for op in f.walk() if isinstance(op, LaunchOp) for b in op.buffers]
        return {buffer: number for number, buffer in reversed(list(enumerate(buffers)))}


def takes_none(bundle: ModuleOp, entry: str) -> bool:
    """Return whether a bundle function takes no addresses, as its files hold them."""
    return not find_function(bundle, entry).function_type.inputs.data


def check_held(program: DeviceProgram, argument: SSAValue, name: str, options: MachineOptions) -> None:
    """Raise InputError unless the program came with an argument's value in a form this run can use."""
    transfers = [use.operation for use in argument.uses]
    if not all(program.weight(op) for op in transfers):
        raise InputError(f"{name} has no value", hint="pass one")
    if options.numerics != "device" or options.overflow != "saturate":
        raise InputError(
            f"{name} is there as the device has it, which is rounded; this run asks for "
            + _NUMBERS.get(options.numerics, "another rule of overflow"),
            hint="pass the weight as the model has it, or run in device numerics",
        )


__all__ = ["DeviceProgram", "check_held", "takes_none"]
