"""An example plugin: operations of Acme's own, and what spyre-mlir shall do with them."""

from __future__ import annotations

import torch

LIBRARY = torch.library.Library("acme", "DEF")


def define(signature: str, meaning) -> None:
    """Makes a torch operator; export and eager both use its meaning."""
    name = LIBRARY.define(signature)
    LIBRARY.impl(name, meaning, "CompositeExplicitAutograd")


define("softer(Tensor self, float beta=1.0) -> Tensor", lambda x, beta=1.0: torch.nn.functional.softplus(x, beta))
define("total(Tensor self, int[] dim, bool keepdim=False) -> Tensor", lambda x, dim, keepdim=False: x.sum(dim, keepdim))
define("blend(Tensor a, Tensor b, float weight) -> Tensor", lambda a, b, weight: a * weight + b * (1 - weight))
define("largest(Tensor self) -> Tensor", lambda x: x.amax(-1).clone())
define("marker(Tensor self) -> Tensor", lambda x: x.clone())
define("median(Tensor self) -> Tensor", lambda x: x.median(-1).values.clone())
define("twice(Tensor self) -> Tensor", lambda x: x * 2)
define("digest(Tensor self, int base) -> Tensor", lambda x, base: (x % base).sum(-1))


def register() -> None:
    """Called by spyre-mlir: the entry point names this function."""
    import numpy as np
    from xdsl.passes import ModulePass

    from spyre_mlir.ops.annotations import Ints, Lanes
    from spyre_mlir.ops.value import Value
    from spyre_mlir.plugins import registry

    # One hardware function, with a constant.
    @registry.map_op("acme::softer", "softplus", op_info={"beta": "softplusBeta"}, source="softplus of the OpFunc list")
    def softer(self: Lanes, *, beta: float = 1.0) -> Lanes:
        """log(1 + exp(beta x)) / beta."""
        return np.logaddexp(0.0, beta * self) / beta

    # A reduction that is one hardware function.
    @registry.map_op("acme::total", "sum", combine="arith.addf", fp32=True, source="sum of the OpFunc list")
    def total(self: Lanes, *, dim: Ints, keepdim: bool = False) -> Lanes:
        """The sum over `dim`."""
        return np.sum(self, axis=tuple(dim), keepdims=keepdim)

    # Built from others.
    @registry.register_decomposition("acme::blend")
    def blend(build, a: Value, b: Value, *, weight: float):
        """a and b, mixed."""
        return a * weight + b * (1 - weight)

    # Routed by element type: halves on the device, others on the host.
    @registry.register_decomposition("acme::largest", when=lambda build, self: self.element == "f16")
    def largest(build, self: Value):
        """The largest element of every row."""
        return self.amax(-1)

    # A host step, by torch's own kernel of the operator.
    registry.register_fallback("acme::median")(torch.ops.acme.median)

    # Converted at import.
    @registry.register_op("acme::twice")
    def twice(node: registry.NodeInfo, build):
        return [node.args[0] * 2.0]

    # Computed on the host by a function of our own.
    @registry.register_executor("acme::digest")
    def digest(tensors, attributes):
        return [(tensors[0] % attributes["base"]).sum(-1)]

    # Removed by a pass.
    @registry.register_pass("aten")
    class DropMarkers(ModulePass):
        name = "acme-drop-markers"

        def apply(self, ctx, op) -> None:
            """Replaces `acme::marker` by its operand."""
            for call in [o for o in op.walk() if getattr(o, "overload", "") == "acme::marker"]:
                call.results[0].replace_all_uses_with(call.operands[0])
                call.detach()
                call.erase()
