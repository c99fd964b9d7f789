"""Steps: discontinuous operators, where a last bit of the input decides an element of the result.

Exact numerics and eager both round to float32, each where it has added up in its own order or by its own formula. What
they hand to a step may differ in the last bits, and an element that lies at the step's boundary then falls to the other
side. Such an element is told from an error by torch itself: the model runs once as eager does, and once in double
precision; the difference is excused if the input, in double precision, lies within `NEAR` units in the last place of
the boundary.

Decision: docs/decisions/0100-steps-that-rounding-decides.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import AnyFloat, IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.flips import NEAR, Flip
from spyre_mlir.dialects.host_call import HostCall
from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.ir.functions import first_function
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.errors import SpyreError
from spyre_mlir.frontend.reference.op_runner import run_host_step
from spyre_mlir.frontend.reference.own_draws import OwnDraws

Array = NDArray[Any]

# Operators that jump at single places of their operands, element by element.
_JUMPING = frozenset(
    {"floor", "ceil", "round", "round.decimals", "trunc", "fix", "frac", "sign", "sgn", "signbit", "heaviside"}
    | {"floor_divide", "floor_divide.Scalar", "div.Tensor_mode", "div.Scalar_mode"}
    | {f"{name}.{kind}" for name in ("remainder", "fmod") for kind in ("Tensor", "Scalar", "Scalar_Tensor")}
    | {f"{name}.{kind}" for name in ("eq", "ne", "lt", "le", "gt", "ge") for kind in ("Tensor", "Scalar")}
    | {"bucketize.Tensor", "searchsorted.Tensor", "hardshrink", "threshold", "isclose", "copysign.Tensor"}
    | {"fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"}
)
# Those whose results hold what is left of their operands, last bits included.
_LEAVING = frozenset(
    {"frac", "round.decimals", "hardshrink", "threshold", "copysign.Tensor"}
    | {f"{name}.{kind}" for name in ("remainder", "fmod") for kind in ("Tensor", "Scalar", "Scalar_Tensor")}
    | {"fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"}
)
# Operators that name places: which of the elements that are nearly equal they name depends on the last bits.
_NAMING = frozenset(
    {"argmax", "argmin", "max.dim", "min.dim", "sort", "sort.stable", "argsort", "argsort.stable", "topk", "kthvalue"}
    | {"median.dim", "cummax", "cummin"}
)


def is_step(op: Operation) -> bool:
    """Return whether an op is discontinuous on floats: integers have no last bits that could differ."""
    if not isinstance(op, AtenOp) or not any(isinstance(element_of(v), AnyFloat) for v in op.operands):
        return False
    to_integers = op.overload == "_to_copy" and isinstance(element_of(op.results[0]), IntegerType)
    return to_integers or op.overload in _JUMPING | _NAMING


@dataclass
class RoundingSteps:
    """The steps of one run, with their eager results.

    Attributes:
        eager: per op its results, computed as eager does.
        wide: per value what double precision gives, with eager's side of every step that was near its boundary.
        flips: what `settle` has met, in order.
    """

    eager: dict[Operation, list[Array]] = field(default_factory=dict[Operation, "list[Array]"])
    wide: dict[SSAValue, Array] = field(default_factory=dict[SSAValue, Array])
    flips: list[Flip] = field(default_factory=list[Flip])
    _of_eager: OwnDraws = field(default_factory=OwnDraws)
    _of_wide: OwnDraws = field(default_factory=OwnDraws)

    @staticmethod
    def of(module: ModuleOp, inputs: Sequence[Array]) -> RoundingSteps | None:
        """Run an aten function in both precisions.

        None if it has no steps, torch cannot run an op alone, or it is held against double precision anyway.
        """
        main = first_function(module)
        ops = [op for op in main.body.block.ops if isinstance(op, AtenOp)]
        if any(isinstance(op, ControlOp) for op in main.body.block.ops):
            return None  # which steps there are, values decide
        if not any(map(is_step, ops)) or any(HostCall.of(op).is_wide for op in ops):
            return None
        steps, narrow = RoundingSteps(), dict[SSAValue, Array](zip(main.body.block.args, inputs, strict=True))
        steps.wide.update(narrow)
        try:
            for op in ops:
                steps._run(op, narrow)
        except SpyreError:
            return None
        return steps

    def _run(self, op: AtenOp, narrow: dict[SSAValue, Array]) -> None:
        self.eager[op] = self._of_eager(HostCall.of(op), [narrow[v] for v in op.operands], wide=False)
        narrow.update(zip(op.results, self.eager[op], strict=False))
        wide = self._of_wide(HostCall.of(op), [self.wide[v] for v in op.operands], wide=True)
        self.wide.update(zip(op.results, wide, strict=False))
        if is_step(op):
            self.wide.update(zip(op.results, self._settled(op, wide), strict=False))

    def settle(self, op: AtenOp, values: list[Array]) -> list[Array]:
        """Return the results of an op, with eager's elements where rounding explains a different step."""
        if op not in self.eager or not is_step(op):
            return values
        settled = self._settled(op, values)
        apart = [~_same(a, b, 0.0) for a, b in zip(values, settled, strict=True)]
        if count := max(int(a.sum()) for a in apart):
            self.flips.append(Flip(op.overload, source_of(op.location), count, max(a.size for a in apart)))
        return settled

    def _settled(self, op: AtenOp, values: Sequence[Array]) -> list[Array]:
        """Results with eager's elements where they differ and the input is near a boundary."""
        wanted, slack = self.eager[op], self._slack(op)
        apart = [~_same(v, w, slack) for v, w in zip(values, wanted, strict=True)]
        if not any(a.any() for a in apart):
            return list(values)
        near = self._near_in_place(op, values) if op.overload in _NAMING else self._near(op)
        taken = [n & a for n, a in zip(near, apart, strict=True)]
        return [np.where(t, w.astype(v.dtype), v) for t, w, v in zip(taken, wanted, values, strict=True)]

    def _slack(self, op: AtenOp) -> Array | float:
        """Return the tolerance between results of one side: zero, unless they contain remainders of the operands."""
        if op.overload not in _LEAVING | _NAMING:
            return 0.0
        operands = [self.wide[v] for v in op.operands if isinstance(element_of(v), AnyFloat)]
        if op.overload in _NAMING:
            return 2 * NEAR * float(_unit(operands[0]).max(initial=0.0))
        units = [_unit(x) for x in operands]
        return 2 * NEAR * np.maximum.reduce(np.broadcast_arrays(*units))

    def _near(self, op: AtenOp) -> list[Array]:
        """Return which elements change if the operands move a few units in their last place."""
        call, operands = HostCall.of(op), [self.wide[v] for v in op.operands]
        floats = [n for n, v in enumerate(op.operands) if isinstance(element_of(v), AnyFloat)]
        found: list[list[Array]] = []
        for signs in product((-NEAR, NEAR), repeat=len(floats)):
            moved = list(operands)
            for at, sign in zip(floats, signs, strict=True):
                moved[at] = operands[at] + sign * _unit(operands[at])
            found.append(run_host_step(call, moved, wide=True))
        middle = run_host_step(call, operands, wide=True)
        slack = self._slack(op)
        return [_jumps(list(column), slack) for column in zip(middle, *found, strict=True)]

    def _near_in_place(self, op: AtenOp, values: Sequence[Array]) -> list[Array]:
        """Return which indices name an element nearly equal to the one that eager names."""
        source, dim = self.wide[op.operands[0]], cast("int | None", op.arguments().get("dim", _LAST.get(op.overload)))
        places, wanted = values[-1].astype(np.int64), self.eager[op][-1].astype(np.int64)
        if source.ndim == 0:
            return [np.zeros(v.shape, np.bool_) for v in values]
        ours, theirs = _picked(source, places, wanted, dim)
        near = np.abs(ours - theirs) <= NEAR * np.maximum(_unit(ours), _unit(theirs))
        return [near.reshape(places.shape)] * len(values)


