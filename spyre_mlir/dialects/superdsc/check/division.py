"""Rules about the division of work over cores, and the padding it requires."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from spyre_mlir.dialects.superdsc.check.json_file import DIM_KEYS, DscJson, SdscJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, error, problem, warning
from spyre_mlir.dialects.superdsc.check.sources import DRAFT, FRONT_END, PROSE_RULES
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.ops.hardware_functions import function_of


@error(PROSE_RULES, "C")
def splits_product(sdsc: SdscJson) -> Iterator[Problem]:
    """The product of the splits is the number of cores."""
    place, cores = sdsc.top.at(keys.CORES_USED), prod(sdsc.splits.values())
    if place.integer() != cores:
        given = " x ".join(f"{label} {split}" for label, split in sdsc.splits.items())
        yield problem(place, f"the product of the splits {given}, {cores}", hint="change a split or the number")


@error("torch-spyre, 32 cores per card", "C")
def cores_on_card(sdsc: SdscJson) -> Iterator[Problem]:
    """The file uses no more cores than the card has."""
    place = sdsc.top.at(keys.CORES_USED)
    if not 1 <= place.integer() <= sdsc.spec.cores_per_card:
        yield problem(place, f"1 to {sdsc.spec.cores_per_card}, the card's cores", hint="split less")


@error(PROSE_RULES, "C")
def split_divides(sdsc: SdscJson) -> Iterator[Problem]:
    """Every size is positive and divided evenly by its split."""
    for dsc in sdsc.dscs:
        for label, size in dsc.sizes.items():
            split = sdsc.splits[label]
            if size < 1 or size % split:
                padded = max(-(-size // split), 1) * split
                yield problem(
                    dsc.at.at(keys.SIZES).at(f"{label}_"),
                    f"a positive multiple of its {split} slices",
                    hint=f"pad it to {padded}, or split {label} by a divisor",
                )


@error(DRAFT, "C")
def size_divided(sdsc: SdscJson) -> Iterator[Problem]:
    """Every dim that has a size has a split, if only of 1."""
    for dsc in sdsc.dscs:
        for key, place in dsc.at.at(keys.SIZES).members():
            label = key.removesuffix("_")
            if key in DIM_KEYS and isinstance(place.value, int) and place.value >= 0 and label not in sdsc.splits:
                yield problem(place, f"dims of the work division, {list(sdsc.splits)}", label)


@error(FRONT_END, "C")
def slices_distinct(sdsc: SdscJson) -> Iterator[Problem]:
    """Every core has one slice of every dim, within the number of slices, and no two cores have the same."""
    seen: dict[tuple[int, ...], int] = {}
    for core, row in enumerate(sdsc.slices if sdsc.dscs else ()):
        place = sdsc.top.at(keys.CORE_TO_SLICE).at(str(core))
        for label, split in sdsc.splits.items():
            if not 0 <= place.at(label).integer() < split:
                yield problem(place.at(label), f"a slice from 0 to {split - 1}")
        for label in row.keys() - sdsc.splits.keys():
            yield problem(place.at(label), f"dims {list(sdsc.splits)}", label)
        other = seen.setdefault(tuple(row.get(label, 0) for label in sdsc.splits), core)
        if other != core:
            yield problem(place, f"slices that differ from those of core {other}")


def counts_by_columns(sdsc: SdscJson) -> bool:
    """Return whether the cores of a matmul are numbered along its columns first."""
    return list(map(dict, sdsc.slices)) == derived_values.slices_by_columns(sdsc.splits)


@warning(FRONT_END, "C")
def core_map_order(sdsc: SdscJson) -> Iterator[Problem]:
    """The first dim varies fastest over the cores; in a matmul a divided reduction does, or its columns may."""
    if not sdsc.dscs:
        return
    slices = sdsc.slices  # refuses more than the card's cores before anything is derived for each
    expected = derived_values.slices_of(sdsc.splits)
    if counts_by_columns(sdsc):
        return
    for core, row in enumerate(slices):
        if dict(row) != expected[core]:
            place = sdsc.top.at(keys.CORE_TO_SLICE).at(str(core))
            yield problem(place, f"slices {expected[core]} for core {core}")
            return


@error(PROSE_RULES, "C")
def stage_sizes(sdsc: SdscJson) -> Iterator[Problem]:
    """Both stages give every dim the size of one slice."""
    for dsc in sdsc.dscs:
        if keys.STAGES not in dsc.at:
            continue
        for stage in (keys.STEADY, keys.EPILOGUE):
            place = dsc.at.at(keys.STAGES).at("0").at(stage)
            for label in dsc.sizes:
                size = place.at(f"{label}_")
                if size.integer() != dsc.per_core(label):
                    yield problem(size, f"{dsc.sizes[label]} in {sdsc.splits[label]} slices, {dsc.per_core(label)}")


@error("SuperDSC interface specification", "C")
def whole_sticks(sdsc: SdscJson) -> Iterator[Problem]:
    """Each core has whole sticks of every data operand."""
    for operand in sdsc.operands:
        stick = operand.stick
        if operand.is_index or stick not in operand.own or sdsc.splits[stick] == 1:
            continue
        if operand.dsc.per_core(stick) % operand.lanes:
            yield problem(
                operand.dsc.at.at(keys.SIZES).at(f"{stick}_"),
                f"a multiple of {operand.lanes} per core for operand {operand.number}",
                f"{operand.dsc.per_core(stick)}",
                f"split {stick} less, or pad it",
            )


@warning(FRONT_END, "C")
def one_reduction_split(sdsc: SdscJson) -> Iterator[Problem]:
    """At most one dim that the output lacks is divided."""
    for dsc in sdsc.dscs:
        missing = [label for label, split in sdsc.splits.items() if split > 1 and label not in dsc.output.own]
        if len(missing) > 1:
            yield problem(sdsc.top.at(keys.SPLITS), "one divided dim that is summed over", f"{missing}")


@error(DRAFT, "L")
def mask_extents(sdsc: SdscJson) -> Iterator[Problem]:
    """The valid and padding extents of a masked dim add up to its size."""
    for dsc in sdsc.dscs:
        for label, place in dsc.masks.items():
            size = dsc.sizes.get(label)
            total = 0
            for pair in place.items():
                numbers = pair.integers()
                if len(numbers) != 2 or min(numbers) < 0:
                    yield problem(pair, "a valid and a padding extent")
                total += sum(numbers)
            if total != size:
                yield problem(place, f"extents that add up to {size}, the size of {label}")


@error(FRONT_END, "L")
def mask_constant(sdsc: SdscJson) -> Iterator[Problem]:
    """A mask constant is named exactly where something is masked, and exists."""
    for dsc in sdsc.dscs:
        place = dsc.at.at(keys.MASK_CONSTANT)
        count = len(dsc.constants)
        if not -1 <= place.integer() < count:
            yield problem(place, f"-1 or one of {count} constants")
        elif (place.integer() >= 0) != bool(dsc.masks):
            yield problem(place, "a constant, as dims are masked" if dsc.masks else "-1, as no dim is masked")


@warning(FRONT_END, "L")
def mask_dims(sdsc: SdscJson) -> Iterator[Problem]:
    """Masked dims are those that are reduced along the stick."""
    for dsc in sdsc.dscs:
        for label, place in dsc.masks.items():
            if not _may_be_masked(dsc, label):
                yield problem(place, f"a mask on a dim that is reduced along the stick, not on {label}")


def _may_be_masked(dsc: DscJson, label: str) -> bool:
    function = function_of(dsc.function)
    masked = function is not None and function.masks_padding and label == dsc.output.stick
    return masked or dsc.output.scales.get(label) == -2


RULES = (
    splits_product, cores_on_card, split_divides, size_divided, slices_distinct, core_map_order, stage_sizes,
    whole_sticks, one_reduction_split, mask_extents, mask_constant, mask_dims,
)  # fmt: skip
