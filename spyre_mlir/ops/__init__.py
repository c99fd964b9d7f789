"""The op table: one declaration says everything about an operation.

Importing the package loads every module below `native` and `composed`, each of which adds its entries to `ATEN`; a new
module needs no line anywhere else.
"""

from importlib import import_module
from pkgutil import walk_packages

from spyre_mlir.ops import composed, native, spyre_ops
from spyre_mlir.ops.aten import ATEN

for _folder in (native, composed):
    for _module in walk_packages(_folder.__path__, f"{_folder.__name__}."):
        import_module(_module.name)

# Behind the table, which they read.
from spyre_mlir.ops.registry import (  # noqa: E402
    register_decomposition,
    register_executor,
    register_fallback,
    register_lowering,
    register_op,
)

__all__ = [
    "ATEN",
    "register_decomposition",
    "register_executor",
    "register_fallback",
    "register_lowering",
    "register_op",
    "spyre_ops",
]