# Which dimension is meant where none is given.
_LAST: dict[str, int] = dict.fromkeys(("sort", "sort.stable", "argsort", "argsort.stable", "topk", "kthvalue"), -1)


def _picked(source: Array, ours: Array, theirs: Array, dim: int | None) -> tuple[Array, Array]:
    """The elements that two results name."""
    if dim is None:
        flat = source.reshape(-1)
        return flat[ours], flat[theirs]
    at = dim % source.ndim
    pair = [x if x.ndim == source.ndim else np.expand_dims(x, at) for x in (ours, theirs)]
    made = [np.take_along_axis(source, x, axis=at) for x in pair]
    return made[0], made[1]


def _unit(values: Array) -> Array:
    """One unit in the last place of float32, as doubles; 0 of what is not finite."""
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(values).astype(np.float32)).astype(np.float64)
    return np.where(np.isfinite(unit), unit, 0.0)


def _same(a: Array, b: Array, slack: Array | float) -> Array:
    """Return where two results of a step are on the same side: equal, or as far apart as their rounding allows."""
    if a.dtype.kind != "f" and b.dtype.kind != "f":
        return np.asarray(a == b)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        close = np.abs(x - y) <= slack
    return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)) | close)


def _jumps(results: Sequence[Array], slack: Array | float) -> Array:
    """Return where one of several results is on another side than the first."""
    first, *others = results
    return np.any([~_same(first, other, slack) for other in others], axis=0)


__all__ = ["RoundingSteps", "is_step"]
