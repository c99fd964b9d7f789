"""Pass `decompose-aten`: rewrites composite aten ops until each has a lowering of its own.

```mlir
%1 = aten.softmax.int(%0) {dim = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
```
becomes amax, sub, exp, sum and div. The rewrites are the `decompose` functions of the op table. Ops for an
unused result, such as the positions of a `sort` whose values alone are read, are dropped.

An op that the device cannot run, and one that would take more kernels than `cap`, stays whole: `host because "…"`
says why the host runs it. With `integers=exact` so do ops whose 32 or 64-bit integers may be beyond 2^24.

Decision: docs/decisions/0052-host-steps-are-in-the-program.md
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr, TensorType, UnitAttr, f32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import SymbolTable

from spyre_mlir.choices import Integers
from spyre_mlir.dialects.aten import AtenOp, make_op
from spyre_mlir.dialects.aten_build import AtenBuild, spelled
from spyre_mlir.dialects.aten_value import AtenValue, typed
from spyre_mlir.dialects.ir.call_effects import draws_in, exchanges_in
from spyre_mlir.dialects.ir.control import ForLoopOp, entry_type
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.handed_notes import hand_down_notes
from spyre_mlir.dialects.operator_calls import op_by_schema, results_of
from spyre_mlir.dialects.places import named, placed
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import RegistrationError, UnsupportedError
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.build import LoopBody
from spyre_mlir.ops.call_info import called_for
from spyre_mlir.ops.draws import DRAWN
from spyre_mlir.ops.native import movement
from spyre_mlir.ops.native.collectives import EXCHANGED
from spyre_mlir.ops.native.spelled_calls import ON_COMPLEX, ON_COPIES, no_form
from spyre_mlir.ops.table import Family, OpEntry
from spyre_mlir.ops.value import Value
from spyre_mlir.plugins import registry
from spyre_mlir.transforms.convert_aten_to_spyre_loop import lowering_of
from spyre_mlir.transforms.loop_to_kernel.buffers import stored_format
from spyre_mlir.transforms.utils.hints import number_hints
from spyre_mlir.transforms.utils.host_support import ReadOnHost, mark
from spyre_mlir.transforms.utils.numerics.aten_ranges import AtenRanges
from spyre_mlir.transforms.utils.open_symbols import check_closed
from spyre_mlir.transforms.utils.patterns import apply_once
from spyre_mlir.transforms.utils.rebuild import Emitter
from spyre_mlir.transforms.utils.repeated_dims import repeated_dims

NO_ENTRY = "the op table has no entry for it"
NO_LOWERING = "the op table says neither how it is lowered nor what it is made of"
FALLBACK = "a fallback is registered for it"
EXECUTOR = "an executor is registered for it"
CAP = 500
_BODY = "steps"  # the functions of loops that compositions make


class _TooManyError(Exception):
    """A composition has more kernels than are allowed."""


@dataclass
class _Builder(AtenBuild):
    """Writes the ops that one op of the program becomes; every op a decomposition makes is decomposed in turn."""

    emitter: Emitter
    cap: int | None = None
    ranges: AtenRanges = field(default_factory=AtenRanges)
    loops: list[tuple[ForLoopOp, func.FuncOp]] = field(default_factory=list[tuple[ForLoopOp, func.FuncOp]])
    _rounded: list[SSAValue] = field(default_factory=list[SSAValue])

    def whole(self, op: AtenOp, entry: OpEntry, bound: Mapping[str, Any]) -> list[SSAValue] | None:
        """Return the replacements of the results of an op, see `rewrite`; on failure nothing is written.

        Raises:
            UnsupportedError: there is no composition for these arguments.
            _TooManyError: it has more kernels than are allowed.
        """
        try:
            replacement = self.rewrite(entry, bound)
            if replacement is None:
                return None
            values = replacement if isinstance(replacement, tuple) else (replacement,)
            if found := registry.find(registry.HookKind.DECOMPOSITION, op.overload):
                _check_types(op, [typed(v) for v in values], [each.owner for each in found])
            # Tracing types some results otherwise than eager: new running statistics of half precision as float32.
            wanted = [AtenValue(self, result) for result in op.results]
            return [_written(self.cast(v, like=w)) for v, w in zip(values, wanted, strict=True)]
        except (UnsupportedError, _TooManyError):
            for made in reversed(self.emitter.ops):
                made.erase(safe_erase=False)
            self.emitter.ops.clear()
            raise

    def make(self, overload: str, entry: OpEntry, bound: Mapping[str, Any], result: TensorType[Attribute]) -> SSAValue:
        """Adds one op."""
        operands, attributes = spelled(entry, bound)
        op = make_op(overload, operands, attributes, [result])
        self.emitter.add(op)
        if self.cap is not None and len(self.emitter.ops) > self.cap and self._kernels() > self.cap:
            raise _TooManyError
        return op.results[0]

    @override
    def called_by_schema(
        self, overload: str, positional: Sequence[object], named: Mapping[str, object]
    ) -> Value | tuple[Value, ...]:
        """Adds a host step."""
        op = op_by_schema(overload, positional, named)
        mark(op, _registered(op, self, op.arguments()) or NO_ENTRY)
        self.emitter.add(op)
        return results_of(self, op)

    @override
    def loop(
        self,
        body: LoopBody,
        carried: Sequence[Value],
        sliced: Sequence[Value],
        others: Sequence[Value],
        *,
        backwards: bool = False,
    ) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """Adds a loop, and the function that it calls."""
        trips, before = sliced[0].shape[0], len(carried)
        inputs = [_written(value) for value in (*carried, *sliced, *others)]
        types = [value.type for value in inputs]
        types[before : before + len(sliced)] = [entry_type(t, trips) for t in types[before : before + len(sliced)]]
        inside = _Builder(Emitter(self.emitter.current), self.cap, loops=self.loops)
        block = Block(arg_types=types)
        given = [AtenValue(inside, argument) for argument in block.args]
        ends, row = body(inside, given[:before], given[before : before + len(sliced)], given[before + len(sliced) :])
        results = [_written(inside.cast(v, like=w)) for v, w in zip(ends, carried, strict=True)]
        rows = [_written(value) for value in row]
        inside.widen_inside(())
        inside.emitter.add(func.ReturnOp(*results, *rows))
        block.add_ops(inside.emitter.ops)
        outputs = [value.type for value in (*results, *rows)]
        wholes = [TensorType(element_of(v), (trips, *shape_of(v)[1:])) for v in rows]
        numbers = trips, before, len(sliced)
        op = ForLoopOp(_BODY, *numbers, inputs, [*outputs[:before], *wholes], backwards=backwards)
        self.loops.append((op, func.FuncOp(_BODY, (types, outputs), Region(block), "private")))
        made = [AtenValue(self, value) for value in self.emitter.add(op).results]
        return tuple(made[:before]), tuple(made[before:])

    def widen_inside(self, results: Sequence[SSAValue]) -> None:
        """Marks float32 ops of a decomposition as not rounded, except results and `rounded` values."""
        kept = {_made(value) for value in (*results, *self._rounded)}
        for op in self.emitter.ops:
            if isinstance(op, AtenOp) and op not in kept and any(element_of(r) == f32 for r in op.results):
                op.wide = UnitAttr()

    def rounded(self, value: Value) -> Value:
        """The value, which keeps no more digits than eager has there."""
        self._rounded.append(_written(value))
        return value

    @override
    def bounds(self, value: Value) -> tuple[int, int] | None:
        """Return the least and the largest integer that a value may be."""
        raw = typed(value)
        return self.ranges.of(raw) if isinstance(raw, SSAValue) else super().bounds(value)

    @override
    def repeated(self, value: Value) -> Ints:
        """Return the dimensions along which all entries are known to be equal."""
        raw = typed(value)
        return repeated_dims(raw) if isinstance(raw, SSAValue) else super().repeated(value)

    def _kernels(self) -> int:
        """Return the number of kernels of the decomposition: its ops, without those that move nothing."""
        made = (op.entry for op in self.emitter.ops if isinstance(op, AtenOp))
        return sum(entry is None or entry.family not in (Family.VIEW, Family.CREATION) for entry in made)


def _written(value: Value) -> SSAValue:
    """The SSA value that stands for a value."""
    return cast("SSAValue[Attribute]", typed(value))


def _made(value: SSAValue) -> object:
    """Return the op that computed a value, behind views and copies of it."""
    owner = value.owner
    while isinstance(owner, AtenOp) and (owner.entry in (movement.clone,) or _is_view(owner)):
        owner = owner.operands[0].owner
    return owner


def _is_view(op: AtenOp) -> bool:
    return op.entry is not None and op.entry.family is Family.VIEW


def reason_for(op: AtenOp) -> str | None:
    """Return why the host must run an op, as far as its types and the op table tell; None if it need not."""
    if draws_in(op):
        return DRAWN
    if exchanges_in(op):
        return EXCHANGED
    if op.overload in (ON_COMPLEX, ON_COPIES):
        return no_form(op.overload, str(op.arguments()["operator"]))
    for value in (*op.operands, *op.results):
        try:
            stored_format(element_of(value))
        except UnsupportedError as error:
            return error.message
    return NO_ENTRY if op.entry is None and lowering_of(op) is None else None


def _registered(op: AtenOp, builder: AtenBuild, bound: Mapping[str, Any]) -> str | None:
    """Return why a plugin wants an op on the host; None if none does."""
    found = registry.find(registry.HookKind.FALLBACK, op.overload)
    if any(r.wants(builder, builder.arguments(op.entry, bound)) for r in found):
        return FALLBACK
    # An operation of a plugin's own goes to the host only if it has no other way: its executor is its meaning.
    ours = op.entry is not None and not op.entry.owner
    decomposed = registry.find(registry.HookKind.DECOMPOSITION, op.overload)
    executed = ours and not decomposed and registry.find(registry.HookKind.EXECUTOR, op.overload)
    return EXECUTOR if executed else None


@dataclass(frozen=True)
class DecomposeAtenPass(ModulePass):
    """Rewrites composite aten ops into ops that have a lowering, and marks those that the host runs.

    Attributes:
        cap: most kernels that a composition may take; one that takes more goes to the host.
        prefer_device: lifts the cap.
        integers: `exact` also marks ops whose integers may be beyond those of the device.
        name_operators: name the operators of the model in the locations of what they become.
    """

    name = "decompose-aten"

    cap: int = CAP
    prefer_device: bool = False
    integers: Integers = "device"
    name_operators: bool = False

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decompose every function of the module."""
        check_closed(op)
        number_hints(op)
        if self.name_operators:
            named((each, each.operation) for each in op.walk() if isinstance(each, AtenOp))
        for function in functions(op):
            cap = None if self.prefer_device else self.cap
            decompose = DecomposeOp(cap, exact=self.integers == "exact")
            apply_once(decompose, function.body)
            apply_once(DropUnused(decompose.made), function.body, users_first=True)
            bodies = [body for loop, body in decompose.loops if loop.parent is not None]
            for body in bodies:
                apply_once(DropUnused(decompose.made), body.body, users_first=True)
            for changed in (function, *bodies):
                apply_once(ReadOnHost(), changed.body)
            _add(op, decompose.loops)
        hand_down_notes(op)


