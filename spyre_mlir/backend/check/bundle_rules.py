"""Rules about a bundle as a whole: consistency of `bundle.mlir` with the files beside it."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp

from spyre_mlir.backend.check.bundle import (
    Bundle,
    CheckedLaunch,
    constants_of,
    ids_of,
    line,
    symbolic_operands,
    trips,
)
from spyre_mlir.backend.check.dataflow_rules import DATAFLOW_RULES
from spyre_mlir.backend.check.scratch_rules import read_whole, written_first
from spyre_mlir.backend.whole_files.contained import is_file_of
from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION, DeviceMemAllocateOp
from spyre_mlir.dialects.superdsc.check.addresses import misplaced, overlaps
from spyre_mlir.dialects.superdsc.check.gathers import DIVISION, astray
from spyre_mlir.dialects.superdsc.check.json_file import OperandJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, Rule, error, warning
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.hw.spec import STICK_BYTES

_SPECIFICATION = "SuperDSC bundle interface specification"
_OPS = frozenset(
    {
        "sdscbundle.sdsc_execute",
        "sdscbundle.input_arg_extract",
        "sdscbundle.device_mem_allocate",
        "arith.constant",
        "arith.addi",
        "affine.apply",
        "scf.for",
        "scf.yield",
        "func.return",
        "func.func",
    }
)


@error(_SPECIFICATION, "C")
def bundle_function(bundle: Bundle) -> Iterator[Problem]:
    """The module holds one function, `@sdsc_bundle`, which has a body and no results."""
    functions = [op for op in bundle.module.ops if isinstance(op, FuncOp)]
    if len(functions) != 1 or bundle.function is None:
        names = [op.sym_name.data for op in functions]
        yield Problem("module", f"one function, @{BUNDLE_FUNCTION}", f"{names}")
    elif bundle.function.function_type.outputs.data or not bundle.function.body.blocks:
        yield Problem(line(bundle.function), "a body and no results", f"@{BUNDLE_FUNCTION} otherwise")


@error(_SPECIFICATION, "C")
def bundle_op(bundle: Bundle) -> Iterator[Problem]:
    """Every op is one of the listed subset, and a loop carries no values."""
    for op in bundle.module.walk():
        if op is not bundle.module and op.name not in _OPS:
            yield Problem(line(op), f"one of {', '.join(sorted(_OPS))}", op.name)
        elif isinstance(op, ForOp) and op.iter_args:
            yield Problem(line(op), "a loop without iter_args", f"{len(op.iter_args)} of them")


@error("the back end's check, known by its message", "C")
def file_exists(bundle: Bundle) -> Iterator[Problem]:
    """Every file that is run lies in the bundle's directory."""
    for op in bundle.executes:
        if not is_file_of(bundle.directory, op.sdsc_filename.data):
            yield Problem(line(op), "a file of the bundle", op.sdsc_filename.data, "write the bundle again")


@warning(_SPECIFICATION, "I")
def file_unused(bundle: Bundle) -> Iterator[Problem]:
    """Every SuperDSC file of the directory is run."""
    used = {op.sdsc_filename.data for op in bundle.executes}
    for path in sorted(bundle.directory.glob("sdsc_*.json")):
        if path.name not in used:
            yield Problem("module", f"a launch of {path.name}", "none", "remove the file, or write the bundle again")


@error("the back end's check, known by its message", "C")
def launch_operands(bundle: Bundle) -> Iterator[Problem]:
    """A launch has one operand per symbol id; ids are negative and differ."""
    for op in bundle.executes:
        if len(op.ids) != len(op.addresses):
            yield Problem(line(op), f"{len(op.ids)} operands, one per symbol id", f"{len(op.addresses)}")
        if len(set(op.ids)) != len(op.ids) or any(number >= 0 for number in op.ids):
            yield Problem(line(op), "negative symbol ids that differ", f"{list(op.ids)[:8]}")


@error(_SPECIFICATION, "C")
def symbols_bound(bundle: Bundle) -> Iterator[Problem]:
    """A launch binds the symbol ids that its file uses, and no others."""
    for op in bundle.executes:
        sdsc = bundle.files.get(op.sdsc_filename.data)
        if sdsc is None:
            continue
        wanted, given = ids_of(sdsc), set(op.ids)
        sized = any(keys.SYMBOL_MAPPING in dsc.at for dsc in sdsc.dscs)
        if wanted - given:
            yield Problem(line(op), f"an address for {sorted(wanted - given, reverse=True)[:8]}", "none")
        if given - wanted and not sized:
            yield Problem(line(op), f"ids that {op.sdsc_filename.data} uses", f"{sorted(given - wanted)[:8]}")


@error(_SPECIFICATION + ", April text", "C")
def symbols_unique(bundle: Bundle) -> Iterator[Problem]:
    """A symbol id belongs to one file of the bundle."""
    owners: dict[int, str] = {}
    for op in bundle.executes:
        name = op.sdsc_filename.data
        taken = [number for number in op.ids if owners.setdefault(number, name) != name]
        if taken:
            yield Problem(line(op), "ids that no other file has", f"{taken[:8]}, which {owners[taken[0]]} has")


