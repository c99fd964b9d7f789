"""The page of the aten dialect, for `dialect_pages.py`: the op table, entry by entry."""

from __future__ import annotations

import re

import torch
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f16, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region

from spyre_mlir.dialects.aten import make_op
from spyre_mlir.dialects.aten_arguments import OperandsAttr, to_attribute
from spyre_mlir.dialects.aten_build import result_types
from spyre_mlir.errors import SpyreError
from spyre_mlir.ops.parameters import ArgKind, Param
from spyre_mlir.ops.table import Family, OpEntry, Sample
from spyre_mlir.text.render import module_text

# Arguments that hold positions, and those that hold truth values.
POSITIONS = ("index", "indices")
TRUTHS = ("condition", "mask")
TRUTH_OVERLOADS = ("bitwise_", "logical_or", "logical_xor")


def first_text(name: str, lines: list[str]) -> str:
    """The op's text as it stands in its module, its region with it."""
    place = next((n for n, line in enumerate(lines) if re.match(rf"\s*(%[^=]+ = )?{re.escape(name)}\b", line)), None)
    if place is None:
        return ""
    indent = len(lines[place]) - len(lines[place].lstrip())
    end = place + 1
    if lines[place].endswith("{"):
        end = next(n for n in range(place + 1, len(lines)) if lines[n] == " " * indent + "}") + 1
    return "\n".join(line[indent:] for line in lines[place:end])


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


def aten_text(entry: OpEntry, overload: str) -> str:
    """An op made from the first good sample of its entry, as text."""
    for sample in entry.samples:
        if sample.breaks is None and (text := _sample_text(entry, overload, sample)):
            return text
    return ""


def _sample_text(entry: OpEntry, overload: str, sample: Sample) -> str:
    block, bound, attributes = Block(), dict[str, object](), {k: to_attribute(v) for k, v in sample.attributes.items()}
    shapes, numbers = list(sample.shapes), _numbers(overload)
    for param in entry.params:
        scalar = param.is_tensor and param.name in numbers
        shape = shapes.pop(0) if param.is_tensor and shapes else None
        if shape is not None and not scalar:
            element = _element(overload, param.name, sample)
            bound[param.name] = _arguments(block, param.kind, shape, param.name, element)
            if param.kind is ArgKind.TENSORS:
                attributes[param.name] = OperandsAttr(len(shape))
        elif scalar:
            bound[param.name] = 2 if sample.whole else 2.0
            attributes[param.name] = to_attribute(bound[param.name])
        else:
            bound[param.name] = sample.attributes.get(param.name, param.default)
    try:
        op = make_op(overload, list(block.args), attributes, result_types(entry, bound))
        op.verify()
    except (SpyreError, ValueError, IndexError):
        return ""  # the sample is one of another overload: of other ranks, of other element types
    block.add_op(op)
    module = ModuleOp([op_in := _as_function(block)])
    text = first_text(op.name, module_text(module).splitlines())
    op_in.detach()
    return text


def _numbers(overload: str) -> set[str]:
    """The arguments that are numbers in this overload, though others take tensors there."""
    namespace, _, rest = overload.rpartition("::")
    name, _, variant = rest.partition(".")
    operator = getattr(getattr(getattr(torch.ops, namespace or "aten"), name, None), variant or "default", None)
    return {a.name for a in operator._schema.arguments if str(a.type) == "number"} if operator else set()


def _element(overload: str, name: str, sample: Sample) -> Attribute:
    """The element type of a tensor argument: positions and whole numbers, truth values, or halves."""
    if sample.whole or name in POSITIONS:
        return i64
    return i1 if name in TRUTHS or overload.startswith(TRUTH_OVERLOADS) else f16


def _as_function(block: Block) -> Operation:
    block.add_op(func.ReturnOp())
    return func.FuncOp("main", ([a.type for a in block.args], []), Region(block))


def _arguments(block: Block, kind: ArgKind, shape: object, name: str, element: Attribute) -> object:
    shapes = list(shape) if kind is ArgKind.TENSORS else [shape]
    values = [block.insert_arg(TensorType(element, list(s)), len(block.args)) for s in shapes]
    for value in values:
        value.name_hint = name
    return values if kind is ArgKind.TENSORS else values[0]


def entry_section(entry: OpEntry) -> str:
    """Everything the table says about an op."""
    heading = " · ".join(f"`aten.{overload}`" for overload in entry.overloads)
    parts = [f"### {heading}", doc_text(entry.doc)]
    reasons = {i.param.name: i.why for i in entry.ignores}
    rows = [f"| `{p.name}` | {p.kind.value} | {_default(p, reasons.get(p.name, ''))} |" for p in entry.params]
    if rows:
        parts.append("\n".join(["| argument | holds | default |", "|---|---|---|", *rows]))
    parts.append(hardware_line(entry))
    texts = [text for overload in entry.overloads if (text := aten_text(entry, overload))]
    if texts:
        parts.append("```mlir\n" + "\n".join(texts) + "\n```")
    return "\n\n".join(parts)


def _default(param: Param, reason: str) -> str:
    """The default of an argument, and why the functions of the declaration do not take it if they do not."""
    return "; ".join(filter(None, ("" if param.required else f"`{param.default}`", reason)))


def hardware_line(entry: OpEntry) -> str:
    """Where the op runs, and who says so."""
    if entry.family is Family.VIEW:
        return "Runs nowhere: it becomes part of index maps."
    if entry.family is Family.CREATION:
        return "The host provides it with the program."
    if entry.family is Family.COLLECTIVE:
        return "The host runs it between launches, through `torch.distributed`."
    if entry.opfunc is None:
        return (
            "Rewritten by `decompose-aten`." if entry.decompose is not None else "Has no hardware function of its own."
        )
    formats = "DL16 and FP32" if entry.fp32 else "DL16"
    rewritten = " Some arguments are rewritten by `decompose-aten` first." if entry.decompose is not None else ""
    source = f" Source: {entry.source}." if entry.source else ""
    return f"Hardware function `{entry.opfunc}` on the {entry.unit.name}, {formats}.{source}{rewritten}"