@dataclass
class DecomposeOp(RewritePattern):
    """Replaces an op by its composition; one that has none and no lowering is marked for the host.

    Attributes:
        cap: most kernels that a composition may take, None for any number.
        exact: whether integers beyond those of the device are the host's.
        ranges: of the integers of the function.
        made: the ops of all compositions.
        loops: of all compositions, with the functions that they call.
    """

    cap: int | None = None
    exact: bool = False
    ranges: AtenRanges = field(default_factory=AtenRanges)
    made: set[Operation] = field(default_factory=set[Operation])
    loops: list[tuple[ForLoopOp, func.FuncOp]] = field(default_factory=list[tuple[ForLoopOp, func.FuncOp]])

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AtenOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite one op of the program; its composition is written whole, with every part decomposed."""
        if op.on_host:
            return
        for result in op.results:  # while its operands are known: it may be gone when a reader asks
            self.ranges.note(result)
        if self.exact and (beyond := self.ranges.beyond(op)) is not None:
            mark(op, beyond)
            rewriter.notify_op_modified(op)
            return
        builder = _Builder(Emitter(op), self.cap, self.ranges)
        results, reason = _composition(op, builder)
        if results is not None:
            self.ranges.replaced(op.results, results)
        if results is not None:
            builder.widen_inside(() if op.is_wide else results)
            self.made.update(builder.emitter.ops)
            self.made.update(inner for _, body in builder.loops for inner in body.body.block.ops if inner.results)
            self.loops += builder.loops
            rewriter.replace(op, builder.emitter.ops, results)
        elif reason is not None:
            mark(op, reason)
            rewriter.notify_op_modified(op)


@dataclass
class DropUnused(RewritePattern):
    """Erases unused ops of compositions; the model's own ops stay.

    Attributes:
        made: the ops that may go.
    """

    made: Container[Operation]

    @override
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Erase the op if it was made in vain."""
        if op in self.made and not any(result.uses for result in op.results):
            rewriter.erase(op)


