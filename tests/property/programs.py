"""Random small aten functions, built op by op; every random choice comes from one `random.Random`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType, f32, i64
from xdsl.ir import Block, Region, SSAValue

from spyre_mlir.dialects.aten import make_op
from spyre_mlir.dialects.aten_arguments import OperandsAttr, to_attribute
from spyre_mlir.dialects.aten_types import result_type
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.parameters import ArgKind

Array = NDArray[Any]
Shape = tuple[int, ...]

# Below, at and above a stick of 64; primes; 1 often.
EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 13, 31, 64, 65, 67, 96, 128, 130)
MOST_ELEMENTS = 40_000
UNARY = ("neg", "abs", "tanh", "relu", "sigmoid", "silu", "gelu", "clone", "floor")
BINARY = ("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum", "minimum")
COMPARISONS = ("gt.Tensor", "le.Tensor", "eq.Tensor")
REDUCTIONS = ("sum.dim_IntList", "amax", "amin", "mean.dim")


@dataclass
class Program:
    """A function under construction.

    Attributes:
        inputs: one array per argument.
        values: float values that ops may read.
        steps: what was built, for messages.
    """

    random: Random
    block: Block = field(default_factory=Block)
    inputs: list[Array] = field(default_factory=list[Array])
    kinds: list[str] = field(default_factory=list[str])
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    steps: list[str] = field(default_factory=list[str])

    def argument(self, shape: Shape, rows: int | None = None) -> SSAValue:
        """A new argument of numbers that float32 has; `rows` makes it a tensor of indices below that number."""
        # The numbers need no shrinking: they come from a generator of their own.
        numbers = np.random.default_rng(len(self.inputs))
        element = f32 if rows is None else i64
        value = self.block.insert_arg(TensorType(element, shape), len(self.block.args))
        floats = numbers.uniform(-2, 2, shape).astype(np.float32).astype(np.float64)
        self.inputs.append(floats if rows is None else numbers.integers(0, rows, shape))
        self.kinds.append("input" if rows is not None else self.random.choice(("input", "parameter")))
        return value

    def value(self) -> SSAValue:
        """A value to read: mostly the newest, so that programs become chains."""
        return self.values[-1] if self.random.random() < 0.7 else self.random.choice(self.values)

    def call(self, overload: str, *tensors: Any, **attributes: Any) -> SSAValue:
        """Adds an op; numbers and lists of tensors may stand in tensors' places."""
        entry = ATEN.find(overload)
        assert entry is not None, overload
        params = [p for p in entry.params if p.is_tensor]
        given = dict(zip((p.name for p in params), tensors, strict=False))
        operands: list[SSAValue] = []
        spelled: dict[str, Any] = {}
        for param in params:
            value = given.get(param.name)
            if param.kind is ArgKind.TENSORS:
                operands += value
                spelled[param.name] = OperandsAttr(len(value))
            elif isinstance(value, SSAValue):
                operands.append(value)
            elif value is not None:
                spelled[param.name] = to_attribute(value)
        bound = {p.name: p.default for p in entry.params} | given | attributes
        spelled |= {name: to_attribute(v) for name, v in attributes.items()}
        op = make_op(overload, operands, spelled, [result_type(entry, bound)])
        self.block.add_op(op)
        self.steps.append(f"{overload} {attributes or ''} -> {list(shape_of(op.results[0]))}")
        return op.results[0]

    def module(self) -> ModuleOp:
        """The finished function, in a module."""
        results = [self.values[-1]]
        if self.random.random() < 0.2:
            results.append(self.random.choice(self.values))
        self.block.add_op(func.ReturnOp(*results))
        types = [a.type for a in self.block.args], [r.type for r in results]
        kinds = ArrayAttr([DictionaryAttr({"aten.kind": StringAttr(k)}) for k in self.kinds]) if self.kinds else None
        return ModuleOp([func.FuncOp("main", types, Region(self.block), arg_attrs=kinds)])


def shape_of(value: SSAValue) -> Shape:
    assert isinstance(value.type, TensorType)
    return value.type.get_shape()


def random_shape(random: Random, rank: int, most: int = MOST_ELEMENTS) -> Shape:
    shape: list[int] = []
    for _ in range(rank):
        shape.append(random.choice([e for e in EXTENTS if e * prod(shape) <= most]))
    random.shuffle(shape)
    return tuple(shape)


def subset(random: Random, items: Sequence[int]) -> tuple[int, ...]:
    return tuple(i for i in items if random.random() < 0.5)


def unary(p: Program) -> SSAValue:
    if p.random.random() < 0.15:
        return p.call("clamp", p.value(), min=-0.5, max=p.random.choice((None, 1.0)))
    return p.call(p.random.choice(UNARY), p.value())


def other_operand(p: Program, shape: Shape) -> SSAValue | float:
    """Something that broadcasts with a shape: a number, an old value, or a new argument."""
    fitting = [v for v in p.values if broadcasts(shape_of(v), shape)]
    way = p.random.random()
    if way < 0.1:
        return p.random.choice((0.5, -1.0, 2.0))
    if fitting and way < 0.5:
        return p.random.choice(fitting)
    cut = shape[p.random.randrange(len(shape) + 1) :]
    return p.argument(tuple(1 if p.random.random() < 0.3 else e for e in cut))


