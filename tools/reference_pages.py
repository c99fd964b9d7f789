"""Reference pages under `docs/reference`, for `generate.py`."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from dataclasses import fields
from pathlib import Path

from checks_page import checks_page
from dialect_pages import EDIT, doc_text
from superdsc_page import superdsc_page
from xdsl.passes import get_pass_option_infos

from spyre_mlir import errors
from spyre_mlir.hw import formats, spec
from spyre_mlir.machine.faults import FaultKind
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family, OpEntry
from spyre_mlir.pipeline import STAGES
from spyre_mlir.transforms import get_all_passes

NOTES = {
    Family.VIEW: "Views cost nothing: they become part of index maps.",
    Family.CREATION: "The host provides these with the program.",
    Family.COMPOSITE: "Rewritten into others by `decompose-aten`.",
}

OPS_INTRO = """What an overload means, takes and becomes stands on the [aten page](../../dialects/aten/README.md).
An overload that is not here imports as `aten.call` and is named in the report."""
ERRORS_INTRO = """Every error says what, where, what was expected, what was found, and what to try. Tools print it on
stderr and end with its exit code; 0 means done, 70 a bug of ours."""
HARDWARE_INTRO = """Numbers are per core unless the name says card. *Certain* means that a source states it, *likely*
that it follows from one."""
PASSES_INTRO = """`spyre-opt f.mlir -p first-pass,second-pass{option=1}` runs passes one by one. The compiler runs these
on a program from aten downwards, and verifies the module after each stage; `cse` is xDSL's:"""
DL16_NOTE = """`SEN169_FP16` is DLFloat16: sign, six exponent bits, nine fraction bits, no subnormals, one symbol for
NaN and infinity."""


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def ops_page() -> str:
    """Every op of the table, one line each."""
    parts = [
        "# Operations",
        EDIT.format(source="spyre_mlir/ops"),
        OPS_INTRO,
    ]
    for family in Family:
        entries = [e for e in ATEN if e.family is family]
        runs = any(e.opfunc is not None for e in entries)
        rows = [
            (" ".join(f"`{o}`" for o in e.overloads), e.doc.splitlines()[0], *(hardware_cells(e) if runs else ()))
            for e in entries
        ]
        head = ("overloads", "meaning", *(("function", "unit", "formats", "source") if runs else ()))
        if rows:
            parts += [f"## {family.value.capitalize()}", NOTES.get(family, ""), table(head, rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def hardware_cells(entry: OpEntry) -> tuple[str, ...]:
    """Function, unit, formats and source; an op without a function is rewritten first."""
    if entry.opfunc is None:
        return ("rewritten" if entry.decompose is not None else "converted by transfers", "", "", "")
    return (f"`{entry.opfunc}`", entry.unit.name, "DL16, FP32" if entry.fp32 else "DL16", entry.source)


def option_type(annotation: str) -> str:
    """What an option takes, in words."""
    choices = re.fullmatch(r"Literal\[(.*)\]", annotation)
    words = choices[1].replace("'", "").split(", ") if choices else annotation.split(" | ")
    return " or ".join(f"`{word}`" for word in words)


def arrows(passes: str) -> str:
    return " → ".join(f"`{name}`" for name in passes.split(",") if name)


def passes_page() -> str:
    """Every pass: its module's text and its options."""
    parts = [
        "# Passes",
        EDIT.format(source="spyre_mlir/transforms"),
        PASSES_INTRO,
        table(("level", "passes that lead to it"), [(f"`{st.level}`", arrows(st.passes)) for st in STAGES]),
    ]
    for name, load in get_all_passes().items():
        pass_ = load()
        module = inspect.getmodule(pass_)
        text = inspect.cleandoc(module.__doc__ or "").partition(": ")[2] if module else ""
        parts += [f"## `{name}`", text[:1].upper() + text[1:]]
        options = get_pass_option_infos(pass_)
        if options:
            defaults = {f.name.replace("_", "-"): f.default for f in fields(pass_)}
            parts += [
                doc_text(inspect.cleandoc(pass_.__doc__ or "")),
                table(
                    ("option", "type", "default"),
                    [
                        (f"`{o.name}`", option_type(str(o.expected_type).strip("\"'")), f"`{defaults[o.name]}`")
                        for o in options
                    ],
                ),
            ]
    return "\n\n".join(parts) + "\n"


def errors_page() -> str:
    """The taxonomy: class, code, exit code, meaning; and the kinds of faults."""
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.SpyreError)]
    parts = [
        "# Errors",
        EDIT.format(source="spyre_mlir/errors.py"),
        ERRORS_INTRO,
        table(
            ("code", "class", "exit code", "what it means"),
            [
                (f"`{c.code}`", f"`{c.__name__}`", c.exit_code, inspect.cleandoc(c.__doc__ or "").splitlines()[0])
                for c in classes
            ],
        ),
        "## Faults",
        "A `MachineFault` is about the program that ran, and names one of these kinds:",
        "\n".join(f"* `{kind.value}`" for kind in FaultKind),
    ]
    return "\n\n".join(parts) + "\n"


def hardware_page() -> str:
    """The machine's numbers with their sources, and its data formats."""
    source = inspect.getsource(spec)
    call = next(n.value for n in ast.parse(source).body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call))
    comments = {
        t.start[0]: t.string.removeprefix("# ")
        for t in tokenize.generate_tokens(io.StringIO(source).readline)
        if t.type == tokenize.COMMENT
    }
    assert isinstance(call, ast.Call)
    rows = [(f"`{k.arg}`", f"{getattr(spec.SPYRE, k.arg or ''):,}", comments[k.value.lineno]) for k in call.keywords]
    shown = [(f"`{f.name}`", f.bits, f.elements_per_stick()) for f in formats.FORMATS.values()]
    return (
        "\n\n".join(
            [
                "# Hardware",
                EDIT.format(source="spyre_mlir/hw"),
                HARDWARE_INTRO,
                table(("number", "value", "source"), rows),
                "## Formats",
                table(("name", "bits", "elements per stick"), shown),
                DL16_NOTE,
            ]
        )
        + "\n"
    )


def reference_files(root: Path) -> dict[str, str]:
    """Path to content of the generated pages."""
    pages = {
        "ops": ops_page,
        "passes": passes_page,
        "errors": errors_page,
        "hardware": hardware_page,
        "superdsc": superdsc_page,
        "checks": checks_page,
    }
    return {f"docs/reference/{name}.md": write() for name, write in pages.items()}
