"""Settings of a run of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from spyre_mlir.choices import Numerics, OnFault
from spyre_mlir.errors import InputError

OverflowChoice = Literal["saturate", "nan"]
PartialSums = Literal["wide", "rounded"]
Nan = Literal["allow", "fault"]
ArithmeticWidth = Literal["float32", "float64"]


@dataclass(frozen=True, kw_only=True)
class MachineOptions:
    """Settings of one run.

    Public sources do not say how wide the matrix unit and the reductions accumulate, in what order, or how partial
    sums travel from core to core. The machine accumulates in `arithmetic`, whose width is more than twice a DLFloat16
    number's, in the order that numpy and its BLAS take, and rounds a result once, when it is stored; `partial_sums`
    says what cores hand to each other. Nor do they say what a finite value beyond the largest
    DLFloat16 becomes; infinities and NaN are the merged symbol 0x7FFF with either setting of `overflow`.

    Args:
        numerics: ``exact`` keeps a wide number in every element slot, and rounds results of float32 operations of the
            model as eager does; ``device`` rounds where the hardware does; ``none`` computes in float32, rounds
            nothing, and checks nothing that depends on data: neither stale nor unwritten bytes nor overflows.
        on_fault: ``raise`` stops at the first fault, ``warn`` logs each once and goes on, ``collect`` goes on; what
            a run met is in its `FaultLog`. How an operation goes on is said at `spyre_mlir.machine.faults.GOES_ON`.
            Only bundles go on: the levels above have no bytes to go on with, and always raise.
        nan: ``allow`` lets functions make infinities and NaN; ``fault`` is a fault where one is made of numbers.
        overflow: a finite value beyond the largest DLFloat16 becomes the largest (``saturate``), or the merged
            symbol of infinity and NaN (``nan``). Device numerics only.
        partial_sums: where several cores share a sum, each hands its part on as it is (``wide``), or in the format
            of the result (``rounded``). Device numerics only.
        arithmetic: what functions compute in between two stores, ``float32`` or ``float64``; 32-bit integers always
            take float64. Device numerics only; ``exact`` has float64 throughout.

    Raises:
        InputError: a setting has no such value, or means nothing in these numerics.
    """

    numerics: Numerics = "exact"
    on_fault: OnFault = "raise"
    nan: Nan = "allow"
    overflow: OverflowChoice = "saturate"
    partial_sums: PartialSums = "wide"
    arithmetic: ArithmeticWidth = "float32"

    def __post_init__(self) -> None:
        given = {
            "numerics": (self.numerics, Numerics),
            "on_fault": (self.on_fault, OnFault),
            "nan": (self.nan, Nan),
            "overflow": (self.overflow, OverflowChoice),
            "partial_sums": (self.partial_sums, PartialSums),
            "arithmetic": (self.arithmetic, ArithmeticWidth),
        }
        for name, (value, allowed) in given.items():
            if value not in get_args(allowed):
                raise InputError(f"{name} must be one of {', '.join(get_args(allowed))}, got {value!r}")
        rounding = (self.overflow, self.partial_sums, self.arithmetic)
        if self.numerics != "device" and rounding != ("saturate", "wide", "float32"):
            which = "exact numerics" if self.numerics == "exact" else f"numerics {self.numerics!r}"
            raise InputError(f"overflow, partial_sums and arithmetic say how a card rounds, and {which} never do")
        if self.numerics == "none" and self.nan == "fault":
            raise InputError("nan='fault' looks at every result, and numerics 'none' at none", hint="numerics='exact'")
