"""Named alternatives and numbers that several packages share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

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
