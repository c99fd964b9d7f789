"""Pass `keep-on-device`: keeps tensors that control flow hands over on the card, where readers and writers agree.

Functions that control flow calls are converted one by one, from host tensors to host tensors. This pass then takes
transfers out of them: what a loop carries is a device tensor if it comes back in the form in which it is read, a result
is one if all functions give it in one form, and what is the same in every trip is sent in front of the loop.

Kernels write behind the elements of tensors that they are handed, and never to elements. So a device tensor that two
functions share holds the same elements for both; where one writes to its padding, it is handed to that one alone.

Decision: docs/decisions/0148-carried-tensors-stay-on-the-device.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.argument_notes import PREPARED_KINDS, kind_of
from spyre_mlir.dialects.ir.control import CondOp, ControlOp, ForLoopOp, with_types
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.kernel_loop import is_written, uses_with_tiles


@dataclass(frozen=True)
class KeepOnDevicePass(ModulePass):
    """Hands device tensors over between the functions of a program."""

    name = "keep-on-device"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every op of control flow, those in functions of others first."""
        done: set[func.FuncOp] = set()
        for function in functions(op):
            _visit(function, done)


def _visit(function: func.FuncOp, done: set[func.FuncOp]) -> None:
    if function in done:
        return
    done.add(function)
    for control in [o for o in function.body.block.ops if isinstance(o, ControlOp)]:
        for callee in control.functions():
            _visit(callee, done)
        _Handing(control, function.body.block).keep()


