"""Two runs of a bundle side by side, in device and in exact numerics: the error that every launch adds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import Queue
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.choices import Numerics
from spyre_mlir.debug.stored_runs import own_draws
from spyre_mlir.dialects.ir.module_control import has_control_flow
from spyre_mlir.dialects.sdscbundle import SdscExecuteOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import InputError
from spyre_mlir.hw.formats import DL16, DL16_LARGEST, DL16_SMALLEST
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.bundle.probes import operand_labels, operand_values, without_padding
from spyre_mlir.machine.bundle.run import Loader
from spyre_mlir.machine.bundle.schedule import Launch, read_schedule, unrolled
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.options import MachineOptions

Array = NDArray[Any]
Extents = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class KernelError:
    """Difference between device and exact numerics behind one launch.

    Attributes:
        file: the SuperDSC file that ran.
        function: its hardware function.
        module: path of the module of the model; empty for the root or if unknown.
        line: file and line of the model; empty if unknown.
        error: the root mean square of the result's difference over that of its exact value.
        before: the largest such error of an operand: what the launch was given.
        overflows: results whose exact value is beyond the largest DLFloat16.
        underflows: results that are 0 and whose exact value is not, because it is below the smallest DLFloat16.
        lost: results that are no numbers, though they are in exact numerics.
    """

    file: str
    function: str
    module: str
    line: str
    error: float
    before: float
    overflows: int = 0
    underflows: int = 0
    lost: int = 0

    @property
    def added(self) -> float:
        """The part of the error that its operands do not have."""
        return max(0.0, self.error - self.before)


@dataclass(frozen=True)
class _Seen:
    """Values around one launch.

    Attributes:
        view: what its file says.
        operands: what it reads, before it runs.
        result: what it wrote.
    """

    view: Descriptor
    operands: tuple[Array, ...]
    result: Array


class _Watch:
    """Watcher of a run, which takes the values around each launch."""

    def __init__(self, take: Callable[[_Seen], None], extents: Extents) -> None:
        """Starts with what takes the values, and the extents without padding."""
        self._take, self._extents = take, extents
        self._operands: tuple[Array, ...] = ()

    def run(self, program: DeviceProgram, inputs: Sequence[Array | None], numerics: Numerics) -> None:
        """Run a program under watch."""
        watched = replace(program, before=self._before, watch=self._behind, executor=own_draws())
        run_program(watched, inputs, MachineOptions(numerics=numerics))

    def _before(self, op: SdscExecuteOp, view: Descriptor, memory: Memory, symbols: Mapping[int, int]) -> None:
        read = range(len(view.operands) - 1)
        self._operands = tuple(self._values(op, view, number, memory, symbols) for number in read)

    def _behind(self, op: SdscExecuteOp, view: Descriptor, memory: Memory, symbols: Mapping[int, int]) -> None:
        self._take(_Seen(view, self._operands, self._values(op, view, len(view.operands) - 1, memory, symbols)))

    def _values(
        self, op: SdscExecuteOp, view: Descriptor, index: int, memory: Memory, symbols: Mapping[int, int]
    ) -> Array:
        """Elements of an operand, without padding."""
        values, labels = operand_values(view, index, memory, symbols), operand_labels(view, index)
        if len(labels) != values.ndim:
            return values  # a table, whose rows another operand names
        return without_padding(values, labels, self._extents.get(op.sdsc_filename.data, {}))


def launches_of(bundle: ModuleOp, load: Loader, program: ModuleOp) -> Iterator[Launch]:
    """Return the launches of a program in execution order, with their places in the model.

    Args:
        bundle: the functions that the program launches.
        load: gives the descriptor of a file name.
        program: the host program.
    """
    return unrolled(read_schedule(bundle, load, program).items)


def kernel_errors(
    program: DeviceProgram, inputs: Sequence[Array | None], launches: Iterator[Launch], extents: Extents
) -> list[KernelError]:
    """Run a program in both numerics, and return the error behind every launch, in execution order.

    Both runs go on side by side, so that no more than one launch's values are held. Where the host decides what runs,
    the two runs may part, and nothing is returned.

    Args:
        program: with weights as the model has them, which exact numerics need.
        inputs: see `run_program`.
        launches: of the program, in execution order, with their places in the model.
        extents: per file the logical extents of its dims, as the manifest has them; others count with their padding.

    Raises:
        MachineFault: a run fails.
        InputError: a loop runs more often than the launches say.
    """
    if has_control_flow(program.host):
        return []
    errors: list[KernelError] = []
    with _exact_launches(program, inputs, extents) as exact:

        def compare(seen: _Seen) -> None:
            launch, wanted = next(launches, None), next(exact, None)
            if launch is None or wanted is None:
                raise InputError(
                    "the program runs more launches than its files tell",
                    hint="a loop of unknown length cannot be compared launch by launch",
                )
            errors.append(_error(launch, seen, wanted))

        _Watch(compare, extents).run(program, inputs, "device")
    return errors


@contextmanager
def _exact_launches(
    program: DeviceProgram, inputs: Sequence[Array | None], extents: Extents
) -> Generator[Iterator[_Seen]]:
    """Values around every launch of a run in exact numerics; its thread runs only while they are waited for."""
    asked: Queue[bool] = Queue()
    given: Queue[_Seen | None] = Queue()

    def wait() -> None:
        if not asked.get():
            raise _StoppedError

    def take(seen: _Seen) -> None:
        given.put(seen)
        wait()

    def run() -> None:
        wait()
        _Watch(take, extents).run(program, inputs, "exact")

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(run)
        ended.add_done_callback(lambda _: given.put(None))

        def values() -> Iterator[_Seen]:
            asked.put(True)
            while (found := given.get()) is not None:
                yield found
                asked.put(True)
            ended.result()  # raises what ended it

        try:
            yield values()
        finally:
            asked.put(False)


class _StoppedError(Exception):
    """Ends the run in exact numerics when nobody asks for more."""


def _error(launch: Launch, device: _Seen, exact: _Seen) -> KernelError:
    given = [relative_error(a, b) for a, b in zip(device.operands, exact.operands, strict=True)]
    got, wanted = device.result, exact.result
    known = np.isfinite(wanted)
    size = np.abs(np.where(known, wanted, 0.0))
    narrow = device.view.operands[-1].format == DL16.name
    return KernelError(
        launch.file,
        launch.descriptor.op_func_name,
        launch.module,
        launch.source,
        relative_error(got, wanted),
        max(given, default=0.0),
        overflows=int((size > DL16_LARGEST).sum()) if narrow else 0,
        underflows=int(((size > 0) & (size < DL16_SMALLEST) & (got == 0)).sum()) if narrow else 0,
        lost=int((known & ~np.isfinite(got)).sum()),
    )


def relative_error(got: Array, wanted: Array) -> float:
    """Return the root mean square of the difference over that of what was wanted; what is no number does not count."""
    known = np.isfinite(got) & np.isfinite(wanted)
    a, b = got[known].astype(np.float64), wanted[known].astype(np.float64)
    difference, scale = float(np.sum((a - b) ** 2)), float(np.sum(b**2))
    return float(np.sqrt(difference / scale)) if scale else float(np.sqrt(difference))