def _add(module: ModuleOp, loops: Sequence[tuple[ForLoopOp, func.FuncOp]]) -> None:
    """Put the functions of loops that are left into a module, each under a name that is free."""
    number = 0
    for loop, body in loops:
        if loop.parent is None:
            continue
        while SymbolTable.lookup_symbol(module, name := f"{_BODY}_{number}") is not None:
            number += 1
        body.sym_name, loop.body = StringAttr(name), SymbolRefAttr(name)
        module.body.block.add_op(body)


def _composition(op: AtenOp, builder: _Builder) -> tuple[list[SSAValue] | None, str | None]:
    """Return what the results of an op become, or None and why the host runs it if it does."""
    bound, entry = op.arguments(), op.entry
    try:
        with called_for(placed(op.overload, op.location)):
            reason = _registered(op, builder, bound) or reason_for(op)
            if reason is not None or entry is None:
                return None, reason
            results = builder.whole(op, entry, bound)
    except UnsupportedError as error:
        return None, error.message
    except _TooManyError:
        return None, f"it would take more than {builder.cap} kernels"
    return results, NO_LOWERING if results is None and lowering_of(op) is None else None


def _check_types(op: AtenOp, made: Sequence[object], owners: Sequence[str]) -> None:
    """Raises RegistrationError if a decomposition of a plugin gives something else than the results of an op."""
    types = [cast("SSAValue[Attribute]", v).type if isinstance(v, SSAValue) else type(v).__name__ for v in made]
    if types != [r.type for r in op.results]:
        raise RegistrationError(
            f"{' or '.join(owners)}, registered for {op.overload}, gives {', '.join(map(str, types))}; "
            f"the operation has {', '.join(str(r.type) for r in op.results)}",
            hint="give values of the same shape and element type",
        )
