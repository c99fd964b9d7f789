"""Operands of kernels: tiles of a view in device memory, or parts of a tensor of an earlier kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre.kernel import device_tensor
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import (
    Box,
    Code,
    Held,
    Span,
    element_of,
    element_type,
    shape_of,
)
from spyre_mlir.transforms.kernel_to_ktdp.slices import ONE, Recast, SliceForm, form_of, recast, same_elements
from spyre_mlir.transforms.kernel_to_ktdp.tensor_ops import cut, inserted, reshaped, transposed
from spyre_mlir.transforms.kernel_to_ktdp.tiles import LoopPart, OperandWalk, TiledKernel

# The result of the kernel that is being written, among what loops may carry.
_RESULT = "result"


class Operands:
    """The operands of one kernel, created before its loops are written."""

    def __init__(self, code: Code, kernel: TiledKernel) -> None:
        """Knows where they are."""
        self.code = code
        self.kernel = kernel
        self.out = kernel.readings[-1]
        self._wholes = dict[tuple[SSAValue, SliceForm], SSAValue]()

    def read(self, reading: OperandWalk, axes: Sequence[LoopPart], box: Box) -> SSAValue:
        """Read the steps of a box along axes."""
        code, buffer = self.code, self.kernel.op.operands[reading.number]
        if not reading.local:
            return code.load(code.tile(reading, buffer, axes, box, self.kernel), reading.tensor.format)
        form = form_of(self.kernel, reading, axes)
        if (buffer, form) not in self._wholes:
            with code.at_entry():
                self._wholes[buffer, form] = converted(code, code.held[buffer], form)
        whole, spans = self._wholes[buffer, form], self._spans(axes, box)
        return cut(code, whole, [s.local for s in spans], [s.count for s in spans])

    def carried(self, axes: Sequence[LoopPart]) -> list[object]:
        """Return the loop-carried value around tiles of the result: the partial result, if it is a value."""
        if not self.out.local:
            return []
        if _RESULT not in self.code.held:
            form = form_of(self.kernel, self.out, axes)
            with self.code.at_entry():
                start = self.code.empty(element_type(self.out.tensor.format), form.shape)
            self.code.held[_RESULT] = Held(start, form)
        return [_RESULT]

    def write(self, value: SSAValue, axes: Sequence[LoopPart], box: Box) -> None:
        """Write the steps of a box of the result at their place."""
        code, buffer = self.code, self.kernel.op.output
        if not self.out.local:
            code.store(value, code.tile(self.out, buffer, axes, box, self.kernel))
            return
        form = form_of(self.kernel, self.out, axes)
        if shape_of(value) != form.shape:
            starts = [s.local for s in self._spans(axes, box)]
            value = inserted(code, value, code.held[_RESULT].value, starts)
        code.held[_RESULT] = Held(value, form)

    def finish(self, forms: Mapping[SSAValue, SliceForm]) -> None:
        """Make the result the value of its buffer, or a part of that value."""
        code, buffer = self.code, self.kernel.op.output
        if not self.out.local:
            return
        made, form = code.held.pop(_RESULT), forms[buffer]
        if not same_elements(made.form, form):
            old = code.held.get(buffer) or blank(code, buffer, form)
            made = Held(_with_part(code, old, made), old.form)
        code.held[buffer] = made

    def _spans(self, axes: Sequence[LoopPart], box: Box) -> list[Span]:
        zero = self.code.index(0)
        return [Span(zero, zero, 1) if a == ONE else box[a] for a in axes]


def blank(code: Code, buffer: SSAValue, form: SliceForm) -> Held:
    """Return zeros: elements of a buffer that are read but never written are padding, which no result uses."""
    element = element_type(device_tensor(buffer).format)
    assert isinstance(element, AnyFloat), "integers index, and stay in device memory"
    return Held(code.full(0.0, element, form.shape), form)


def converted(code: Code, held: Held, form: SliceForm) -> SSAValue:
    """Return the elements in another form; zeros where there are none."""
    if held.form == form:
        return held.value
    steps = _steps(held.form, form)
    value = reshaped(code, held.value, steps.split)
    if steps.hull is not None:
        value = inserted(code, value, code.full(0.0, element_of(value), steps.hull), steps.place)
    value = cut(code, value, steps.first, steps.sizes)
    return reshaped(code, transposed(code, reshaped(code, value, steps.squeezed or (1,)), steps.order), steps.shape)


def _with_part(code: Code, whole: Held, made: Held) -> SSAValue:
    """A tensor with some of its elements replaced: the way of `converted`, back."""
    steps = _steps(whole.form, made.form)
    assert steps.hull is None, "a value holds all that is written"
    back = [steps.order.index(d) for d in range(len(steps.order))]
    boxed = reshaped(code, made.value, [steps.squeezed[d] for d in steps.order] or (1,))
    boxed = reshaped(code, transposed(code, boxed, back), steps.sizes)
    into = reshaped(code, whole.value, steps.split)
    return reshaped(code, inserted(code, boxed, into, steps.first), whole.form.shape)


def _steps(source: SliceForm, target: SliceForm) -> Recast:
    steps = recast(source, target)
    assert steps is not None, "what has no way from form to form is not threaded"
    return steps


__all__ = ["Operands", "blank", "converted"]
