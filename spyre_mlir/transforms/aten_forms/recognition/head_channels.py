"""Channels of attention heads, from the linear layer that computes them to the products that sum over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, prod

from xdsl.ir import BlockArgument, Operation, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.transforms.aten_forms.recognition.moved_channels import NEG, turn_of
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open

LINEAR = "linear"
ATTENTION = "scaled_dot_product_attention"
_PRODUCTS = ("matmul", "bmm")
_ROTATIONS = ("cat", "add.Tensor", "mul.Tensor")


@dataclass
class Heads:
    """Tensors with the channels of the heads of one layer, and the ops between these tensors.

    Attributes:
        linear: the layer that computes the channels.
        first: the first column of the layer that belongs to these heads.
        end: one more than the last such column.
        channels: of each head.
        view: the op that splits the columns into heads.
        axes: by tensor, its dimension of channels as a negative number.
        joined: tensors whose last dimension has the channels of all heads, side by side.
        steps: ops that write or read these tensors.
        met: the other factor of each product that sums over channels, with its dimension of channels.
        turns: ops that put the second half of the channels, with its sign changed, before the first.
        tables: the other factors of steps that multiply each channel by a number of its own.
        sums: ops that add two of these tensors.
    """

    linear: AtenOp
    first: int
    end: int
    channels: int
    view: AtenOp
    axes: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    joined: set[SSAValue] = field(default_factory=set[SSAValue])
    steps: set[AtenOp] = field(default_factory=set[AtenOp])
    met: list[tuple[SSAValue, int]] = field(default_factory=list[tuple[SSAValue, int]])
    turns: set[AtenOp] = field(default_factory=set[AtenOp])
    tables: set[SSAValue] = field(default_factory=set[SSAValue])
    sums: set[AtenOp] = field(default_factory=set[AtenOp])

    @property
    def unit(self) -> int:
        """How many channels stay side by side: those of a head, or of half a head where halves change places."""
        return self.channels // 2 if self.turns else self.channels


def heads_of(view: AtenOp) -> Heads | None:
    """Return the heads into which a view splits columns of a linear layer; None if an op mixes their channels."""
    if view.overload != "view":
        return None
    made, (first, end), linear = shape_of(view.results[0]), *_columns(view.operands[0])
    if linear is None or not made or made[-1] == 0 or (end - first) % made[-1] or end - first <= made[-1]:
        return None
    found = Heads(linear, first, end, made[-1], view, {view.results[0]: -1})
    plain = is_open(linear) and is_open(view)
    return found if plain and _followed(found) else None


def layer_of(heads: SSAValue) -> AtenOp | None:
    """Return the linear layer whose columns a tensor has, split into heads; None for another tensor."""
    op = heads.owner
    while isinstance(op, AtenOp) and op.overload in ("permute", "view", "slice.Tensor"):
        op = op.operands[0].owner
    return op if isinstance(op, AtenOp) and op.overload == LINEAR else None


def turning_matrix(op: AtenOp) -> AtenOp | None:
    """Return the named matrix by which an op turns the channels of heads; None for another op."""
    matrix = op.operands[1].owner if op.overload == LINEAR and len(op.operands) == 2 else None
    if not isinstance(matrix, AtenOp) or matrix.overload != "spyre::resample" or matrix.arguments()["mode"] != "turned":
        return None
    return matrix if matrix.results[0].has_one_use() else None


def sliced_columns(op: AtenOp) -> tuple[int, int] | None:
    """Return the first column that a slice takes along the last dimension, and the end; None if it is no such slice."""
    if op.overload != "slice.Tensor":
        return None
    shape, args = shape_of(op.operands[0]), arguments_of(op)
    if args["dim"] % len(shape) != len(shape) - 1 or args["step"] not in (None, 1):
        return None
    first = args["start"] or 0
    first += shape[-1] if first < 0 else 0
    return first, first + shape_of(op.results[0])[-1]


def _columns(value: SSAValue) -> tuple[tuple[int, int], AtenOp | None]:
    """The columns of a linear layer that a tensor has, and the layer; None if other ops than slices read it."""
    op, nothing = value.owner, ((0, 0), None)
    if not isinstance(op, AtenOp) or not value.has_one_use():
        return nothing
    columns, layer = (0, shape_of(value)[-1] if shape_of(value) else 0), op
    if op.overload == "slice.Tensor":
        readers = [use.operation for use in op.operands[0].uses]
        taken = sliced_columns(op)
        if taken is None or not all(isinstance(o, AtenOp) and sliced_columns(o) is not None for o in readers):
            return nothing
        if not isinstance(op.operands[0].owner, AtenOp):
            return nothing
        columns, layer = taken, op.operands[0].owner
    return (columns, layer) if layer.overload == LINEAR and _weights_alone(layer) else nothing


def _weights_alone(linear: AtenOp) -> bool:
    """Whether a layer's weight and bias are arguments, or rows of arguments, that nothing else reads."""
    return all(argument_of(v) is not None for v in linear.operands[1:])


def argument_of(weight: SSAValue) -> SSAValue | None:
    """Return the argument that a weight is, or whose rows it is; None if something else reads these."""
    if not weight.has_one_use():
        return None
    if isinstance(weight, BlockArgument):
        return weight
    if not isinstance(weight.owner, AtenOp) or not _takes_rows(weight.owner):
        return None
    argument = weight.owner.operands[0]
    alone = isinstance(argument, BlockArgument) and all(_takes_rows(use.operation) for use in argument.uses)
    return argument if alone else None


def _takes_rows(op: Operation) -> bool:
    """Whether an op takes some rows of a weight, for one reader."""
    if not isinstance(op, AtenOp) or op.overload != "slice.Tensor" or not op.results[0].has_one_use():
        return False
    args = arguments_of(op)
    return args["dim"] == 0 and args["step"] in (None, 1)


