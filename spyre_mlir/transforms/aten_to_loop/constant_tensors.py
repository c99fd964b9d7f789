"""Tensors made from numbers alone, as constants of the loop level."""

from __future__ import annotations

from collections.abc import Mapping
from math import trunc
from typing import cast

from xdsl.dialects.builtin import FloatAttr, IntegerType, StringAttr, f64, i1
from xdsl.ir import Attribute

from spyre_mlir.dialects.spyre.named_values import IotaAttr, ResampleAttr
from spyre_mlir.ops.native import creation
from spyre_mlir.ops.native.resample import resample
from spyre_mlir.ops.table import OpEntry


def known_value(entry: OpEntry, arguments: Mapping[str, object], element: Attribute) -> Attribute:
    """Return the constant value of a CREATION entry in an element type."""

    def number(name: str) -> FloatAttr:
        return FloatAttr(float(cast(float, arguments[name])), f64)

    if entry is creation.full:
        return FloatAttr(_as_element(number("fill_value").value.data, element), f64)
    if entry is resample:
        return ResampleAttr(StringAttr(cast(str, arguments["mode"])), number("scale"), number("offset"))
    return IotaAttr(number("start"), number("step"))


def _as_element(number: float, element: Attribute) -> float:
    """A number as torch fills a tensor with it: integers drop what is behind the point, truth values ask for 0."""
    if element == i1:
        return float(number != 0)
    return float(trunc(number)) if isinstance(element, IntegerType) else number
