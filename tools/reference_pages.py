"""Reference pages under `docs/reference`, for `generate.py`."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from dataclasses import fields

from aten_page import doc_text
from checks_page import checks_page
from coverage_page import coverage_page, torch_spyre_page
from dialect_pages import EDIT, table
from differences_page import differences_page
from op_support_page import op_support_page
from options_page import options_page
from ranking_page import ranking_page
from scaling_page import scaling_page
from slow_tests_page import slow_tests_page
from superdsc_page import superdsc_page

from spyre_mlir import errors
from spyre_mlir.cli.support.lists import option_values
from spyre_mlir.dialects import aten_canonicalize
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.canonicalization import kernel as canonicalize_kernel
from spyre_mlir.dialects.spyre.canonicalization import loop as canonicalize_loop
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw import cost_parameters, formats, spec
from spyre_mlir.machine.faults import FaultKind
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family, OpEntry
from spyre_mlir.pipeline import STAGES
from spyre_mlir.pipeline.order import names_of
from spyre_mlir.transforms import get_all_passes

NOTES = {
    Family.VIEW: "Views cost nothing: they become part of index maps.",
    Family.CREATION: "The host provides these with the program.",
    Family.COLLECTIVE: "The host runs these between launches, through `torch.distributed`.",
    Family.COMPOSITE: "Rewritten into others by `decompose-aten`.",
}

KINDS = {AtenOp: "aten ops", KernelOp: "kernel ops"}

OPS_INTRO = """The [aten page](../../dialects/aten/README.md) has meaning, arguments and composition of every overload.
An overload that is not here imports as `aten.call` and is named in the report."""
ERRORS_INTRO = """Every error says what, where, what was expected, what was found, and what to try. Tools print it on
stderr and end with its exit code; 0 means done, 70 a bug of ours."""
HARDWARE_INTRO = """The first three numbers are the architecture's, on which formats, layouts and addresses rest;
the others are the standard card's. A program for another card names what differs in a module attribute,
`spyre.target = #spyre.target<cores_per_card = 64>`; `compile(spec=…)` and `spyre-compile --spec` ask for it.
Numbers are per core unless the name says card. *Certain* means that a source states it, *likely* that it follows
from one."""
PASSES_INTRO = """`spyre-opt f.mlir -p first-pass,second-pass{option=1}` runs passes one by one. The compiler runs these
on a program from aten downwards, and verifies the module after each stage; `cse` is xDSL's, and a pass with a
question mark runs when it is asked for:"""
CANONICAL_INTRO = """xDSL's pass works with our ops: `spyre-opt f.mlir -p canonicalize` applies these patterns, those of
xDSL's own dialects and its folds, and drops ops with unused results. No pattern changes a bit of a result in
exact numerics. The compiler does not run it, a plugin may. Ops of SuperDSC files and bundles have no pattern: their
text is the file."""
COST_INTRO = """One model of time serves `divide-work`, `compiled.report()` and `spyre-run --time`. It prices a kernel
from what its SuperDSC says: extents, divisions, layouts, places. No kernel is run for it.

* **Inside a SuperDSC engines overlap**: it takes as long as the busiest of arithmetic, device memory, ring and
  scratchpad. SuperDSCs of a bundle follow each other; nothing of one hides behind another. A loop of the bundle adds a
  fixed time per trip.
* **Device memory**: bytes as they lie there, padding included, over the rate of their kind of access; reads that
  alternate with writes cost extra. Restickifies, reductions and broadcasts have measured rates of their own. Fewer
  cores than 32 reach only a share of these rates.
* **An operand that several cores read** is loaded once per chip and delivered to all of them. Up to 8 cores delivery
  is free, beyond it the operand takes (cores / 8) ^ 0.75 times as long. The report shows both figures: `ratio`, bytes
  moved once per chip over bytes that carry elements, and `per core`, the same if every core loaded its own copy.
* **Products**: multiplications over the rate of the PE array, less where a core has fewer than 64 rows, where the
  batch of an operand lies inside of its rows in memory, as the default layout has it, and where the sum is divided,
  whose parts also go round the ring. A large tile of a result that is divided over many cores has its operands read
  again.
* **The roofline** of a kernel is the time of its arithmetic, or of its elements moving once, on the whole card at the
  rates of the profile, whichever is longer; that of a program has the arguments and results of the bundle instead,
  each once.
* **Not in it**: host steps, launches, transfers from and to the host, dependencies between kernels.

