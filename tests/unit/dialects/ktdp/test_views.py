"""Memory views of KTIR: text, sizes that are values, sets left out, and parts that are one tensor."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, f16, f32
from xdsl.dialects.test import TestOp
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ktdp.affine import box_set, set_text
from spyre_mlir.dialects.ktdp.attributes import GLOBAL, LOCAL, memory_space
from spyre_mlir.dialects.ktdp.views import (
    ConstructDistributedMemoryViewOp,
    ConstructMemoryViewOp,
    require_space,
    view_type,
)
from tests.unit.dialects.texts import function, lines_of, only, read

GLOBAL_TEXT = "#ktdp.memory_space<global>"
ARGUMENTS = "%x: index, %n: index, %s: index"


def made_view(
    sizes: str, strides: str, domain: str, type_: str, space: str = GLOBAL_TEXT, name: str = "v", more: str = ""
) -> str:
    own = f"coordinate_set = affine_set<{domain}>, " if domain else ""
    return (
        f"%{name} = ktdp.construct_memory_view %x, sizes: [{sizes}], strides: [{strides}] "
        f"{{{own}memory_space = {space}{more}}} : memref<{type_}>"
    )


EIGHT = "(d0) : (d0 >= 0, -d0 + 7 >= 0)"
MASKED = "(d0, d1)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + 7 >= 0)"


@pytest.mark.parametrize(
    "line",
    [
        made_view("8", "1", EIGHT, "8xf16", more=", note"),
        made_view(
            "8",
            "%s",
            EIGHT,
            "8xf16, #ktdp.memory_space<ct_local, ct_id = 31>",
            "#ktdp.memory_space<ct_local, ct_id = 31>",
        ),
        made_view("%n, 8", "8, 1", MASKED, "?x8xf16"),
        made_view("%n, 8", "8, 1", MASKED, "4x8xf16"),  # the number that %n will be
        made_view("%n", "1", EIGHT, "?xf16"),
    ],
)
def test_text_of_views(line: str) -> None:
    assert line in lines_of(read(function(ARGUMENTS, line)))


def test_sizes_and_strides_are_numbers_and_values() -> None:
    module = read(function(ARGUMENTS, made_view("%n, 8", "%s, 1", MASKED, "?x8xf16")))
    view = only(module, ConstructMemoryViewOp)
    block = view.parent_block()
    assert block is not None
    assert view.mixed_sizes == [block.args[1], 8]
    assert view.mixed_strides == [block.args[2], 1]


@pytest.mark.parametrize(
    ("sizes", "type_", "domain"),
    [
        ("8", "8xf16", EIGHT),
        ("%n, 8", "?x8xf16", MASKED),
        (
            "%n, 1, %s",
            "?x1x?xf16",
            "(d0, d1, d2)[s0, s1] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 >= 0, d2 >= 0, -d2 + s1 - 1 >= 0)",
        ),
    ],
)
def test_a_set_that_is_left_out_holds_all_coordinates(sizes: str, type_: str, domain: str) -> None:
    module = read(function(ARGUMENTS, made_view(sizes, sizes, "", type_)))
    assert set_text(only(module, ConstructMemoryViewOp).coordinate_set.data) == f"affine_set<{domain}>"


def test_a_view_is_made_without_text() -> None:
    start, size = TestOp(result_types=[IndexType()] * 2).results
    view = ConstructMemoryViewOp(start, [size, 8], [8, size], box_set([4, 8]), memory_space(LOCAL, 3), f16)
    view.verify()
    assert view.result.type == MemRefType(f16, [DYNAMIC_INDEX, 8])
    assert (view.mixed_sizes, view.mixed_strides) == ([size, 8], [8, size])
    assert (view.coordinate_set, view.memory_space) == (box_set([4, 8]), memory_space(LOCAL, 3))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (made_view("8, 1", "1", EIGHT, "8xf16"), "have one rank, got 2, 1, 1 and 1"),
        (made_view("8", "1, 1", EIGHT, "8xf16"), "have one rank, got 1, 2, 1 and 1"),
        (made_view("8", "1", MASKED, "8xf16"), "have one rank, got 1, 1, 2 and 1"),
        (
            made_view("8", "1", EIGHT, "8x1xf16"),
            "sizes, strides, coordinate set and result have one rank, got 1, 1, 1 and 2",
        ),
        (made_view("8", "1", EIGHT, "9xf16"), "size 0 is 8, the result's extent is 9"),
        (made_view("8", "1", EIGHT, "?xf16"), "size 0 is 8, the result's extent is -"),
        (made_view("8, 0", "1, 1", MASKED, "8x0xf16"), "size 1 is 0, the result's extent is 0"),
        (
            made_view("8, 8", "8, 1", MASKED, "8x8xf16"),
            "the coordinate set has 1 symbols for 0 sizes that are values",
        ),
        (made_view("9", "1", EIGHT, "9xf16"), "coordinate_set has 8 coordinates along d0, the size is 9"),
        (
            made_view("8", "1", "(d0) : (d0 >= 0)", "8xf16"),
            "coordinate_set: d0 has no lower and upper bound of its own",
        ),
        (
            made_view("8", "1", EIGHT, "8xf16", "#ktdp.memory_space<ct_local, ct_id = 32>"),
            "ct_id = 32, the card has 32 cores",
        ),
        (
            made_view("8", "1", EIGHT, "8xf16", "#ktdp.spyre_memory_space<LX, core = 40>"),
            "core = 40, the card has 32 cores",
        ),
        (
            made_view("8", "1", EIGHT, "8xf16, #ktdp.memory_space<ct_local>"),
            "the type says #ktdp.memory_space<ct_local>, the view says #ktdp.memory_space<global>",
        ),
        (
            made_view("8", str(2**63), EIGHT, "8xf16"),
            f"strides have 1 numbers {DYNAMIC_INDEX}, which stand for values, and 0",
        ),
        (
            made_view(str(2**63), "1", "", "8xf16"),
            f"sizes have 1 numbers {DYNAMIC_INDEX}, which stand for values, and 0",
        ),
    ],
)
def test_views_that_contradict_themselves(line: str, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        read(function(ARGUMENTS, line))


def test_a_view_is_a_memref() -> None:
    view, number = TestOp(result_types=[MemRefType(f16, [8]), f32]).results
    assert view_type(view) == MemRefType(f16, [8])
    with pytest.raises(VerifyException, match="a view is a memref, got f32"):
        view_type(number)


def test_a_memref_may_name_the_space_of_its_view() -> None:
    here = MemRefType(f16, [8], memory_space=memory_space(GLOBAL))
    require_space(MemRefType(f16, [8]), memory_space(LOCAL))
    require_space(here, memory_space(GLOBAL))
    with pytest.raises(VerifyException, match=r"the type says #ktdp\.memory_space<global>, the view says None"):
        require_space(here, None)


# --- parts --------------------------------------------------------------------------------------------------------


def together(*types: str, whole: str = "24xf16") -> str:
    names = ", ".join(f"%p{number}" for number in range(len(types)))
    kinds = ", ".join(f"memref<{type_}>" for type_ in types)
    return f"%d = ktdp.construct_distributed_memory_view ({names} : {kinds}) {{note}} : memref<{whole}>"


def part(number: int, domain: str, size: str = "8", type_: str = "8xf16") -> str:
    return made_view(size, "1", domain, type_, name=f"p{number}")


SECOND, THIRD = "(d0) : (d0 - 8 >= 0, -d0 + 15 >= 0)", "(d0) : (d0 - 7 >= 0, -d0 + 14 >= 0)"


def test_text_of_parts() -> None:
    line = together("8xf16", "8xf16", whole="16xf16")
    assert line in lines_of(read(function(ARGUMENTS, part(0, EIGHT), part(1, SECOND), line)))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((EIGHT, SECOND, THIRD), "parts 0 and 2 hold the same coordinates; parts must be disjoint"),
        ((SECOND, EIGHT, EIGHT), "parts 1 and 2 hold"),
    ],
)
def test_parts_are_disjoint(parts: tuple[str, ...], said: str) -> None:
    lines = [part(number, domain) for number, domain in enumerate(parts)]
    with pytest.raises(VerifyException, match=said):
        read(function(ARGUMENTS, *lines, together("8xf16", "8xf16", "8xf16")))


@pytest.mark.parametrize("ruled", [0, 1])
def test_parts_with_further_rules_may_share_a_box(ruled: int) -> None:
    lines = [part(n, EIGHT.replace(")>", ")>")[:-1] + (", d0 mod 2 == 0)" if n == ruled else ")")) for n in range(2)]
    read(function(ARGUMENTS, *lines, together("8xf16", "8xf16")))


def test_parts_whose_coordinates_are_not_known_are_not_compared() -> None:
    masked = part(1, "(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)", "%n", "?xf16")
    lines = [part(0, EIGHT), masked, together("8xf16", "?xf16", "8xf16")]
    read(function(f"{ARGUMENTS}, %p2: memref<8xf16>", *lines))


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("8xf32", "part 1 has elements of f32, the result of f16"),
        ("8x1xf16", "part 1 has rank 2, the result rank 1"),
    ],
)
def test_parts_are_of_one_kind(second: str, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        read(function(f"%p0: memref<8xf16>, %p1: memref<{second}>", together("8xf16", second)))


def test_parts_are_put_together_without_text() -> None:
    parts = TestOp(result_types=[MemRefType(f16, [8])] * 2).results
    whole = ConstructDistributedMemoryViewOp(parts, MemRefType(f16, [16]))
    whole.verify()
    assert list(whole.memrefs) == list(parts)
    with pytest.raises(VerifyException, match="a distributed view has at least one part"):
        ConstructDistributedMemoryViewOp([], MemRefType(f16, [16])).verify()