class _Handing:
    """What one op of control flow hands to its functions, and gets from them."""

    def __init__(self, op: ControlOp, caller: Block) -> None:
        self._op, self._caller = op, caller
        self._functions = op.functions()
        self._blocks = [function.body.block for function in self._functions]
        self._loops = not isinstance(op, CondOp)

    def keep(self) -> None:
        """Carry and give back on the device what can be, then send in the caller what functions only send."""
        kept = self._op.carried_inputs if isinstance(self._op, ForLoopOp) else len(self._op.outputs)
        for number in range(kept):
            self._result(number)
        for number in reversed(range(self._op.varying_inputs, len(self._op.inputs))):
            self._argument(number)
        for function, block in zip(self._functions, self._blocks, strict=True):
            types = [a.type for a in block.args], [v.type for v in _returned(block).operands]
            function.function_type = FunctionType.from_lists(*types)
        _drop_unread(self._caller)

    def _result(self, number: int) -> None:
        """Give back a result as the device tensor that it is fetched from, if all agree on its form."""
        writers = self._blocks[-1:] if self._loops else self._blocks
        made = [_own_tensor(block, number) for block in writers]
        form, host = None if made[0] is None else made[0].type, self._op.outputs[number].type
        if isinstance(host, DeviceTensorType):
            return  # it is kept already, in a text that goes on from behind this pass
        if form is None or any(value is None or value.type != form for value in made):
            return
        if self._loops and not self._carry(number, form):
            return
        for block, value in zip(writers, made, strict=True):
            assert value is not None
            _returned(block).operands[number] = value
            _drop_unread(block)
        types = [form if n == number else r.type for n, r in enumerate(self._op.outputs)]
        self._op = with_types(self._op, self._op.inputs, types)
        _read_where_it_lies(self._op.outputs[number], host, self._op)

    def _carry(self, number: int, form: Attribute) -> bool:
        """Take what a loop carries as a device tensor; return whether that can be."""
        sent = [_sent(block.args[number]) for block in self._blocks]
        every = [op for ops in sent for op in ops]
        if not every or any(op.result.type != form or op.properties for op in every):
            return False
        if any(len(ops) > 1 and not all(map(_only_reads, ops)) for ops in sent):
            return False
        self._op.operands[number] = self._start(self._op.inputs[number], form)
        for block, ops in zip(self._blocks, sent, strict=True):
            host = block.args[number].type
            argument = block.insert_arg(form, number)
            old = block.args[number + 1]
            argument.name_hint = old.name_hint
            for op in ops:
                _replace(op, argument)
            _fetch(old, argument, InsertPoint.at_start(block), host)
            block.erase_arg(old)
        return True

    def _start(self, given: SSAValue, form: Attribute) -> SSAValue:
        """The device tensor that a loop begins with, which nobody else reads behind it."""
        if isinstance(fetched := given.owner, kernel.FromDeviceOp) and fetched.source.type == form:
            others = [u.operation for u in uses_with_tiles(fetched.source) if u.operation is not fetched]
            if fetched.source.owner is not self._caller and not any(map(self._is_behind, others)):
                return fetched.source
        return self._transfer(given, form, self._op)

    def _is_behind(self, op: Operation) -> bool:
        """Return whether an op may use a tensor when this one has begun."""
        if isinstance(op, kernel.FromDeviceOp):
            return False
        place: Operation | None = op
        while place is not None and place.parent_block() is not self._caller:
            place = place.parent_op()
        return place is None or not place.is_before_in_block(self._op)

    def _argument(self, number: int) -> None:
        """Send an argument in the caller, where functions send it in each call."""
        given = self._op.inputs[number]
        groups = [ops for ops in self._groups(number) if self._may_send(given, ops)]
        values = [self._given(given, ops) for ops in groups]
        for block in self._blocks:
            for place, (value, ops) in enumerate(zip(values, groups, strict=True)):
                argument = block.insert_arg(value.type, number + 1 + place)
                argument.name_hint = block.args[number].name_hint
                for op in [o for o in ops if o.parent_block() is block]:
                    _replace(op, argument)
        unread = not any(block.args[number].uses for block in self._blocks)
        for function, block in zip(self._functions, self._blocks, strict=True):
            _note(function, number, keep=not unread, more=len(values))
            if unread:
                block.erase_arg(block.args[number])
        inputs = list(self._op.inputs)
        inputs[number : number + 1] = values if unread else [given, *values]
        self._op = with_types(self._op, inputs, [r.type for r in self._op.outputs])

    def _groups(self, number: int) -> list[list[kernel.ToDeviceOp]]:
        """The transfers of an argument in all functions, by form."""
        groups: dict[tuple[object, ...], list[kernel.ToDeviceOp]] = {}
        for op in (op for block in self._blocks for op in _sent(block.args[number])):
            key = (op.result.type, *sorted(op.properties.items(), key=lambda item: item[0]))
            groups.setdefault(key, []).append(op)
        return list(groups.values())

    def _may_send(self, given: SSAValue, ops: Sequence[kernel.ToDeviceOp]) -> bool:
        """Return whether the caller may send a form: it keeps its padding, and is not sent for one branch alone."""
        reads = all(map(_only_reads, ops))
        if any(map(_is_carried, ops)):
            return False  # the loop in the function begins with it, and needs its own
        if not reads and (ops[0].properties or len(ops) > len({op.parent_block() for op in ops})):
            return False
        if self._loops or self._there(given, ops[0]) is not None:
            return reads or self._loops
        return reads and _is_prepared(given)

    def _given(self, value: SSAValue, ops: Sequence[kernel.ToDeviceOp]) -> SSAValue:
        """The device tensor of the caller that stands for what functions sent."""
        there = self._there(value, ops[0]) if all(map(_only_reads, ops)) else None
        return self._transfer(value, ops[0].result.type, ops[0]) if there is None else there

    def _there(self, value: SSAValue, like: kernel.ToDeviceOp) -> SSAValue | None:
        """The device tensor that the caller has of a host tensor in the form of a transfer, None if it has none."""
        owner = value.owner
        if isinstance(owner, kernel.FromDeviceOp) and owner.source.type == like.result.type and not like.properties:
            return owner.source
        for op in _sent(value):
            same = op.properties == like.properties and op.result.type == like.result.type
            if same and op.parent_block() is self._caller and op.is_before_in_block(self._op) and _only_reads(op):
                return op.result
        return None

    def _transfer(self, value: SSAValue, form: Attribute, like: Operation) -> SSAValue:
        made = kernel.ToDeviceOp(value, form)
        if isinstance(like, kernel.ToDeviceOp):
            made.properties.update(like.properties)
        made.location = like.location
        self._caller.insert_op_before(made, self._op)
        return made.result


