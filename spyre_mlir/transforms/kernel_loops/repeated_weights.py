"""Widened weights of few columns, made by several cores at once: each for rows of its own.

A weight of few bits goes from its conversion to its product in the scratchpads, so each core makes the columns that it
multiplies. With fewer sticks of columns than cores, or sticks that cores cannot share evenly, some cores are idle, or a
sum is divided, which keeps half of a core busy. Instead several cores may make the same columns, for as many parts of
the rows: the kernels of the weight get a loop over these parts, and the product gets a batch dimension for it. Where
loops leave few sticks to their last trip, these alone may have copies.

Decision: docs/decisions/0168-cores-make-the-same-columns-of-a-weight.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import gcd, prod

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.hw.cost import CostKind, MatmulLoops, Traffic, Work, total_us
from spyre_mlir.hw.cost_parameters import CALIBRATED, CostParameters
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.formats import DL16, FP32
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.planning.trips import most_copies
from spyre_mlir.transforms.kernel_loops.row_blocks import is_settled, is_widened_product, lanes_behind, rows_loop
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.utils.kernels.widened_weights import KernelCounts
from spyre_mlir.transforms.utils.kernels.widened_weights import is_widened as widened

_COPY = "copy"
# Copies that gain less than this are left alone: each repeats what makes the weight.
_LEAST_GAIN_US = 5.0
# Buffers of floats that a core holds at a time while it takes words apart.
_BUFFERS = 4


def repeat_weights(
    block: Block,
    is_widened: Callable[[SSAValue], bool],
    forms: KernelForms,
    spec: SpyreSpec,
    parameters: CostParameters = CALIBRATED,
) -> None:
    """Let several cores make the same columns of widened weights, where products are clearly quicker for it.

    Args:
        block: of kernels that are not divided.
        is_widened: whether a buffer has a weight of few bits in a wider format.
        forms: is told which kernels are changed.
        spec: the machine.
        parameters: of the cost model.
    """
    done = set[kernel.KernelOp]()
    for op in [o for o in block.ops if isinstance(o, kernel.ComputeOp)]:
        if op in done or not is_widened_product(op, is_widened):
            continue
        made = _made_for(op, is_widened)
        if made is None:
            continue
        done.update(made.products)
        if any(is_settled(other) for other in made.all):
            continue
        if (copies := _copies(made, spec, parameters)) > 1:
            makers, products = list(made.kernels), list(made.products)
            buffers = [
                next((n, op.operands.index(value)) for n, op in enumerate(makers) if value in op.operands)
                for value in made.buffers
            ]
            again = partial(_repeat_again, makers=len(makers), buffers=buffers, copies=copies)
            _repeat(made, copies)
            forms.became([*makers, *products], [[op] for op in (*makers, *products)], again)


def copies_of(ops: Sequence[kernel.KernelOp], loops: Sequence[str]) -> int:
    """Return how many copies of a weight kernels make; 1 if the loops around them are over these copies.

    Args:
        ops: kernels of a group.
        loops: by kernel, the name of the loop around it.
    """
    return max(
        [op.space.extents.get(_COPY, 1) for op, loop in zip(ops, loops, strict=True) if loop != _COPY], default=1
    )


def repeat_in(block: Block, copies: int) -> None:
    """Let so many cores make the same columns of all widened weights of a block, which divide `shared_rows`."""
    done, known = set[kernel.KernelOp](), KernelCounts()
    for op in [o for o in block.ops if isinstance(o, kernel.ComputeOp)]:
        if op not in done and (made := _made_by(op, known)) is not None:
            done.update(made.products)
            _repeat(made, copies)


def shared_rows(ops: Sequence[kernel.KernelOp], loops: Sequence[str]) -> int:
    """Return rows of which several cores may have parts, each with the same columns of all widened weights of a group.

    Any divisor may be the number of copies; 1 if the group has no such weight, or loops do not walk the columns of one.

    Args:
        ops: the kernels of the group.
        loops: by kernel, the name of the loop around it.
    """
    own, rows, known = dict(zip(ops, loops, strict=True)), 0, KernelCounts()
    for op in ops:
        if isinstance(op, kernel.ComputeOp) and (made := _made_by(op, known)) is not None:
            if not made.all.issubset(own) or any(hint_of(o) for o in made.all) or own[op] == rows_loop(op):
                return 1
            rows = gcd(rows, op.space.extents[rows_loop(op)])
    return rows or 1


@dataclass
class _MadeWeight:
    """A widened weight, or the digits of one.

    Attributes:
        kernels: the kernels that make it, in no order.
        buffers: the buffers that these write.
        products: the products that read it.
    """

    kernels: set[kernel.KernelOp] = field(default_factory=set[kernel.KernelOp])
    buffers: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    products: dict[kernel.ComputeOp, None] = field(default_factory=dict[kernel.ComputeOp, None])

    @property
    def all(self) -> set[kernel.KernelOp]:
        """The kernels and the products."""
        return {*self.kernels, *self.products}


def _made_for(op: kernel.ComputeOp, is_widened: Callable[[SSAValue], bool]) -> _MadeWeight | None:
    """All kernels that make the weight of a product, and all products of it; None if another op uses it."""
    found, todo = _MadeWeight(), [op.inputs[1]]
    while todo:
        value = todo.pop()
        if value in found.buffers:
            continue
        if not isinstance(value.owner, kernel.AllocOp) or not is_widened(value):
            return None
        found.buffers[value] = None
        for use in value.uses:
            user = use.operation
            if not isinstance(user, kernel.ConvertOp | kernel.ComputeOp):
                return None
            if user.is_product:
                if use.index != 1 or not isinstance(user, kernel.ComputeOp) or not rows_loop(user):
                    return None
                found.products[user] = None
                continue
            found.kernels.add(user)
            todo += [v for v in user.operands if isinstance(v.owner, kernel.AllocOp) and is_widened(v)]
            if not is_widened(user.output) or _COPY in user.space.extents:
                return None
    same = {(p.space.extents[rows_loop(p)], p.inputs[0].type, p.tensors[1].shape) for p in found.products}
    return found if len(same) == 1 else None


def _made_by(op: kernel.ComputeOp, known: KernelCounts) -> _MadeWeight | None:
    """The weight of a product, if it is a widened one that may have copies."""
    is_widened = partial(widened, known=known)
    return _made_for(op, is_widened) if is_widened_product(op, is_widened) else None


def _copies(made: _MadeWeight, spec: SpyreSpec, p: CostParameters) -> int:
    """The number of copies of a weight; 1 if more gain less than `_LEAST_GAIN_US`."""
    product = next(iter(made.products))
    rows = product.space.extents[rows_loop(product)]
    counts = divisors(spec.cores_per_card, min(rows, spec.cores_per_card))
    times = {n: us for n in counts if rows % n == 0 and (us := _us(made, product, n, spec, p)) is not None}
    best = min(times, key=lambda n: (times[n], n))
    return best if times[1] - times[best] >= _LEAST_GAIN_US else 1


def _us(made: _MadeWeight, product: kernel.ComputeOp, copies: int, spec: SpyreSpec, p: CostParameters) -> float | None:
    """Estimated microseconds of a weight and its products with so many copies; None if cores are idle or LX is full."""
    (summed,) = [d for d in product.space.data if d.name not in product.maps.data[-1].names]
    rows = product.space.extents[rows_loop(product)]
    columns = prod(d.extent for d in product.space.data) // (rows * summed.extent)
    lanes = lanes_behind(product.inputs[1])
    pieces, cores = -(-columns // lanes), spec.cores_per_card // copies
    turns, rest = -(-pieces // cores), pieces % cores
    piece = lanes * summed.extent * (DL16.bits if len(made.kernels) == 1 else _BUFFERS * FP32.bits) // 8
    fits = turns * piece <= spec.lx_usable_bytes
    in_trips = not fits and piece <= spec.lx_usable_bytes
    if copies > 1 and (pieces < cores or not (fits or (in_trips and rest == 0))):
        return None
    once = _turn_us(rows, copies, min(pieces, cores) * lanes, summed.extent, lanes, p)
    products_us = turns * once
    if rest and (turns == 1 or in_trips):
        # The sum may be divided instead: its result is written to device memory, and read there.
        moved = p.memory_us(2 * rows * rest * lanes * DL16.bits // 8)
        rests_us = [once, p.pe_divided_sum_slowdown * once * rest / cores + moved]
        tiles = 2 * rows * lanes * DL16.bits // 8  # of a result and of what follows from it, with all rows
        if in_trips and copies == 1 and piece + tiles <= spec.lx_usable_bytes:
            few = most_copies(rest, rows, cores)
            rests_us.append(_turn_us(rows, few, rest * lanes, summed.extent, lanes, p))
        products_us += min(rests_us) - once
    sent = sum(t.sticks for op in made.kernels for t in _sent(op)) * STICK_BYTES
    read = Traffic(bytes=sent, needed=sent, per_core=sent // cores, readers=copies)
    elements = turns * lanes * summed.extent * spec.cores_per_card
    first, other = (
        Work(kind=CostKind.POINTWISE, cores=spec.cores_per_card, elements=elements, operands=given)
        for given in ((read,), ())
    )
    making_us = total_us(first, p) + (len(made.kernels) - 1) * total_us(other, p)
    return len(made.products) * products_us + making_us + (turns * p.trip_fixed_us if in_trips else 0.0)


def _turn_us(rows: int, copies: int, columns: int, depth: int, lanes: int, p: CostParameters) -> float:
    """Microseconds of a product with a stick of columns on each core, in blocks of rows if there are too many."""
    own = rows // copies
    fits = (n for n in divisors(own, own) if own // n * lanes <= p.reread_from_tile_elements)
    blocks = next(fits, 1) if copies == 1 else 1
    parts, left = columns // lanes, rows // blocks * depth * DL16.bits // 8
    loops = MatmulLoops(batch=copies, rows=own // blocks, columns=columns, depth=depth, splits=(copies, 1, parts, 1))
    given = Traffic(bytes=left, needed=left, per_core=left // copies, readers=parts)
    work = Work(kind=CostKind.PRODUCT, cores=copies * parts, elements=loops.macs, operands=(given,), product=loops)
    return blocks * total_us(work, p)


def _sent(op: kernel.KernelOp) -> list[DeviceTensor]:
    """Inputs of a kernel that the host sends."""
    return [kernel.device_tensor(v) for v in op.inputs if not isinstance(v.owner, kernel.AllocOp)]


def _repeat_again(
    ops: Sequence[kernel.KernelOp], makers: int, buffers: Iterable[tuple[int, int]], copies: int
) -> list[list[kernel.KernelOp]]:
    """Do the same to so many kernels that make a weight, and to its products behind them; buffers are operands."""
    written = dict.fromkeys([ops[number].operands[place] for number, place in buffers])
    products = dict.fromkeys([op for op in ops[makers:] if isinstance(op, kernel.ComputeOp)])
    _repeat(_MadeWeight(set(ops[:makers]), written, products), copies)
    return [[op] for op in ops]


def _repeat(made: _MadeWeight, copies: int) -> None:
    """Give the kernels of a weight a loop over copies, and let it walk parts of the rows of its products."""
    for op in made.kernels:
        op.space = SpaceAttr((IterDim(_COPY, copies), *op.space.data))
        op.maps = ArrayAttr(
            [_repeated(m) if v in made.buffers else m for v, m in zip(op.operands, op.maps.data, strict=True)]
        )
    for op in made.products:
        rows = rows_loop(op)
        part = op.space.extents[rows] // copies
        dims = (replace(d, extent=part) if d.name == rows else d for d in op.space.data)
        places = {d.name: LinearExpr.of(d.name) for d in op.space.data}
        places[rows] = LinearExpr(0, ((_COPY, part), (rows, 1)))
        left, right, result = op.maps.data
        op.space = SpaceAttr((IterDim(_COPY, copies), *dims))
        op.maps = ArrayAttr([_at(left, places), _repeated(right), _at(result, places)])
    for value in made.buffers:
        old = value.owner
        assert isinstance(old, kernel.AllocOp)
        new = kernel.AllocOp(DeviceTensorType(_larger(kernel.device_tensor(value), copies)))
        new.attributes |= old.attributes
        new.location = old.location
        new.result.name_hint = value.name_hint
        block = old.parent_block()
        assert block is not None
        block.insert_op_before(new, old)
        value.replace_all_uses_with(new.result)
        Rewriter.erase_op(old)


def _at(index: IndexMapAttr, places: Mapping[str, LinearExpr]) -> IndexMapAttr:
    return IndexMapAttr(tuple(e.at(places) for e in index.data))


def _repeated(index: IndexMapAttr) -> IndexMapAttr:
    return IndexMapAttr((LinearExpr.of(_COPY), *index.data))


def _larger(tensor: DeviceTensor, copies: int) -> DeviceTensor:
    """A tensor with a new outermost dimension of so many copies of another one."""
    layout = tensor.layout
    order = (0, *(d if d < 0 else d + 1 for d in layout.order))
    stick = layout.stick if layout.stick < 0 else layout.stick + 1
    layout = replace(layout, order=order, stick=stick, extents=(copies, *layout.extents))
    return replace(tensor, shape=(copies, *tensor.shape), layout=layout)


__all__ = ["copies_of", "repeat_in", "repeat_weights", "shared_rows"]
