"""The pages of coverage: what a run over PyTorch's operator database found, and torch-spyre's coverage beside ours.

The numbers come from `tools/data/opinfo.json`, which `python -m tests.opinfo --run DIR --summary FILE` writes: running
takes hours, and writing a page should not.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import torch
from dialect_pages import EDIT, table

from spyre_mlir.frontend.capture.decomposition import whole_overloads
from spyre_mlir.frontend.capture.random_draws.rewrites import REWRITES
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.draws import draws
from spyre_mlir.ops.table import Family

DATA = Path(__file__).resolve().parent / "data"
CORE = "aten::"
DTYPES = ("float32", "float16", "int64", "bool")
# From the best to the worst; the support of an op is that of its worst sample.
KINDS = ("native", "composed", "host", "refused", "slow", "wrong", "crash")
TARGET = 85

INTRO = """PyTorch keeps a database of samples for its operators (`op_db`, "OpInfo"). Up to ten samples of every entry
at float32, float16, int64 and bool, spread evenly over all it has, are compiled as models whose inputs are the tensors
of the sample. Each runs from the files of its bundle in exact and in device numerics, and is held against torch."""
RULES = """* **Support.** *native*: one hardware function, or a view; *composed*: several kernels; *host*: a step of it
  runs on the host; *refused*: an error that says why. The support of an op is that of its worst sample.
* **Exact numerics** must be within 1e-4 of torch in double precision, as max|a - b| over max|b|; 2^-10 more where
  results are returned as float16, and what the op table allows where a composition approximates. Integers and truth
  values must be equal, and types and shapes torch's.
* **Device numerics** must be within the sum of the allowed errors of the operations that the program is made of, in
  units of the last place of DL16 (2^-9) at max|b|, and at least two.
* **Inputs** are numbers that DL16 holds, so that no rounding decides on which side of a step they are.
* **Indices** of sorts, maxima and the like are judged by the values they select.
* **Exceptions.** A difference is excused only if inputs or results hold values that DL16 has no code for: NaN and
  infinity, which are one symbol; magnitudes beyond the largest or below the smallest number; negative zero, if torch's
  result depends on its sign; and integers that 32 bits do not hold.
* *untried* samples are still to come. Samples that torch refuses do not count. Numerics of host steps are torch's."""
COMMAND = """The samples of one op: `python -m tests.opinfo softmax --dtype all --device`; everything, over hours, and
going on where it stopped: `python -m tests.opinfo --run DIR --summary tools/data/opinfo.json`; some rows of it:
`python -m tests.opinfo cov/float32 cov/float16 --run DIR --update tools/data/opinfo.json`."""
CORE_INTRO = """ATen tags {total} overloads as its core. Each is tried by itself: with the calls that samples of the
database make of it, and with samples of our own where there are none. {left} overloads are left out:"""


@cache
def results() -> dict[str, Any]:
    return json.loads((DATA / "opinfo.json").read_text(encoding="utf-8"))


def kind_of(row: dict[str, int]) -> str:
    """The support of an op at a dtype: that of its worst sample."""
    return next(kind for kind in reversed(KINDS) if row.get(kind))


def cell(row: dict[str, int] | None) -> str:
    """How many samples ended how; empty if torch has none."""
    if row is None:
        return ""
    text = ", ".join(f"{kind} {row[kind]}" for kind in (*KINDS, "untried") if row.get(kind))
    return text + (f" ({row['exception']} excused)" if row.get("exception") else "")


def coverage_page() -> str:
    rows: dict[str, dict[str, Any]] = results()["rows"]
    core = {n: rows.get(f"{CORE}{n}/float32") for n in results()["core"]}
    entries = {n: r for n, r in rows.items() if not n.startswith(CORE)}
    parts = ["# Coverage of ATen", EDIT.format(source="tools/data/opinfo.json"), INTRO, RULES, COMMAND]
    parts += ["## Core ATen", *_core_parts(core, results()["left_out"])]
    parts += ["## Totals", *_state(rows), *_totals(entries), "## By op", _by_op(entries)]
    return "\n\n".join(parts) + "\n"


def _core_parts(core: dict[str, dict[str, int] | None], left_out: dict[str, str]) -> list[str]:
    kinds = Counter("not tried" if row is None else kind_of(row) for row in core.values())
    good = kinds["native"] + kinds["composed"]
    by_reason: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    score = f"**{good} of {len(core)} run all their samples without a host step: {100 * good / len(core):.1f} %**"
    return [
        CORE_INTRO.format(total=len(core) + len(left_out), left=len(left_out)),
        "\n".join(f"* {reason}: {', '.join(names)}" for reason, names in by_reason.items()),
        f"{score} (the goal is {TARGET} %).",
        table(("support", "overloads"), [(kind, kinds[kind]) for kind in (*KINDS, "not tried") if kinds[kind]]),
        table(("overload", "samples"), [(f"`{n}`", cell(r)) for n, r in core.items()]),
    ]


