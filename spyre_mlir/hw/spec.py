"""The machine's numbers: one dataclass, one instance per known device, each number with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SpyreSpec:
    """One Spyre card. Numbers are per core unless the name says card.

    Raises:
        ValueError: a number is not positive, or the scratchpad budget exceeds the scratchpad.
    """

    cores_per_card: int
    stick_bytes: int
    lx_bytes: int
    lx_usable_bytes: int
    hbm_card_bytes: int
    segment_bytes: int
    user_segments: int
    pool_bytes: int
    span_bytes: int
    operands_per_kernel: int
    loop_trips: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise ValueError(f"{name} must be positive, got {value}")
        if self.lx_usable_bytes > self.lx_bytes:
            raise ValueError(f"lx_usable_bytes {self.lx_usable_bytes} exceeds lx_bytes {self.lx_bytes}")

    def segment_base(self, segment: int) -> int:
        """Byte address at which a 16 GiB segment starts."""
        return segment * self.segment_bytes


SPYRE = SpyreSpec(
    cores_per_card=32,  # torch-spyre docs, dataflow_architecture.md; certain
    stick_bytes=128,  # torch-spyre docs, tensors_and_layouts.md; certain
    lx_bytes=2 * 1024 * 1024,  # torch-spyre docs, spyre_accelerator.md; certain
    lx_usable_bytes=1_589_376,  # torch-spyre LX planner and cost model; likely
    hbm_card_bytes=112 * 1024**3,  # 128 GB less 16 GB for ECC, newest torch-spyre docs; likely
    segment_bytes=16 * 1024**3,  # SpyreCode specification, constants.py; certain
    user_segments=7,  # segment 7 holds the program; SpyreCode specification; certain
    pool_bytes=15 * 1024**3,  # bundle specification: 16 GB less 1 GB reserve; likely
    span_bytes=268_431_360,  # 256 MiB - 4 KiB, the smaller of two published limits; likely
    operands_per_kernel=8,  # SuperDSC validator, labeledDs_; certain
    loop_trips=65_535,  # trips of one bundle loop; torch-spyre issue 3162, a limit of the back end; likely
)
