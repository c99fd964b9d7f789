"""Checks of SuperDSC files and bundles against rules beyond their schema."""

from spyre_mlir.backend.check.check import RULES, check_bundle, check_path, check_text
from spyre_mlir.backend.check.findings import Findings, number_of_findings
from spyre_mlir.dialects.superdsc.check import Finding, Rule, Severity

__all__ = [
    "RULES",
    "Finding",
    "Findings",
    "Rule",
    "Severity",
    "check_bundle",
    "check_path",
    "check_text",
    "number_of_findings",
]
