"""The table of ATen operations; each family fills it from its own file."""

from __future__ import annotations

from spyre_mlir.ops.table import Table

ATEN = Table("aten")
