"""Rules about the files that this project adds to the public files of a bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.check.bundle import Bundle
from spyre_mlir.backend.check.layout_rules import OURS, launch_layout, manifest_layout
from spyre_mlir.backend.split import launches
from spyre_mlir.backend.stored import DATA_FILE, MANIFEST_FILE, WEIGHTS_FILE, StoredBundle, read_bundle
from spyre_mlir.backend.tensors import tensor_names
from spyre_mlir.backend.whole_files.contained import contained
from spyre_mlir.backend.whole_files.digest import digest_of_file
from spyre_mlir.dialects.superdsc.check import Finding, Problem
from spyre_mlir.dialects.superdsc.check.rule import Rule, error
from spyre_mlir.errors import ReadError

LAYOUT_RULES: tuple[Rule[StoredBundle], ...] = (manifest_layout, launch_layout)


@error(OURS, "C")
def host_files(_bundle: Bundle) -> Iterator[Problem]:
    """The host program, the manifest and the files of tensors, where they are, can be read."""
    yield from ()  # reported by their readers


@error(OURS, "C")
def file_digests(_bundle: Bundle) -> Iterator[Problem]:
    """Every file is as it was written: the digest that the manifest keeps of it is its own."""
    yield from ()  # found beside the rule above


@error(OURS, "C")
def manifest_current(_bundle: Bundle) -> Iterator[Problem]:
    """The manifest, if there is one, lists the launches of `bundle.mlir`."""
    yield from ()  # found beside the rule above


def check_host(directory: Path, context: Context, parsed: Mapping[Path, ModuleOp] | None = None) -> Iterator[Finding]:
    """Return violations of the rules above in a bundle whose public files violate none.

    Args:
        directory: the bundle.
        context: knows the dialects of its files.
        parsed: modules of its files that were read and verified; they are used up.
    """
    try:
        stored = read_bundle(directory, context, parsed)
        for name in (DATA_FILE, WEIGHTS_FILE):
            held = tensor_names(directory / name) if (directory / name).exists() else []
            if name == WEIGHTS_FILE:
                yield from _weights(directory / name, {key for _, key in stored.manifest.weights.values()} - {*held})
        for rule in LAYOUT_RULES:
            found = [rule.finding(str(directory), problem) for problem in rule.find(stored)]
            yield from dict.fromkeys(found)
    except ReadError as unreadable:
        where, hint = unreadable.where or str(directory), unreadable.hint
        problem = Problem(where.removeprefix(f"{directory}/"), "files as they were written", unreadable.message, hint)
        yield host_files.finding(str(directory), problem)
        return
    yield from _damaged(directory, stored.manifest.digests)
    listed, launched = (
        [file for file, _ in stored.manifest.launches],
        [op.sdsc_filename.data for op in launches(stored.bundle)],
    )
    if (directory / MANIFEST_FILE).exists() and listed != launched:
        number = next((n for n, (a, b) in enumerate(zip(listed, launched, strict=False)) if a != b), len(listed))
        got = f"{len(listed)} launches, another one from number {number} on"
        problem = Problem("$.launches", f"the {len(launched)} launches of bundle.mlir", got, "write the bundle again")
        yield manifest_current.finding(str(directory / MANIFEST_FILE), problem)


def _damaged(directory: Path, digests: Mapping[str, str]) -> Iterator[Finding]:
    """Files that are no longer what was written."""
    for name, digest in digests.items():
        try:
            got = digest_of_file(contained(directory, name))
        except (ReadError, OSError) as unreadable:
            got = f"nothing: {unreadable.strerror if isinstance(unreadable, OSError) else unreadable.message}"
        if got != digest:
            hint = "copy or write the bundle again; if the file was changed on purpose, spyre-run --no-check runs it"
            yield file_digests.finding(str(directory / name), Problem("file", digest, got, hint))


def _weights(path: Path, missing: set[str]) -> Iterator[Finding]:
    if missing:
        problem = Problem("names", f"the tensors of {MANIFEST_FILE}", f"none for {sorted(missing)[:3]}")
        yield host_files.finding(str(path), problem)


HOST_RULES: tuple[Rule[Any], ...] = (host_files, file_digests, manifest_current)
