"""Options of `compile`, checked where they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from spyre_mlir.errors import InputError
from spyre_mlir.machine.faults import OnFault
from spyre_mlir.machine.options import MachineOptions, Numerics
from spyre_mlir.machine.overflows import OnOverflow
from spyre_mlir.transforms.utils.host_fallback import HostFallback

Addresses = Literal["symbolic", "concrete"]
Loops = Literal["loop", "unroll"]


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """Every choice that `compile` takes besides the model and its inputs.

    Raises:
        InputError: an option has no such value.
    """

    numerics: Numerics = "device"
    addresses: Addresses = "symbolic"
    share_files: bool = False
    coarse_tile: bool = False
    loops: Loops = "loop"
    on_fault: OnFault = "raise"
    host_fallback: HostFallback = "warn"
    prefer_device: bool = False
    keep_float32: bool = False
    on_overflow: OnOverflow = "warn"

    def __post_init__(self) -> None:
        MachineOptions(numerics=self.numerics, on_fault=self.on_fault)
        chosen = {"addresses": (self.addresses, Addresses), "loops": (self.loops, Loops)}
        chosen |= {"host_fallback": (self.host_fallback, HostFallback), "on_overflow": (self.on_overflow, OnOverflow)}
        for name, (value, allowed) in chosen.items():
            if value not in get_args(allowed):
                raise InputError(f"{name} must be one of {', '.join(get_args(allowed))}, got {value!r}")

    def passes(self) -> dict[str, str]:
        """Options of passes, as `pipeline.lower` takes them."""
        share = "true" if self.share_files else "false"
        last = f"addresses={self.addresses} share={share} loops={self.loops}"
        chosen = {"convert-spyre-kernel-to-superdsc": last}
        chosen |= {"coarse-tile": ""} if self.coarse_tile else {}
        chosen |= {"convert-spyre-loop-to-spyre-kernel": "keep-float32=true"} if self.keep_float32 else {}
        return chosen | ({"decompose-aten": "prefer-device=true"} if self.prefer_device else {})
