"""Rules about addresses: alignment, segments, spans, slices, scratchpads, gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spyre_mlir.dialects.superdsc.check.json_file import OperandJson, SdscJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, error, problem, warning
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.hw.spec import SEGMENT_BYTES, STICK_BYTES, USER_SEGMENTS

_CODE = "torch-spyre code generation and constants"
_READING = "SuperDSC reading rules, which all real files keep"


def _numbers(operand: OperandJson) -> list[int]:
    return [place.number() for place in operand.starts]


def _concrete(sdsc: SdscJson, component: str) -> Iterator[OperandJson]:
    """Operands with given addresses in one memory."""
    return (one for one in sdsc.operands if one.component == component and not one.symbolic)


@error("published SuperDSC schema of torch-spyre's validator; real files", "C")
def start_per_core(sdsc: SdscJson) -> Iterator[Problem]:
    """There is one start address per core and no other."""
    for operand in sdsc.operands:
        data = operand.node.at(keys.START).at(keys.DATA)
        count = len(dict(data.members()))
        if count != len(operand.starts):
            yield problem(data, f"{len(operand.starts)} start addresses, one per core", f"{count}")


@error("SpyreCode specification", "C")
def start_aligned(sdsc: SdscJson) -> Iterator[Problem]:
    """A start address is a multiple of the stick."""
    for operand in sdsc.operands:
        for place in operand.starts:
            rest = place.number() % STICK_BYTES
            if rest and not operand.symbolic:
                yield problem(
                    place,
                    f"a multiple of {STICK_BYTES} bytes",
                    hint=f"the stick starts at {place.number() - rest}",
                )


@error("torch-spyre code generation for symbolic addresses", "C")
def start_symbol(sdsc: SdscJson) -> Iterator[Problem]:
    """A symbolic start is a negative symbol id, a given one is not negative, and a scratchpad's is given."""
    for operand in sdsc.operands:
        if operand.symbolic and operand.component == keys.LX:
            yield problem(operand.node.at(keys.SYMBOLIC), "a given address in a scratchpad")
        for place in operand.starts:
            if (place.number() < 0) != operand.symbolic:
                wanted = "a negative symbol id" if operand.symbolic else "an address; ids need isStartAddrSymbolic_ 1"
                yield problem(place, wanted)


@error("SpyreCode specification; torch-spyre constants", "C")
def segment(sdsc: SdscJson) -> Iterator[Problem]:
    """Everything a core touches lies in the segment its start address is in, and not in the back end's."""
    for operand in _concrete(sdsc, keys.HBM):
        for place in operand.starts:
            number, within = divmod(place.number(), SEGMENT_BYTES)
            if number >= USER_SEGMENTS:
                yield problem(place, f"an address in segments 0 to {USER_SEGMENTS - 1}")
            elif within + operand.touched_bytes > SEGMENT_BYTES:
                yield problem(place, f"{operand.touched_bytes} bytes before the end of segment {number}")


@error("torch-spyre work division; newest documentation", "L")
def span(sdsc: SdscJson) -> Iterator[Problem]:
    """A core touches at most 256 MiB (less 4 KiB) of an operand from its first byte to its last."""
    for operand in sdsc.operands:
        if operand.component == keys.HBM and operand.is_plain and operand.touched_bytes > sdsc.spec.span_bytes:
            yield problem(
                operand.node,
                f"at most {sdsc.spec.span_bytes} bytes from a core's first to its last of operand {operand.number}",
                f"{operand.touched_bytes}",
                "split an outer dim further",
            )


@error(_READING, "C")
def starts_follow_slices(sdsc: SdscJson) -> Iterator[Problem]:
    """The start addresses of the cores lie as far apart as their slices do."""
    for operand in _concrete(sdsc, keys.HBM):
        if operand.is_plain and operand.dsc.per_core(operand.stick) % operand.lanes == 0:
            yield from misplaced(operand, _numbers(operand))


def misplaced(operand: OperandJson, addresses: Sequence[int]) -> Iterator[Problem]:
    """Return the cores whose address is not the start of their slice, given the address of each core."""
    bases = [address - operand.offset(core) for core, address in enumerate(addresses)]
    base = max(set(bases), key=bases.count)  # one wrong address must not accuse all the others
    for core, (place, address) in enumerate(zip(operand.starts, addresses, strict=True)):
        if bases[core] != base:
            yield problem(place, f"{base + operand.offset(core)}, where slice {dict(operand.dsc.sdsc.slices[core])} "
                          "begins", f"{address}")  # fmt: skip


@error(_READING, "C")
def outputs_disjoint(sdsc: SdscJson) -> Iterator[Problem]:
    """No two cores write the same bytes, unless they add up one result."""
    for dsc in sdsc.dscs:
        output = dsc.output
        if output.component == keys.HBM and not output.symbolic and output.is_plain:
            yield from overlaps(output, _numbers(output))


