"""Who notices a mutant: a static check, a fault, a comparison, nobody."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.backend.check.bundle import Bundle
from spyre_mlir.backend.check.bundle_rules import BUNDLE_RULES
from spyre_mlir.backend.check.layout_rules import launch_layout
from spyre_mlir.backend.read import read_json
from spyre_mlir.backend.split import launches
from spyre_mlir.backend.stored import StoredBundle
from spyre_mlir.debug.bisect import BisectSession
from spyre_mlir.dialects.superdsc.check import Problem, check_value
from spyre_mlir.dialects.superdsc.check.json_file import SdscJson
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor, Misread
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import MachineFault, SpyreError
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.bundle.run import Loader
from spyre_mlir.machine.bundle.transfers import ResidentTensors
from spyre_mlir.machine.options import MachineOptions
from tests.mutants import expressions
from tests.mutants.draw import Mutant
from tests.mutants.image import LX, Image, places_of

Array = NDArray[Any]
STATIC, FAULT, COMPARED, EQUIVALENT, MISSED = "static", "fault", "compared", "equivalent", "missed"
VERDICTS = (STATIC, FAULT, COMPARED, EQUIVALENT, MISSED)
# Sums of the same numbers in another order, in double precision.
SAME = 1e-11


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    Args:
        mutant: which.
        verdict: who noticed.
        why: what was said.
        named: whether `verify` names a launch that the mutant changed; None if it finds nothing wrong.
        blamed: what `verify` says.
    """

    mutant: Mutant
    verdict: str
    why: str
    named: bool | None = None
    blamed: str = ""