Two profiles: `calibrated` has what others fitted to measurements on cards, `peak` what the hardware could do at best:
a bound, not a ranking. Nothing is fitted here. `benchmarks/cost_model.py` holds the calibrated profile against 211
published measurements, with the effect of changing each number that is not certain by half. Over all of them but five
softmaxes on one and four cores the RMS error is 28.6 % and the rank correlation 0.959; most of the fits were made on
points like these, so this is how well the model describes them, not how well it foretells others. By class: restickify
below 1 %, pointwise 2 %, reductions 3 %, products of a few rows 3 %, softmax in scratchpads 6 %, chains of adds 12 %,
broadcasts 20 %, matrix products 23 %, concatenations and outer transpositions 28 %, batched products 56 %: their
order by layout is right, their times are 28 % to 57 % too short from a batch of 4, and further off at 2, which the
published fit prices like a single product.

Where sources contradict each other, a variant of the profile takes the other side (`LAWS`; `--law` of the benchmark):

* `quick-streams`: kernels that do not reduce reach more of the memory with few cores than reductions do. The measured
  product of one row on 25 cores speaks for the shares of reductions (5 % off, 17 % under this law); pointwise kernels
  on 8 and 16 cores and a softmax of 1 MB on one core speak against them (the model takes 7 to 26 times as long as that
  softmax, 2 to 10 times under this law, where its reductions keep their shares). The RMS error without these softmaxes
  is 28.3 % under `quick-streams`.
* `partial-overlap`: of the shorter time of a product, arithmetic or memory, only 46 % hides behind the longer: 25.2 %
  under `partial-overlap`.
"""
RIVAL_INTRO = """## Another planner, for comparison

`spyre_mlir.planning.rival` divides ops as torch-spyre's planner of October 2026 does, from plain numbers: a tuple of
loops, the device dimensions of every operand, and the roles of a matmul's loops. `divide-work{products=published}`
gives these divisions to a program's products, and a report prices them like any others.

* **Floors** are the least slices with which a core spans less than 256 MiB of every operand. If they ask for more
  cores than there are, the op does not compile: `[131072, 5120]` transposed asks for 64.
* **A matmul** without floors, of more than one row, has the division with the best *score*: predicted microseconds,
  plus preferences such as 150 us for every halving of the cores. A score ranks divisions of one matmul and is no
  time.
* **Everything else**, and a matmul whose best score has fewer cores, has the *default division*: the longest loop of
  the result first, each the largest divisor that the cores left allow, then one summed loop. A matmul of one row has
  it, too: 12,800 columns are 200 sticks, so 25 cores.

| matmul (batch, rows, columns, depth) | default | chosen: batch, rows, columns, depth |
|---|---|---|
| 1, 512, 4096, 4096 | rows 32 | 1, 4, 8, 1 |
| 1, 512, 1024, 4096 | rows 32 | 1, 8, 4, 1 |
| 1, 4, 12800, 4096 | columns 25 | 1, 1, 8, 4 |
| 1, 1, 12800, 4096 | columns 25 | 1, 1, 25, 1 |
| 32, 512, 512, 128 | rows 32 | 1, 16, 2, 1 |

* **Attention** is cut by `spyre_mlir.planning.rival_attention` along sequences, heads, queries and keys: of all exact
  counts whose buffers fit the scratchpads, all but one, those with the least sum of kernel executions, bursts of
  loading and waves of traffic. One query has a rule of its own. A report compiles one tile, blocks of keys with a
  running softmax, and prices it as often as it runs. Causal blocks that a mask hides are computed.

| attention: heads, heads of keys, queries, keys, features | tiles: heads, query heads, queries | keys of a block |
|---|---|---|
| 32, 8, 512, 512, 128 | no loop | 512 |
| 32, 8, 512, 8192, 128 | 2, 1, 1 | 512 |
| the same with a mask and heads between positions | 1, 1, 2 | 512 |
| 16, 1, 512, 8192, 512 | 1, 2, 1 | 256 |
| 16, 1, 1, 4096, 512 | no loop | 4096 |

