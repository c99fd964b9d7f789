"""What holds for every bundle the tests emit: an independent reader agrees with the machine about every address.

The session's fixture in conftest.py calls `check_bundle_once` on each directory as soon as it is written, and
`check_built_once` on each SuperDSC as soon as it is built. A run of the whole suite checks a share of them, always the
same one for the same bytes; a run of some files or suites checks all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spyre_mlir.backend.check import check_bundle as our_findings
from spyre_mlir.backend.read import read_json
from spyre_mlir.dialects.superdsc.check import check_value as our_rules
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.dialects.target import TARGET, spec_at
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.machine.superdsc.run import element_addresses_on
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.oracles.bundle_reader import Launch, argument_count, pool_bytes, read_bundle
from tests.oracles.superdsc_decoder import Decoder
from tests.schemas import DEVIATIONS, problems

SEGMENT_BYTES = 16 * 1024**3
NOWHERE = -1
SYMBOL = re.compile(r'"(-\d+)"')
ROOT_NUMBER = re.compile(r"^\d+_")
# One in so many values and bundles is checked.
SHARE = int(os.environ.get("SPYRE_TESTS_SHARE", "1"))
# Rules whose findings are let pass for a while, see `let_pass`.
LET_PASS: set[str] = set()


class Checked:
    """Keys of values that were found right: by this process, or by another worker of the run.

    Args:
        kind: of the values; a key counts for its kind alone.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.keys: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.keys or (KEPT is not None and (KEPT / f"{self.kind}-{key}").exists())

    def add(self, key: str) -> None:
        self.keys.add(key)
        if KEPT is not None:
            (KEPT / f"{self.kind}-{key}").touch()


# The folder of the run, which conftest.py makes; keys are names of empty files in it.
KEPT = Path(os.environ["SPYRE_TESTS_CHECKED"]) if "SPYRE_TESTS_CHECKED" in os.environ else None
CHECKED_VALUES, CHECKED_FILES, CHECKED_BUNDLES = Checked("value"), Checked("file"), Checked("bundle")


def is_chosen(key: str) -> bool:
    """Whether what has this key, a hexadecimal digest, is in the share that is checked."""
    return int(key[:8], 16) % SHARE == 0


@contextmanager
def let_pass(*rules: str) -> Iterator[None]:
    """For programs that compute more than they need: what is waste is not wrong."""
    LET_PASS.update(rules)
    try:
        yield
    finally:
        LET_PASS.difference_update(rules)


def launches_of(directory: Path) -> list[Launch]:
    """Every launch of a bundle, arguments and pools in segments of their own."""
    text = (directory / "bundle.mlir").read_text()
    arguments = argument_count(text)
    # One segment per argument and pool, as many as there are: nothing is ever read there.
    starts = [n * SEGMENT_BYTES for n in range(arguments + len(pool_bytes(text)))]
    return read_bundle(text, starts[:arguments], starts[arguments:])


def check_bundle(directory: Path) -> None:
    """Holds every file of a bundle against the schemas, our rules, the independent decoder, and the machine."""
    public = [directory] if (directory / "bundle.mlir").exists() else sorted(directory.glob("launch_*"))
    for folder in public:
        text = (folder / "bundle.mlir").read_text()
        check_public(folder, spec_at(parse_module(text, make_context())) if TARGET in text else SPYRE)
    findings = [one for one in our_findings(directory, make_context(), files=False) if one.rule not in LET_PASS]
    assert not findings, "\n".join(map(str, findings[:3]))


def check_bundle_once(directory: Path) -> None:
    """Does so for one of all directories of the same files: most programs are written again, under other names."""
    if is_chosen(key := content_key(directory)) and key not in CHECKED_BUNDLES:
        check_bundle(directory)
        CHECKED_BUNDLES.add(key)


def content_key(directory: Path) -> str:
    """What directories share whose files have the same names and bytes, unless other rules are let pass."""
    digest = hashlib.sha256(repr(sorted(LET_PASS)).encode())
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            held = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(directory)}\n{held}\n".encode())
    return digest.hexdigest()


