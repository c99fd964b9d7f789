"""Which writes to scratch memory spoil what a launch reads: `read-whole` beyond what a bundle by hand shows."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from spyre_mlir.backend.check import check_path
from spyre_mlir.backend.check.scratch_rules import _Range, _Read  # pyright: ignore[reportPrivateUsage]
from spyre_mlir.universe import make_context
from tests.unit.backend.check.bundles import BUNDLE, write

NOBODY = cast(Any, None)


def bytes_from(first: int, last: int) -> _Range:
    return _Range(None, first, last)


# What is read is bytes 100 to 199; the writes, the oldest first.
WRITES = {
    "the whole result": ([(100, 199)], False),
    "a part behind the result": ([(100, 199), (150, 299)], True),
    "a part before the result": ([(100, 199), (0, 149)], True),
    "some rows within it": ([(100, 199), (120, 139)], False),
    "an older one": ([(150, 299), (100, 199)], False),
    # A short result in a buffer that others had: the rest of what is read is padding, whatever lies there.
    "older ones behind a short result": ([(100, 299), (50, 149), (100, 119)], False),
    "a part of a short result": ([(100, 299), (100, 139), (50, 119)], True),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_spoils_a_result(name: str) -> None:
    writes, spoilt = WRITES[name]
    read = _Read(NOBODY, NOBODY, bytes_from(100, 199), [bytes_from(*w) for w in writes])
    assert read.spoilt() is spoilt


def found(directory: Path) -> list[tuple[str, str, str]]:
    """What the two rules find: the rule, what was expected, and what there is."""
    findings = check_path(directory, make_context())
    return [(f.rule, f.expected, f.got) for f in findings if f.rule in ("written-first", "read-whole")]


def test_a_read_of_scratch_memory_nobody_wrote(tmp_path: Path) -> None:
    """The first launch writes the result instead; arguments need no write before them."""
    text = BUNDLE.replace("%b0, %b1, %pool, %p1)", "%b0, %b1, %c0, %c1)")
    assert text != BUNDLE
    ((rule, expected, got),) = found(write(tmp_path, text))
    assert (rule, got) == ("written-first", "none")
    assert expected.startswith("an earlier write to")


def test_an_address_that_a_launch_leaves_out_is_another_rules_matter(tmp_path: Path) -> None:
    """The first launch does not say where the second core writes; the first core's write is one before the read."""
    text = BUNDLE.replace(", %pool, %p1) {", ", %pool) {").replace("-4, -5, -6]", "-4, -5]")
    assert text != BUNDLE
    assert "symbols-bound" in {finding.rule for finding in check_path(write(tmp_path, text), make_context())}
    assert found(tmp_path) == []


def test_two_ranges_of_one_buffer_and_of_two() -> None:
    low, high = bytes_from(0, 9), bytes_from(9, 20)
    assert low.meets(high) and high.meets(low) and not low.meets(bytes_from(10, 20))
    assert not _Range(NOBODY, 0, 9).meets(_Range(cast(Any, object()), 0, 9))
    assert low.without(bytes_from(10, 20)) == [low]
    assert low.without(bytes_from(3, 5)) == [bytes_from(0, 2), bytes_from(6, 9)]
    assert low.without(bytes_from(0, 8)) == [bytes_from(9, 9)]
    assert low.without(high) == [bytes_from(0, 8)]


def test_writes_that_are_seen_are_the_newest_first() -> None:
    old, newer, hidden = bytes_from(150, 299), bytes_from(100, 120), bytes_from(105, 110)
    read = _Read(NOBODY, NOBODY, bytes_from(100, 199), [hidden, old, newer, bytes_from(200, 300)])
    assert read.visible() == [newer, old]


def in_scratchpad(directory: Path, file: str, numbers: tuple[int, ...], starts: dict[int, int]) -> None:
    """Move operands of a file to the scratchpads of both cores, each at the same bytes."""
    path = directory / file
    value = json.loads(path.read_text())
    ((_, top),) = value.items()
    ((_, dsc),) = top["dscs_"][0].items()
    for number in numbers:
        node = dsc["scheduleTree_"][number]
        node["component_"], node["isStartAddrSymbolic_"] = "lx", 0
        node["startAddressCoreCorelet_"]["data_"] = {f"[{core}, 0, 0]": str(starts[number]) for core in (0, 1)}
    path.write_text(json.dumps(value))


@pytest.mark.parametrize(("start", "rules"), [(0, []), (4096, []), (16384, ["written-first"])])
def test_a_scratchpad_is_written_before_it_is_read(start: int, rules: list[str], tmp_path: Path) -> None:
    """64 rows of 256 halves are 32,768 bytes of each core: a read from their middle on sees some of them."""
    text = BUNDLE.replace("%b1, %pool, %p1)", "%b1)").replace("(%pool, %p1, ", "(")
    text = text.replace("-4, -5, -6]", "-4]").replace("[-7, -8, -9", "[-9")
    directory = write(tmp_path, text)
    in_scratchpad(directory, "sdsc_0.json", (2,), {2: 0})
    in_scratchpad(directory, "sdsc_1.json", (0,), {0: 2 * start})
    assert [rule for rule, _, _ in found(directory)] == rules
