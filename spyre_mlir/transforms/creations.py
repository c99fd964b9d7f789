"""Tensors made from numbers alone: what a constant of the loop level holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import FloatAttr, StringAttr, f64
from xdsl.ir import Attribute

from spyre_mlir.dialects.spyre.attributes import IotaAttr, ResampleAttr
from spyre_mlir.ops import creation, resampling
from spyre_mlir.ops.table import OpEntry


def known_value(entry: OpEntry, arguments: Mapping[str, object]) -> Attribute:
    """The value of the constant that an entry of the family CREATION makes."""

    def number(name: str) -> FloatAttr:
        return FloatAttr(float(cast(float, arguments[name])), f64)

    if entry is creation.full:
        return number("fill_value")
    if entry is resampling.resample:
        return ResampleAttr(StringAttr(cast(str, arguments["mode"])), number("scale"), number("offset"))
    return IotaAttr(number("start"), number("step"))
