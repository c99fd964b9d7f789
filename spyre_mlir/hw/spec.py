"""Machine numbers: constants of the architecture, and one dataclass for the differences between cards."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

# The architecture: formats, layouts and addresses are defined by these numbers, so no card has others.
STICK_BYTES = 128  # torch-spyre docs, tensors_and_layouts.md; certain
SEGMENT_BYTES = 16 * 1024**3  # SpyreCode specification, constants.py; certain
USER_SEGMENTS = 7  # segment 7 holds the program; SpyreCode specification; certain


def segment_base(segment: int) -> int:
    """Return the byte address at which a segment starts."""
    return segment * SEGMENT_BYTES


@dataclass(frozen=True, kw_only=True, repr=False)
class SpyreSpec:
    """One Spyre card. Numbers are per core unless the name says card.

    Programs name another card than the standard one by the module attribute ``spyre.target``; see
    `spyre_mlir.dialects.target`.

    Raises:
        ValueError: a number is not positive, or the scratchpad budget exceeds the scratchpad.
    """

    cores_per_card: int
    lx_bytes: int
    lx_usable_bytes: int
    hbm_card_bytes: int
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

    def __repr__(self) -> str:
        """The numbers that differ from the standard card's."""
        changed = "".join(f", {name}={value}" for name, value in self.differences().items())
        return f"replace(SPYRE{changed})" if changed else "SPYRE"

    def differences(self) -> dict[str, int]:
        """Return the numbers that differ from those of the standard card, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != getattr(SPYRE, f.name)}


SPYRE = SpyreSpec(
    cores_per_card=32,  # torch-spyre docs, dataflow_architecture.md; certain
    lx_bytes=2 * 1024 * 1024,  # torch-spyre docs, spyre_accelerator.md; certain
    lx_usable_bytes=1_589_376,  # torch-spyre LX planner and cost model; likely
    hbm_card_bytes=112 * 1024**3,  # 128 GB less 16 GB for ECC, newest torch-spyre docs; likely
    pool_bytes=15 * 1024**3,  # bundle specification: 16 GB less 1 GB reserve; likely
    span_bytes=268_431_360,  # 256 MiB - 4 KiB, the smaller of two published limits; likely
    operands_per_kernel=8,  # SuperDSC validator, labeledDs_; certain
    loop_trips=65_535,  # trips of one bundle loop; torch-spyre issue 3162, a limit of the back end; likely
)


def spec_with(numbers: dict[str, int]) -> SpyreSpec:
    """Return the standard card with some numbers replaced, given by name.

    Raises:
        ValueError: there is no such number, or a card cannot have it.
    """
    known = [f.name for f in fields(SpyreSpec)]
    if strange := [name for name in numbers if name not in known]:
        raise ValueError(f"a card has no number {strange[0]}; it has {', '.join(known)}")
    return replace(SPYRE, **numbers)
