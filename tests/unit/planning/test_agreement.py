"""Divisions that are added so that kernels see a buffer alike."""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.hw.cost import CostKind, Work
from spyre_mlir.planning.agreement import with_spare
from spyre_mlir.planning.divided_kernels import OUTSIDE, DividedKernel, Kernel

ROOM = 100


def way(cores: int, *views: str | None, size: int = 10) -> DividedKernel:
    """A division over cores, and the slices that they see of the operands."""
    return DividedKernel(
        {"m": cores}, Work(kind=CostKind.POINTWISE, cores=cores, elements=1, operands=()), views, (size,) * len(views)
    )


def cores(kernels: Sequence[Kernel], *spare: Sequence[DividedKernel]) -> list[list[int]]:
    """Cores of the divisions that kernels have to choose from in the end."""
    found = with_spare(kernels, lambda number: spare[number], ROOM)
    return [[c.work.cores for c in kernel.candidates] for kernel in found]


def test_a_kernel_may_have_the_few_cores_of_its_reader() -> None:
    made = Kernel((OUTSIDE, 0), (way(32, None, "32 rows"),))
    reduced = Kernel((0, OUTSIDE), (way(16, "16 columns", None),))
    assert cores([made, reduced], [way(16, None, "16 columns"), way(8, None, "8 columns")], []) == [[32, 16], [16]]


def test_the_spare_divisions_of_a_kernel_are_asked_for_once() -> None:
    kernels, asked = (
        [Kernel((OUTSIDE, 0), (way(32, None, "rows"),)), *[Kernel((0, 0), (way(16, "a", "b"),))] * 2],
        list[int](),
    )
    with_spare(kernels, lambda number: asked.append(number) or [way(16, "rows", "rows")], ROOM)
    assert sorted(asked) == [0, 1, 2]


def test_kernels_that_agree_on_many_cores_get_no_others() -> None:
    made = Kernel((OUTSIDE, 0), (way(32, None, "32 rows"),))
    read = Kernel((0, OUTSIDE), (way(32, "32 rows", None),))
    spare = [way(16, None, "16 columns")], [way(16, "16 columns", None)]
    assert cores([made, read], *spare) == [[32], [32]]


def test_the_kernel_before_follows() -> None:
    """Kernels 0 and 1 agree on many cores; if kernel 1 has few for the sake of kernel 2, kernel 0 has to as well."""
    kernels = [
        Kernel((OUTSIDE, 0), (way(32, None, "32 rows"),)),
        Kernel((0, 1), (way(32, "32 rows", "32 rows"),)),
        Kernel((1, OUTSIDE), (way(16, "16 columns", None),)),
    ]
    spare = [way(16, None, "16 columns")], [way(16, "16 columns", "16 columns")], []
    assert cores(kernels, *spare) == [[32, 16], [32, 16], [16]]
    # Not if it cannot.
    assert cores(kernels, [way(16, None, "others")], spare[1], []) == [[32], [32, 16], [16]]


def test_slices_that_fit_no_scratchpad_are_not_asked_for() -> None:
    made = Kernel((OUTSIDE, 0), (way(32, None, "32 rows"),))
    reduced = Kernel((0, OUTSIDE), (way(16, "16 columns", None),))
    assert cores([made, reduced], [way(16, None, "16 columns", size=ROOM + 1)], []) == [[32], [16]]


def test_a_copy_is_for_two_kernels_that_see_it_alike() -> None:
    def reads(*cores: int) -> Kernel:
        return Kernel((0, OUTSIDE), tuple(way(n, f"{n} rows", None) for n in cores), copied=frozenset({0}))

    spare = [way(16, "16 rows", None), way(8, "8 rows", None)]
    # The first could have 16 cores as the second has; 8 are asked for by neither.
    assert cores([reads(32), reads(16)], spare, spare[1:]) == [[32, 16], [16]]
    # Two agree already, so that the third reads the original.
    assert cores([reads(32), reads(32), reads(16)], spare, spare, []) == [[32], [32], [16]]


def test_readers_of_a_copy_follow() -> None:
    """Kernel 1 has few cores for the sake of kernel 2; kernel 0, which reads what it reads, may have them too."""
    kernels = [
        Kernel((0, OUTSIDE), (way(32, "32 rows", None),), copied=frozenset({0})),
        Kernel((0, 1), (way(32, "32 rows", "32 rows"),), copied=frozenset({0})),
        Kernel((1, OUTSIDE), (way(16, "16 columns", None),)),
    ]
    spare = [way(16, "16 columns", None)], [way(16, "16 columns", "16 columns")], []
    assert cores(kernels, *spare) == [[32, 16], [32, 16], [16]]
