"""How a run of the machine is set up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spyre_mlir.errors import UnsupportedError


@dataclass(frozen=True, kw_only=True)
class MachineOptions:
    """Settings of one run.

    Args:
        numerics: ``exact`` keeps a wide float in every element slot and rounds nothing; ``device`` rounds where the
            hardware does.
        on_fault: ``raise`` stops at the first fault.

    Raises:
        UnsupportedError: a setting the machine does not have yet, by name.
    """

    numerics: Literal["exact", "device"] = "exact"
    on_fault: Literal["raise"] = "raise"

    def __post_init__(self) -> None:
        if self.numerics != "exact":
            raise UnsupportedError(
                f"the machine runs 'exact' numerics, not {self.numerics!r}", hint="use numerics='exact'"
            )
        if self.on_fault != "raise":
            raise UnsupportedError(f"on_fault must be 'raise', got {self.on_fault!r}")
