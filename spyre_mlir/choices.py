"""Named alternatives and numbers that several packages share, and what reads and checks values of options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from spyre_mlir.errors import InputError

Numerics = Literal["exact", "device", "none"]
OnFault = Literal["raise", "warn", "collect"]
OnOverflow = Literal["warn", "raise", "ignore"]
HostFallback = Literal["warn", "allow", "error"]
Addresses = Literal["symbolic", "concrete"]
LoopForm = Literal["loop", "unroll"]
InputLayouts = Literal["default", "free"]
SdscVersion = Literal["TS25", "TS26", "TSNEW"]
Progress = bool | Callable[[str], object] | None
MaxSize = int | Literal["known"] | None
Integers = Literal["auto", "device", "exact"]
CacheKind = Literal["static", "sliding", "growing"]

# Made-up integers count from 0 to below this.
RANDOM_INTEGERS_BELOW = 10
# Made-up sizes are multiples: even, different, and neither 0 nor 1, for which torch traces other programs.
EXAMPLE_STEP = 8
# Programs that a model with sizes of the caller's choice keeps, the last used ones, unless `compile` says otherwise.
SPECIALIZATIONS = 16


def read_names(text: str) -> tuple[str, ...]:
    """Read names from ``NAME,NAME``."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def read_max_size(text: str) -> MaxSize:
    """Read the largest size that data decides: a number or ``known``, which the options check."""
    return cast("MaxSize", int(text) if text.isascii() and text.isdigit() else text)


def check_names(option: str, names: object) -> None:
    """Check the value of an option that names parts of a model.

    Raises:
        InputError: it is no tuple of names.
    """
    if not isinstance(names, tuple) or not all(
        isinstance(name, str) and name for name in cast("tuple[Any, ...]", names)
    ):
        raise InputError(f"{option} must be a tuple of names, got {names!r}", hint=f'{option}=("layers.0.norm",)')


def check_max_size(size: object) -> None:
    """Check the largest size that data decides.

    Raises:
        InputError: it is no number above 0, ``known`` or None.
    """
    if size is None or size == "known" or (type(size) is int and size > 0):
        return
    raise InputError(f"max_size must be a number above 0, 'known' or None, got {size!r}")