@error("the back end's limit, torch-spyre issue 3162", "L")
def trip_count(bundle: Bundle) -> Iterator[Problem]:
    """A loop runs at least once and at most 65,535 times, in positive steps."""
    constants = constants_of(bundle.module)
    for op in bundle.module.walk():
        if isinstance(op, ForOp):
            count, step = trips(op, constants), constants.get(op.step)
            if step is not None and step < 1:
                yield Problem(line(op), "a positive step", f"{step}")
            elif count is not None and not 1 <= count <= bundle.spec.loop_trips:
                yield Problem(line(op), f"1 to {bundle.spec.loop_trips} steps", f"{count}", "nest two loops")


@error(_SPECIFICATION, "L")
def pool_size(bundle: Bundle) -> Iterator[Problem]:
    """Scratch memory is asked for in the function's first block, in positive sizes that fit together."""
    total = 0
    for op in bundle.pools:
        size = op.size.value.data
        total += size
        if size < 1:
            yield Problem(line(op), "a positive number of bytes", f"{size}")
        if not isinstance(op.parent_op(), FuncOp):
            yield Problem(line(op), "a place in the function's first block", "a loop")
    if total > bundle.spec.pool_bytes:
        yield Problem("module", f"at most {bundle.spec.pool_bytes} bytes of scratch memory", f"{total}")


def _operands(bundle: Bundle) -> Iterator[tuple[CheckedLaunch, OperandJson, list[int]]]:
    """Every operand with symbolic addresses of every launch, and the address of each core."""
    for launch in bundle.launches():
        sdsc = bundle.files.get(launch.file)
        for operand in symbolic_operands(sdsc) if sdsc is not None else ():
            numbers = [launch.addresses.get(place.number()) for place in operand.starts]
            known = [number for number in numbers if number is not None]
            if len(known) == len(numbers):
                yield launch, operand, known


@error("SpyreCode specification", "C")
def launch_aligned(bundle: Bundle) -> Iterator[Problem]:
    """Every address lies whole sticks from where its argument or buffer starts."""
    for launch, operand, addresses in _operands(bundle):
        offsets = [bundle.place(address)[1] for address in addresses]
        odd = [offset for offset in offsets if offset % STICK_BYTES]
        if odd:
            yield Problem(
                line(launch.op),
                f"multiples of {STICK_BYTES} bytes for {launch.name(operand)}",
                f"{odd[0]}",
            )


@error(_SPECIFICATION, "C")
def launch_base(bundle: Bundle) -> Iterator[Problem]:
    """All cores' addresses of an operand point into one argument or buffer, not before it."""
    for launch, operand, addresses in _operands(bundle):
        owners = [bundle.place(address) for address in addresses]
        if any(owner is None or owner != owners[0][0] or offset < 0 for owner, offset in owners):
            yield Problem(line(launch.op), f"one argument or buffer for {launch.name(operand)}", "several, or none")


@error(_SPECIFICATION, "L")
def pool_range(bundle: Bundle) -> Iterator[Problem]:
    """Every read and write in scratch memory lies within it."""
    for launch, operand, addresses in _operands(bundle):
        for address in addresses if operand.is_plain else ():
            owner, offset = bundle.place(address)
            pool = owner.owner if owner is not None else None
            end = offset + operand.touched_bytes
            if isinstance(pool, DeviceMemAllocateOp) and end > pool.size.value.data:
                size = pool.size.value.data
                yield Problem(line(launch.op), f"{launch.name(operand)} within {size} bytes", f"bytes up to {end}")
                break


@error("SuperDSC reading rules, which all real files keep", "C")
def launch_slices(bundle: Bundle) -> Iterator[Problem]:
    """The addresses that a launch gives the cores lie as far apart as their slices do."""
    for launch, operand, addresses in _operands(bundle):
        if operand.is_plain and operand.dsc.per_core(operand.stick) % operand.lanes == 0:
            for one in misplaced(operand, addresses):
                yield Problem(line(launch.op), f"slices of {launch.name(operand)} in place", f"{one.path} elsewhere")
                break


@error("SuperDSC reading rules, which all real files keep", "C")
def launch_outputs(bundle: Bundle) -> Iterator[Problem]:
    """In no launch do two cores write the same bytes, unless they add up one result."""
    for launch, operand, addresses in _operands(bundle):
        if operand.number == operand.dsc.output.number and operand.is_plain:
            for one in overlaps(operand, addresses):
                yield Problem(line(launch.op), f"results apart in {launch.name(operand)}", f"{one.path} on another")
                break


@error(DIVISION, "C")
def launch_gather_start(bundle: Bundle) -> Iterator[Problem]:
    """A launch gives all cores one start address of an indexed tensor."""
    for launch, operand, addresses in _operands(bundle):
        if operand.is_gathered:
            for one in astray(operand, addresses):
                name = launch.name(operand)
                yield Problem(line(launch.op), f"one start address of {name} on all cores", f"{one.path} elsewhere")
                break


BUNDLE_RULES: tuple[Rule[Bundle], ...] = (
    bundle_function, bundle_op, file_exists, file_unused, launch_operands, symbols_bound, symbols_unique, trip_count,
    pool_size, launch_aligned, launch_base, pool_range, launch_slices, launch_outputs,
    launch_gather_start, written_first, read_whole,
    *DATAFLOW_RULES,
)  # fmt: skip