def _followed(found: Heads) -> bool:
    """Follow the channels through all readers of the view; return whether every one keeps them apart or sums them."""
    waiting, done = [found.view.results[0]], set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if value in done:
            continue
        done.add(value)
        for use in list(value.uses):
            op = _end_of_turn(use.operation, value)
            if not isinstance(op, AtenOp) or len(op.results) != 1 or not _follows(found, op, value, use.index):
                return False
            found.steps.add(op)
            if op.results[0] in found.axes or op.results[0] in found.joined:
                waiting.append(op.results[0])
    added = {v for op in found.sums for v in op.operands}
    return added <= found.axes.keys() and not found.tables & found.axes.keys()


def _end_of_turn(op: Operation, heads: SSAValue) -> Operation:
    """The op that ends a turn of heads by halves which another op begins; that op if there is none."""
    last = op
    while isinstance(last, AtenOp) and last.overload in ("slice.Tensor", NEG) and last.results[0].has_one_use():
        last = next(iter(last.results[0].uses)).operation
    turned = turn_of(last) if last is not op and isinstance(last, AtenOp) else None
    return last if turned == (heads, shape_of(heads)[-1] // 2) else op


def _follows(found: Heads, op: AtenOp, value: SSAValue, place: int) -> bool:
    """Whether an op keeps the channels of a tensor apart, or sums over them; notes their dimension in the result."""
    result = op.results[0]
    shape, made = shape_of(value), shape_of(result)
    if not is_open(op):
        return False
    if value in found.joined:
        if keeps := op.overload in ("clone", "view") and made[-1:] == shape[-1:]:
            found.joined.add(result)
        return keeps or (op.overload == LINEAR and place == 0 and _weights_alone(op))
    axis = found.axes[value]
    if op.overload == "view" and axis == -1 and _joins(shape, made):
        found.joined.add(result)
        return True
    if op.overload in (*_PRODUCTS, ATTENTION):
        after = _product(found, op, place, axis)
    elif axis == -1 and place == 0 and turning_matrix(op) is not None:
        after = -1
    elif axis == -1 and made == shape and op.overload in _ROTATIONS and len(op.operands) == 2:
        after = _rotated(found, op, value, place)
    else:
        after = _moved(op, axis)
    if after is not None and after < 0:
        found.axes[result] = after
    return after is not None


def _joins(shape: tuple[int, ...], made: tuple[int, ...]) -> bool:
    """Whether a view puts the channels of several heads side by side, of all or of those of one batch."""
    if len(shape) < 2 or not made or not shape[-1] or made[-1] == shape[-1] or made[-1] % shape[-1]:
        return False
    return shape[-2] % (made[-1] // shape[-1]) == 0


def _rotated(found: Heads, op: AtenOp, value: SSAValue, place: int) -> int | None:
    """Where channels are after a step of rotary positions, which notes it; None if it is another step."""
    if op.overload == "cat":
        turn = turn_of(op)
        if turn is not None and turn[0] is value:
            found.turns.add(op)
            return -1
        return -1 if any(0 in shape_of(v) for v in op.operands) else None
    if op.overload == "add.Tensor":
        found.sums.add(op)
        return -1 if arguments_of(op)["alpha"] == 1 else None
    found.tables.add(op.operands[1 - place])
    return -1 if shape_of(op.operands[1 - place])[-1:] == shape_of(value)[-1:] else None


def _product(found: Heads, op: AtenOp, place: int, axis: int) -> int | None:
    """The dimension of channels in the result of a product: negative, 0 if they are summed, None if it is not known."""
    if len(shape_of(op.operands[place])) < 2:
        return None
    if op.overload == ATTENTION:
        if place > 2 or axis != -1:
            return None
        if place == 2:
            return -1
        found.met.append((op.operands[1 - place], -1))
        return 0
    if place == 1 and axis == -1:
        return -1
    if (place, axis) in ((0, -1), (1, -2)):
        found.met.append((op.operands[1 - place], -2 if place == 0 else -1))
        return 0
    return None


def _moved(op: AtenOp, axis: int) -> int | None:
    """The dimension of channels, negative, in the result of an op that moves or scales them; None for another op."""
    shape, made, args = shape_of(op.operands[0]), shape_of(op.results[0]), arguments_of(op)
    at = len(shape) + axis
    match op.overload:
        case "permute":
            return [d % len(shape) for d in args["dims"]].index(at) - len(shape)
        case "view":
            return _kept_apart(shape, made, at)
        case "expand":
            return axis if made[axis] == shape[axis] else None
        case "unsqueeze":
            return axis - 1 if args["dim"] % len(made) > at else axis
        case "squeeze.dims":
            dims = [d % len(shape) for d in args["dim"]]
            gone = [d for d in dims if shape[d] == 1]
            return None if at in dims else axis + sum(d > at for d in gone)
        case "slice.Tensor":
            return None if args["dim"] % len(shape) == at else axis
        case "clone" | "_to_copy":
            return axis
        case "mul.Tensor" | "div.Tensor" if len(op.operands) == 1:
            return axis if isfinite(args["other"]) and args["other"] else None
        case _:
            return None


def _kept_apart(shape: tuple[int, ...], made: tuple[int, ...], at: int) -> int | None:
    """Where a view has a dimension, negative, if it joins and parts those before and those behind it alone."""
    behind = prod(shape[at + 1 :])
    places = (n for n, extent in enumerate(made) if extent == shape[at] and prod(made[n + 1 :]) == behind)
    return next((n - len(made) for n in places), None)


__all__ = ["ATTENTION", "LINEAR", "Heads", "argument_of", "heads_of", "layer_of", "sliced_columns", "turning_matrix"]
