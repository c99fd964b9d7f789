"""The context passes run in: xDSL's registry of dialects plus the machine that is compiled for."""

from __future__ import annotations

from xdsl.context import Context

from spyre_mlir.hw.spec import SPYRE, SpyreSpec


class SpyreContext(Context):
    """A context that knows the machine.

    Args:
        spec: the machine that passes and verifiers read their numbers from.
        allow_unregistered: whether ops of unknown dialects are accepted.
    """

    def __init__(self, spec: SpyreSpec = SPYRE, *, allow_unregistered: bool = False) -> None:
        super().__init__(allow_unregistered)
        self.spec = spec

    def clone(self) -> SpyreContext:
        """Copy the registry; the machine is immutable and shared."""
        copy = SpyreContext(self.spec)
        # xDSL's clone lists its fields by hand; taking all of them keeps this right when one is added.
        vars(copy).update(vars(super().clone()))
        return copy


def spec_of(ctx: Context) -> SpyreSpec:
    """The machine of a context; under stock `xdsl-opt`, which has none, the standard one."""
    return ctx.spec if isinstance(ctx, SpyreContext) else SPYRE
