"""Elements that a legal rounding moved to the other side of a step."""

from __future__ import annotations

from dataclasses import dataclass

from spyre_mlir.dialects.places import Source

# Units in the last place of float32 that a legal rounding may move the input of a step by.
NEAR = 4


@dataclass(frozen=True)
class Flip:
    """One discontinuous operator, and the number of its elements so near a boundary that rounding decides.

    Attributes:
        op: the ATen overload.
        source: the line of the model.
        elements: how many differ from eager's.
        total: of how many.
    """

    op: str
    source: Source
    elements: int
    total: int

    def __str__(self) -> str:
        """One line."""
        place = f" from {self.source}" if self.source else ""
        are = "is" if self.elements == 1 else "are"
        return (
            f"step: {self.elements:,} of {self.total:,} elements of aten.{self.op}{place} {are} decided by rounding, "
            f"within {NEAR} units in the last place of the boundary"
        )


__all__ = ["NEAR", "Flip"]