def overlaps(output: OperandJson, addresses: Sequence[int]) -> Iterator[Problem]:
    """Return the cores that write bytes of another core's result, given the address of each core."""
    rows = [tuple(row.get(label, 0) for label in output.own) for row in output.dsc.sdsc.slices]
    steps = sorted(((step, output.box[label]) for label, step in output.steps.items()), reverse=True)
    for core, place in enumerate(output.starts):
        for other in range(core):
            if rows[core] != rows[other] and _meet(addresses[core] - addresses[other], steps):
                yield problem(place, f"an address whose result leaves that of core {other} alone", f"{addresses[core]}")
                break


def _meet(delta: int, steps: Sequence[tuple[int, int]]) -> bool:
    """Return whether two boxes of steps that begin `delta` bytes apart share a stick; inner steps fill outer ones."""
    if not steps:
        return delta == 0
    (step, count), inner = steps[0], steps[1:]
    near = delta // step if step else 0  # a negative gap, which has a rule of its own, may leave nothing of a dim
    return any(abs(k) < count and _meet(delta - k * step, inner) for k in (near, near + 1))


@error("torch-spyre documentation, 2 MiB per core", "C")
def scratchpad(sdsc: SdscJson) -> Iterator[Problem]:
    """The bytes a core touches in its scratchpad lie within it."""
    yield from _beyond(sdsc, sdsc.spec.lx_bytes)


@warning("torch-spyre scratchpad planner and cost model", "L")
def scratchpad_budget(sdsc: SdscJson) -> Iterator[Problem]:
    """The bytes a core touches in its scratchpad lie within the part that programs may use."""
    yield from _beyond(sdsc, sdsc.spec.lx_usable_bytes)


def _beyond(sdsc: SdscJson, limit: int) -> Iterator[Problem]:
    for operand in _concrete(sdsc, keys.LX):
        for place in operand.starts if operand.is_plain else ():
            if place.number() + operand.touched_bytes > limit:
                yield problem(place, f"{operand.touched_bytes} bytes within {limit}", hint="use device memory")


@warning("torch-spyre scratchpad planner", "L")
def scratchpad_starts(sdsc: SdscJson) -> Iterator[Problem]:
    """A buffer in the scratchpads starts at the same address on every core."""
    for operand in _concrete(sdsc, keys.LX):
        numbers = _numbers(operand)
        usual = max(set(numbers), key=numbers.count)
        for place, number in zip(operand.starts, numbers, strict=True):
            if number != usual:
                yield problem(place, f"{usual}, as on the other cores")


@warning("a core reads its operands while it writes its result", "I")
def operands_overlap(sdsc: SdscJson) -> Iterator[Problem]:
    """The result of a core overlaps none of its inputs, unless it takes one's place exactly."""
    for dsc in sdsc.dscs:
        output = dsc.output
        for operand in dsc.operands:
            apart = operand.number == output.number or operand.component != output.component
            if apart or operand.symbolic or output.symbolic or not (operand.is_plain and output.is_plain):
                continue
            yield from _overlap(operand, output)


def _overlap(operand: OperandJson, output: OperandJson) -> Iterator[Problem]:
    steps = sorted(((step, output.box[label]) for label, step in output.steps.items()), reverse=True)
    gaps = any(operand.gaps.values()) or any(output.gaps.values())
    for place, mine, his in zip(output.starts, _numbers(output), _numbers(operand), strict=True):
        if operand.steps == output.steps:
            clash = mine != his and _meet(mine - his, steps)
        else:  # only buffers without gaps fill the range from their first byte to their last
            clash = not gaps and mine < his + operand.touched_bytes and his < mine + output.touched_bytes
        if clash:
            yield problem(place, f"bytes apart from those of operand {operand.number} at {his}")
            return


@error(_CODE, "C")
def back_gap(sdsc: SdscJson) -> Iterator[Problem]:
    """A gap belongs to a dim the operand has, is not negative, and is whole sticks along the stick."""
    for operand in sdsc.operands:
        if keys.BACK_GAP not in operand.node:
            continue
        cores = {"-1"} if operand.component == keys.HBM else {"-1", *map(str, range(sdsc.cores))}
        for label, place in operand.node.at(keys.BACK_GAP).members():
            if label not in operand.own:
                yield problem(place, f"a dim of the operand, {operand.own}", label)
            for core, gap in place.members():
                if core not in cores:
                    yield problem(gap, "the key -1, or in a scratchpad one per core", core)
                odd = label == operand.stick and gap.number() % operand.lanes
                if gap.number() < 0 or odd:
                    yield problem(gap, f"whole sticks of {operand.lanes}" if odd else "no negative gap")


RULES = (
    start_per_core, start_aligned, start_symbol, segment, span, starts_follow_slices, outputs_disjoint, scratchpad,
    scratchpad_budget, scratchpad_starts, operands_overlap, back_gap,
)  # fmt: skip
