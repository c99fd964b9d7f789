"""Operations that keep float32 on the device by name, where the rest of the program computes in DL16.

A name is a module of the model, which stands for all that is in it, a line, or an operation of a nest.

Decision: docs/decisions/0077-float32-is-kept-on-request.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import PurePath

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop import body_function
from spyre_mlir.errors import InputError

_OPERATIONS_SHOWN = 12
_KINDS = (loop.NestOp, loop.LoopGatherOp, loop.EmptyOp)


def kept_ops(function: func.FuncOp, names: Sequence[str]) -> set[Operation]:
    """Return the ops of a function at the loop level that go by one of the names."""
    wanted = set(names)
    return {op for op in function.body.block.ops if isinstance(op, _KINDS) and wanted.intersection(_names(op))}


def check_names(module: ModuleOp, names: Sequence[str]) -> None:
    """Check that every name is of an op of a module at the loop level.

    Raises:
        InputError: there is none of a name; similar names are listed.
    """
    known = {name for op in ops_in(module) if isinstance(op, _KINDS) for name in _names(op)} if names else set[str]()
    for name in names:
        if name in known:
            continue
        raise InputError(
            f"keep_float32_in: nothing of the program is called '{name}'", hint=_suggestion(name, module, known)
        )


def _suggestion(name: str, module: ModuleOp, known: set[str]) -> str:
    """Similar names, or else the forms of names and the operations of the program, which are rarely those of ATen."""
    bare = name.replace("::", ".").removeprefix("aten.").removesuffix(".default")
    near = [bare] if bare in known else get_close_matches(name, sorted(known), 3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    forms = "name a module as layers.0.norm, a line as model.py:7, or an operation"
    operations = sorted({entry for op in ops_in(module) if (entry := _operation(op)) is not None})
    if not operations:
        return f"{forms} as mul"
    more = ", …" if len(operations) > _OPERATIONS_SHOWN else ""
    return f"{forms}: {', '.join(operations[:_OPERATIONS_SHOWN])}{more}"


def _names(op: Operation) -> Iterator[str]:
    """The modules that an op is in, its line, whole and without folders, and its operation."""
    source = source_of(op.location)
    parts = source.module.split(".") if source.module else []
    yield from (".".join(parts[: number + 1]) for number in range(len(parts)))
    if source.file is not None:
        yield from (f"{source.file}:{source.line}", f"{PurePath(source.file).name}:{source.line}")
    if (operation := _operation(op)) is not None:
        yield operation


def _operation(op: Operation) -> str | None:
    entry = body_function(op.body.block) if isinstance(op, loop.NestOp) else None
    return None if entry is None else entry.name


__all__ = ["check_names", "kept_ops"]
