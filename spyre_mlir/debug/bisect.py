"""Bisection to the first divergence: the first op whose value differs from what the level above computes.

A program is wrong from the first level on whose results differ from the level above. Between those two the runs are
held against each other op by op:

* the bundle on disk against the module it was written from: launch by launch, each result where the *module* puts it,
  so that a result at a wrong place is the writer's fault and not the reader's;
* the `superdsc` level against the kernel level: launch by kernel op, each result as a logical tensor;
* two levels above that: by the place in the model, since one op becomes several. An op is sound if the level below
  computes its value at the same place.

Decision: docs/decisions/0047-the-first-result-at-its-own-place.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation

from spyre_mlir.backend.split import launches, split_module
from spyre_mlir.debug.divergence import Difference, Divergence, worst_difference
from spyre_mlir.debug.stored_runs import own_draws
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.places import Source, source_of
from spyre_mlir.dialects.sdscbundle import TENSORS, SdscExecuteOp
from spyre_mlir.dialects.spyre.kernel import ComputeOp, KernelOp, RestickifyOp
from spyre_mlir.dialects.spyre.loop import NestOp, body_function
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import SpyreError
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.bundle.probes import (
    Launched,
    Observed,
    logical_values,
    observe_function,
    observe_program,
    operand_labels,
    operand_values,
)
from spyre_mlir.machine.bundle.run import Loader
from spyre_mlir.machine.levels.host_ops import HostExecutor
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.ops.table import Family
from spyre_mlir.pipeline import LEVELS

Array = NDArray[Any]
ATEN, KERNELS, SUPERDSC, BUNDLE = "aten", "spyre.kernel", "superdsc", "bundle"
# Two runs of the same numbers in another order of sums; far below what any wrong program leaves.
SAME_NUMBERS = 1e-9


class _FoundError(Exception):
    """Ends a run at the divergence."""

    def __init__(self, divergence: Divergence, number: int, values: Array | None = None) -> None:
        self.divergence, self.number, self.values = divergence, number, values


@dataclass(frozen=True)
class BisectSession:
    """A program at several levels, with inputs to run it on.

    Attributes:
        modules: by level; those that are not there are not looked at.
        inputs: one array per argument; None for a weight that the bundle has.
        tolerance: largest error that counts as equal between levels above `superdsc`.
        options: how the two lowest levels run.
        host: gives, for each run, what runs its host steps.
    """

    modules: Mapping[str, ModuleOp]
    inputs: Sequence[Array | None]
    tolerance: float = 1e-4
    options: MachineOptions = field(default_factory=MachineOptions)
    host: Callable[[], HostExecutor] = own_draws

    def program(self) -> DeviceProgram:
        """The `superdsc` level in the form that the machine runs."""
        host, bundle, files = split_module(self.modules[SUPERDSC])
        return DeviceProgram(host, bundle, lambda name: describe(files[name]), executor=self.host())

    @property
    def known(self) -> list[Array]:
        """The inputs that have values."""
        return [x for x in self.inputs if x is not None]

    def results(self, level: str, bundle: DeviceProgram) -> list[Array]:
        """Results of the program at a level; levels above `superdsc` use exact numbers."""
        if level == BUNDLE:
            return run_program(replace(bundle, executor=self.host()), self.inputs, self.options)
        if level == SUPERDSC:
            return run_program(replace(self.program(), weights=bundle.weights), self.inputs, self.options)
        return run_function(self.modules[level], self.known, host=self.host())

    def find(self, level: str, above: str, bundle: DeviceProgram | None = None) -> Divergence | None:
        """Return the first op of a level whose value differs from the level above; None if no op does."""
        if level == BUNDLE and bundle is not None:
            return self._in_bundle(bundle)
        if level == SUPERDSC:
            return self._in_superdsc()
        return self._by_place(level, above)

    def _in_bundle(self, bundle: DeviceProgram) -> Divergence | None:
        right, seen = replace(self.program(), weights=bundle.weights), 0
        _name_tensors(right.bundle, bundle.bundle)
        expected = observe_program(right, self.inputs, self.options)

        def watch(op: SdscExecuteOp, _: Descriptor, memory: Memory, __: Mapping[int, int]) -> None:
            nonlocal seen
            number, seen = seen, seen + 1
            self._compare_launch(op, memory, number, expected)

        try:
            run_program(replace(bundle, watch=watch, executor=self.host()), self.inputs, self.options)
        except _FoundError as found:
            return self._as_tensor(found, expected)
        except SpyreError as error:
            return _stopped(error, expected, seen, bundle)
        if seen < len(expected):
            reason = f"launch {seen} of {expected[seen].file} is missing"
            return Divergence(BUNDLE, SUPERDSC, "sdscbundle.sdsc_execute", reason=reason)
        return None

    def _compare_launch(self, op: SdscExecuteOp, memory: Memory, number: int, expected: Sequence[Launched]) -> None:
        """Raises `_FoundError` unless a launch is the expected one and left what was expected, in its place."""
        wanted = expected[number].file if number < len(expected) else "nothing more"
        if wanted != op.sdsc_filename.data:
            reason = f"launch {number} runs {op.sdsc_filename.data}, expected {wanted}"
            raise _FoundError(Divergence(BUNDLE, SUPERDSC, "sdscbundle.sdsc_execute", reason=reason), number)
        e = expected[number]
        got = operand_values(e.view, len(e.view.operands) - 1, memory, e.symbols)
        if (worst := worst_difference(got, e.values, self._same_numbers)) is not None:
            divergence = Divergence(BUNDLE, SUPERDSC, e.view.op_func_name, e.file, source_of(e.op.location), worst)
            raise _FoundError(divergence, number, got)

    @property
    def _same_numbers(self) -> float:
        return SAME_NUMBERS if self.options.numerics == "exact" else self.tolerance

    def _kernels(self) -> list[Observed]:
        if KERNELS not in self.modules or len(self.known) != len(self.inputs):
            return []
        seen = observe_function(self.modules[KERNELS], self.known, self.host())
        return [o for o in seen if isinstance(o.op, KernelOp)]

    def _as_tensor(self, found: _FoundError, expected: Sequence[Launched]) -> Divergence:
        """The divergence with the index of its unpadded tensor, where the kernel op is known."""
        kernels, divergence = self._kernels(), found.divergence
        if found.values is None or len(kernels) != len(expected):
            return divergence
        e, op, names = expected[found.number], kernels[found.number].op, self._labels()
        if not isinstance(op, KernelOp) or e.file not in names:
            return divergence
        pair = [logical_values(x, e.labels, op, names[e.file]) for x in (found.values, e.values)]
        worst = worst_difference(pair[0], pair[1], self._same_numbers)
        return divergence if worst is None else replace(divergence, difference=worst)

    def _labels(self) -> dict[str, dict[str, str]]:
        """Per file the loop that each label stands for."""
        found: dict[str, dict[str, str]] = {}
        for file, op in split_module(self.modules[SUPERDSC])[2].items():
            labels = op.attributes.get("labels")
            if isinstance(labels, DictionaryAttr):
                found[file] = {k: v.data for k, v in labels.data.items() if isinstance(v, StringAttr)}
        return found

    def _in_superdsc(self) -> Divergence | None:
        kernels, names, seen = self._kernels(), self._labels(), 0

        def watch(op: SdscExecuteOp, view: Descriptor, memory: Memory, symbols: Mapping[int, int]) -> None:
            nonlocal seen
            number, seen = seen, seen + 1
            file, kernel = op.sdsc_filename.data, kernels[number].op if number < len(kernels) else None
            if not isinstance(kernel, KernelOp):
                raise _FoundError(Divergence(SUPERDSC, KERNELS, "launch", file, reason="no kernel op is left"), number)
            last = len(view.operands) - 1
            got, labels = operand_values(view, last, memory, symbols), operand_labels(view, last)
            tensor = logical_values(got, labels, kernel, names.get(file, {}))
            # A kernel may write a part of a tensor; the rest is not this launch's matter.
            written = ~np.isnan(logical_values(np.zeros_like(got), labels, kernel, names.get(file, {})))
            wanted = np.where(written, kernels[number].values, np.nan)
            if (worst := worst_difference(tensor, wanted, self._same_numbers)) is not None:
                divergence = Divergence(SUPERDSC, KERNELS, view.op_func_name, file, source_of(op.location), worst)
                raise _FoundError(divergence, number)

        try:
            run_program(replace(self.program(), watch=watch), self.inputs, self.options)
        except _FoundError as found:
            return found.divergence
        except SpyreError as error:
            op = kernels[seen] if seen < len(kernels) else None
            called = "launch" if op is None else op.called
            return Divergence(SUPERDSC, KERNELS, called, source=op.source if op else Source(), reason=str(error))
        return None

    def unlike_torch(self, expected: Mapping[Operation, Sequence[Array]]) -> Divergence | None:
        """Return the first op of the aten level with a result that differs from torch's."""
        left = {op: list(results) for op, results in expected.items()}
        for observed in observe_function(self.modules[ATEN], self.known, self.host()):
            wanted = left[observed.op].pop(0) if left.get(observed.op) else None
            if wanted is None or wanted.shape != observed.values.shape:
                continue
            if (worst := worst_difference(observed.values, wanted, self.tolerance)) is not None:
                return Divergence(ATEN, "torch", f"{observed.called} {observed.name}", None, observed.source, worst)
        return None

    def _by_place(self, level: str, above: str) -> Divergence | None:
        wanted = observe_function(self.modules[above], self.known, self.host())
        try:
            got = observe_function(self.modules[level], self.known, self.host())
        except SpyreError as error:
            return Divergence(level, above, "the run", reason=str(error))
        by_place: dict[Source, list[Observed]] = {}
        for observed in got:
            by_place.setdefault(observed.source, []).append(observed)
        verdicts: dict[Operation, Divergence | None] = {}
        for expected in wanted:
            candidates = [c for c in by_place.get(expected.source, []) if _may_be(c, expected)]
            # An op of a region runs once per call; the first that differs counts.
            if candidates and not _moves(expected.op) and verdicts.get(expected.op) is None:
                verdicts.pop(expected.op, None)
                verdicts[expected.op] = self._unmatched(expected, candidates, level, above)
        guilty = (divergence for op, divergence in verdicts.items() if divergence is not None and _spoils(op, verdicts))
        return next(guilty, None)

    def _unmatched(
        self, expected: Observed, candidates: Sequence[Observed], level: str, above: str
    ) -> Divergence | None:
        """The candidate nearest to a value, unless one has it."""
        nearest: tuple[Difference, Observed] | None = None
        for candidate in candidates:
            shaped = candidate.values.reshape(expected.values.shape)
            worst = worst_difference(shaped, expected.values, self.tolerance)
            if worst is None:
                return None
            if nearest is None or worst.error < nearest[0].error:
                nearest = worst, candidate
        if nearest is None:
            return None
        difference, candidate = nearest
        reason = f"it should be {expected.called} {expected.name} of {above}"
        called = f"{candidate.called} {candidate.name}"
        return Divergence(level, above, called, source=candidate.source, difference=difference, reason=reason)


