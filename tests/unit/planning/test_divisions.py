"""Kernels that are divided together: cases by hand, and all choices of small sequences one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyre_mlir.hw.cost import CostKind, Traffic, Work, cost
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.divisions import (
    OUTSIDE,
    DividedKernel,
    Kernel,
    Prices,
    _Search,
    divide_within,
)
from tests.unit.planning.quickest import quickest

MB = 1_000_000


def candidate(view: str, cores: int, *sizes: int, in_place: bool = False) -> DividedKernel:
    """A pointwise kernel that sees all operands in the same slices; sizes in bytes, the result last."""
    operands = tuple(
        Traffic(bytes=size, needed=size, per_core=size // cores, written=n == len(sizes) - 1)
        for n, size in enumerate(sizes)
    )
    work = Work(kind=CostKind.POINTWISE, cores=cores, elements=sizes[-1] // 2, operands=operands)
    inputs = range(len(sizes) - 1) if in_place else ()
    return DividedKernel({}, work, (view,) * len(sizes), tuple(size // cores for size in sizes), frozenset(inputs))


def test_neighbours_agree_where_that_keeps_a_buffer() -> None:
    """By rows the second kernel is quicker alone, but then both lose the buffer between them."""
    rows, columns = candidate("rows", 32, MB, MB), candidate("columns", 25, MB, MB)
    first = Kernel((OUTSIDE, 0), (columns,))
    second = Kernel((0, OUTSIDE), (rows, columns))
    alone = quickest([Kernel((OUTSIDE, OUTSIDE), (rows, columns))])
    assert alone.chosen == (0,)
    together = quickest([first, second])
    assert (together.chosen, together.local) == ((0, 1), {0})
    assert together.us == pytest.approx(sum(together.times))
    assert together.us == pytest.approx(Prices().us(columns, frozenset({1})) + Prices().us(columns, frozenset({0})))


def test_what_does_not_fit_stays_outside() -> None:
    size = SPYRE.lx_usable_bytes * 32
    small, large = candidate("rows", 32, size // 2, size // 2), candidate("rows", 32, size, size)
    assert quickest([Kernel((OUTSIDE, 0), (small,)), Kernel((0, OUTSIDE), (small,))]).local == {0}
    # Two of this size live at the same time, unless the second takes the place of the first.
    middle = replace(large)
    apart = [Kernel((OUTSIDE, 0), (large,)), Kernel((0, 1), (middle,)), Kernel((1, OUTSIDE), (large,))]
    assert len(quickest(apart).local) == 1
    taking = candidate("rows", 32, size, size, in_place=True)
    assert quickest([apart[0], Kernel((0, 1), (taking,)), apart[2]]).local == {0, 1}


def test_room_that_is_held_throughout_is_left() -> None:
    """The total of a sum that the third kernel adds to is there while the first two run."""
    size = SPYRE.lx_usable_bytes * 32
    half = candidate("rows", 32, size // 2, size // 2)
    adding = candidate("rows", 32, size // 2, size // 2, size // 2)
    kernels = [Kernel((OUTSIDE, 0), (half,)), Kernel((0, 1), (half,)), Kernel((1, 2, 2), (adding,))]
    assert quickest(kernels).local == {0, 1, 2}
    held = [*kernels[:2], replace(kernels[2], throughout=frozenset({2}))]
    assert len(quickest(held).local) == 2


def test_an_input_is_copied_if_that_pays() -> None:
    one = candidate("rows", 32, MB, MB)
    reader = Kernel((0, OUTSIDE), (one,), copied=frozenset({0}))
    assert quickest([reader]).local == frozenset()
    thrice = quickest([reader] * 3)
    assert thrice.local == {0}
    expected = Prices().copy_us(one, 0) + 3 * Prices().us(one, frozenset({0}))
    assert thrice.us == pytest.approx(expected)
    # A reader in other slices reads the original.
    other = Kernel((0, OUTSIDE), (candidate("columns", 32, MB, MB),), copied=frozenset({0}))
    mixed = quickest([reader, other, reader, reader])
    assert mixed.us == pytest.approx(expected + Prices().us(other.candidates[0], frozenset()))


def test_a_copy_for_one_reader_gains_nothing() -> None:
    """In slices of its own a reader would only have its reads apart from its writes, which `place-lx` does not do."""
    rows, columns = candidate("rows", 32, MB, MB), candidate("columns", 32, MB, MB)
    first, second = (Kernel((0, OUTSIDE), (c,), copied=frozenset({0})) for c in (rows, columns))
    assert Prices().copy_us(rows, 0) + Prices().us(rows, frozenset({0})) < Prices().us(rows, frozenset())
    apart = quickest([first, second])
    assert (apart.local, apart.us) == (frozenset(), pytest.approx(2 * Prices().us(rows, frozenset())))
    # A limit that the gain of two readers keeps leaves nothing out on the way there.
    both = quickest([first, second, first])
    expected = Prices().copy_us(rows, 0) + 2 * Prices().us(rows, frozenset({0})) + Prices().us(columns, frozenset())
    assert (both.local, both.us) == ({0}, pytest.approx(expected))
    assert sum(both.times) == pytest.approx(both.us)
    assert divide_within([first, second, first], expected * (1 + 1e-9)) is not None


def test_an_input_that_a_kernel_reads_in_two_slices_is_not_copied() -> None:
    alike = candidate("rows", 32, MB, MB, MB)
    turned = replace(alike, views=("rows", "columns", "rows"))
    for read, local in ((alike, {0}), (turned, set[int]())):
        kernel = Kernel((0, 0, OUTSIDE), (read,), copied=frozenset({0, 1}))
        assert quickest([kernel] * 3).local == local


def test_slices_that_only_the_last_kernel_distinguishes() -> None:
    """Forty slices at equal times, of which the last kernel has the fortieth alone."""
    any_of = tuple(candidate(str(n), 32, MB, MB) for n in range(40))
    found = quickest([Kernel((OUTSIDE, 0), any_of), Kernel((0, 1), any_of), Kernel((1, OUTSIDE), any_of[-1:])])
    assert (found.chosen, found.local) == ((39, 39, 0), {0, 1})


def test_slices_that_suit_no_later_kernel_do_not_crowd_out_the_others() -> None:
    """Five of six buffers may be held in slices that a later reader is slow with: more ways than the search keeps."""
    good, bad = candidate("good", 32, MB, MB), candidate("bad", 32, MB, MB)
    slow = replace(bad, work=replace(bad.work, elements=1000 * bad.work.elements))
    writers = [Kernel((OUTSIDE, n), (replace(bad),)) for n in range(6)]
    readers = [Kernel((n, OUTSIDE), (bad,) if n == 0 else (good, slow)) for n in range(6)]
    found = divide_within([*writers, *readers], inf, width=4)
    assert found is not None
    assert (found.chosen, found.local) == ((0,) * 12, {0})


def test_of_ways_that_hold_nothing_the_quickest_alone_is_gone_on_with() -> None:
    """Three slices of the result are three ways to hold it; in device memory they are alike to later kernels."""
    found = tuple(candidate(name, cores, MB, MB) for name, cores in (("rows", 16), ("columns", 32), ("both", 25)))
    kernels = [Kernel((OUTSIDE, 0), found), Kernel((0, OUTSIDE), found)]
    ways = _Search(kernels, inf, Prices())._ways(0, {})
    assert sorted((way.choice, *way.added.held) for way in ways) == [(0, 0), (1,), (1, 0), (2, 0)]
    # What is copied for a reader counts for each division of its own.
    several = _Search([replace(kernels[1], copied=frozenset({0}))] * 2, inf, Prices())._ways(0, {})
    assert sum(not way.added.held for way in several) == 3


def test_a_kernel_without_a_division() -> None:
    with pytest.raises(ValueError, match="kernel 0 has no division"):
        quickest([Kernel((OUTSIDE,), ())])


# Small sequences: buffer n is made by kernel n and read by later ones; x is outside.
kernels = st.lists(
    st.tuples(
        st.lists(st.integers(0, 3), min_size=1, max_size=2),
        st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([8, 25, 32])), min_size=1, max_size=3),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(kernels, st.sampled_from([10**9, 300_000, 60_000]))
def test_no_choice_is_quicker(described: list, room: int) -> None:
    sequence = built(described)
    spec = replace(SPYRE, lx_usable_bytes=min(room, SPYRE.lx_bytes))
    prices = Prices(spec=spec)
    best = quickest(sequence, prices, width=10**6)
    expected = min(us for us in all_ways(sequence, spec.lx_usable_bytes))
    assert best.us == pytest.approx(expected)
    assert quickest(sequence, prices).us >= expected * (1 - 1e-9)
    # A limit leaves out nothing that is within it, and finds nothing beyond it.
    for limit in (expected * (1 + 1e-9), expected * 1.5):
        within = divide_within(sequence, limit, prices, width=10**6)
        assert within is not None and within.us == pytest.approx(expected)
    assert divide_within(sequence, expected * (1 - 1e-9), prices, width=10**6) is None


def built(described: list) -> list[Kernel]:
    sequence: list[Kernel] = []
    for number, (reads, ways, size) in enumerate(described):
        inputs = [r if r < number else OUTSIDE for r in dict.fromkeys(reads)]
        inputs = [OUTSIDE if b == OUTSIDE else b for b in inputs]
        sizes = [described[b][2] * 100_000 if b != OUTSIDE else size * 100_000 for b in (*inputs, OUTSIDE)]
        found = tuple(candidate(view, cores, *sizes) for view, cores in ways)
        sequence.append(Kernel((*inputs, number), found))
    return sequence


def all_ways(sequence: Sequence[Kernel], room: int) -> list[float]:
    """Times of all choices of divisions and of buffers in the scratchpads that are allowed."""
    buffers = sorted({b for k in sequence for b in k.operands if b != OUTSIDE})
    subsets = list(chain.from_iterable(combinations(buffers, n) for n in range(len(buffers) + 1)))
    times: list[float] = []
    for chosen in product(*(range(len(k.candidates)) for k in sequence)):
        for local in subsets:
            if allowed(sequence, chosen, set(local), room):
                times.append(sum(time(k.candidates[c], k, set(local)) for k, c in zip(sequence, chosen, strict=True)))
    return times


def allowed(sequence: Sequence[Kernel], chosen: Sequence[int], local: set[int], room: int) -> bool:
    used: dict[int, list[tuple[int, object, int]]] = {}
    for number, (kernel, choice) in enumerate(zip(sequence, chosen, strict=True)):
        found = kernel.candidates[choice]
        for buffer, view, size in zip(kernel.operands, found.views, found.sizes, strict=True):
            if buffer in local:
                used.setdefault(buffer, []).append((number, view, size))
    if any(len({view for _, view, _ in uses}) > 1 for uses in used.values()):
        return False
    spans = [(uses[0][0], uses[-1][0], uses[0][2]) for uses in used.values()]
    return all(sum(size for a, b, size in spans if a <= n <= b) <= room for n in range(len(sequence)))


def time(found: DividedKernel, kernel: Kernel, local: set[int]) -> float:
    operands = tuple(
        replace(o, local=buffer in local) for o, buffer in zip(found.work.operands, kernel.operands, strict=True)
    )
    return cost(replace(found.work, operands=operands)).total


def test_the_same_kernels_are_divided_once() -> None:
    prices, one = Prices(), candidate("rows", 32, MB, MB)
    first = divide_within([Kernel((OUTSIDE, 0), (one,))], inf, prices)
    assert first is not None and divide_within([Kernel((OUTSIDE, 0), (one,))], inf, prices) is first
    assert divide_within([Kernel((OUTSIDE, 0), (one,))], first.us / 2, prices) is None
    assert divide_within([Kernel((OUTSIDE, 0), (one,))], inf, Prices()) is not first
