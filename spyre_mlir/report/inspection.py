"""A program at all its levels: texts, predicted time, reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spyre_mlir.backend.directory import split_module
from spyre_mlir.backend.whole_files.whole_file import save_text
from spyre_mlir.cache.lower import entry_of, lowered_key
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp
from spyre_mlir.errors import InputError
from spyre_mlir.hw.cost_parameters import PROFILES, Profile
from spyre_mlir.machine.bundle.host_text import python_text
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import LEVELS, Lowered, check_level, has_calls, lower, lower_to_ktir
from spyre_mlir.report import Report, Verification
from spyre_mlir.report.accuracy import Accuracy
from spyre_mlir.report.graphs import LevelGraphs
from spyre_mlir.report.host_steps import host_steps
from spyre_mlir.report.ideal_cycles import ideal_cycles_text
from spyre_mlir.report.own_layouts import own_layouts
from spyre_mlir.report.page import page_text
from spyre_mlir.report.plan_picture import PlanPicture, plan_picture
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.report.trace import trace_text
from spyre_mlir.sizes import counted
from spyre_mlir.text.ktir_program import function_texts, program_text
from spyre_mlir.text.notebook import ShownAsText
from spyre_mlir.text.render import module_text
from spyre_mlir.transforms.utils.host_fallback import HostStep
from spyre_mlir.universe import make_context

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from spyre_mlir.frontend import Program
    from spyre_mlir.report.explanation.explained import Explanation
    from spyre_mlir.report.rival.beside import BesideRival


class InspectedProgram(ShownAsText):
    """A program at every level, with what can be said of it without running it."""

    def __init__(self, program: Program, lowered: Lowered, options: CompileOptions) -> None:
        """Keeps the program at every level."""
        self._program = program
        self._lowered = lowered
        self._options = options
        self.log = FaultLog(options.on_fault)
        self._called = False

    def __repr__(self) -> str:
        """One line: name, kernels, inputs and outputs."""
        steps = f", {counted(len(self.host_steps), 'host step')}" if self.host_steps else ""
        return (
            f"<{type(self).__name__} {self.name}: {counted(self.kernels, 'kernel')}{steps}, {self._program.signature}>"
        )

    @property
    def name(self) -> str:
        """Name of the program."""
        return self._program.name

    @property
    def kernels(self) -> int:
        """Hardware functions of the program; those of loops and of regions count once."""
        return self._lowered.records[-1].kernels

    @property
    def cached(self) -> bool:
        """Return whether the lowered program came from the cache on disk."""
        return self._lowered.recalled

    @property
    def host_steps(self) -> tuple[HostStep, ...]:
        """Operations that the host runs because the device cannot, in order."""
        return self._lowered.host_steps

    def entry(self) -> tuple[str, bytes] | None:
        """Return the key and the bytes of a file for what was lowered; None if it cannot be known again."""
        key = lowered_key(self._program.module, self._options)
        data = None if key is None else entry_of(key, self._lowered)
        return None if key is None or data is None else (key, data)

    def mlir(self, level: str, *, generic: bool = False, locations: bool = False) -> str:
        """Text of one level: ``aten``, ``spyre.loop``, ``spyre.kernel`` or ``superdsc``.

        Args:
            level: which.
            generic: in the syntax that every MLIR tool reads.
            locations: with the line of the model that each operation comes from.

        Raises:
            InputError: there is no such level, or a directory was saved without it.
        """
        return module_text(self._module(check_level(level)), generic=generic, locations=locations)

    def ktir(self, *, older_spaces: bool = False) -> str:
        """The program as KTIR: the text of a module, one function per group of kernels.

        Args:
            older_spaces: spell memory spaces as before August 2026.

        Raises:
            UnsupportedError: kernels have no KTIR; all of them are listed.
        """
        return program_text(self._ktir(), older_spaces=older_spaces)

    def ktir_modules(self, *, older_spaces: bool = False) -> dict[str, str]:
        """The program as KTIR, one module per function, for readers that accept one function per module.

        Args:
            older_spaces: spell memory spaces as before August 2026.

        Returns:
            The texts by name of the function, in the order in which the functions are launched.

        Raises:
            UnsupportedError: kernels have no KTIR; all of them are listed.
        """
        return function_texts(self._ktir(), older_spaces=older_spaces)

    def _ktir(self) -> ModuleOp:
        module, context = self._module("spyre.kernel"), make_context(self._options.spec)
        if has_calls(module) or any(isinstance(op, BlockNumberOp) for op in module.walk()):
            flat = replace(self._options, regions=False, in_place=False, chosen_experts=False).passes()
            module = lower(self._flat(), context, until="spyre.kernel", options=flat).modules["spyre.kernel"]
        return lower_to_ktir(module, context)

    def report(
        self,
        page: str | Path | None = None,
        *,
        profile: Profile = "calibrated",
        accuracy: Accuracy | None = None,
        verification: Verification | None = None,
        rival: bool = False,
    ) -> Report:
        """The stages, the predicted time of every kernel, and the events of the last call; prints itself as tables.

        Args:
            page: also write an HTML page to this file: time by kernel and by line of the model, roofline,
                scratchpads and cores over time, the plan, host steps, faults of the last call.
            profile: numbers of the cost model: ``calibrated`` by published measurements, or the hardware's ``peak``.
            accuracy: what ``accuracy(…)`` gave, to be shown on the page, launch by launch.
            verification: what ``verify(…)`` gave, to be shown on the page, with the first op that differs.
            rival: also say what ``beside_rival(…)`` does.

        Raises:
            InputError: the page cannot be written.
        """
        timeline = self.timeline(profile)
        met, open_ = tuple(self.log.lines()) if self._called else None, tuple(self.log.undecided())
        program = self._host_program()
        host, layouts = tuple(host_steps(program)), own_layouts(program)
        beside = self.beside_rival(profile) if rival else None
        if page is not None:
            plan = self.plan().functions if LEVELS[2] in self._lowered.modules else ()
            text = page_text(self.name, timeline, host, met, open_, accuracy, verification, plan, beside)
            save_text(Path(page), text)
        records, steps = tuple(self._lowered.records), self._lowered.host_steps
        return Report(self.name, records, timeline, met, open_, steps, host, beside, layouts)

    def timeline(self, profile: Profile = "calibrated") -> Timeline:
        """Predicted start and end of every kernel on its engine, from the cost model.

        Raises:
            InputError: there is no such profile.
        """
        if profile not in PROFILES:
            raise InputError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
        return self._timeline(profile)

    def trace(
        self, path: str | Path, *, profile: Profile = "calibrated", ideal_cycles: str | Path | None = None
    ) -> Path:
        """Write the timeline as a trace for Perfetto and chrome://tracing.

        Args:
            path: of the trace.
            profile: numbers of the cost model.
            ideal_cycles: where to write the ideal cycles of its kernels too, for IBM's aiu-trace-analyzer.

        Raises:
            InputError: a file cannot be written.
        """
        timeline = self.timeline(profile)
        if ideal_cycles is not None:
            save_text(Path(ideal_cycles), ideal_cycles_text(timeline))
        return save_text(Path(path), trace_text(timeline, self.name, host_steps(self._host_program())))

    def plan(self) -> PlanPicture:
        """Every kernel inside its loops: slices over cores, layouts and memories of its tensors, what it rearranges.

        Raises:
            InputError: a directory was saved without its levels.
        """
        return plan_picture(*map(self._module, LEVELS[2:]))

    def beside_rival(self, profile: Profile = "calibrated") -> BesideRival:
        """The plan beside that of torch-spyre's published rules: in total, by operation, kernel by kernel.

        The program is lowered once more for it, and planned by the rules from there.

        Args:
            profile: numbers of the cost model.

        Raises:
            UnsupportedError: the host decides which part of the program runs.
            InputError: a directory was saved without its levels.
        """
        from spyre_mlir.report.rival.building import beside_rival

        return beside_rival(self.name, self._flat(), self._options, profile)

    def graphs(self) -> LevelGraphs:
        """The graph at every level, with predicted times, for Model Explorer and Graphviz.

        The program is lowered once more for it, as the levels in memory do not say which operation an op was made for.

        Raises:
            InputError: a directory was saved without its levels.
        """
        from spyre_mlir.report.graphs.building import graphs_of

        return graphs_of(self.name, self._flat(), self._options)

    def explain(self, op: str) -> Explanation:
        """Explain the plans of kernels: divisions, loops, memories, what else was looked at, and prices by engine.

        The program is lowered once more for it, beside a record of what the planner looks at.

        Args:
            op: an operation (``softmax``, ``%softmax``), a hardware function (``batchmatmul``), a line or a module of
                the model (``model.py:7``, ``layers.0``), a file (``sdsc_3``) or a value of the kernel level (``%5``).

        Raises:
            InputError: no kernel goes by this name; or a directory was saved without its levels.
        """
        from spyre_mlir.report.explanation.explaining import explain

        return explain(self.name, self._flat(), self._options, op)

    def python(self, directory: str = "bundle") -> str:
        """Host code: a Python file with a line for every transfer, launch and host step, which runs the saved bundle.

        Args:
            directory: that `save` writes, beside the file of the code.

        Raises:
            UnsupportedError: the program has steps that are no transfer, launch or host step.
        """
        launches = [kernel.launch for kernel in self.timeline().kernels]
        return python_text(self.name, self._host_program(), launches, directory)

    def _module(self, level: str) -> ModuleOp:
        """The program at a level."""
        if level not in self._lowered.modules:
            raise InputError(f"the directory has no level {level}", hint="save with levels=True")
        return self._lowered.modules[level]

    def _flat(self) -> ModuleOp:
        """The program at the aten level without regions."""
        return self._program.module

    def _host_program(self) -> ModuleOp:
        """What the host does."""
        return split_module(self._module(LEVELS[-1]))[0]

    def _timeline(self, profile: Profile) -> Timeline:
        return module_timeline(self._module(LEVELS[-1]), profile)
