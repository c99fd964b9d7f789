"""Tables of choices of one kind, each with the price of the program that has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Self

from rich.console import JustifyMethod

from spyre_mlir.hw.cost import Cost, Work
from spyre_mlir.machine.bundle.timeline import TimedKernel
from spyre_mlir.report.tables import listing
from spyre_mlir.report.timing import three_digits

CLEARLY = 0.005  # quicker by this part of the time is said to be quicker


@dataclass(frozen=True)
class Price:
    """Predicted microseconds of one run of a kernel by engine; all but the last four may overlap.

    Attributes:
        total: of the run.
        pt: the PE arrays: multiply-adds of a product.
        sfp: the vector units: everything else.
        hbm: device memory.
        ring: partial sums between cores.
        lx: the busiest core's scratchpad.
        reread: operands read again, as a core's tile of the result is too large.
        exposed: the part of a product's shorter time that does not hide behind the longer.
        overhead: of launches and trips.
        copies: copies to the scratchpads that are made before this kernel; not part of the total.
    """

    total: float
    pt: float
    sfp: float
    hbm: float
    ring: float
    lx: float
    reread: float
    exposed: float
    overhead: float
    copies: float

    @classmethod
    def of(cls, work: Work, found: Cost, copies: float = 0.0) -> Self:
        """Return the price of a kernel by engine, with that of copies made before it."""
        is_product = work.product is not None
        return cls(
            total=found.total,
            pt=found.compute if is_product else 0.0,
            sfp=0.0 if is_product else found.compute,
            hbm=found.memory,
            ring=found.ring,
            lx=found.scratchpad,
            reread=found.reread,
            exposed=found.exposed,
            overhead=found.fixed,
            copies=copies,
        )

    @classmethod
    def total_of(cls, kernels: Iterable[TimedKernel]) -> Self:
        """Return the price of all kernels of a program."""
        prices = [cls.of(kernel.work, kernel.cost) for kernel in kernels]
        return cls(**{f.name: sum(getattr(price, f.name) for price in prices) for f in fields(cls)})


@dataclass(frozen=True)
class ExplainedChoice:
    """A layout or a place of a kernel's result, or the loops around it, and the program that has it.

    Attributes:
        choice: as text.
        hint: that asks for it in the model; empty for the chosen one.
        kernels: of the program that has it; 0 if it was not lowered.
        price: of all kernels of that program; None if it was not lowered.
        refused: why it cannot be lowered so; empty if it can.
    """

    choice: str
    hint: str
    kernels: int = 0
    price: Price | None = None
    refused: str = ""


def choice_table(title: str, column: str, choices: Sequence[ExplainedChoice], kernel: str) -> Iterator[str]:
    """Return the chosen and the next best as a table, and lines that say how to ask for each.

    Args:
        title: above it; that the numbers are of all kernels is added.
        column: above the choices.
        choices: the chosen one first; nothing is returned for none.
        kernel: name of the kernel, for a command that prices it alone.
    """
    if not choices:
        return
    prices = [one.price for one in choices if one.price is not None]
    used = [f.name for f in fields(Price) if f.name == "total" or any(getattr(p, f.name) for p in prices)]
    columns: dict[str, JustifyMethod] = {"choice": "left", column: "left", "kernels": "right"}
    columns |= dict.fromkeys(used, "right")
    names = ["chosen", *(f"{n}." for n in range(2, len(choices) + 1))]
    rows = [
        (
            name,
            one.choice,
            str(one.kernels or ""),
            *("" if one.price is None else three_digits(getattr(one.price, engine)) for engine in used),
        )
        for name, one in zip(names, choices, strict=True)
    ]
    spare = tuple(e for e in reversed(used) if e != "total")
    yield listing(f"{title}, us of all kernels of the program by engine", columns, rows, spare, folded={column: 12})
    for name, one in zip(names[1:], choices[1:], strict=True):
        yield _asked(name, one, choices[0].price, kernel)


def _asked(name: str, one: ExplainedChoice, now: Price | None, kernel: str) -> str:
    """How to ask for a choice, and whether it is quicker."""
    if one.refused:
        return f"  {name} cannot be: {one.refused}"
    if one.price is None or now is None:
        return f"  {name} {one.hint} asks for it; priced for fewer kernels at once: --explain {kernel}"
    less = now.total - one.price.total
    quicker = f", and is {three_digits(less)} us quicker by this price" if less > CLEARLY * now.total else ""
    return f"  {name} {one.hint} asks for it{quicker}"


__all__ = ["ExplainedChoice", "Price", "choice_table"]