def _state(rows: dict[str, dict[str, Any]]) -> list[str]:
    """How much has been tried, by which compiler, and why samples are refused."""
    tried, untried = (sum(row.get(key, 0) for row in rows.values()) for key in ("samples", "untried"))
    text = f"{tried:,} samples have been tried, and {untried:,} are still to come"
    if codes := results().get("codes"):
        states = ", ".join(f"`{code}` {count:,}" for code, count in sorted(codes.items(), key=lambda c: -c[1]))
        text += f": with torch {results()['torch']} by {len(codes)} states of the compiler: {states}"
        text += " (digests of its sources, as `tests/states.py` makes them)"
    if again := results().get("again"):
        text += f"; {sum(again.values()):,} of them again since, by {len(again)} other state{'s' * (len(again) != 1)}"
    refused = sum((Counter(row.get("reasons", {})) for row in rows.values()), Counter[str]())
    reasons = [table(("why samples are refused", "samples"), refused.most_common())] if refused else []
    return [text + ".", *reasons]


def _totals(entries: dict[str, dict[str, int]]) -> list[str]:
    parts: list[str] = []
    for title, count in (("ops", _by_worst), ("samples", _by_sample)):
        head = (title, *KINDS, "excused", "all")
        body: list[tuple[object, ...]] = []
        for dtype in DTYPES:
            rows = [r for n, r in entries.items() if n.endswith(f"/{dtype}")]
            counts = count(rows)
            total = sum(counts[k] for k in KINDS)
            body.append((dtype, *(counts[k] for k in KINDS), counts["exception"], total))
        parts.append(table(head, body))
    return parts


def _by_worst(rows: list[dict[str, int]]) -> Counter[str]:
    return Counter(map(kind_of, rows)) + Counter(exception=sum("exception" in r for r in rows))


def _by_sample(rows: list[dict[str, int]]) -> Counter[str]:
    return Counter({k: sum(r.get(k, 0) for r in rows) for k in (*KINDS, "exception")})


def _by_op(entries: dict[str, dict[str, int]]) -> str:
    names = sorted({n.rpartition("/")[0] for n in entries})
    return table(("entry", *DTYPES), [(f"`{n}`", *(cell(entries.get(f"{n}/{d}")) for d in DTYPES)) for n in names])


# Beside torch-spyre.

SPYRE_INTRO = """Support in torch-spyre, from its public sources, tests and issues as of September 2026 (issue numbers
are its own), and support in this compiler. The column *ours* comes from the op table: the hardware function,
or *composed*, by this compiler or by a decomposition of torch's. *OpInfo* counts the float32 samples of
[the coverage page](coverage.md). A hardware function that takes float32 there is said on [the page of ops](ops.md)."""
DATA_DEPENDENT = ("item", "is_nonzero")  # taken apart into what is
# What import refuses by name, by the tag that PyTorch gives it.
REFUSED = {torch.Tag.nondeterministic_seeded: "random numbers that the host cannot draw for it"}
# What the host runs between the parts of a program, by the same.
DIVIDING = {
    torch.Tag.dynamic_output_shape: "data decides the size of its result",
    torch.Tag.data_dependent_output: "data decides a number",
}
OF_OTHERS = "it has no kernel for the CPU"
HOWS = {
    "direct": "one function",
    "decomposed": "decomposed",
    "lowered": "its own lowering",
    "custom": "its own op",
    "view": "a view",
    "host": "on the host",
    "partial": "in part",
    "none": "not supported",
}


@cache
def torch_spyre() -> dict[str, Any]:
    return tomllib.loads((DATA / "torch_spyre.toml").read_text(encoding="utf-8"))


def torch_spyre_page() -> str:
    data = torch_spyre()
    ops = [(n, row) for row in data["op"] for n in row["names"]]
    body = [(f"`{n}`", theirs(row), row.get("limits", ""), ours(n), cell(opinfo_row(n))) for n, row in ops]
    casts = [(f"`{c['from']}` to `{c['to']}`", c["how"], cast_support(c["from"], c["to"])) for c in data["cast"]]
    own = [(f"`spyre::{n}`", row["meaning"], own_support(n)) for row in data["own"] for n in row["names"]]
    parts = [
        "# torch-spyre's coverage beside ours",
        EDIT.format(source="tools/data/torch_spyre.toml"),
        SPYRE_INTRO,
        _counts(ops),
        "## Operations of ATen",
        table(("op", "torch-spyre", "its limits", "ours", "OpInfo, float32"), body),
        "## Conversions",
        "Ours are found by compiling a model that casts its input.",
        table(("conversion", "torch-spyre", "ours"), casts),
        "## Its own operations",
        table(("op", "meaning", "ours"), own),
    ]
    return "\n\n".join(parts) + "\n"