[Decision 128](../decisions/0128-the-rivals-rules.md) says which rules are left out."""
DL16_NOTE = """`SEN169_FP16` is DLFloat16: sign, six exponent bits, nine fraction bits, no subnormals, one symbol for
NaN and infinity."""


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


def arrows(passes: str) -> str:
    return " → ".join(f"`{name}`" for name in passes.split(",") if name)


def canonical_rows() -> list[tuple[str, ...]]:
    """Ops and what `canonicalize` does to them, one row per pattern."""
    ops: dict[str, list[str]] = {}
    for module in (aten_canonicalize, canonicalize_loop, canonicalize_kernel):
        for kind, patterns in module.PATTERNS.items():
            for pattern in patterns:
                text = " ".join(inspect.cleandoc(type(pattern).__doc__ or "").split("\n\n")[0].split())
                ops.setdefault(text, []).append(f"`{kind.name}`" if "name" in vars(kind) else KINDS[kind])
    return [(" ".join(names), text) for text, names in ops.items()]


def passes_page() -> str:
    """Every pass: its module's text and its options."""
    parts = [
        "# Passes",
        EDIT.format(source="spyre_mlir/transforms"),
        PASSES_INTRO,
        table(("level", "passes that lead to it"), [(f"`{st.level}`", arrows(st.passes)) for st in STAGES]),
    ]
    order = [name for stage in STAGES for name in names_of(stage)]
    loaded = sorted(get_all_passes().items(), key=lambda one: order.index(one[0]) if one[0] in order else len(order))
    for name, load in loaded:
        pass_ = load()
        module = inspect.getmodule(pass_)
        text = inspect.cleandoc(module.__doc__ or "").partition("\nDecision: ")[0] if module else ""
        text = text.partition(": ")[2].rstrip()
        parts += [f"## `{name}`", text[:1].upper() + text[1:]]
        # A pass whose options are the symbols of a program has no list of them.
        options = {} if getattr(pass_, "takes_any_option", False) else option_values(pass_)
        if options:
            defaults = {f.name.replace("_", "-"): f.default for f in fields(pass_)}
            parts += [
                doc_text(inspect.cleandoc(pass_.__doc__ or "")),
                table(
                    ("option", "type", "default"),
                    [
                        (f"`{shown}`", " or ".join(f"`{value}`" for value in values), f"`{defaults[shown]}`")
                        for shown, values in ((name.replace("_", "-"), values) for name, values in options.items())
                    ],
                ),
            ]
    parts += ["## `canonicalize`", CANONICAL_INTRO, table(("ops", "pattern"), canonical_rows())]
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
    constants = [n for n in ast.parse(source).body if isinstance(n, ast.Assign) and not isinstance(n.value, ast.Call)]
    call = next(n.value for n in ast.parse(source).body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call))
    comments = {
        t.start[0]: t.string.removeprefix("# ")
        for t in tokenize.generate_tokens(io.StringIO(source).readline)
        if t.type == tokenize.COMMENT
    }
    assert isinstance(call, ast.Call)
    named = [(ast.unparse(n.targets[0]), n.lineno) for n in constants]
    rows = [(f"`{name}`", f"{getattr(spec, name):,}", comments[line]) for name, line in named]
    rows += [(f"`{k.arg}`", f"{getattr(spec.SPYRE, k.arg or ''):,}", comments[k.value.lineno]) for k in call.keywords]
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


def cost_page() -> str:
    """The cost model's numbers in both profiles, with sources and certainties."""
    rows: list[tuple[object, ...]] = []
    for name in cost_parameters.names():
        number = cost_parameters.number_of(name)
        origins = (number.origin, number.peak_origin)
        cells = [f"{o.source}; {o.certainty.word}" for o in origins]
        rows.append((f"`{name}`", f"{number.calibrated:,g}", cells[0], f"{number.peak:,g}", cells[1]))
    parts = [
        "# Cost model",
        EDIT.format(source="spyre_mlir/hw/cost_parameters.py"),
        COST_INTRO,
        table(("number", "calibrated", "source", "peak", "source of the peak"), rows),
        RIVAL_INTRO,
    ]
    return "\n\n".join(parts) + "\n"


def reference_files() -> dict[str, str]:
    """Path to content of the generated pages."""
    pages = {
        "ops": ops_page,
        "options": options_page,
        "passes": passes_page,
        "errors": errors_page,
        "hardware": hardware_page,
        "cost-model": cost_page,
        "superdsc": superdsc_page,
        "checks": checks_page,
        "coverage": coverage_page,
        "torch-spyre-coverage": torch_spyre_page,
        "op-support": op_support_page,
        "generator-differences": differences_page,
        "slow-tests": slow_tests_page,
        "scaling": scaling_page,
        "ranking": ranking_page,
    }
    return {f"docs/reference/{name}.md": write() for name, write in pages.items()}
