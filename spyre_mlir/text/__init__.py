"""Parser and printer of IR text."""

from __future__ import annotations

from spyre_mlir.text.parser import SpyreParser
from spyre_mlir.text.printer import SpyrePrinter
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.text.verify import verify_dominance

__all__ = ["SpyreParser", "SpyrePrinter", "module_text", "parse_module", "verify_dominance", "verify_module"]
