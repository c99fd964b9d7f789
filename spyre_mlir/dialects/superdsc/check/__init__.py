"""Rules that a SuperDSC file keeps beyond its schema, each with a name, a source and a certainty.

Decision: docs/decisions/0028-rules-beyond-the-schema.md
"""

from spyre_mlir.dialects.superdsc.check.checker import FILE_RULES, check_value
from spyre_mlir.dialects.superdsc.check.rule import Finding, Problem, Rule, Severity

__all__ = ["FILE_RULES", "Finding", "Problem", "Rule", "Severity", "check_value"]
