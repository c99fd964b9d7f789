"""Constants of hardware functions: from the numbers in a nest's body to attributes of a kernel and its file.

Decision: docs/decisions/0022-no-encoded-constants.md
Decision: docs/decisions/0073-constants-are-rounded-once.md
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, f64
from xdsl.ir import Block

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.loop import body_function
from spyre_mlir.dialects.spyre.scalars import body_numbers
from spyre_mlir.dialects.superdsc.model.descriptor import Constant
from spyre_mlir.dialects.superdsc.model.function_constants import named_constant
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import FP32
from spyre_mlir.hw.number_formats import dl16
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.hardware_functions import function_of
from spyre_mlir.ops.table import OpEntry


def function_constants(body: Block, function: str, form: str) -> dict[str, float]:
    """Return the constants of the hardware function that computes a body, in file order.

    A constant that the body does not set has the default of the op table's argument. Numbers are rounded to the
    format here, so that all levels below compute with what the file will hold.

    Raises:
        UnsupportedError: a constant of the function has no value.
    """
    entry, numbers = body_function(body), body_numbers(body)
    if entry is None:
        return {}
    given = _defaults(ATEN.by_opfunc(function)) | _defaults(entry)
    given |= {entry.op_info[name]: value for name, value in numbers.items()}
    known = function_of(function)
    wanted = list(given) if known is None else known.constants
    missing = [name for name in wanted if name not in given]
    if missing:
        raise UnsupportedError(
            f"'{entry.name}' sets no constant {', '.join(missing)} of the hardware function {function}",
            hint="name an argument for it in op_info",
        )
    return {name: _rounded(given[name], form) for name in wanted}


def _defaults(entry: OpEntry | None) -> dict[str, float]:
    if entry is None:
        return {}
    defaults = {constant: entry.param(name) for name, constant in entry.op_info.items()}
    return {c: float(p.default) for c, p in defaults.items() if p is not None and isinstance(p.default, int | float)}


def _rounded(value: float, form: str) -> float:
    if form == FP32.name:
        return float(np.float32(value))
    return float(dl16.round_trip([value])[0])


def as_attribute(constants: Mapping[str, float]) -> DictionaryAttr:
    """Return constants as an attribute of a kernel op."""
    return DictionaryAttr({name: FloatAttr(value, f64) for name, value in constants.items()})


def file_constants(op: kernel.KernelOp) -> tuple[Constant, ...]:
    """Return the constants in a kernel op's file."""
    if not isinstance(op, kernel.ComputeOp):
        return ()
    form = op.tensors[0].format
    return tuple(named_constant(name, value, form) for name, value in op.constants.items())
