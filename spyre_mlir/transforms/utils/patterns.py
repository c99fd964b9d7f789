"""Application of rewrite patterns inside a pass: every op once, and errors as the pass raises them.

A rewrite that stays inside one level and looks at an op and its neighbours is a pattern; a conversion between levels is
a rebuild (`spyre_mlir.transforms.utils.rebuild`).
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.ir import Operation, Region
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern

from spyre_mlir.errors import SpyreError
from spyre_mlir.transforms.utils.rebuild import tell_origin


@dataclass
class _UntilError(RewritePattern):
    """Applies a pattern until it raises an error of ours, which it keeps: xDSL would add the text of the module."""

    pattern: RewritePattern
    error: SpyreError | None = None

    @override
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if self.error is not None:
            return
        try:
            self.pattern.match_and_rewrite(op, rewriter)
        except SpyreError as error:
            tell_origin(error, op)
            self.error = error


def apply_once(pattern: RewritePattern, region: Region, *, users_first: bool = False) -> None:
    """Offer every op of a region to a pattern once, in order; ops that it makes are not offered.

    Args:
        pattern: what to apply.
        region: of a function or a module.
        users_first: from the last op to the first, so that an op that loses its users is seen after them.

    Raises:
        SpyreError: the pattern raised it; it says at which op.
    """
    guarded = _UntilError(pattern)
    PatternRewriteWalker(guarded, apply_recursively=False, walk_reverse=users_first).rewrite_region(region)
    if guarded.error is not None:
        raise guarded.error


__all__ = ["apply_once"]