def _moves(op: Operation) -> bool:
    """Return whether an op only looks at a tensor in another way; the level below reads through it."""
    return isinstance(op, AtenOp) and op.entry is not None and op.entry.family is Family.VIEW


def _may_be(candidate: Observed, expected: Observed) -> bool:
    """Return whether an observed value may be the expected one: it has its size, and is computed if that is.

    A kernel that only lays a tensor out is at the place of the op that reads it, and has the values that this op reads.
    """
    if candidate.values.size != expected.values.size:
        return False
    nest = expected.op
    computed = isinstance(nest, NestOp) and (nest.combine is not None or body_function(nest.body.block) is not None)
    return not (computed and _lays_out(candidate.op))


def _lays_out(op: Operation) -> bool:
    """Return whether an op is a kernel that only moves the elements of a tensor."""
    return isinstance(op, RestickifyOp) or (isinstance(op, ComputeOp) and op.function_name == COPY)


def _spoils(op: Operation, verdicts: Mapping[Operation, Divergence | None]) -> bool:
    """Return whether values computed from an op's value are wrong too; if not, the op merely computes differently."""
    users, queue, seen = list[Operation](), [op], {op}
    while queue:
        for use in (use for result in queue.pop().results for use in result.uses):
            user = use.operation
            if user in verdicts:
                users.append(user)
            elif user not in seen:
                seen.add(user)
                queue.append(user)
    return not users or any(verdicts[user] is not None for user in users)


