"""Canonicalisation of our ops: a trait that names the module of their patterns, loaded when `canonicalize` needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from typing_extensions import override
from xdsl.ir import Operation
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait

Patterns = Mapping[type[Operation], tuple[RewritePattern, ...]]


@dataclass(frozen=True)
class CanonicalPatterns(HasCanonicalizationPatternsTrait):
    """Makes `canonicalize` apply patterns to an op: those that the table `PATTERNS` of a module has for its class.

    Patterns import the ops that they match, so the ops name the module instead of importing it.

    Attributes:
        module: the module of the table, whose keys are op classes or bases of them.
    """

    module: str

    @override
    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        """Return the patterns of an op class."""
        table: Patterns = getattr(import_module(self.module), "PATTERNS")  # noqa: B009 - typed by the annotation
        return tuple(pattern for kind, patterns in table.items() if issubclass(op, kind) for pattern in patterns)

    @override
    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        """Return no pattern: `get_patterns` has them, by op class."""
        return ()
