"""Two sizes that data decides, where an operator of torch compares them: traced for equal ones.

The same mask, made twice, has two sizes in a trace: `F.l1_loss(x[y > 0], y[y > 0])`. Torch asks whether they are equal,
to broadcast one of them if not. The trace is made again with a check that they are, which each call makes, too.

Decision: docs/decisions/0225-sizes-that-torch-compares-are-equal.md
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from spyre_mlir.frontend.capture.tracing.sizes_unlike import asked_by_torch
from spyre_mlir.frontend.torch_private import expression_of, tree_flatten

_check = cast(Any, torch)._check


class SizesAlike(TorchFunctionMode):
    """Checks that pairs of sizes are equal, at the first tensor behind which both are known.

    Args:
        pairs: of names of sizes.
    """

    def __init__(self, pairs: Collection[frozenset[str]]) -> None:
        super().__init__()
        self._open = set(pairs)
        self._seen = dict[str, torch.SymInt]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, and checks the sizes of what it gives."""
        out = func(*args, **(kwargs or {}))
        if self._open:
            for value in tree_flatten(out)[0]:
                if isinstance(value, torch.Tensor):
                    self._seen.update({str(expression_of(n)): n for n in value.shape if isinstance(n, torch.SymInt)})
            for pair in [pair for pair in self._open if pair <= self._seen.keys()]:
                self._open.discard(pair)
                first, second = (self._seen[name] for name in sorted(pair))
                _check(first == second)
        return out


def sizes_compared(error: BaseException | None) -> frozenset[frozenset[str]]:
    """Return the pair of sizes, by name, that torch compares with each other; empty if it asks another question."""
    condition = asked_by_torch(error)
    if condition is None or getattr(condition, "rel_op", "") not in ("==", "!="):
        return frozenset()
    sides = [condition.lhs, condition.rhs]
    return frozenset({frozenset(map(str, sides))}) if all(side.is_Symbol for side in sides) else frozenset()


def conditions_of(pairs: Collection[frozenset[str]]) -> frozenset[str]:
    """Return the conditions that are checked of pairs of sizes, as torch writes them."""
    return frozenset(f"Eq({a}, {b})" for pair in pairs for a, b in (sorted(pair), sorted(pair)[::-1]))


__all__ = ["SizesAlike", "conditions_of", "sizes_compared"]