def _name_tensors(module: ModuleOp, named: ModuleOp) -> None:
    """Tell a module the names of tensors that another has, so that both count the same padding as undefined."""
    pairs = list(zip(launches(module), launches(named), strict=False))
    if any(one.sdsc_filename != other.sdsc_filename for one, other in pairs):
        by_file = {op.sdsc_filename: op for op in launches(named)}
        pairs = [(op, by_file[op.sdsc_filename]) for op in launches(module) if op.sdsc_filename in by_file]
    for one, other in pairs:
        if TENSORS in other.attributes:
            one.attributes[TENSORS] = other.attributes[TENSORS]


def _stopped(error: SpyreError, expected: Sequence[Launched], seen: int, bundle: DeviceProgram) -> Divergence:
    """All values were right until a launch could not run: the first file that says something else, or the launch."""
    if seen >= len(expected):
        return Divergence(BUNDLE, SUPERDSC, "the way back to the host", reason=str(error))
    ran, loops = launches(bundle.bundle), any(isinstance(op, ForOp) for op in bundle.bundle.walk())
    if not loops and seen < len(ran) and ran[seen].sdsc_filename.data != expected[seen].file:
        reason = f"launch {seen} runs {ran[seen].sdsc_filename.data}, expected {expected[seen].file}: {error}"
        return Divergence(BUNDLE, SUPERDSC, "sdscbundle.sdsc_execute", reason=reason)
    e = next((e for e in expected[: seen + 1] if _says_else(e, bundle.load)), expected[seen])
    return Divergence(BUNDLE, SUPERDSC, e.view.op_func_name, e.file, source_of(e.op.location), reason=str(error))


