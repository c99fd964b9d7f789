"""Pages and example programs of the dialects, for `generate.py`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayOfConstraint, FloatAttr, ModuleOp, TensorType, f16
from xdsl.ir import Attribute, Block, Dialect, Operation
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
from spyre_mlir.dialects.aten import OP_CLASSES, Aten, make_op
from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.aten_build import result_types
from spyre_mlir.dialects.ktdp import Ktdp
from spyre_mlir.dialects.sdscbundle import Sdscbundle
from spyre_mlir.dialects.spyre import Spyre
from spyre_mlir.dialects.superdsc import Superdsc
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family, Kind, OpEntry, Sample
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
        "A mirror of the SuperDSC JSON: one `superdsc.sdsc` per file; reading and writing keeps every value.",
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
    files = [(root / program).read_text(encoding="utf-8") for program in (*KTIR_PROGRAMS, WITH_LOOP)]
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
    for module in modules:
        lines = module_text(module).splitlines()
        for op in module.walk():
            if op.name not in texts and (found := _first_text(op.name, lines)):
                texts[op.name] = found
    return texts


def _first_text(name: str, lines: list[str]) -> str:
    """The op's text as it stands in its module, its region with it."""
    place = next((n for n, line in enumerate(lines) if re.match(rf"\s*(%\S+ = )?{re.escape(name)}\b", line)), None)
    if place is None:
        return ""
    indent = len(lines[place]) - len(lines[place].lstrip())
    end = place + 1
    if lines[place].endswith("{"):
        end = next(n for n in range(place + 1, len(lines)) if lines[n] == " " * indent + "}") + 1
    return "\n".join(line[indent:] for line in lines[place:end])


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


def doc_text(doc: str) -> str:
    """A docstring as Markdown: sections with indented entries become lists."""
    lines: list[str] = []
    for line in doc.splitlines():
        entry = re.match(r"    (\w[\w, ]*): (.*)", line)
        if re.fullmatch(r"(Constraints|Attributes|Args):", line):
            lines += [line, ""]
        elif entry:
            lines.append(f"* **{entry[1]}**: {entry[2]}")
        else:
            lines.append("  " + line.strip() if line.startswith("     ") else line)
    return "\n".join(lines)


def attribute_section(attribute: type[Attribute]) -> str:
    """Summary of an attribute or a type."""
    return f"### `{attribute.name}`\n\n{doc_text(inspect.cleandoc(attribute.__doc__ or ''))}"


# --- the aten page ------------------------------------------------------------------------------------------------


def aten_text(entry: OpEntry, overload: str) -> str:
    """An op made from the first good sample of its entry, as text."""
    for sample in entry.samples:
        if sample.breaks is None and (text := _sample_text(entry, overload, sample)):
            return text
    return ""


def _sample_text(entry: OpEntry, overload: str, sample: Sample) -> str:
    block, bound, attributes = Block(), dict[str, object](), {k: to_attribute(v) for k, v in sample.attributes.items()}
    shapes = list(sample.shapes)
    for param in entry.params:
        scalar = param.name == "other" and overload.endswith(".Scalar")
        if param.is_tensor and shapes and not scalar:
            bound[param.name] = _arguments(block, param.kind, shapes.pop(0), param.name)
        else:
            bound[param.name] = sample.attributes.get(param.name, param.default)
        if scalar:
            attributes[param.name], bound[param.name] = FloatAttr(2.0, 64), 2.0
    try:
        op = make_op(overload, list(block.args), attributes, result_types(entry, bound))
        op.verify()
    except ValueError:
        return ""  # the sample is one of another overload, of other ranks
    block.add_op(op)
    module = ModuleOp([op_in := _as_function(block)])
    text = _first_text(op.name, module_text(module).splitlines())
    op_in.detach()
    return text


def _as_function(block: Block) -> Operation:
    from xdsl.dialects import func
    from xdsl.ir import Region

    block.add_op(func.ReturnOp())
    return func.FuncOp("main", ([a.type for a in block.args], []), Region(block))


def _arguments(block: Block, kind: Kind, shape: object, name: str) -> object:
    shapes = list(shape) if kind is Kind.TENSORS else [shape]
    values = [block.insert_arg(TensorType(f16, list(s)), len(block.args)) for s in shapes]
    for value in values:
        value.name_hint = name
    return values if kind is Kind.TENSORS else values[0]


def entry_section(entry: OpEntry) -> str:
    """Everything the table says about an op."""
    heading = " · ".join(f"`aten.{overload}`" for overload in entry.overloads)
    parts = [f"### {heading}", doc_text(entry.doc)]
    rows = [f"| `{p.name}` | {p.kind.value} | {'' if p.required else f'`{p.default}`'} |" for p in entry.params]
    if rows:
        parts.append("\n".join(["| argument | holds | default |", "|---|---|---|", *rows]))
    parts.append(hardware_line(entry))
    texts = [text for overload in entry.overloads if (text := aten_text(entry, overload))]
    if texts:
        parts.append("```mlir\n" + "\n".join(texts) + "\n```")
    return "\n\n".join(parts)


def hardware_line(entry: OpEntry) -> str:
    """Where the op runs, and who says so."""
    if entry.family is Family.VIEW:
        return "Runs nowhere: it becomes part of index maps."
    if entry.family is Family.CREATION:
        return "The host provides it with the program."
    if entry.opfunc is None:
        return (
            "Rewritten by `decompose-aten`." if entry.decompose is not None else "Has no hardware function of its own."
        )
    formats = "DL16 and FP32" if entry.fp32 else "DL16"
    rewritten = " Some arguments are rewritten by `decompose-aten` first." if entry.decompose is not None else ""
    source = f" Source: {entry.source}." if entry.source else ""
    return f"Hardware function `{entry.opfunc}` on the {entry.unit.name}, {formats}.{source}{rewritten}"


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