def broadcasts(a: Shape, b: Shape) -> bool:
    try:
        return prod(np.broadcast_shapes(a, b)) <= MOST_ELEMENTS
    except ValueError:
        return False


def binary(p: Program) -> SSAValue:
    left = p.value()
    right = other_operand(p, shape_of(left))
    way = p.random.random()
    if way < 0.2:
        chosen = p.call(p.random.choice(COMPARISONS), left, right)
        return p.call("where.self", chosen, left, other_operand(p, shape_of(chosen)))
    if isinstance(right, SSAValue) and way < 0.3:
        left, right = right, left
    extra = {"alpha": 2} if way > 0.9 else {}
    return p.call(p.random.choice(BINARY[:2] if extra else BINARY), left, right, **extra)


def reduction(p: Program) -> SSAValue:
    x = p.value()
    rank = len(shape_of(x))
    dims = subset(p.random, range(rank))
    if p.random.random() < 0.6 and rank:
        dims = (p.random.randrange(-rank, rank),)
    return p.call(p.random.choice(REDUCTIONS), x, dim=dims, keepdim=p.random.random() < 0.5)


def normalisation(p: Program) -> SSAValue | None:
    x = p.value()
    shape = shape_of(x)
    if not shape:
        return None
    if p.random.random() < 0.5:
        return p.call("softmax.int", x, dim=p.random.randrange(len(shape)))
    weight = p.argument(shape[-1:])
    if p.random.random() < 0.5:
        return p.call("rms_norm", x, weight, normalized_shape=shape[-1:], eps=0.125)
    return p.call("layer_norm", x, weight, p.argument(shape[-1:]), normalized_shape=shape[-1:], eps=0.125)


def product(p: Program) -> SSAValue | None:
    x = p.value()
    shape = shape_of(x)
    if len(shape) < 2:
        return None
    other = p.random.choice(EXTENTS)
    if prod(shape[:-1]) * other > MOST_ELEMENTS:
        return None
    if p.random.random() < 0.35:
        bias = p.argument((other,)) if p.random.random() < 0.5 else None
        return p.call("linear", x, p.argument((other, shape[-1])), bias)
    batch = shape[:-2][p.random.randrange(len(shape) - 1) :]
    batch = tuple(1 if p.random.random() < 0.3 else e for e in batch)
    if p.random.random() < 0.7:
        y = p.argument((*batch, shape[-1], other))
        if p.random.random() < 0.3:
            y = p.call("transpose.int", p.argument((*batch, other, shape[-1])), dim0=-1, dim1=-2)
        return p.call("matmul", x, y)
    if prod(shape[:-2]) * other * shape[-1] > MOST_ELEMENTS:
        return None
    return p.call("matmul", p.argument((*batch, other, shape[-2])), x)


