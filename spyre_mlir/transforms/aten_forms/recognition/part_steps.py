"""Ops behind joined tensors, written part by part."""

from __future__ import annotations

from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.ops.composed.nn.normalization import floored
from spyre_mlir.transforms.aten_forms.recognition.joined_parts import BATCH_NORM, LAYER_NORM, JoinedParts
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of

Bounds = tuple[int, int]


class PartedSteps:
    """Writes the ops between `cat` and a tensor for each part of the tensor."""

    def __init__(self, writer: AtenWriter, joined: JoinedParts) -> None:
        """Takes the writer, which writes before the reader of the tensor."""
        self._writer, self._joined = writer, joined

    def values(self, groups: list[list[int]], bounds: list[Bounds]) -> list[SSAValue]:
        """Return the tensor in parts.

        Args:
            groups: numbers of the joined tensors that each part has.
            bounds: the first place of each part, and one more than the last.
        """
        found = [self._group(group) for group in groups]
        for op, axis in zip(self._joined.steps, self._joined.axes, strict=True):
            if op.overload == LAYER_NORM:
                found = self._layer_norm(op, found, bounds)
            else:
                found = [self._step(op, axis, v, b) for v, b in zip(found, bounds, strict=True)]
        return found

    def _group(self, group: list[int]) -> SSAValue:
        tensors = [self._joined.parts[number] for number in group]
        return tensors[0] if len(tensors) == 1 else self._writer.call("cat", tensors=tensors, dim=self._joined.axis)

    def _step(self, op: AtenOp, axis: int, value: SSAValue, bounds: Bounds) -> SSAValue:
        """An op on one part."""
        args = arguments_of(op)
        names = [name for name, given in args.items() if isinstance(given, SSAValue)]
        args[names[0]] = value
        if op.overload == BATCH_NORM:
            args |= {name: self._own(args[name], bounds) for name in names[1:]}
        elif op.overload == "view":
            args["size"] = _resized(shape_of(op.operands[0]), shape_of(op.results[0]), axis, bounds)
        return self._writer.call(op.overload, op, **args)

    def _layer_norm(self, op: AtenOp, parts: list[SSAValue], bounds: list[Bounds]) -> list[SSAValue]:
        """All parts of a normalisation, by their common mean and variance."""
        args = arguments_of(op)
        mean = self._mean(op, parts, bounds)
        centred = [self._call(op, "sub.Tensor", part, mean) for part in parts]
        variance = self._mean(op, [self._call(op, "mul.Tensor", c, c) for c in centred], bounds)
        inverse = self._writer.call("rsqrt", op, self=self._call(op, "add.Tensor", variance, floored(args["eps"])))
        made = [self._call(op, "mul.Tensor", c, inverse) for c in centred]
        for name, how in (("weight", "mul.Tensor"), ("bias", "add.Tensor")):
            if args[name] is not None:
                own = [self._own(args[name], b) for b in bounds]
                made = [self._call(op, how, part, factor) for part, factor in zip(made, own, strict=True)]
        return made

    def _mean(self, op: AtenOp, parts: list[SSAValue], bounds: list[Bounds]) -> SSAValue:
        """The mean over the last dimension of all parts."""
        sums = [self._writer.call("sum.dim_IntList", op, self=part, dim=(-1,), keepdim=True) for part in parts]
        whole = sums[0]
        for one in sums[1:]:
            whole = self._call(op, "add.Tensor", whole, one)
        return self._call(op, "div.Tensor", whole, bounds[-1][1])

    def _own(self, weight: SSAValue, bounds: Bounds) -> SSAValue:
        """The places of a weight that belong to a part."""
        return self._writer.moved("slice.Tensor", weight, dim=0, start=bounds[0], end=bounds[1], step=1)

    def _call(self, op: AtenOp, overload: str, value: SSAValue, other: SSAValue | float) -> SSAValue:
        return self._writer.call(overload, op, self=value, other=other)


def _resized(shape: tuple[int, ...], made: tuple[int, ...], axis: int, bounds: Bounds) -> tuple[int, ...]:
    """The shape that a view gives a part, whose dimension has as many elements behind it as before the view."""
    behind, size = 1, list(made)
    for extent in shape[axis + 1 :]:
        behind *= extent
    after = 1
    for at in reversed(range(len(made))):
        if made[at] == shape[axis] and after == behind:
            size[at] = bounds[1] - bounds[0]
            break
        after *= made[at]
    return tuple(size)


__all__ = ["PartedSteps"]
