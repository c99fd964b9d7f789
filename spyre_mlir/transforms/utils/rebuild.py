"""Rebuild of function bodies in one pass: the linear way to convert between levels.

Decision: docs/decisions/0115-conversions-are-rebuilds.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from spyre_mlir.dialects.aten_arguments import ORIGIN, TERMS, WIDENED
from spyre_mlir.dialects.ir.modules import take_apart
from spyre_mlir.errors import SpyreError, UnsupportedError
from spyre_mlir.hw.sticks import StickError
from spyre_mlir.transforms.utils.hints import inherit_hint


class Emitter:
    """Collector of the new ops of a block; each takes the location of the op it replaces."""

    def __init__(self, current: Operation | None = None) -> None:
        """Starts with an empty block; new ops replace `current`."""
        self.ops: list[Operation] = []
        self.current = current

    def add(self, op: Operation) -> Operation:
        """Append an op and give it the current location unless it has one."""
        if self.current is not None:
            op.location = self.current.location
            for name in (ORIGIN, TERMS, WIDENED):
                if (number := self.current.attributes.get(name)) is not None:
                    op.attributes.setdefault(name, number)
            inherit_hint(op, self.current)
        self.ops.append(op)
        return op


class Failures:
    """Errors of one pass about numbered ops of the model: collected until all ops are tried, then raised as one."""

    def __init__(self) -> None:
        """Starts without errors."""
        self._errors: list[SpyreError] = []

    def meet(self, error: SpyreError, op: Operation) -> None:
        """Keep an error about an op of a numbered program, which the host will run.

        Raises:
            SpyreError: the error itself, if the op has no number.
        """
        tell_origin(error, op)
        if error.origin is None:
            raise error
        self._errors.append(error)

    def know(self, op: Operation) -> bool:
        """Return whether an op comes from an op of the model that already has an error."""
        return origin_of_aten(op) in {error.origin for error in self._errors}

    def raise_all(self) -> None:
        """Raise the first error, which holds the others, if there are any."""
        if self._errors:
            first, *others = self._errors
            first.others = tuple(others)
            raise first


def rebuild(
    function: func.FuncOp,
    convert: Callable[[Operation], Sequence[SSAValue]],
    emitter: Emitter,
    stand_in: Callable[[Operation], None] | None = None,
) -> None:
    """Replace the body of a function: `convert` turns each op into new ops and returns its new results.

    `convert` looks operands up in a map of its own; block arguments stay the same values. On an error the
    function is left as it was, and the error says at which op. If `stand_in` can give an op results that the
    host may have computed, the ops behind it are tried too, and the error holds theirs.
    """

    def converted(op: Operation) -> None:
        emitter.current = op
        convert(op)

    try_each(function.body.block, converted, stand_in)
    install(function.body.block, emitter.ops)


def try_each(
    block: Block, convert: Callable[[Operation], object], stand_in: Callable[[Operation], None] | None = None
) -> None:
    """Offer every op of a block to `convert`, as `rebuild` does, and change nothing else.

    Raises:
        SpyreError: the first error, which says at which op and holds the others.
    """
    failures = Failures()
    for op in list(block.ops):
        if isinstance(op, func.ReturnOp):
            failures.raise_all()
        try:
            if not failures.know(op):
                convert(op)
                continue
        except SpyreError as error:
            _meet(failures, error, op, collects=stand_in is not None)
        except StickError as error:
            refused = UnsupportedError(str(error))
            refused.__cause__ = error
            _meet(failures, refused, op, collects=stand_in is not None)
        if stand_in is not None:
            stand_in(op)
    failures.raise_all()


def _meet(failures: Failures, error: SpyreError, op: Operation, *, collects: bool) -> None:
    failures.meet(error, op)
    if not collects:
        raise error


def install(block: Block, ops: Sequence[Operation]) -> None:
    """Replace the ops of a block."""
    for op in reversed(list(block.ops)):
        take_apart(op)
    block.add_ops(ops)


def tell_origin(error: SpyreError, op: Operation) -> None:
    """Add to an error the op that raised it and its aten op, unless the error already names them."""
    error.where = error.where or f"{op.name} at {describe_location(op)}"
    if error.origin is None:
        error.origin = origin_of_aten(op)


def origin_of_aten(op: Operation) -> int | None:
    """Return the number of the aten op that an op comes from, if the program is numbered."""
    number = op.attributes.get(ORIGIN)
    return number.value.data if isinstance(number, IntegerAttr) else None


def describe_location(op: Operation) -> str:
    """Describe for messages the origin of an op in the model."""
    text = str(op.location)
    return "unknown location" if text == "loc(unknown)" else text.removeprefix("loc(").removesuffix(")")
