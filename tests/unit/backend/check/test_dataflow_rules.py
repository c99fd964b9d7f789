"""Arguments that nothing uses and results that nobody reads, in the bundle by hand with one change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spyre_mlir.backend.check.bundle import Bundle
from spyre_mlir.backend.check.dataflow_rules import DATAFLOW_RULES, argument_used, result_read
from spyre_mlir.dialects.superdsc.check import Severity
from spyre_mlir.dialects.superdsc.check.json_file import SdscJson
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from tests.unit.backend.check.bundles import BUNDLE, two_cores
from tests.unit.backend.programs import read

FIRST, SECOND = (one.strip() for one in BUNDLE.splitlines()[11:13])
FUNCTION = "2:3"  # where the function stands
BOTH = {"sdsc_0.json": (0, -1), "sdsc_1.json": (1, -7)}


def files(*scratchpad: tuple[str, int, int], **changed: Any) -> dict[str, SdscJson]:
    """Both files; of some operands, by file and number, the place in the scratchpads instead."""
    found: dict[str, SdscJson] = {}
    for name, (index, first_id) in BOTH.items():
        value = json.loads(two_cores(index, first_id))
        ((root, top),) = value.items()
        (dsc,) = top["dscs_"][0].values()
        for file, number, address in scratchpad:
            if file == name:
                node = dsc["scheduleTree_"][number]
                starts = node["startAddressCoreCorelet_"]["data_"]
                node.update(component_="lx", isStartAddrSymbolic_=0)
                node["startAddressCoreCorelet_"]["data_"] = dict.fromkeys(starts, str(address))
        for key, change in changed.items():
            if name.startswith(key):
                change(dsc)
        found[name] = SdscJson(root, Cursor(value, "$").at(root))
    return found


def unread(text: str = BUNDLE, of: dict[str, SdscJson] | None = None) -> list[tuple[str, str, str]]:
    bundle = Bundle(Path("b"), read(text), files() if of is None else of)
    return [(one.path, one.expected, one.got) for one in result_read.find(bundle)]


def unused(text: str) -> list[tuple[str, str, str]]:
    return [(one.path, one.expected, one.got) for one in argument_used.find(Bundle(Path("b"), read(text), {}))]


def nobody(number: int, line: int = 12) -> tuple[str, str, str]:
    return (f"{line}:5", f"a launch that reads the result of sdsc_{number}.json", "none")


def test_the_rules() -> None:
    assert (argument_used, result_read) == DATAFLOW_RULES
    assert [(rule.name, rule.severity, rule.certainty) for rule in DATAFLOW_RULES] == [
        ("argument-used", Severity.WARNING, "I"),
        ("result-read", Severity.WARNING, "I"),
    ]
    assert argument_used.source == "a bundle has the arguments that its model needs"
    assert result_read.source == "unused values are not computed"


def test_every_argument_is_used() -> None:
    assert unused(BUNDLE) == []
    only_a = BUNDLE.replace(FIRST, "").replace(SECOND, SECOND.replace("%b0, %b1, %c0, %c1", "%a0, %a1, %a1, %a0"))
    missing = [(FUNCTION, f"a launch that uses argument {number}", "none") for number in (1, 2)]
    assert unused(only_a.replace("%pool, %p1", "%a0, %a1")) == missing


def test_a_module_without_a_function_or_its_body_has_no_arguments() -> None:
    assert unused(BUNDLE.replace("@sdsc_bundle", "@other")) == []
    assert unused("func.func private @sdsc_bundle(index) -> ()") == []


def test_a_result_that_is_read() -> None:
    assert unread() == []
    # What goes to an argument is for the host.
    assert unread(BUNDLE.replace(FIRST, FIRST.replace("%pool, %p1", "%c0, %c1"))) == []


def test_a_result_that_nobody_reads() -> None:
    assert unread(BUNDLE.replace(SECOND, SECOND.replace("(%pool, %p1", "(%a0, %a1"))) == [nobody(0)]
    assert unread(BUNDLE.replace(SECOND, "")) == [nobody(0)]
    # Written twice, read once.
    assert unread(BUNDLE.replace(FIRST, f"{FIRST}\n    {FIRST}")) == [nobody(0)]


def test_a_result_that_is_read_in_part() -> None:
    """The second launch reads the first core's half twice, then only the second's."""
    for half in ("%pool, %pool", "%p1, %p1"):
        assert unread(BUNDLE.replace(SECOND, SECOND.replace("(%pool, %p1", f"({half}"))) == []


def test_reads_between_the_sticks_of_a_result_are_none_of_it() -> None:
    """Half of the rows are written, the other half is read; the sticks of both alternate."""
    halves = BUNDLE.replace(FIRST, FIRST.replace("%pool, %p1", "%pool, %pool"))
    assert unread(halves.replace("(%pool, %p1, %b0", "(%p1, %p1, %b0")) == [nobody(0)]
    assert unread(halves.replace("(%pool, %p1, %b0", "(%p1, %pool, %b0")) == []


def test_addresses_that_are_not_known_are_passed_over() -> None:
    unknown = f"%m = arith.muli %step, %step : index\n    {SECOND.replace('(%pool, %p1', '(%m, %m')}"
    assert unread(BUNDLE.replace(SECOND, unknown)) == [nobody(0)]
    assert unread(BUNDLE.replace(SECOND, unknown.replace("(%m, %m", "(%m, %p1"))) == []


def test_a_result_that_is_read_as_the_second_operand() -> None:
    swapped = SECOND.replace("(%pool, %p1, %b0, %b1", "(%b0, %b1, %pool, %p1")
    assert unread(BUNDLE.replace(SECOND, swapped)) == []


def test_results_in_two_buffers_are_told_apart() -> None:
    """A second buffer of the same size is read instead."""
    other = (
        "%other = sdscbundle.device_mem_allocate 65536 bytes : index\n    %o1 = arith.addi %other, %step : index\n    "
    )
    text = BUNDLE.replace(FIRST, other + FIRST).replace("(%pool, %p1, %b0", "(%other, %o1, %b0")
    assert unread(text) == [nobody(0, 14)]


def test_results_a_buffer_apart() -> None:
    """Of two results in one buffer, the second is read."""
    more = "%q = arith.constant 65536 : index %o0 = arith.addi %pool, %q : index %o1 = arith.addi %p1, %q : index\n    "
    text = BUNDLE.replace("65536 bytes", "131072 bytes")
    text = text.replace(FIRST, f"{more}{FIRST}\n    {FIRST.replace('%pool, %p1', '%o0, %o1')}")
    assert unread(text.replace("(%pool, %p1, %b0", "(%o0, %o1, %b0")) == [nobody(0, 13)]


@pytest.mark.parametrize(("address", "read_from", "found"), [(0, 0, []), (0, 65536, [nobody(0)]), (4096, 4096, [])])
def test_results_in_the_scratchpads(address: int, read_from: int, found: list[Any]) -> None:
    """64 rows of 256 elements take 32 KiB of each scratchpad."""
    assert unread(of=files(("sdsc_0.json", 2, address), ("sdsc_1.json", 0, read_from))) == found


@pytest.mark.parametrize(("address", "said"), [(2**21 - 2**15, True), (2**21 - 2**15 + 128, False), (-128, False)])
def test_what_leaves_its_memory_is_the_matter_of_another_rule(address: int, said: bool) -> None:
    assert unread(of=files(("sdsc_0.json", 2, address))) == ([nobody(0)] if said else [])


def looped(*launches: str, end: str = "%step", by: str = "%step") -> str:
    """The bundle with launches in a loop in place of its second one, on the line of that one."""
    return BUNDLE.replace(
        SECOND,
        "%z = arith.constant 0 : index %one = arith.constant 1 : index "
        f"scf.for %i = %z to {end} step {by} {{ {' '.join(launches)} }}",
    )


def test_results_that_a_loop_reads_and_does_not() -> None:
    assert unread(looped(SECOND)) == []
    assert unread(looped(SECOND.replace("(%pool, %p1", "(%a0, %a1"))) == [nobody(0)]
    # Nothing runs.
    assert unread(looped(SECOND, end="%z")) == [nobody(0)]


@pytest.mark.parametrize(("back", "found"), [("65536", 0), ("131072", 0), ("262144", 1)])
def test_a_result_of_a_trip_is_read_in_a_later_one(back: str, found: int) -> None:
    """Trips write 65,536 bytes of the buffer each, and read as far back; four trips fill it."""
    end = "%end = arith.constant 262144 : index %size = arith.constant 65536 : index "
    places = (
        f"%back = arith.constant {back} : index %q = arith.addi %pool, %i : index %q1 = arith.addi %p1, %i : index "
    )
    places += f"%r = affine.apply affine_map<(d0) -> (d0 - {back})>(%q) "
    places += f"%r1 = affine.apply affine_map<(d0) -> (d0 - {back})>(%q1) "
    reading = SECOND.replace("(%pool, %p1", "(%r, %r1")
    writing = FIRST.replace("%pool, %p1", "%q, %q1")
    text = looped(places + reading, writing, end="%end", by="%size").replace("%z =", f"{end}%z =")
    text = text.replace("65536 bytes", "262144 bytes").replace(f"    {FIRST}\n", "")
    assert [said for _, said, _ in unread(text)] == ["a launch that reads the result of sdsc_0.json"] * found


@pytest.mark.parametrize(("end", "by"), [("%step", "%one"), ("%a0", "%step")])
def test_loops_of_many_trips_or_without_a_known_end_are_not_judged(end: str, by: str) -> None:
    assert unread(looped(SECOND.replace("(%pool, %p1", "(%a0, %a1"), end=end, by=by)) == []


def test_files_that_could_not_be_read_are_passed_over() -> None:
    of = files()
    assert unread(of={"sdsc_0.json": of["sdsc_0.json"]}) == [nobody(0)]
    assert unread(of={"sdsc_1.json": of["sdsc_1.json"]}) == []


def windowed(dsc: Any) -> None:
    """The result, or what is read, is spread over the cores in a way of its own."""
    for number in (0, 2):
        dsc["scheduleTree_"][number]["coordinates_"]["coreIdToWkSlice_"] = {"0": {"mb": 0, "out": 0}}


def test_a_result_that_lies_in_a_way_of_its_own_is_not_judged() -> None:
    nothing = BUNDLE.replace(SECOND, "")
    assert unread(nothing, files(sdsc_0=windowed)) == []


@pytest.mark.parametrize(
    ("reads", "stick", "found"),
    [
        ("%pool, %pool", 0, []),
        ("%pool, %pool", 447, []),
        ("%pool, %pool", 448, [nobody(0, 13)]),
        ("%pool, %t", 448, []),
        ("%pool, %t", 449, [nobody(0, 13)]),
        ("%t, %t", 0, []),
    ],
)
def test_an_operand_that_lies_in_a_way_of_its_own_reads_all_between_its_ends(
    reads: str, stick: int, found: list[Any]
) -> None:
    """From its first byte to its last, 64 rows of the fourth column, an operand has 448 sticks; %t is one stick on."""
    more = f"%q = arith.constant {128 * stick} : index %w = arith.addi %pool, %q : index"
    more += " %one = arith.constant 128 : index %t = arith.addi %pool, %one : index\n    "
    text = BUNDLE.replace("65536 bytes", "262144 bytes").replace(FIRST, more + FIRST.replace("%pool, %p1", "%w, %w"))
    assert unread(text.replace("(%pool, %p1, %b0", f"({reads}, %b0"), files(sdsc_1=windowed)) == found
