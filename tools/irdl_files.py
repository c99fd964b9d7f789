"""IRDL files of the dialects whose op names IRDL admits, for `generate.py`: MLIR's own tools load them.

An IRDL name has letters, digits and underscores, and is of one op, type or attribute. So `aten` and `spyre`, whose ops
have dots in their names, have no file, and neither has `superdsc`, where a type is called as the op that makes it. IRDL
in MLIR 22 has no properties, optional attributes, terminators or syntax of types: a file states the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import IRDLOperation, OptionalDef, OptOperandDef, OptResultDef, VarOperandDef, VarResultDef

from spyre_mlir.dialects import get_all_dialects

NAME = re.compile(r"[a-z][a-z0-9_]*")
# These say how operands are grouped; MLIR knows them.
SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")
HEAD = "// Written by tools/generate.py from the definitions in spyre_mlir/dialects: mlir-opt --irdl-file=THIS_FILE.\n"


def is_admitted(dialect: Dialect) -> bool:
    """Whether the dialect has ops, and IRDL can name everything."""
    named = [*dialect.operations, *dialect.attributes]
    names = [one.name.removeprefix(f"{dialect.name}.") for one in named]
    return any(dialect.operations) and all(map(NAME.fullmatch, names)) and len(set(names)) == len(names)


def irdl_files() -> dict[str, str]:
    """Path below the checkout to content."""
    dialects = [make() for make in get_all_dialects().values()]
    return {f"dialects/{one.name}/{one.name}.irdl.mlir": irdl_text(one) for one in dialects if is_admitted(one)}


def irdl_text(dialect: Dialect) -> str:
    """The definition of a dialect in IRDL."""
    lines = [f"irdl.dialect @{dialect.name} {{"]
    for attribute in dialect.attributes:
        lines += _attribute(dialect, attribute)
    for op in dialect.operations:
        lines += _operation(dialect, op)
    return HEAD + "\n".join([*lines, "}"]) + "\n"


def _attribute(dialect: Dialect, attribute: type[Attribute]) -> Iterator[str]:
    kind = "type" if issubclass(attribute, TypeAttribute) else "attribute"
    assert issubclass(attribute, ParametrizedAttribute)
    names = [name for name, _ in attribute.get_irdl_definition().parameters]
    yield f"  irdl.{kind} @{attribute.name.removeprefix(f'{dialect.name}.')} {{"
    yield from _listed("parameters", [f"{name}:" for name in names], ["irdl.any"] * len(names))
    yield "  }"


def _operation(dialect: Dialect, op: type[Operation]) -> Iterator[str]:
    assert issubclass(op, IRDLOperation)
    definition = op.get_irdl_definition()
    yield f"  irdl.operation @{op.name.removeprefix(f'{dialect.name}.')} {{"
    for kind, parts in (("operands", definition.operands), ("results", definition.results)):
        names = [f"{name}: {_count(one)}" for name, one in parts]
        yield from _listed(kind, names, [_constraint(dialect, one.constr) for _, one in parts], kind[:1])
    required = [
        name
        for name, one in [*definition.properties.items(), *definition.attributes.items()]
        if not isinstance(one, OptionalDef) and name not in SEGMENTS
    ]
    for number, _ in enumerate(required):
        yield f"    %a{number} = irdl.any"
    if required:
        yield "    irdl.attributes {" + ", ".join(f'"{name}" = %a{n}' for n, name in enumerate(required)) + "}"
    for name, _ in definition.regions:
        yield f"    %{name} = irdl.region"
    if definition.regions:
        yield "    irdl.regions(" + ", ".join(f"{name}: %{name}" for name, _ in definition.regions) + ")"
    yield "  }"


def _listed(kind: str, names: Sequence[str], constraints: Sequence[str], letter: str = "p") -> Iterator[str]:
    """Constraints, each of its own: one that is used twice would ask for equal types."""
    for number, constraint in enumerate(constraints):
        yield f"    %{letter}{number} = {constraint}"
    if names:
        parts = [f"{name} %{letter}{number}" for number, name in enumerate(names)]
        yield f"    irdl.{kind}({', '.join(parts)})"


def _count(part: object) -> str:
    if isinstance(part, (OptOperandDef, OptResultDef)):
        return "optional"
    return "variadic" if isinstance(part, (VarOperandDef, VarResultDef)) else "single"


def _constraint(dialect: Dialect, constraint: object) -> str:
    inner = getattr(constraint, "constr", None) or getattr(constraint, "constraint", None) or constraint
    inner = getattr(inner, "constr", inner)
    bases = inner.get_bases() if hasattr(inner, "get_bases") else None
    own = [one for one in bases or () if one in set(dialect.attributes)]
    if bases is None or len(bases) != 1 or not own:
        return "irdl.any"
    return f"irdl.base @{dialect.name}::@{own[0].name.removeprefix(f'{dialect.name}.')}"
