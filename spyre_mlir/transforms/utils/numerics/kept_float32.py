"""Operations that keep float32 on the device by name, where the rest of the program computes in DL16.

A name is a module of the model or an operator, which stand for all that they become, a line, or an operation of a nest.
A program may lack what a name with ``?`` behind it stands for.

Decision: docs/decisions/0077-float32-is-kept-on-request.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import PurePath

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop import body_function
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.errors import AbsentNamesError

_OPTIONAL = "?"
_SHOWN = 12
_KINDS = (loop.NestOp, loop.LoopGatherOp, loop.EmptyOp)


def kept_ops(function: func.FuncOp, names: Sequence[str]) -> set[Operation]:
    """Return the ops of a function at the loop level that go by one of the names."""
    if not names:
        return set()
    wanted = {_plain(name) for name in names}
    return {op for op in function.body.block.ops if isinstance(op, _KINDS) and wanted.intersection(_names(op))}


def check_names(module: ModuleOp, names: Sequence[str]) -> None:
    """Check that every name is of an op of a module at the loop level that has float32 tensors, but names with ``?``.

    Raises:
        AbsentNamesError: there is none of a name; similar names are listed.
    """
    called: dict[str, list[Operation]] = {}
    for op in (op for op in ops_in(module) if names and isinstance(op, _KINDS)):
        for name in set(_names(op)):
            called.setdefault(name, []).append(op)
    wrong: dict[str, tuple[str, str]] = {}
    for name in (name for name in names if not name.endswith(_OPTIONAL)):
        ops = called.get(_plain(name), [])
        elements = {element_of(value) for op in ops for value in (*op.operands, *op.results)}
        if not ops:
            wrong[name] = f"nothing of the program is called '{name}'", _suggestion(name, module, set(called))
        elif f32 not in elements:
            found = " and ".join(sorted(map(str, elements)))
            wrong[name] = (
                f"nothing called '{name}' has float32 tensors",
                f"leave it out: its tensors are of {found} in the model",
            )
    if wrong:
        message, hint = next(iter(wrong.values()))
        raise AbsentNamesError(f"keep_float32_in: {message}", tuple(wrong), hint=hint)


def _suggestion(name: str, module: ModuleOp, known: set[str]) -> str:
    """Similar names, or else the forms of names with the operators and the operations of the program."""
    if near := get_close_matches(_plain(name.removeprefix("torch.")), sorted(known), 3):
        return f"did you mean {' or '.join(near)}?"
    ops = [op for op in ops_in(module) if isinstance(op, _KINDS)]
    operators = _listed({name.partition(".")[0] for op in ops for name in _operators(op)})
    operations = _listed({entry for op in ops if (entry := _operation(op)) is not None})
    return (
        f"name a module as layers.0.norm, a line as model.py:7, an operator of the model{operators}, "
        f"or an operation of its kernels{operations}"
    )


def _listed(names: set[str]) -> str:
    more = ", …" if len(names) > _SHOWN else ""
    return f" ({', '.join(sorted(names)[:_SHOWN])}{more})" if names else ""


def _plain(name: str) -> str:
    """A name in any spelling of an operator, ``aten::softmax``, as the loop level has it: ``softmax``."""
    return name.removesuffix(_OPTIONAL).replace("::", ".").removeprefix("aten.").removesuffix(".default")


def _names(op: Operation) -> Iterator[str]:
    """The modules that an op is in, its line, whole and without folders, its operator and its operation."""
    source = source_of(op.location)
    parts = source.module.split(".") if source.module else []
    yield from (".".join(parts[: number + 1]) for number in range(len(parts)))
    if source.file is not None:
        yield from (f"{source.file}:{source.line}", f"{PurePath(source.file).name}:{source.line}")
    yield from _operators(op)
    if (operation := _operation(op)) is not None:
        yield operation


def _operators(op: Operation) -> Iterator[str]:
    """The operator of the model that an op was made for, with and without its overload."""
    if operator := source_of(op.location).operator:
        plain = _plain(operator)
        yield plain
        if "::" not in operator:
            yield plain.partition(".")[0]


def _operation(op: Operation) -> str | None:
    entry = body_function(op.body.block) if isinstance(op, loop.NestOp) else None
    return None if entry is None else entry.name


__all__ = ["check_names", "kept_ops"]