def grouping(random: Random, shape: Shape) -> Shape:
    """Another shape of as many elements: dimensions merged and split."""
    out = list(shape)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(out)) if out else 0
        divisors = [d for d in range(1, out[at] + 1) if out[at] % d == 0] if out else [1]
        if out and random.random() < 0.5 and at + 1 < len(out):
            out[at : at + 2] = [out[at] * out[at + 1]]
        elif len(out) < 5:
            d = random.choice(divisors)
            out[at : at + 1] = [out[at] // d, d] if out else [1]
    return tuple(out)


def view(p: Program) -> SSAValue | None:
    x = p.value()
    shape, rank = shape_of(x), len(shape_of(x))
    way = p.random.randrange(8)
    if way == 0:
        return p.call("view", x, size=grouping(p.random, shape))
    if way == 1:
        return p.call("permute", x, dims=tuple(p.random.sample(range(rank), rank)))
    if way == 2 and rank < 5:
        return p.call("unsqueeze", x, dim=p.random.randint(-rank - 1, rank))
    if rank == 0:
        return None
    dim = p.random.randrange(rank)
    match way:
        case 3:
            return p.call("transpose.int", x, dim0=dim, dim1=p.random.randrange(-rank, rank))
        case 4:
            return p.call("squeeze.dim", x, dim=(dim,))
        case 5:
            wide = [p.random.choice((e, -1)) if e > 1 else p.random.choice((1, 2, 3, 65)) for e in shape]
            wide = ([p.random.choice((2, 3))] if p.random.random() < 0.3 and rank < 5 else []) + wide
            return p.call("expand", x, size=tuple(wide)) if abs(prod(wide)) * prod(shape) <= MOST_ELEMENTS else None
        case 6:
            return p.call("select.int", x, dim=dim, index=p.random.randrange(-shape[dim], shape[dim]))
        case _:
            start, step = p.random.randrange(shape[dim]), p.random.choice((1, 1, 1, 2, 3))
            end = p.random.randint(start + 1, shape[dim])
            return p.call("slice.Tensor", x, dim=dim, start=start, end=end, step=step)


def cat(p: Program) -> SSAValue | None:
    x = p.value()
    shape = shape_of(x)
    if not shape:
        return None
    at = p.random.randrange(len(shape))
    parts = [x]
    for _ in range(p.random.randint(1, 2)):
        extent = p.random.choice((1, 3, 33, 64, shape[at]))
        fresh = p.random.random() < 0.7
        parts.append(p.argument((*shape[:at], extent, *shape[at + 1 :])) if fresh else x)
    p.random.shuffle(parts)
    if prod(shape) * 3 > MOST_ELEMENTS:
        return None
    return p.call("cat", parts, dim=p.random.choice((at, at - len(shape))))


def embedding(p: Program) -> SSAValue | None:
    rows, width = p.random.choice((1, 5, 33, 100)), p.random.choice(EXTENTS)
    ids = p.argument(random_shape(p.random, p.random.choice((0, 1, 1, 2, 2, 3)), most=300), rows=rows)
    rank, way = len(shape_of(ids)), p.random.random()
    if rank and way < 0.15:
        ids = p.call("unsqueeze", ids, dim=p.random.randint(0, rank))
    elif rank and way < 0.3:
        ids = p.call("slice.Tensor", ids, dim=rank - 1, start=shape_of(ids)[-1] // 2, end=shape_of(ids)[-1])
    elif rank > 1 and way < 0.4:
        ids = p.call("transpose.int", ids, dim0=0, dim1=1)
    elif rank and way < 0.5:
        ids = p.call("expand", p.call("unsqueeze", ids, dim=0), size=(2, *shape_of(ids)))
    return p.call("embedding", p.argument((rows, width)), ids)


def power(p: Program) -> SSAValue:
    x = p.value()
    if p.random.random() < 0.3:
        one = p.call("add.Tensor", p.call("abs", x), 1.0)
        return p.call("pow.Tensor_Scalar", one, exponent=p.random.choice((-0.5, 0.5, -1)))
    return p.call("pow.Tensor_Scalar", x, exponent=p.random.choice((1, 2, 3)))


def positions(p: Program) -> SSAValue:
    """A range, mixed into a value it broadcasts with."""
    x = p.value()
    extent = shape_of(x)[-1] if shape_of(x) else 1
    numbers = p.call("arange.start_step", start=0, end=extent, step=1)
    return p.call("mul.Tensor", x, numbers)


def addmm(p: Program) -> SSAValue | None:
    x = p.value()
    if len(shape_of(x)) != 2:
        return None
    (m, k), n = shape_of(x), p.random.choice(EXTENTS)
    if m * n > MOST_ELEMENTS or n * k > MOST_ELEMENTS:
        return None
    bias = p.argument(p.random.choice(((n,), (m, n), (1, n))))
    return p.call("addmm", bias, x, p.argument((k, n)), beta=p.random.choice((1, 2)), alpha=p.random.choice((1, 0.5)))


def attention(p: Program) -> SSAValue | None:
    x = p.value()
    if len(shape_of(x)) != 4 or prod(shape_of(x)) > 8000:
        return None
    batch, heads, rows, width = shape_of(x)
    if heads % 2 == 0 and p.random.random() < 0.5:
        groups, grouped = heads // 2, True
    else:
        groups, grouped = heads, False
    columns = p.random.choice((1, 3, 33, rows))
    if batch * heads * rows * columns > MOST_ELEMENTS:
        return None
    key, value = (p.argument((batch, groups, columns, width)) for _ in range(2))
    mask = p.argument((rows, columns)) if p.random.random() < 0.3 else None
    causal = mask is None and p.random.random() < 0.5
    return p.call("scaled_dot_product_attention", x, key, value, mask, is_causal=causal, enable_gqa=grouped)


def truth(p: Program) -> SSAValue:
    """Truth values turned to numbers: chosen, combined, inverted."""
    x = p.value()
    chosen = p.call(p.random.choice(COMPARISONS), x, other_operand(p, shape_of(x)))
    way = p.random.random()
    if way < 0.3:
        chosen = p.call("logical_not", chosen)
    elif way < 0.6:
        chosen = p.call("logical_and", chosen, p.call("lt.Tensor", x, 0.5))
    if p.random.random() < 0.2:
        return p.call("mul.Tensor", x, chosen)
    return p.call("where.self", chosen, x, 0.0)


MAKERS: tuple[tuple[Callable[[Program], SSAValue | None], int], ...] = (
    (unary, 2),
    (binary, 4),
    (reduction, 3),
    (normalisation, 1),
    (product, 3),
    (view, 7),
    (cat, 1),
    (embedding, 1),
    (power, 1),
    (positions, 1),
    (addmm, 1),
    (attention, 1),
    (truth, 1),
)


def build(random: Random, most_steps: int = 5) -> Program:
    """A random program of a few ops."""
    p = Program(random)
    p.values.append(p.argument(random_shape(random, random.randint(0, 5 if random.random() < 0.2 else 4))))
    makers = [maker for maker, weight in MAKERS for _ in range(weight)]
    for _ in range(random.randint(1, most_steps)):
        made = random.choice(makers)(p)
        if made is not None:
            p.values.append(made)
    return p