def _sent(value: SSAValue) -> list[kernel.ToDeviceOp]:
    return [u.operation for u in value.uses if isinstance(u.operation, kernel.ToDeviceOp)]


def _only_reads(op: kernel.ToDeviceOp) -> bool:
    """Return whether nobody writes behind the elements of what is sent, kernels or functions that are handed it."""
    return not _is_written(op.result)


def _is_written(value: SSAValue) -> bool:
    return any(is_written(use) or _is_written_by_others(use) for use in uses_with_tiles(value))


def _is_written_by_others(use: Use) -> bool:
    """Return whether functions that are handed a tensor may write behind its elements; who gets a result may, too."""
    op = use.operation
    if not isinstance(op, ControlOp):
        return False
    number = use.index - len(op.operands) + len(op.inputs)
    if number < op.carried_inputs:
        return True
    return any(_is_written(function.body.block.args[number]) for function in op.functions())


def _is_carried(op: kernel.ToDeviceOp) -> bool:
    users = ((u.operation, u.index) for u in op.result.uses)
    return any(isinstance(user, ControlOp) and number < user.carried_inputs for user, number in users)


def _is_prepared(value: SSAValue) -> bool:
    """Return whether a host tensor is a weight or a constant, which the card holds between calls."""
    function = value.owner.parent_op() if isinstance(value.owner, Block) else None
    if not isinstance(function, func.FuncOp) or not isinstance(value, BlockArgument):
        return False
    return kind_of(function, value.index) in PREPARED_KINDS


def _own_tensor(block: Block, number: int) -> SSAValue | None:
    """The device tensor that a result is fetched from, if the function made it, or had it made, and gives it once."""
    returned = _returned(block)
    sources = [v.owner.source if isinstance(v.owner, kernel.FromDeviceOp) else v for v in returned.operands]
    value = sources[number]
    if not isinstance(value.owner, kernel.AllocOp | ControlOp) or sum(other is value for other in sources) > 1:
        return None
    return value


def _returned(block: Block) -> func.ReturnOp:
    returned = block.last_op
    assert isinstance(returned, func.ReturnOp)
    return returned


def _read_where_it_lies(value: SSAValue, host: Attribute, op: ControlOp) -> None:
    """Let those that sent a result read it on the device, and the others a copy on the host."""
    sent = [t for t in _sent(value) if t.result.type == value.type and not t.properties]
    if len(sent) == 1 or all(map(_only_reads, sent)):
        for transfer in sent:
            _replace(transfer, value)
    _fetch(value, value, InsertPoint.after(op), host)


def _fetch(old: SSAValue, value: SSAValue, place: InsertPoint, host: Attribute) -> None:
    """Let the ops that read a value as a host tensor read a copy of a device tensor."""
    users = list(_host_uses(old))
    if not users:
        return
    fetched = kernel.FromDeviceOp(value, host)
    fetched.location = users[0][0].location
    Rewriter.insert_op(fetched, place)
    for op, number in users:
        op.operands[number] = fetched.result


def _host_uses(value: SSAValue) -> Iterator[tuple[Operation, int]]:
    for use in value.uses:
        if not isinstance(use.operation, kernel.KernelOp):
            yield use.operation, use.index


def _replace(op: kernel.ToDeviceOp, value: SSAValue) -> None:
    Rewriter.replace_op(op, [], [value])


def _note(function: func.FuncOp, number: int, *, keep: bool, more: int) -> None:
    """Say nothing of the arguments behind one, and keep what is said of it if it stays."""
    if function.arg_attrs is not None:
        notes = list(function.arg_attrs.data)
        notes[number : number + 1] = [*([notes[number]] if keep else []), *([DictionaryAttr({})] * more)]
        function.arg_attrs = ArrayAttr(notes)


def _drop_unread(block: Block) -> None:
    for op in list(block.ops):
        if isinstance(op, kernel.FromDeviceOp) and not op.result.uses:
            Rewriter.erase_op(op)