def check_public(directory: Path, spec: SpyreSpec) -> None:
    """Holds the public files of one launch against what is said above."""
    launches = launches_of(directory)
    assert sorted({launch.filename for launch in launches}) == sorted(p.name for p in directory.glob("sdsc_*.json"))
    for launch in launches:
        path = directory / launch.filename
        value = json.loads(path.read_text())
        if (key := key_of(value, launch.symbols, spec)) not in CHECKED_FILES:
            check_file(path, value, dict(launch.symbols), spec)
            CHECKED_FILES.add(key)


def key_of(value: dict[str, Any], symbols: Mapping[int, int], spec: SpyreSpec = SPYRE) -> str:
    """What equal operations share: all but their number, those of their symbols, and those of their segments.

    Args:
        value: a SuperDSC.
        symbols: addresses by symbol.
        spec: the card it is for.
    """
    ((root, body),) = value.items()
    text = json.dumps({ROOT_NUMBER.sub("", root): body})
    used = {name: n for n, name in enumerate(dict.fromkeys(SYMBOL.findall(text)))}
    found = [divmod(symbols[int(name)], SEGMENT_BYTES) for name in used if int(name) in symbols]
    segments = {segment: n for n, segment in enumerate(dict.fromkeys(segment for segment, _ in found))}
    places = [(segments[segment], offset) for segment, offset in found]
    numbered = SYMBOL.sub(lambda name: f"symbol {used[name[1]]}", text)
    return hashlib.sha256(f"{numbered}{places}{spec}".encode()).hexdigest()


def check_built_once(op: SdscOp, descriptor: Descriptor, spec: SpyreSpec = SPYRE) -> None:
    """Holds one SuperDSC against the schemas and our rules, if it is in the share.

    The descriptor chooses, as the JSON of every op would take more time than the checks.
    """
    if SHARE == 1 or is_chosen(descriptor_key(descriptor)):
        check_value(op.root_key, sdsc_to_json(op), spec)


def descriptor_key(descriptor: Descriptor) -> str:
    """What descriptors share that differ in their number alone."""
    return hashlib.sha256(repr(replace(descriptor, index=0)).encode()).hexdigest()


def check_value(name: str, value: dict[str, Any], spec: SpyreSpec = SPYRE) -> None:
    """Holds one SuperDSC against the schemas and our rules, once."""
    if (key := key_of(value, {}, spec)) in CHECKED_VALUES:
        return
    for schema in DEVIATIONS:
        assert not (wrong := problems(schema, value)), (name, wrong[:3])
    findings = our_rules(value, name, spec)
    assert not findings, "\n".join(map(str, findings[:3]))
    CHECKED_VALUES.add(key)


def check_file(path: Path, value: dict[str, Any], symbols: dict[int, int], spec: SpyreSpec = SPYRE) -> None:
    """Holds one SuperDSC file against the schemas, the independent decoder, and the machine."""
    check_value(path.name, value, spec)
    decoder, view = Decoder(value, symbols), describe(read_json(path, spec=spec))
    assert not (wrong := decoder.problems()), (path.name, wrong)
    report = decoder.output_coverage()
    assert report.ok, (path.name, report)
    for operand in range(len(decoder.operands)):
        if decoder.operands[operand].indirection == "value_tensor":
            continue  # the addresses of a gathered table depend on data
        found = element_addresses_on(view, operand, decoder.cores, symbols)
        for core, (coords, addresses) in zip(decoder.cores, found, strict=True):
            assert_same(path.name, coords, addresses, *decoder.addresses(operand, core))


def assert_same(name: str, coords: Any, addresses: Any, expected_coords: Any, expected: Any) -> None:
    """Both readings name the same address for the same coordinates, and every coordinate once."""
    assert sorted(coords) == sorted(expected_coords), name
    box = {d: (int(c.min()), int(c.max()) + 1) for d, c in expected_coords.items()}
    ours, theirs = by_place(coords, addresses, box), by_place(expected_coords, expected, box)
    assert np.array_equal(ours, theirs), name
    assert addresses.size == expected.size == np.count_nonzero(ours != NOWHERE), name


def by_place(coords: Any, addresses: Any, box: dict[str, tuple[int, int]]) -> Any:
    """The addresses as an array over the box; no sorting, as there may be millions."""
    found = np.full([1, *(end - first for first, end in box.values())], NOWHERE)
    assert all(coords[d].min() >= first and coords[d].max() < end for d, (first, end) in box.items())
    found[np.zeros_like(addresses), *(coords[d] - first for d, (first, _) in box.items())] = addresses
    return found
