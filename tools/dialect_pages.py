"""Pages and example programs of the dialects, for `generate.py`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from aten_page import doc_text, entry_section, first_text
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayOfConstraint, ModuleOp
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import (
    AnyAttr,
    AnyOf,
    AttrConstraint,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    MessageConstraint,
    OptionalDef,
    ParamAttrConstraint,
    RangeConstraint,
    RangeLengthConstraint,
    RangeOf,
    VariadicDef,
)

from spyre_mlir.backend.read import read_json
from spyre_mlir.dialects.aten import OP_CLASSES, Aten
from spyre_mlir.dialects.ktdp import Ktdp
from spyre_mlir.dialects.sdscbundle import Sdscbundle
from spyre_mlir.dialects.spyre import Spyre
from spyre_mlir.dialects.superdsc import Superdsc
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family
from spyre_mlir.pipeline import LEVELS, lower
from spyre_mlir.text.ktir import ktir_text
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context

# The programs whose ops are shown; the first one is also the example program of every dialect.
PROGRAMS = ("affine_relu.mlir", "embedding.mlir", "padded_product.mlir")
# KTIR programs: the first one is the example of `ktdp`.
KTIR_PROGRAMS = tuple(f"tests/data/ktir/{name}.mlir" for name in ("lx_handoff", "matmul_ksplit", "gather_rows"))
# A file with a named scalar, which our own kernels carry as operands instead.
WITH_CONSTANT = "tests/data/superdsc_worked/d32_clamp_128x256.json"
WITH_LOOP = "tests/lit/dialects/spyre/kernel_loop.mlir"
WITH_VIEW = "tests/lit/dialects/spyre/kernel_view.mlir"
# A cache of which one row is written where it lies.
CACHE = """
func.func @main(%cache: tensor<128x64xf16> {aten.name = "cache"}, %at: tensor<1xi64>, %row: tensor<1x64xf16>)
    -> (tensor<128x64xf16> {aten.mutates = "cache"}) {
  %new = aten.index_copy(%cache, %at, %row) {dim = 0 : i64}
      : (tensor<128x64xf16>, tensor<1xi64>, tensor<1x64xf16>) -> tensor<128x64xf16>
  func.return %new : tensor<128x64xf16>
}
"""
# Integers in another format until they meet data, and a step of the host.
CONVERSION = """
func.func @main(%a: tensor<5x80xi64>, %b: tensor<5x80xi64>, %x: tensor<5x80xf16>)
    -> (tensor<5x80xf16>, tensor<80xi64>) {
  %0 = aten.mul.Tensor(%a, %b) : (tensor<5x80xi64>, tensor<5x80xi64>) -> tensor<5x80xi64>
  %1 = aten._to_copy(%0) {dtype = f16} : (tensor<5x80xi64>) -> tensor<5x80xf16>
  %data = aten.add.Tensor(%1, %x) : (tensor<5x80xf16>, tensor<5x80xf16>) -> tensor<5x80xf16>
  %2 = aten.call "aten.bincount"(%b) {self = #aten.operands<1>, minlength = 80 : i64}
      : (tensor<5x80xi64>) -> tensor<80xi64>
  func.return %data, %2 : tensor<5x80xf16>, tensor<80xi64>
}
"""
KTIR_EXTRA = """
func.func @parts(%left: memref<32x64xf16>, %right: memref<32x64xf16>) attributes {grid = [4, 8]} {
  %i, %j = ktdp.get_compute_tile_id : index, index
  %core = ktdp.coreid %i, %j : index
  %both = ktdp.construct_distributed_memory_view (%left, %right : memref<32x64xf16>, memref<32x64xf16>)
      : memref<64x64xf16>
  func.return
}
"""
EDIT = "Written by `tools/generate.py` from `{source}`; edit that and run `python3 tools/dev.py gen`."


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


@dataclass(frozen=True)
class Page:
    """One folder of `dialects/`.

    Args:
        name: the folder, and the first words of its ops.
        source: where the definitions live.
        dialect: the xDSL dialect.
        intro: what the level is for.
    """

    name: str
    source: str
    dialect: Dialect
    intro: str

    def ops(self) -> list[type[Operation]]:
        """The ops of this family."""
        return [op for op in self.dialect.operations if op.name.startswith(self.name + ".")]


PAGES = (
    Page(
        "aten", "spyre_mlir/ops", Aten, "What torch says: one op per ATen overload, on tensors. Weights are arguments."
    ),
    Page(
        "spyre.loop",
        "spyre_mlir/dialects/spyre/loop.py",
        Spyre,
        "Named iteration spaces, index maps and scalar bodies. Views have become index maps; there are no layouts yet.",
    ),
    Page(
        "spyre.kernel",
        "spyre_mlir/dialects/spyre/kernel.py",
        Spyre,
        "One hardware function per op, on device tensors in stick layouts, with its work divided over the cores.",
    ),
    Page(
        "superdsc",
        "spyre_mlir/dialects/superdsc",
        Superdsc,
        "A mirror of the SuperDSC JSON: one `superdsc.sdsc` per file; reading and writing keeps every value. Fields "
        "that decide are properties, operands are SSA values, and the remainder is JSON.",
    ),
    Page(
        "sdscbundle",
        "spyre_mlir/dialects/sdscbundle.py",
        Sdscbundle,
        "The public bundle dialect: in which order the SuperDSC files run, and with which addresses.",
    ),
    Page(
        "ktdp",
        "spyre_mlir/dialects/ktdp",
        Ktdp,
        "KTIR, the coming interface of the card's back end: one function for all cores, which load tiles of views, "
        "compute on tensors and store tiles.",
    ),
)


def lowered(text: str, level: str, context: Context) -> ModuleOp:
    """The program at a level, as the default pipeline leaves it."""
    return lower(parse_module(text, context, locations=False), context, until=level).modules[level]


def bundle_only(module: ModuleOp) -> ModuleOp:
    """The bundle function alone, as in `bundle.mlir`."""
    function = next(op for op in module.ops if "sdsc_bundle" in str(op.properties.get("sym_name")))
    function.detach()
    return ModuleOp([function])


def example(root: Path, page: Page, context: Context) -> str:
    """The first program at the page's level; of KTIR the first of its own."""
    if page.dialect is Ktdp:
        text = ktir_text(parse_module((root / KTIR_PROGRAMS[0]).read_text(encoding="utf-8"), context, locations=False))
        return f"// exp(-x * x), the square kept in the scratchpads\n// {EDIT.format(source=KTIR_PROGRAMS[0])}\n{text}"
    text = (root / "examples" / PROGRAMS[0]).read_text(encoding="utf-8")
    module = lowered(text, "superdsc" if page.name == "sdscbundle" else page.name, context)
    if page.name == "sdscbundle":
        module = bundle_only(module)
    title = f"// {text.splitlines()[0].removeprefix('// ')}" if page.name == "aten" else "// relu(x @ w + b)"
    return f"{title}\n// {EDIT.format(source='examples/' + PROGRAMS[0])}\n{module_text(module)}\n"


def shown_ops(root: Path, context: Context) -> dict[str, str]:
    """Text of one op of each name, from the programs at every level."""
    texts: dict[str, str] = {}
    modules = [
        lowered((root / "examples" / p).read_text(encoding="utf-8"), level, context)
        for p in PROGRAMS
        for level in LEVELS
    ]
    modules.append(ModuleOp([read_json(root / WITH_CONSTANT)]))
    files = [(root / program).read_text(encoding="utf-8") for program in (*KTIR_PROGRAMS, WITH_LOOP, WITH_VIEW)]
    for text in (*files, KTIR_EXTRA):
        modules.append(parse_module(text, context, locations=False))
    modules.append(
        parse_module(
            "func.func @main() -> tensor<4xf16> {\n %0 = spyre.loop.constant #spyre.iota<0.0, 1.0> : tensor<4xf16>\n"
            " func.return %0 : tensor<4xf16>\n}",
            context,
            locations=False,
        )
    )
    modules += [lowered(p, level, context) for p in (CONVERSION, CACHE) for level in ("spyre.loop", "spyre.kernel")]
    for module in modules:
        lines = module_text(module).splitlines()
        for op in module.walk():
            if op.name not in texts and (found := first_text(op.name, lines)):
                texts[op.name] = found
    return texts


# --- what an op takes ---------------------------------------------------------------------------------------------


def constraint_text(constraint: AttrConstraint | RangeConstraint) -> str:
    """A constraint in words: the name of the type or attribute it asks for."""
    match constraint:
        case RangeLengthConstraint():
            return constraint_text(constraint.constraint)
        case RangeOf():
            return constraint_text(constraint.constr)
        case AnyOf():
            return " or ".join(constraint_text(one) for one in constraint.attr_constrs)
        case MessageConstraint():
            return constraint_text(constraint.constr)
        case ArrayOfConstraint():
            return "array of " + constraint_text(constraint.elem_range_constraint)
        case BaseAttr() | ParamAttrConstraint():
            base = constraint.attr if isinstance(constraint, BaseAttr) else constraint.base_attr
            return f"`{base.name}`"
        case EqAttrConstraint():
            return f"`{constraint.attr}`"
        case AnyAttr():
            return "any"
        case _:
            raise TypeError(f"no words for the constraint {constraint!r}")


def _count(definition: object) -> str:
    return (
        ", optional"
        if isinstance(definition, OptionalDef)
        else ", any number"
        if isinstance(definition, VariadicDef)
        else ""
    )


def _rows(definitions: Iterable[tuple[str, object]], kind: str) -> Iterator[str]:
    for name, definition in definitions:
        if name != "operandSegmentSizes":
            yield f"| {kind} | `{name}` | {constraint_text(definition.constr)}{_count(definition)} |"


def op_section(op: type[Operation], shown: dict[str, str]) -> str:
    """Summary, arguments, constraints and text of an op."""
    assert issubclass(op, IRDLOperation)
    definition = op.get_irdl_definition()
    parts = [f"## `{op.name}`", doc_text(inspect.cleandoc(op.__doc__ or ""))]
    rows = [
        *_rows(definition.operands, "operand"),
        *_rows(definition.results, "result"),
        *_rows(definition.properties.items(), "property"),
        *_rows(definition.attributes.items(), "attribute"),
        *(f"| region | `{name}` | |" for name, _ in definition.regions),
    ]
    if rows:
        parts.append("\n".join(["| | name | what |", "|---|---|---|", *rows]))
    if definition.assembly_format is not None:
        parts.append(f"Syntax: ``{definition.assembly_format}``")
    if op.name in shown:
        parts.append(f"```mlir\n{shown[op.name]}\n```")
    return "\n\n".join(parts)


def attribute_section(attribute: type[Attribute]) -> str:
    """Summary of an attribute or a type."""
    return f"### `{attribute.name}`\n\n{doc_text(inspect.cleandoc(attribute.__doc__ or ''))}"


def page_text(page: Page, shown: dict[str, str]) -> str:
    """The README of a dialect."""
    parts = [f"# `{page.name}`", page.intro, f"[Example program](example.mlir). {EDIT.format(source=page.source)}"]
    if page.name == "aten":
        parts += [inspect.cleandoc(inspect.getmodule(OP_CLASSES["mm"]).__doc__ or "").partition("\n\n")[2]]
        for family in Family:
            entries = [entry_section(e) for e in ATEN if e.family is family]
            parts += [f"## {family.value.capitalize()}", *entries] if entries else []
    parts += [op_section(op, shown) for op in page.ops() if getattr(op, "ENTRY", None) is None]
    attributes = [attribute_section(a) for a in page.dialect.attributes]
    if attributes:
        whose = f" of the dialect `{page.dialect.name}`" if page.dialect.name != page.name else ""
        parts += [f"## Attributes and types{whose}", *attributes]
    return "\n\n".join(parts) + "\n"


INDEX = """# The languages

One folder per family of ops: a page that lists every op, attribute and type, and an example program. The example is
[`{program}`](../examples/{program}) at every level, so reading the files in order shows a compilation.

| ops | what they say |
|---|---|
{rows}

`spyre.loop` and `spyre.kernel` are two families of one dialect, `spyre`: an MLIR namespace ends at the first dot.
`ktdp` has an example program of its own, and `spyre-run` runs it.

`control`, `sdscbundle` and `ktdp` are also there as IRDL:
`mlir-opt --irdl-file=dialects/sdscbundle/sdscbundle.irdl.mlir` checks programs that
`spyre-opt --print-op-generic --print-no-properties` has printed. Types and attributes with a syntax of
their own, such as `!ktdp.access_tile<4x8xindex>`, need `--allow-unregistered-dialect` instead of the file.

Everything here is written by `tools/generate.py`, and a check fails when it is out of date. The definitions are
Python, in `spyre_mlir/dialects` and `spyre_mlir/ops`; [a decision](../docs/decisions/0017-dialects-folder.md) says
why.
"""


def index_text() -> str:
    """The README of `dialects/`."""
    rows = "\n".join(f"| [`{p.name}`]({p.name}/README.md) | {p.intro} |" for p in PAGES)
    return INDEX.format(program=PROGRAMS[0], rows=rows)


def dialect_files(root: Path) -> dict[str, str]:
    """Path to content of everything below `dialects/`."""
    context = make_context()
    shown = shown_ops(root, context)
    files = {"dialects/README.md": index_text()}
    for page in PAGES:
        files[f"dialects/{page.name}/README.md"] = page_text(page, shown)
        files[f"dialects/{page.name}/example.mlir"] = example(root, page, context)
    return files
