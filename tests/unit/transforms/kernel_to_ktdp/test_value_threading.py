"""Buffers that are values between kernels: which can be, and which leave when the scratchpad is full."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.transforms.kernel_to_ktdp.function_groups import FunctionGroup
from spyre_mlir.transforms.kernel_to_ktdp.slices import SliceForm
from spyre_mlir.transforms.kernel_to_ktdp.value_threading import Threads, threads_of
from tests.unit.transforms.kernel_to_ktdp.kernels import matrix
from tests.unit.transforms.levels import passed

T, L = matrix(4, 128), matrix(4, 128, space="lx")
BYTES = 4 * 128 * 2
FORM = SliceForm(0, ((4 * 64, 2), (64, 4), (1, 64)))
FOUR, TWO = "m = 4, n = 128", "m = 2, n = 128"
NAMES = {"a": T, "b": T, "l": L, "k": L, "j": L}


def op(loops: str, *uses: str, function: str = "neg") -> str:
    said = [f"%{u} : {NAMES[u[0]]}" for u in uses]
    return f'spyre.kernel.compute "{function}" [{loops}] ins({", ".join(said[:-1])}) outs({said[-1]})\n'


def module(body: str) -> ModuleOp:
    constants = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 4))
    places = {"l": 0, "k": 8192, "j": 16384}
    allocs = "".join(f"%{n} = spyre.kernel.alloc at {at} : i64 : {L}\n" for n, at in places.items())
    allocs += "".join(f"%{n} = spyre.kernel.alloc : {T}\n" for n in "ab")
    return passed(f"func.func @main() {{\n{constants}{allocs}{body} func.return\n}}")


def threads(body: str, lx_bytes: int = SPYRE.lx_bytes) -> tuple[dict[str, SliceForm], list[int], list[str], Threads]:
    """Forms by name, bytes left per kernel, names that are refused, and the whole."""
    block = functions(module(body))[0].body.block
    items = [o for o in block.ops if isinstance(o, KernelOp | scf.ForOp)]
    found, refused = threads_of(FunctionGroup(1, items), replace(SPYRE, lx_bytes=lx_bytes, lx_usable_bytes=1))
    named = {str(v.name_hint): form for v, form in found.forms.items()}
    return named, list(found.free.values()), [str(v.name_hint) for v in refused], found


CHAIN = op(FOUR, "a[m, n]", "l[m, n]") + op(FOUR, "l[m, n]", "k[m, n]") + op(FOUR, "k[m, n]", "b[m, n]")


def test_a_chain_of_values() -> None:
    """A result is there as it was and as it will be, beside what lives: three times its bytes."""
    forms, free, refused, _ = threads(CHAIN)
    assert forms == {"l": FORM, "k": FORM} and refused == []
    assert [SPYRE.lx_bytes - f for f in free] == [3 * BYTES, 4 * BYTES, BYTES]


def test_a_value_lives_from_its_first_to_its_last_kernel() -> None:
    longer = CHAIN + op(FOUR, "l[m, n]", "b[m, n]")
    _, free, _, _ = threads(longer)
    assert [SPYRE.lx_bytes - f for f in free] == [3 * BYTES, 4 * BYTES, 2 * BYTES, BYTES]


def test_device_memory_takes_no_room() -> None:
    forms, free, refused, _ = threads(op(FOUR, "a[m, n]", "b[m, n]"))
    assert (forms, free, refused) == ({}, [SPYRE.lx_bytes], [])


def test_parts_make_the_whole_slice() -> None:
    """Two kernels write different rows: the value is all 512 elements in a row, and each of them copies its part."""
    body = op(TWO, "a[m, n]", "l[m, n]") + op(TWO, "a[m, n]", "l[m + 2, n]") + op(FOUR, "l[m, n]", "b[m, n]")
    forms, free, refused, _ = threads(body)
    assert forms == {"l": SliceForm(0, ((1, 512),))} and refused == []
    assert [SPYRE.lx_bytes - f for f in free] == [4 * BYTES, 4 * BYTES, 2 * BYTES]


def test_the_same_elements_written_twice_stay_in_their_form() -> None:
    forms, *_ = threads(op(FOUR, "a[m, n]", "l[m, n]") + op(FOUR, "b[m, n]", "l[m, n]"))
    assert forms == {"l": FORM}


def test_what_nobody_writes_is_no_value() -> None:
    forms, _, refused, _ = threads(op(FOUR, "l[m, n]", "b[m, n]"))
    assert (forms, refused) == ({}, ["l"])


@pytest.mark.parametrize(("lx_bytes", "wanted"), [(4681, []), (4680, ["l"])])
def test_what_has_no_room_goes_to_device_memory(lx_bytes: int, wanted: list[str]) -> None:
    """The second kernel takes four buffers, 4096 bytes; an eighth of the scratchpad, 585 of both, is left to tiles."""
    forms, _, refused, _ = threads(CHAIN, lx_bytes)
    assert refused == wanted and set(forms) == {"l", "k"} - set(wanted)


def test_the_largest_goes_first_until_there_is_room() -> None:
    forms, free, refused, _ = threads(CHAIN, BYTES)
    assert forms == {} and set(refused) == {"l", "k"} and free == [BYTES] * 3


def loop(body: str) -> str:
    return f"scf.for %i = %c0 to %c4 step %c1 {{\n{body}}}\n"


CARRIED = {
    "made and used in a trip": (op(FOUR, "a[m, n]", "l[m, n]") + op(FOUR, "l[m, n]", "b[m, n]"), "", "", []),
    "used behind the loop": (op(FOUR, "a[m, n]", "l[m, n]"), "", op(FOUR, "l[m, n]", "b[m, n]"), ["l"]),
    "read before it is written": (
        op(FOUR, "l[m, n]", "k[m, n]") + op(FOUR, "k[m, n]", "l[m, n]"),
        op(FOUR, "a[m, n]", "j[m, n]"),
        "",
        ["l"],
    ),
    "written before the loop": (op(FOUR, "l[m, n]", "l[m, n]"), op(FOUR, "a[m, n]", "l[m, n]"), "", ["l"]),
    "only read in the loop": (op(FOUR, "l[m, n]", "b[m, n]"), op(FOUR, "a[m, n]", "l[m, n]"), "", []),
}


@pytest.mark.parametrize("name", CARRIED)
def test_what_goes_from_trip_to_trip(name: str) -> None:
    body, before, behind, wanted = CARRIED[name]
    *_, found = threads(before + loop(body) + behind)
    (for_op,) = {o.parent_op() for o in found.free if isinstance(o.parent_op(), scf.ForOp)}
    assert isinstance(for_op, scf.ForOp)
    assert [str(v.name_hint) for v in found.carried(for_op)] == wanted
