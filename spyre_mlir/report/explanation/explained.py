"""Explanation of the plans of kernels, as text and as data.

`docs/reference/explanation.schema.json` is the schema of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import cast

from rich.console import JustifyMethod

from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from spyre_mlir.report.explanation.choice_tables import ExplainedChoice, Price, choice_table
from spyre_mlir.report.figures import plain
from spyre_mlir.report.tables import listing
from spyre_mlir.report.timing import three_digits
from spyre_mlir.sizes import counted
from spyre_mlir.text.notebook import ShownAsText

FORMAT, VERSION = "spyre-explanation", 1
SHOWN_EXAMPLES = 3  # refused divisions per reason
SHOWN_LOOPS = 8


@dataclass(frozen=True)
class ExplainedOperand:
    """An operand of a kernel in the finished program.

    Attributes:
        value: its name in the text of the kernel level.
        written: whether it is the result.
        shape: of the tensor.
        layout: order of the dimensions in memory, outermost first, and the stick dimension.
        memory: `hbm` or `lx`.
        address: in the scratchpad, bytes; None in device memory.
        core_bytes: of it that one core touches.
        reason: why it is there.
    """

    value: str
    written: bool
    shape: tuple[int, ...]
    layout: str
    memory: str
    address: int | None
    core_bytes: int
    reason: str


@dataclass(frozen=True)
class ExplainedPlan:
    """One division of a kernel, in the quickest plan that has it.

    Attributes:
        division: slices by loop.
        cores: in use.
        price: of one run.
        block_us: of all kernels that were divided together with it.
        lx: operands that the plan has in the scratchpads, by their values.
        differs: what else the plan does otherwise than the chosen one.
    """

    division: Mapping[str, int]
    cores: int
    price: Price
    block_us: float
    lx: tuple[str, ...]
    differs: tuple[str, ...]

    @property
    def text(self) -> str:
        """The division as text."""
        return divided_text(self.division)


@dataclass(frozen=True)
class ExplainedLoop:
    """Loops that were tried around a group of kernels.

    Attributes:
        trips: of the outer and perhaps an inner loop, by the loop of the group's first kernel that each cuts.
        kernels: of the group.
        usual_us: time of the group without loops.
        us: time in the loops; None where that was not computed to its end.
        taken: whether it was put there.
        said: what became of it.
    """

    trips: Mapping[str, int]
    kernels: int
    usual_us: float
    us: float | None
    taken: bool
    said: str


@dataclass(frozen=True)
class RefusedDivisions:
    """Divisions that were not considered, for one reason."""

    reason: str
    divisions: tuple[Mapping[str, int], ...]


@dataclass(frozen=True)
class ExplainedKernel:
    """The plan of a kernel.

    Attributes:
        name: of its file.
        function: of the hardware.
        operation: that it was made for, as PyTorch calls it; empty if that is not known.
        source: line and module of the model; empty if they are not known.
        loops: extents by name.
        whole: loops that cannot be divided, with the reason.
        runs: how often it runs: trips of the loops around it, times calls of its region.
        trips: of the loops around it, outermost first.
        operands: as they lie in the finished program.
        chosen: the plan.
        others: the next best.
        considered: divisions that the search had to choose from.
        refused: the others.
        tried: loops around it.
        layout: who chose the layout of its result, or which reader it was inserted for; empty if that is not known.
        layouts: the chosen one of the result and the next best, if there are others.
        places: the memory of the result and the other one; empty if it is no buffer of the program.
        loops_around: the loops around it and the next best; empty if no loop can be.
    """

    name: str
    function: str
    operation: str
    source: str
    loops: Mapping[str, int]
    whole: Mapping[str, str]
    runs: int
    trips: tuple[int, ...]
    operands: tuple[ExplainedOperand, ...]
    chosen: ExplainedPlan
    others: tuple[ExplainedPlan, ...]
    considered: int
    refused: tuple[RefusedDivisions, ...]
    tried: tuple[ExplainedLoop, ...]
    layout: str = ""
    layouts: tuple[ExplainedChoice, ...] = ()
    places: tuple[ExplainedChoice, ...] = ()
    loops_around: tuple[ExplainedChoice, ...] = ()

    def __str__(self) -> str:
        """Several tables under a head line."""
        made = f" for {self.operation}" if self.operation else ""
        place = f" at {self.source}" if self.source else ""
        loops = ", ".join(f"{name} = {extent}" for name, extent in self.loops.items()) or "none"
        lines = [f"{self.name}: {self.function}{made}{place}", f"  loops: {loops}"]
        lines += [f"  {name} stays whole: {why}" for name, why in self.whole.items()]
        if self.runs > 1:
            loops = " x ".join(map(str, self.trips))
            lines.append(f"  runs {self.runs} times" + (f", in loops of {loops} trips" if loops else ""))
        if self.layout:
            lines.append(f"  {self.layout}" if self.layout.startswith("inserted") else f"  layout: {self.layout}")
        kinds = (
            ("layouts of the result", "of the result", self.layouts),
            ("places of the result", "of the result", self.places),
            ("loops", "around it", self.loops_around),
        )
        chosen = (table for title, column, kind in kinds for table in choice_table(title, column, kind, self.name))
        tables = [self._operand_table(), *chosen, self._plan_table()]
        return "\n".join([*lines, *tables, *self._divisions(), *self._loops()])

    def _operand_table(self) -> str:
        columns: dict[str, JustifyMethod] = {
            "operand": "left",
            "shape": "left",
            "layout": "left",
            "memory": "left",
            "bytes per core": "right",
            "reason": "left",
        }
        rows = [
            (
                ("out " if o.written else "in ") + (f"%{o.value}" if o.value else ""),
                "x".join(map(str, o.shape)),
                o.layout,
                o.memory if o.address is None else f"{o.memory} at {o.address}",
                f"{o.core_bytes:,}",
                o.reason,
            )
            for o in self.operands
        ]
        return listing(
            "operands", columns, rows, ("bytes per core", "shape", "memory"), folded={"layout": 12, "reason": 12}
        )

    def _plan_table(self) -> str:
        engines = [f.name for f in fields(Price)]
        plans = [("chosen", self.chosen), *((f"{n}.", other) for n, other in enumerate(self.others, start=2))]
        used = [e for e in engines if e == "total" or any(getattr(p.price, e) for _, p in plans)]
        columns: dict[str, JustifyMethod] = {"plan": "left", "division": "left", "cores": "right"}
        for engine in [*used, "together"]:
            columns[engine] = "right"
        columns["in LX"] = "left"
        rows = [
            (
                name,
                plan.text,
                str(plan.cores),
                *(three_digits(getattr(plan.price, engine)) for engine in used),
                three_digits(plan.block_us),
                ", ".join(f"%{value}" for value in plan.lx),
            )
            for name, plan in plans
        ]
        title = "plans, us of one run by engine, and of the kernels that are divided together"
        spare = ("in LX", *(engine for engine in reversed(used) if engine != "total"), "together")
        table = listing(title, columns, rows, spare, folded={"division": 9})
        changes = [f"  {name} {change}" for name, plan in plans for change in plan.differs]
        return "\n".join([table, *changes])

    def _divisions(self) -> Iterator[str]:
        refused = sum(len(r.divisions) for r in self.refused)
        yield f"divisions: {self.considered + refused} looked at, {self.considered} considered, {refused} refused"
        for entry in self.refused:
            examples = "; ".join(divided_text(d) for d in entry.divisions[:SHOWN_EXAMPLES])
            more = "; …" if len(entry.divisions) > SHOWN_EXAMPLES else ""
            yield f"  {len(entry.divisions)}: {entry.reason} ({examples}{more})"

    def _loops(self) -> Iterator[str]:
        if not self.tried:
            yield "loops around it: none was worth trying"
            return
        yield f"loops around it: {len(self.tried)} looked at"
        order = sorted(self.tried, key=lambda loop: (not loop.taken, loop.us is None))
        for loop in order[:SHOWN_LOOPS]:
            trips = ", ".join(f"{trips} trips over {name}" for name, trips in loop.trips.items())
            yield f"  {trips} around {loop.kernels} kernels: {loop.said}"
        if len(order) > SHOWN_LOOPS:
            yield f"  and {len(order) - SHOWN_LOOPS} more"


@dataclass(frozen=True)
class Explanation(ShownAsText):
    """The plans of the kernels that go by a name; prints itself as tables.

    Attributes:
        name: of the program.
        wanted: the name.
        kernels: as many as are explained at once.
        more: names of the other kernels that go by it.
    """

    name: str
    wanted: str
    kernels: tuple[ExplainedKernel, ...]
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The tables of all kernels."""
        parts = [str(kernel) for kernel in self.kernels]
        if self.more:
            parts.append(f"{len(self.more)} more go by '{self.wanted}': {', '.join(self.more)}")
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        """One line."""
        return f"<Explanation of {self.wanted!r} in {self.name}: {counted(len(self.kernels), 'kernel')}>"

    def json(self) -> str:
        """Return the text of the JSON file."""
        return dump_text({"format": FORMAT, "version": VERSION, **cast("JsonObject", plain(self))})


def divided_text(division: Mapping[str, int]) -> str:
    """Return a division as text: the loops that are divided."""
    return ", ".join(f"{name} over {split}" for name, split in division.items() if split > 1) or "one core"


__all__ = [
    "ExplainedKernel",
    "ExplainedLoop",
    "ExplainedOperand",
    "ExplainedPlan",
    "Explanation",
    "RefusedDivisions",
    "divided_text",
]
