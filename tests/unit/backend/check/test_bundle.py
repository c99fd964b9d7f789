"""A bundle as its rules see it: places of addresses, launches at the corners of loops, and what is not known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.dialects.scf import ForOp

from spyre_mlir.backend.check.bundle import (
    Bundle,
    constants_of,
    ids_of,
    line,
    symbolic_operands,
    trips,
)
from spyre_mlir.backend.json_file import load_text
from spyre_mlir.dialects.sdscbundle import SdscExecuteOp
from spyre_mlir.dialects.superdsc.check.json_file import SdscJson
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.hw.spec import SPYRE
from tests.unit.backend.check.bundles import ARGUMENT, two_cores
from tests.unit.backend.programs import read


def bundle(body: str, name: str = "sdsc_bundle") -> Bundle:
    lines = "\n".join(f"  {one}" for one in body.splitlines())
    text = f"func.func @{name}(%a : {ARGUMENT}, %b : {ARGUMENT}) {{\n{lines}\n  func.return\n}}"
    return Bundle(Path("b"), read(text), {})


def launch(*values: str, file: str = "f.json") -> str:
    ids = ", ".join(str(-n - 1) for n in range(len(values)))
    return f'sdscbundle.sdsc_execute ({", ".join(values)}) {{sdsc_filename="{file}", symbol_ids=[{ids}]}}'


ADDRESSES = f"""\
%a0 = sdscbundle.input_arg_extract value from %a : {ARGUMENT} -> index
%b0 = sdscbundle.input_arg_extract value from %b : {ARGUMENT} -> index
%p = sdscbundle.device_mem_allocate 512 bytes : index
%c = arith.constant 128 : index
"""


def places(found: Bundle) -> list[list[tuple[str | None, int]]]:
    """For every launch the places of its addresses: the name of the argument or buffer, and the offset."""
    names: list[list[tuple[str | None, int]]] = []
    for one in found.launches():
        at = [found.place(address) for _, address in sorted(one.addresses.items(), reverse=True)]
        names.append([(None if owner is None else owner.name_hint, offset) for owner, offset in at])
    return names


def test_addresses_are_offsets_in_arguments_and_buffers() -> None:
    body = f"{ADDRESSES}%a1 = arith.addi %a0, %c : index\n%p1 = arith.addi %c, %p : index\n"
    found = bundle(body + launch("%a0", "%a1", "%b0", "%p1", "%c"))
    assert places(found) == [[("a", 0), ("a", 128), ("b", 0), ("p", 128), (None, 128)]]
    (only,) = found.launches()
    assert only.file == "f.json"
    assert sorted(only.addresses) == [-5, -4, -3, -2, -1]


def test_an_offset_may_be_negative() -> None:
    body = f"{ADDRESSES}%m = arith.constant -128 : index\n%a1 = arith.addi %a0, %m : index\n"
    assert places(bundle(body + launch("%a1", "%m"))) == [[("a", -128), (None, -128)]]


def test_every_range_is_larger_than_the_card() -> None:
    found = bundle("")
    assert found.stride == 112 * 2**30 * 16 * 2**30
    half = found.stride // 2
    list(found.launches())
    assert found.place(0) == (None, 0)
    assert found.place(half - 1) == (None, half - 1)
    assert found.place(-half) == (None, -half)
    assert replace(found, spec=replace(SPYRE, hbm_card_bytes=7)).stride == 7 * 16 * 1024**3


def test_what_is_not_an_address_is_left_out() -> None:
    sizes = "!sdscbundle.input_arg<index, granularity=64, max_value=512>"
    text = f"""func.func @sdsc_bundle(%a : {ARGUMENT}, %n : {sizes}) {{
  %a0 = sdscbundle.input_arg_extract value from %a : {ARGUMENT} -> index
  %g = sdscbundle.input_arg_extract granularity from %n : {sizes} -> index
  %s = arith.addi %a0, %g : index
  %c = arith.constant 4 : index
  %m = arith.muli %c, %c : index
  {launch("%a0", "%g", "%s", "%m", "%c")}
  func.return
}}"""
    (only,) = Bundle(Path("b"), read(text), {}).launches()
    assert sorted(only.addresses) == [-5, -1]
    assert only.addresses[-5] == 4


def test_ids_without_an_address_are_left_out() -> None:
    found = bundle(ADDRESSES + launch("%c").replace("[-1]", "[-1, -2]"))
    assert [dict(one.addresses) for one in found.launches()] == [{-1: 128}]


LOOP = "%z = arith.constant {0} : index\n%n = arith.constant {1} : index\n%d = arith.constant {2} : index\n"
APPLY = "%q = affine.apply affine_map<(d0)[s0] -> (s0 + d0 * 10)> (%i)[%a0]"


@pytest.mark.parametrize(
    ("low", "high", "step", "offsets", "runs"),
    [
        (0, 4, 1, [0, 30], 4),
        (1, 8, 3, [10, 70], 3),  # 1, 4, 7
        (1, 7, 3, [10, 40], 2),  # 1, 4
        (5, 6, 1, [50], 1),
        (0, 0, 1, [], 0),
        (4, 2, 1, [], 0),
    ],
)
def test_a_loop_is_walked_at_its_first_and_its_last_step(
    low: int, high: int, step: int, offsets: list[int], runs: int
) -> None:
    body = f"scf.for %i = %z to %n step %d {{\n{APPLY}\n{launch('%q')}\n}}"
    found = bundle(ADDRESSES + LOOP.format(low, high, step) + body)
    assert places(found) == [[("a", offset)] for offset in offsets]
    (loop,) = (op for op in found.module.walk() if isinstance(op, ForOp))
    assert trips(loop, constants_of(found.module)) == runs


@pytest.mark.parametrize(
    ("bounds", "corners"),
    [("%z to %m step %d", [0]), ("%z to %n step %m", [0]), ("%m to %n step %d", []), ("%z to %n step %z", [0])],
)
def test_of_a_loop_without_a_known_end_the_first_step_is_walked(bounds: str, corners: list[int]) -> None:
    unknown = "%m = arith.muli %c, %c : index\n"
    body = f"scf.for %i = {bounds} {{\n{APPLY}\n{launch('%q')}\n}}"
    found = bundle(ADDRESSES + unknown + LOOP.format(0, 4, 1) + body)
    assert places(found) == [[("a", offset)] for offset in corners]
    (loop,) = (op for op in found.module.walk() if isinstance(op, ForOp))
    assert trips(loop, constants_of(found.module)) is None


def test_loops_in_loops_are_walked_at_all_their_corners() -> None:
    apply = "%q = affine.apply affine_map<(d0, d1)[s0] -> (s0 + d0 * 10 + d1)> (%i, %j)[%a0]"
    inner = f"scf.for %j = %z to %n step %d {{\n{apply}\n{launch('%q')}\n}}"
    found = bundle(f"{ADDRESSES}{LOOP.format(0, 3, 1)}scf.for %i = %z to %n step %d {{\n{inner}\n}}")
    assert [offset for ((_, offset),) in places(found)] == [0, 2, 20, 22]


def test_parts_of_a_bundle() -> None:
    found = bundle(ADDRESSES + launch("%a0") + "\n" + launch("%b0", file="g.json"))
    function = found.function
    assert function is not None
    assert function.sym_name.data == "sdsc_bundle"
    assert [one.sdsc_filename.data for one in found.executes] == ["f.json", "g.json"]
    assert [pool.size.value.data for pool in found.pools] == [512]
    assert [value.name_hint for value in constants_of(found.module)] == ["c"]
    assert list(constants_of(found.module).values()) == [128]


def test_a_module_without_the_function_has_no_launches_unless_another_is_named() -> None:
    found = bundle(ADDRESSES + launch("%a0"), name="sdsc_bundle_0")
    assert found.function is None
    assert list(found.launches()) == []
    (other,) = found.module.ops
    assert len(list(found.launches(other))) == 1  # pyright: ignore[reportArgumentType]
    declared = Bundle(Path("b"), read("func.func private @sdsc_bundle() -> ()"), {})
    assert list(declared.launches()) == []


def test_a_place_is_a_line_and_a_column_or_the_name_of_the_op() -> None:
    (execute,) = bundle(launch()).executes
    assert line(execute) == "2:3"
    assert line(SdscExecuteOp("f.json")) == "sdscbundle.sdsc_execute"


def test_symbol_ids_of_a_file_and_names_of_its_operands() -> None:
    ((root, top),) = load_text(two_cores(0, -1), "f.json").items()  # pyright: ignore[reportAttributeAccessIssue]
    sdsc = SdscJson(root, Cursor(top, f"$.{root}"))
    assert ids_of(sdsc) == {-1, -2, -3, -4, -5, -6}
    assert [operand.number for operand in symbolic_operands(sdsc)] == [0, 1, 2]
    (only,) = bundle(launch()).launches()
    assert only.name(next(iter(sdsc.operands))) == "operand 0 of f.json"
    top["dscs_"][0]["add"]["scheduleTree_"][1]["isStartAddrSymbolic_"] = 0
    fresh = SdscJson(root, Cursor(top, f"$.{root}"))
    assert [operand.number for operand in symbolic_operands(fresh)] == [0, 2]
    assert ids_of(fresh) == {-1, -2, -5, -6}
