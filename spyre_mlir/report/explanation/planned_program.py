"""A program at the kernel level, with what the planner looked at on the way there, and the names of its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from spyre_mlir.choices import HostFallback
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.modules import copy_of, ops_in
from spyre_mlir.dialects.places import Rebase, Source, numbered, source_of
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.dialects.tensors import as_tensor_type
from spyre_mlir.errors import InputError
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.options import CompileOptions, PassOptions
from spyre_mlir.pipeline import LEVELS, ModulesBefore, PassWatcher, lower, made_passes, passes_to
from spyre_mlir.report.explanation.layout_prices import LayoutPrices
from spyre_mlir.report.explanation.plan_prices import PlanPrices, number_kernels, numbers_taken
from spyre_mlir.text.render import value_names
from spyre_mlir.transforms.buffer_layouts.choose_layouts import ChooseLayoutsPass
from spyre_mlir.transforms.convert_spyre_loop_to_spyre_kernel import ConvertSpyreLoopToSpyreKernelPass
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.loop_to_kernel.layout_reasons import LayoutReason
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.transforms.utils.kernels.launches import called_functions
from spyre_mlir.universe import make_context

KERNEL = LEVELS[2]
_NOTE = (ChooseLayoutsPass.name, ConvertSpyreLoopToSpyreKernelPass.name)  # passes that note their reasons
_HINT = "name an operation (softmax), a function (batchmatmul), a line (model.py:7), a file (sdsc_3) or a value (%5)"


@dataclass(frozen=True)
class NamedKernel:
    """A kernel with the names it goes by.

    Attributes:
        op: the kernel.
        name: of its file; ``kernel 3`` where files and kernels are not one to one.
        value: name of the buffer that it writes, in the text of the kernel level.
        operations: names of the operations that it was made for, at each call of its region: in PyTorch and in the
            text of the aten level.
        sources: where these are in the model.
        calls: how often its function is called.
    """

    op: KernelOp
    name: str
    value: str
    operations: tuple[str, ...]
    sources: tuple[Source, ...]
    calls: int

    @property
    def operation(self) -> str:
        """The operation that it was made for; empty if that is not known."""
        return self.operations[0] if self.operations else ""

    def names(self) -> Iterator[str]:
        """The names by which it can be asked for."""
        yield self.name
        yield self.op.function_name
        yield f"%{self.value}"
        for name in self.operations:
            yield name
            yield _base(name)
        for source in self.sources:
            if source.file is not None:
                yield f"{Path(source.file).name}:{source.line}"
                yield f"{source.file}:{source.line}"
            parts = source.module.split(".") if source.module else []
            yield from (".".join(parts[:n]) for n in range(1, len(parts) + 1))


def _base(operation: str) -> str:
    """The name of an operation without namespace and overload: ``softmax`` of ``aten.softmax.int``."""
    return operation.removeprefix("aten.").partition(".")[0]


@dataclass(frozen=True)
class PlannedProgram:
    """A program at the kernel level.

    Attributes:
        module: the program, with its operations numbered in their locations.
        spec: the card.
        record: what the planner looked at.
        kernels: in the order of their files.
        layouts: prices of other layouts.
        plans: prices of other loops and places.
        ranks: of the results of operations, by the numbers in locations.
        reasons: of the layouts of results, and of kernels that were inserted.
        without: operations that no kernel was made for.
    """

    module: ModuleOp
    spec: SpyreSpec
    record: PlanRecord
    kernels: Sequence[NamedKernel]
    layouts: LayoutPrices
    plans: PlanPrices
    ranks: Mapping[int, int]
    reasons: Mapping[Operation, LayoutReason]
    without: Sequence[str] = field(default_factory=tuple[str, ...])

    @staticmethod
    def of(module: ModuleOp, options: CompileOptions, watch: PassWatcher | None = None) -> PlannedProgram:
        """Lower a program, and plan it once more beside a record.

        Args:
            module: at the aten level, without calls; it is not modified.
            options: of the compilation.
            watch: is told of every pass.

        Raises:
            UnsupportedError: host steps are refused; all of them are listed.
            LoweringError: the program does not fit the machine.
        """
        aten, context, fields = copy_of(module), make_context(options.spec), options.passes()
        noted = {**fields, **{name: {**fields.get(name, {}), "why": True} for name in _NOTE}}
        numbered(op for op in ops_in(aten) if isinstance(op, AtenOp))
        taken = ModulesBefore((PlanPass.name, ChooseLayoutsPass.name), watch)
        refuse: HostFallback = "error" if options.host_fallback == "error" else "allow"
        lowered = lower(aten, context, options=noted, watch=taken, host_fallback=refuse)
        planned = taken.modules[PlanPass.name]
        number_kernels(planned)
        unplanned = copy_of(planned)
        record = _planned(planned, context, fields)
        numbers = numbers_taken(dict.fromkeys([*planned.walk(), *(op for loop in record.loops for op in loop.ops)]))
        reasons = {op: why for op in planned.walk() if (why := LayoutReason.taken_from(op)) is not None}
        operations = {source_of(op.location).number: names for op, names in _operations(aten).items()}
        files = sum(isinstance(op, SdscOp) for op in lowered.modules[LEVELS[-1]].body.block.ops)
        kernels = list(named_kernels(planned, operations, files))
        made = {name for kernel in kernels for name in kernel.operations}
        without = tuple(n for names in operations.values() for n in names if n not in made)
        layouts = LayoutPrices(taken.modules[ChooseLayoutsPass.name], lowered.modules[LEVELS[-1]], options.spec, fields)
        names = {numbers[named.op]: named.name for named in kernels if named.op in numbers}
        plans = PlanPrices(unplanned, numbers, names, lowered.modules[LEVELS[-1]], options.spec, fields)
        return PlannedProgram(planned, options.spec, record, kernels, layouts, plans, _ranks(aten), reasons, without)

    def named(self, wanted: str) -> list[NamedKernel]:
        """Return the kernels that go by a name.

        Args:
            wanted: an operation, a hardware function, a line or a module of the model, a file, or a value of the text.

        Raises:
            InputError: no kernel goes by it; the message names similar ones.
        """
        name = wanted.removesuffix(".json")
        if found := [kernel for kernel in self.kernels if name in kernel.names()]:
            return found
        if any(name in (operation, _base(operation)) for operation in self.without):
            raise InputError(
                f"no kernel was made for '{wanted}'",
                hint="the host runs it, or it became part of another kernel or of how a tensor is read",
            )
        known = dict.fromkeys(known for kernel in self.kernels for known in kernel.names())
        near = get_close_matches(name, known, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else _HINT
        raise InputError(f"no kernel is called '{wanted}'", hint=hint)


def _planned(module: ModuleOp, context: Context, options: PassOptions) -> PlanRecord:
    """Bring a module that the planner was given to the end of the kernel level."""
    names = passes_to(KERNEL).split(",")
    chosen: Mapping[str, Any] = options.get(PlanPass.name, {})
    record = PlanPass(**chosen).recorded(context, module)
    for one in made_passes(names[names.index(PlanPass.name) + 1 :], options):
        one.apply(context, module)
    return record


def _operations(aten: ModuleOp) -> dict[AtenOp, tuple[str, ...]]:
    """The names of every operation: in PyTorch, and of its value in the text."""
    texts = value_names(aten)
    return {
        op: (op.operation, *(f"%{texts[r]}" for r in op.results if r in texts))
        for op in ops_in(aten)
        if isinstance(op, AtenOp)
    }


def _ranks(aten: ModuleOp) -> dict[int, int]:
    """The rank of the result of every operation, by the number in its location."""
    found: dict[int, int] = {}
    for op in ops_in(aten):
        tensor = as_tensor_type(op.results[0].type) if isinstance(op, AtenOp) and op.results else None
        if tensor is not None:
            found[source_of(op.location).number] = len(tensor.get_shape())
    return found


def named_kernels(module: ModuleOp, operations: Mapping[int, tuple[str, ...]], files: int) -> Iterator[NamedKernel]:
    """Return the kernels of a module in the order of their files.

    Args:
        module: at the kernel level.
        operations: names of the operations of the model, by the numbers in locations.
        files: how many there are.
    """
    called, texts = called_functions(module), value_names(module)
    main = next(f for f in functions(module) if f.sym_name.data not in called)
    calls = {name: [op for op in ops_in(module) if _calls(op, name)] for name in called}
    found: list[tuple[KernelOp, list[Rebase]]] = []
    seen = set[str]()
    for op in main.walk():
        if isinstance(op, KernelOp):
            found.append((op, [Rebase(shift=0)]))
        elif isinstance(op, func.CallOp) and (name := op.callee.root_reference.data) not in seen:
            seen.add(name)
            inside = [o for o in called[name].walk() if isinstance(o, KernelOp)]
            places = [Rebase.of(_body(called[name]).ops, call, called[name]) for call in calls[name]]
            found += [(kernel, places) for kernel in inside]
    for number, (kernel, places) in enumerate(found):
        sources = [place.source(source_of(kernel.location)) for place in places]
        names = dict.fromkeys(n for s in sources for n in operations.get(s.number, ()))
        plain = tuple(dict.fromkeys(replace(s, number=0) for s in sources))
        name = f"sdsc_{number}" if files == len(found) else f"kernel {number}"
        yield NamedKernel(kernel, name, texts.get(kernel.output, ""), tuple(names), plain, len(places))


def _calls(op: Operation, name: str) -> bool:
    return isinstance(op, func.CallOp) and op.callee.root_reference.data == name


def _body(function: func.FuncOp) -> Block:
    return function.body.block


__all__ = ["NamedKernel", "PlannedProgram", "named_kernels"]
