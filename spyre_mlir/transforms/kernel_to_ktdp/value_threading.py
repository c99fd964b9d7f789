"""Choice between tensors and memory for the intermediates of a KTIR function.

A buffer that the kernel level has in the scratchpads is a value here: KTIR gives tensors no addresses, so only their
room counts. What has no room, or is walked in ways that do not fit together, goes through device memory.

Decision: docs/decisions/0108-ktir-threads-tensors.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from xdsl.dialects import scf
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.spyre.kernel_memory import shared_view
from spyre_mlir.hw import formats
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import element_type
from spyre_mlir.transforms.kernel_to_ktdp.function_groups import FunctionGroup, Item, kernels_of
from spyre_mlir.transforms.kernel_to_ktdp.slices import SliceForm, form_of, recast, same_elements
from spyre_mlir.transforms.kernel_to_ktdp.tiles import kernel_in_tiles

# Of a scratchpad, what tensors between kernels leave to the tiles of a kernel: one part in so many.
TILES_SHARE = 8


@dataclass(frozen=True)
class Touch:
    """A kernel that reads or writes a buffer.

    Attributes:
        item: the number of the kernel, or of the loop it is in, among the items of its function.
        op: the kernel.
        form: the elements.
        writes: whether they are its result.
    """

    item: int
    op: KernelOp
    form: SliceForm
    writes: bool


@dataclass(frozen=True)
class Threads:
    """The buffers of a function that become values.

    Attributes:
        forms: per buffer the elements its value holds.
        free: per kernel, bytes of the scratchpad that they leave.
    """

    forms: Mapping[SSAValue, SliceForm] = field(default_factory=dict[SSAValue, SliceForm])
    free: Mapping[KernelOp, int] = field(default_factory=dict[KernelOp, int])

    def carried(self, loop: scf.ForOp) -> list[SSAValue]:
        """Return the values carried by a loop or out of it: written in it, and needed outside or before."""
        inside = kernels_of(loop)
        found = list[SSAValue]()
        for value in dict.fromkeys(op.output for op in inside if op.output in self.forms):
            first = next(op for op in inside if value in op.operands)
            outside = any(use.operation in self.free and use.operation not in inside for use in value.uses)
            if outside or value in first.inputs:
                found.append(value)
        return found


def threads_of(group: FunctionGroup, spec: SpyreSpec) -> tuple[Threads, list[SSAValue]]:
    """Return the values of a function, and the scratchpad buffers that cannot be values."""
    touches = _touches(group.items)
    forms = {value: form for value, found in touches.items() if (form := _common(value, found)) is not None}
    refused = [value for value in touches if value not in forms]
    while True:
        free = {op: spec.lx_bytes - _demand(op, n, forms, touches) for n, op in _numbered(group.items)}
        worst = min(free, key=lambda op: free[op])
        if free[worst] >= spec.lx_bytes // TILES_SHARE or not forms:
            return Threads(forms, free), refused
        number = next(n for n, op in _numbered(group.items) if op is worst)
        living = [v for v in forms if _lives(touches[v], number)]
        largest = max(living, key=lambda v: _bytes(v, forms[v]))
        refused.append(largest)
        del forms[largest]


def _numbered(items: Sequence[Item]) -> Iterator[tuple[int, KernelOp]]:
    for number, item in enumerate(items):
        for op in kernels_of(item):
            yield number, op


def _touches(items: Sequence[Item]) -> dict[SSAValue, list[Touch]]:
    """Per buffer of the scratchpads, the kernels that touch it, in order."""
    found = dict[SSAValue, list[Touch]]()
    for number, op in _numbered(items):
        if all(t.space != "lx" for t in op.tensors):
            continue
        kernel = kernel_in_tiles(op)
        for reading in kernel.readings:
            if reading.local:
                form = form_of(kernel, reading, reading.device_order)
                touch = Touch(number, op, form, reading.number == len(op.inputs))
                found.setdefault(op.operands[reading.number], []).append(touch)
    return found


def _common(value: SSAValue, touches: Sequence[Touch]) -> SliceForm | None:
    """The elements a value holds: what is written, or the whole slice where kernels write different parts of it."""
    written = [t.form for t in touches if t.writes]
    if (
        not isinstance(element_type(device_tensor(value).format), AnyFloat)
        or not written
        or any(isinstance(t.op, GatherOp) for t in touches)
    ):
        return None
    alike = all(same_elements(one, other) for one, other in pairwise(written))
    form = written[0] if alike else SliceForm(0, ((1, _elements(value)),))
    return form if all(recast(form, t.form) is not None for t in touches) else None


def _elements(buffer: SSAValue) -> int:
    """Elements of one core's slice of a buffer, padding included."""
    tensor = device_tensor(buffer)
    return shared_view(buffer).layout(tensor.layout).sticks(tensor.lanes) * tensor.lanes


def _lives(touches: Sequence[Touch], number: int) -> bool:
    return touches[0].item <= number <= touches[-1].item


def _demand(
    op: KernelOp, number: int, forms: Mapping[SSAValue, SliceForm], touches: Mapping[SSAValue, list[Touch]]
) -> int:
    """Bytes while a kernel runs: of what lives, and of copies in the order the kernel wants.

    A result that is put together tile by tile is there as it was and as it will be.
    """
    living = sum(_bytes(v, form) for v, form in forms.items() if _lives(touches[v], number))
    copies = sum(
        _bytes(v, forms[v])
        for v in dict.fromkeys(op.operands)
        if v in forms and any(t.op is op and t.form != forms[v] for t in touches[v])
    )
    return living + copies + (2 * _bytes(op.output, forms[op.output]) if op.output in forms else 0)


def _bytes(value: SSAValue, form: SliceForm) -> int:
    return form.size * formats.FORMATS[device_tensor(value).format].bits // 8


__all__ = ["Threads", "threads_of"]