@dataclass
class Judge:
    """Holds mutants of one bundle against it.

    Args:
        image: the correct bundle.
        static: whether the static checks are on.
        naming: whether `verify` is asked for the launch it blames.
    """

    image: Image
    static: bool = True
    naming: bool = True
    resident: ResidentTensors = field(default_factory=ResidentTensors)
    expected: list[list[Array]] = field(init=False)
    numbers: NDArray[np.uint64] = field(init=False)
    _sdscs: dict[str, SdscJson] = field(default_factory=dict[str, SdscJson])

    def __post_init__(self) -> None:
        image = self.image
        self._sdscs = {name: _sdsc(value) for name, value in image.values.items()}
        self.expected = [self.run(image.module, image.views, x, "exact") for x in image.inputs]
        self.numbers = self.result_numbers(image.module, image.views)

    def run(
        self, module: ModuleOp, views: dict[str, Descriptor], inputs: Sequence[Array], numerics: Any
    ) -> list[Array]:
        """Runs a bundle on the machine."""
        program = DeviceProgram(self.image.program, module, views.__getitem__)
        return run_program(program, inputs, MachineOptions(numerics=numerics), self.resident)

    def unnoticed(self, module: ModuleOp, files: dict[str, Any]) -> bool:
        """Whether a bundle breaks no rule, faults nowhere, and gives the right results."""
        if self._static(module, files) is not None:
            return False
        views = self.image.views | {n: describe(read_json(json.dumps(v), n)) for n, v in files.items()}
        outcome = self._run(module, views)
        return not isinstance(outcome, str) and _apart(outcome, self.expected[0]) == 0

    def verdict(self, mutant: Mutant) -> Verdict:
        """Who notices a mutant."""
        module, files = mutant.draft(self.image).bundle()
        read: dict[str, Descriptor] = dict(self.image.views)

        def load(name: str) -> Descriptor:
            return describe(read_json(json.dumps(files[name]), name)) if name in files else read[name]

        first, why = self._noticed(mutant, module, files, load)
        if first in (EQUIVALENT, MISSED) or not self.naming:
            return Verdict(mutant, first, why)
        named, blamed = self._named(mutant, module, load)
        if named is None and first == COMPARED:
            named = False
        return Verdict(mutant, first, why, named, blamed)

    def _noticed(self, mutant: Mutant, module: ModuleOp, files: dict[str, Any], load: Loader) -> tuple[str, str]:
        if self.static and (found := self._static(module, files)) is not None:
            return STATIC, found
        try:
            views = self.image.views | {name: load(name) for name in files}
        except SpyreError as error:
            return FAULT, f"reading: {error}"
        outcome = self._run(module, views)
        if isinstance(outcome, str):
            return FAULT, outcome
        off = _apart(outcome, self.expected[0])
        if off > SAME:
            return COMPARED, f"error {off:.1e}"
        second = self.run(module, views, self.image.inputs[1], "exact")
        if _apart(second, self.expected[1]) > SAME:
            return COMPARED, "other inputs only"
        if np.array_equal(self.result_numbers(module, views), self.numbers):
            return EQUIVALENT, "every result is the same expression of the same inputs"
        return MISSED, f"error {off:.1e}"

    def _run(self, module: ModuleOp, views: dict[str, Descriptor]) -> list[Array] | str:
        """Results in exact numerics, or what went wrong in these or, if they are wrong, in device numerics."""
        try:
            results = self.run(module, views, self.image.inputs[0], "exact")
            if _apart(results, self.expected[0]) > SAME:
                self.run(module, views, self.image.inputs[0], "device")
        except MachineFault as fault:
            return f"{fault.kind}: {fault}"
        except SpyreError as error:
            return f"{type(error).__name__}: {error}"
        return results

    def _static(self, module: ModuleOp, files: dict[str, Any]) -> str | None:
        for name, value in files.items():
            try:
                describe(read_json(json.dumps(value), name))
            except SpyreError as error:
                return f"reading: {error}"
            for finding in check_value(value, name):
                return f"{finding.rule}: {finding}"
        sdscs = self._sdscs | {name: _sdsc(value) for name, value in files.items()}
        bundle = Bundle(self.image.directory, module, sdscs, SPYRE)
        for rule in BUNDLE_RULES:
            if rule.name == "file-unused":
                continue  # who forgets a launch forgets its file too
            try:
                for one in rule.find(bundle):
                    return f"{rule.name}: {one.path}: expected {one.expected}, got {one.got}"
            except Misread:
                continue
        if (found := next(self._misread(module, files), None)) is not None:
            return f"{launch_layout.name}: {found.path}: expected {found.expected}, got {found.got}"
        try:
            module.verify()
        except VerifyException as wrong:
            return f"verifier: {wrong}"
        return None

    def _misread(self, module: ModuleOp, files: dict[str, Any]) -> Iterator[Problem]:
        """Operands that do not lie as the host program and the manifest say; none of a bundle without a manifest."""
        views = self.image.views | {name: describe(read_json(json.dumps(value), name)) for name, value in files.items()}
        stored = StoredBundle(self.image.directory, self.image.program, module, self.image.manifest, {}, views)
        return launch_layout.find(stored)

    def _named(self, mutant: Mutant, module: ModuleOp, load: Loader) -> tuple[bool | None, str]:
        """Whether the walk beside the superdsc level stops at a launch that the mutant changed, and where it stops.

        None if it finds nothing wrong, as for a rule that only the file breaks, or if no launch was changed.
        """
        touched = {self.image.nodes[number].file for number in mutant.draft(self.image).touched}
        walk = BisectSession({"superdsc": self.image.superdsc}, self.image.inputs[0])
        found = walk.find("bundle", "superdsc", DeviceProgram(self.image.program, module, load))
        if found is None or not touched:
            return None, ""
        words = {found.file} if found.file is not None else set(re.split(r"[\s,:]+", found.reason.splitlines()[0]))
        return bool(words & touched), str(found)

    def result_numbers(self, module: ModuleOp, views: dict[str, Descriptor]) -> NDArray[np.uint64]:
        """The expression of every element of the last argument, which is the result."""
        pages = expressions.base_numbers(self.image.bases)
        store, at = expressions.Store(), places_of(module)
        last = ""
        for op in launches(module):
            view = views[op.sdsc_filename.data]
            bound = {i: at[a] for i, a in zip(op.ids, op.addresses, strict=True)}
            starts: list[list[int]] = []
            for operand in view.operands:
                places = [bound[int(s)] if operand.symbolic else None for s in operand.start]
                starts.append(
                    [
                        expressions.address(p.base, p.offset, core, pages)
                        if p is not None
                        else expressions.address(LX, int(operand.start[core]), core, pages)
                        for core, p in enumerate(places)
                    ]
                )
            expressions.run(view, starts, store)
        last = max(self.image.bases, key=lambda b: int(b.removeprefix("arg")) if b != "pool" else -1)
        page = store.pages.get(pages[last], np.zeros(0, np.uint64))
        return page[: self.expected[0][0].size]


def _sdsc(value: dict[str, Any]) -> SdscJson:
    ((root, _),) = value.items()
    return SdscJson(root, Cursor(value, "$").at(root), SPYRE)


def _apart(got: Sequence[Array], expected: Sequence[Array]) -> float:
    return max(_error(a, b) for a, b in zip(got, expected, strict=True))


def _error(got: Array, expected: Array) -> float:
    if got.shape != expected.shape or not np.isfinite(got).all():
        return float("inf")
    return float(np.abs(got - expected).max() / np.abs(expected).max())


__all__ = ["COMPARED", "EQUIVALENT", "FAULT", "MISSED", "STATIC", "VERDICTS", "Judge", "Verdict"]
