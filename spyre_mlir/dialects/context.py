"""Context of passes: xDSL's registry of dialects, and the target card of modules."""

from __future__ import annotations

from xdsl.context import Context

from spyre_mlir.hw.spec import SPYRE, SpyreSpec


class SpyreContext(Context):
    """A context with a target card.

    Args:
        spec: the card of modules that name none; see `spyre_mlir.dialects.target`.
        allow_unregistered: whether ops of unknown dialects are accepted.
    """

    def __init__(self, spec: SpyreSpec = SPYRE, *, allow_unregistered: bool = False) -> None:
        super().__init__(allow_unregistered)
        self.spec = spec

    def clone(self) -> SpyreContext:
        """Copy the registry; the card is immutable and shared."""
        copy = SpyreContext(self.spec)
        # xDSL's clone lists its fields by hand; taking all of them keeps this right when one is added.
        vars(copy).update(vars(super().clone()))
        return copy