def _says_else(launched: Launched, load: Loader) -> bool:
    try:
        return load(launched.file) != launched.view
    except SpyreError:
        return True


def bisect(walk: BisectSession, bundle: DeviceProgram) -> Divergence | None:
    """First divergence in the first level whose results differ from those of the level above; None if all agree.

    The uppermost level of the walk is believed. Levels above `superdsc` need every input; the others do without
    those that the bundle has as the device has them.
    """
    before: list[Array] | None = None
    above = ""
    complete = len(walk.known) == len(walk.inputs)
    levels = [name for name in LEVELS if name in walk.modules and (complete or name == SUPERDSC)]
    for level in (*levels, BUNDLE):
        tolerance = SAME_NUMBERS if level == BUNDLE and walk.options.numerics == "exact" else walk.tolerance
        try:
            results = walk.results(level, bundle)
        except SpyreError as error:
            if before is None:
                raise
            return walk.find(level, above, bundle) or Divergence(level, above, "the run", reason=str(error))
        if before is not None:
            pairs = zip(results, before, strict=True)
            worst = next((d for d in (worst_difference(a, b, tolerance) for a, b in pairs) if d is not None), None)
            if worst is not None:
                return walk.find(level, above, bundle) or Divergence(level, above, "a transfer", difference=worst)
        before, above = results, level
    return None
