"""Arguments of a KTIR function: pointers to arrays, whose shapes its views define, and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.arith import AddiOp, ConstantOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ktdp.tiles import StoreOp
from spyre_mlir.dialects.ktdp.views import ConstructDistributedMemoryViewOp, ConstructMemoryViewOp, view_type
from spyre_mlir.errors import InputError


@dataclass(frozen=True)
class KtirArgument:
    """One argument of a KTIR function.

    Args:
        name: as in the text, else `arg` and its number.
        shape: of the array it points to, as its largest view says; None for a number, or when no view tells.
        element: of the array, or of the number.
        pointer: whether it is the start of an array.
        read: whether a load or an index goes through it, or what it held stays in part: nothing begins at its start.
        written: whether a store goes through it.
    """

    name: str
    shape: tuple[int, ...] | None
    element: Attribute
    pointer: bool
    read: bool
    written: bool


def kernels(module: ModuleOp) -> list[FuncOp]:
    """Return the functions of a program in execution order: the only one, `main`, or `main_0`, `main_1` and so on.

    Raises:
        InputError: there is none, or it is not known which of several to run.
    """
    found = {op.sym_name.data: op for op in functions(module)}
    stem = next(iter(found), "").removesuffix("_0")
    if found and list(found) == [f"{stem}_{number}" for number in range(len(found))]:
        return list(found.values())
    return [find_kernel(module)]


def find_kernel(module: ModuleOp, name: str | None = None) -> FuncOp:
    """A function of a module.

    Args:
        module: where.
        name: its name; without, the only one, or the one called `main`.

    Raises:
        InputError: there is none, or a name is needed.
    """
    found = {op.sym_name.data: op for op in functions(module)}
    if name is None:
        name = next(iter(found)) if len(found) == 1 else "main"
    if name not in found:
        raise InputError(f"there is no function '{name}'", hint=f"there are: {', '.join(found) or 'none'}")
    return found[name]


def argument_names(function: FuncOp) -> list[str]:
    """Names of the arguments, each once."""
    hints = [argument.name_hint for argument in function.args]
    return [
        hint if hint is not None and hints.count(hint) == 1 else f"arg{number}" for number, hint in enumerate(hints)
    ]


def arguments(function: FuncOp) -> list[KtirArgument]:
    """Return the arguments of a function."""
    described: list[KtirArgument] = []
    for name, value in zip(argument_names(function), function.args, strict=True):
        views = _views(value)
        if not views:
            described.append(KtirArgument(name, None, value.type, False, False, False))
            continue
        kind = view_type(views[0][1].result)
        shapes = [shape for start, one in views if (shape := _memory(one, start)) is not None]
        shape = max(shapes, key=prod) if shapes else None
        users = [user for _, one in views for user in _users(one.result)]
        written = any(isinstance(user, StoreOp) for user in users)
        read = any(not isinstance(user, StoreOp) for user in users) or all(start for start, _ in views)
        described.append(KtirArgument(name, shape, kind.element_type, True, read, written))
    return described


def _views(pointer: SSAValue, start: int = 0) -> list[tuple[int, ConstructMemoryViewOp]]:
    """The views that begin a known number of elements behind a pointer."""
    found: list[tuple[int, ConstructMemoryViewOp]] = []
    for op in (use.operation for use in pointer.uses):
        if isinstance(op, ConstructMemoryViewOp) and op.offset is pointer:
            found.append((start, op))
        elif isinstance(op, AddiOp):
            step = (op.rhs if op.lhs is pointer else op.lhs).owner
            if isinstance(step, ConstantOp) and isinstance(step.value, IntegerAttr):
                found += _views(op.result, start + step.value.value.data)
    return found


def _memory(view: ConstructMemoryViewOp, start: int) -> tuple[int, ...] | None:
    """Extents of the array under a view: the view's own, or one dimension where its elements lie in another order."""
    sizes = [one for one in view.mixed_sizes if isinstance(one, int)]
    strides = [one for one in view.mixed_strides if isinstance(one, int)]
    if len(sizes) != len(view.mixed_sizes) or len(strides) != len(view.mixed_strides):
        return None
    if not start and strides == [prod(sizes[at + 1 :]) for at in range(len(sizes))]:
        return tuple(sizes)
    return (start + 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)),)


def _users(view: SSAValue) -> list[Operation]:
    """Ops that load, store or look up through a view."""
    found: list[Operation] = []
    for use in view.uses:
        op = use.operation
        if isinstance(op, ConstructDistributedMemoryViewOp):
            found += _users(op.result)
        elif op.name == "ktdp.construct_indirect_access_tile" and use.index > 0:
            found.append(op)
        else:
            found += [one.operation for result in op.results for one in result.uses]
    return found


def only_stored_through(function: FuncOp) -> set[str] | None:
    """Return names of arguments that are stored through; None when a store's address is computed."""
    names = dict(zip(function.args, argument_names(function), strict=True))
    found: set[str] = set()
    for op in function.walk():
        if isinstance(op, StoreOp):
            owner = op.tile.owner
            starts = _starts(owner.operands[0]) if isinstance(owner, Operation) else [None]
            for start in starts:
                if not isinstance(start, BlockArgument) or start not in names:
                    return None
                found.add(names[start])
    return found


def _starts(view: SSAValue) -> list[SSAValue | None]:
    match view.owner:
        case ConstructMemoryViewOp() as op:
            return [] if op.memory_space.is_local else [op.offset]
        case ConstructDistributedMemoryViewOp() as op:
            return [start for part in op.memrefs for start in _starts(part)]
        case _:
            return [None]