def _counts(ops: list[tuple[str, dict[str, Any]]]) -> str:
    theirs_on = sum(row["how"] not in ("host", "partial", "none") for _, row in ops)
    ours_on = sum(not ours(name).startswith(("host", "refused")) for name, _ in ops)
    kinds = [kind_of(row) for name, _ in ops if (row := opinfo_row(name)) is not None]
    whole = sum(kind in ("native", "composed") for kind in kinds)
    return (
        f"Of the {len(ops)} operations below, torch-spyre runs {theirs_on} on the device alone, within the limits "
        f"given; we have kernels or views for {ours_on}. OpInfo has float32 samples of {len(kinds)} of them; all "
        f"samples of {whole} run here without a host step."
    )


def theirs(row: dict[str, Any]) -> str:
    return HOWS[row["how"]] + (f": {row['into']}" if "into" in row else "")


def ours(name: str) -> str:
    """The support of an overload, asked of the op table and of torch's decompositions."""
    entry = ATEN.find(name)
    if name in DATA_DEPENDENT:
        return "host: data decides a number"
    if entry is not None:
        if entry.family is Family.VIEW:
            return "view"
        if entry.family is Family.CREATION:
            return "known numbers, sent with the program"
        if entry.opfunc is not None:
            return f"native: `{entry.opfunc}`"
        return "composed" if entry.decompose is not None else "native"
    if drawn(name):
        return "random numbers, drawn by the host"
    if torch_decomposes(name):
        return "composed, by torch's decomposition"
    if why := why_refused(name):
        return f"refused: {why}"
    return f"host: {why}" if (why := _tagged(name, DIVIDING)) else "host"


@cache
def _decompositions() -> dict[Any, Any]:
    return dict(torch.export.default_decompositions())


def _overload(name: str) -> Any:
    packet, _, variant = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), variant or "default", None)


@cache
def _left_whole() -> frozenset[str]:
    return whole_overloads()


def torch_decomposes(name: str) -> bool:
    """Whether PyTorch takes an overload apart before we see it."""
    if (name if "." in name else f"{name}.default") in _left_whole():
        return False
    if not hasattr(torch.ops.aten, name.partition(".")[0]):
        return hasattr(torch, name)  # a Python function of others
    op = _overload(name)
    implicit = torch._C.DispatchKey.CompositeImplicitAutograd
    return op is not None and (op in _decompositions() or op.has_kernel_for_dispatch_key(implicit))


def drawn(name: str) -> bool:
    """Whether the host draws the random numbers of an overload."""
    return draws(name) or _overload(name) in REWRITES


def why_refused(name: str) -> str:
    """Why a model with an overload that has no entry is refused; empty if the host runs it."""
    if why := _tagged(name, REFUSED):
        return why
    packet, _, variant = name.partition(".")
    operator = f"aten::{packet}.{variant}".removesuffix(".").removesuffix(".default")
    has_kernel = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    return OF_OTHERS if _tagged(name, DIVIDING) and not has_kernel(operator, "CPU") else ""


def _tagged(name: str, reasons: dict[torch.Tag, str]) -> str:
    """The reason that belongs to a tag of an overload; empty if it has none of these."""
    return next((why for tag, why in reasons.items() if tag in getattr(_overload(name), "tags", ())), "")


def opinfo_row(name: str) -> dict[str, int] | None:
    """What the run found for an overload, or for the entry of the database that is called like it."""
    packet = name.partition(".")[0]
    rows: dict[str, dict[str, Any]] = results()["rows"]
    names = (f"{CORE}{name}", f"{CORE}{name}.default", name, packet, f"nn.functional.{packet}", f"linalg.{packet[7:]}")
    return next((rows[f"{n}/float32"] for n in names if f"{n}/float32" in rows), None)


def own_support(name: str) -> str:
    """What becomes of an operator of the namespace `spyre`; ours, which define it, or none."""
    import spyre_mlir.frontend.spyre_ops  # noqa: F401 # defines operators

    entry = ATEN.find(f"spyre::{name}")
    if entry is None:
        return "host" if hasattr(torch.ops.spyre, name) else "none"
    return f"native: `{entry.opfunc}`" if entry.opfunc is not None else "composed"


@cache
def cast_support(source: str, target: str) -> str:
    """How a conversion runs, asked of the compiler by compiling one."""
    import spyre_mlir
    from spyre_mlir.errors import SpyreError

    class Cast(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(getattr(torch, target))

    x = torch.ones(2, 64).to(getattr(torch, source))
    try:
        compiled = spyre_mlir.compile(Cast(), (x,), host_fallback="allow")
    except SpyreError as error:
        return f"refused: {error.message.partition(chr(10))[0]}"
    if compiled.host_steps:
        return f"host: {compiled.host_steps[0].reason}"
    kernels = compiled.kernels
    return f"{kernels} kernel{'s' if kernels > 1 else ''}" if kernels else "converted by the transfer to the device"
