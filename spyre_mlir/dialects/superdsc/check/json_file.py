"""A SuperDSC file as its rules see it: typed access to the JSON, with the place of a failure.

A look into what is missing or of another type raises ReadError, which the checker reports as a finding of its own; a
rule therefore reads as if the file were well-formed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.codec.describe import describe_json
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_from_json
from spyre_mlir.dialects.superdsc.dialect.links import operand_numbers
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.fields import Visit, visit
from spyre_mlir.dialects.superdsc.model.json_value import as_object
from spyre_mlir.dialects.superdsc.model.nested_fields import LABELS, OLD_LABELS
from spyre_mlir.errors import ReadError, UnsupportedError
from spyre_mlir.hw.formats import FORMATS
from spyre_mlir.hw.spec import SPYRE, STICK_BYTES, SpyreSpec
from spyre_mlir.ops.hardware_functions import restickifies

DATA_DSCS = (keys.DATA_DSCS, keys.DATA_OP_DSCS)
INDEX_CLASS = "KERNEL_IDX"
DIM_KEYS = frozenset(f"{label}_" for label in (*LABELS, *OLD_LABELS))


@dataclass(frozen=True)
class SdscJson:
    """One file: its root key and the object under it.

    Args:
        root: the root key.
        top: the object.
        spec: the machine it is for.
    """

    root: str
    top: Cursor
    spec: SpyreSpec = SPYRE

    @cached_property
    def splits(self) -> dict[str, int]:
        """Slices per dim; empty in files written by the back end."""
        place = self.top.at(keys.SPLITS)
        splits = place.integer_map()
        for label, split in splits.items():
            if split < 1:
                place.at(label).fail("one slice or more")
        return splits

    @cached_property
    def cores(self) -> int:
        """Number of cores, the product of the splits.

        Raises:
            ReadError: more than any card has, so that nothing is derived for a billion cores.
        """
        cores = prod(self.splits.values())
        if cores > self.spec.cores_per_card:
            self.top.at(keys.SPLITS).fail(f"at most {self.spec.cores_per_card} slices in all, one per core of the card")
        return cores

    @cached_property
    def slices(self) -> tuple[Mapping[str, int], ...]:
        """Per core, its slice of each dim, from the file's table."""
        table = self.top.at(keys.CORE_TO_SLICE)
        return tuple(table.at(str(core)).integer_map() for core in range(self.cores))

    @cached_property
    def dscs(self) -> tuple[DscJson, ...]:
        """The compute DSCs."""
        if keys.DSCS not in self.top:
            return ()
        return tuple(
            DscJson(self, name, place) for entry in self.top.at(keys.DSCS).items() for name, place in entry.members()
        )

    @cached_property
    def members(self) -> tuple[Visit, ...]:
        """Every member of every object of the file that the model of the format knows."""
        return tuple(visit(self.top.value, path=self.top.path))

    @cached_property
    def op(self) -> SdscOp:
        """The file as an op of the dialect, unverified."""
        return sdsc_from_json(self.root, as_object(self.top.value) or {})

    @cached_property
    def unread(self) -> ReadError | UnsupportedError | None:
        """The error of the machine's reader for the file; None if it accepts the file."""
        try:
            describe_json({self.root: self.top.value})
        except (ReadError, UnsupportedError) as error:
            return error
        return None

    @property
    def operands(self) -> Iterator[OperandJson]:
        """The operands of all compute DSCs."""
        for dsc in self.dscs:
            yield from dsc.operands


@dataclass(frozen=True)
class DscJson:
    """One compute DSC.

    Args:
        sdsc: the file.
        name: key it stands under.
        at: its object.
    """

    sdsc: SdscJson
    name: str
    at: Cursor

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Padded size of each divided dim over all cores."""
        place = self.at.at(keys.SIZES)
        return {label: place.at(f"{label}_").integer() for label in self.sdsc.splits}

    def per_core(self, label: str) -> int:
        """Size of one slice of a dim."""
        if label not in self.sizes:
            self.sdsc.top.at(keys.SPLITS).fail(f"a split of dim {label}")
        return self.sizes[label] // self.sdsc.splits[label]

    @cached_property
    def operands(self) -> tuple[OperandJson, ...]:
        """The operands, in operand order."""
        nodes = {node.at(keys.INDEX).integer(): node for node in self.at.at(keys.SCHEDULE_TREE).items()}
        found: list[OperandJson] = []
        for number, entry in enumerate(self.at.at(keys.LABELED_DS).items()):
            if number not in nodes:
                self.at.at(keys.SCHEDULE_TREE).fail(
                    f"an allocate node for operand {number}", f"nodes for {list(nodes)}"
                )
            found.append(OperandJson(self, number, entry, nodes[number]))
        return tuple(found)

    @cached_property
    def compute(self) -> Cursor:
        """The operation."""
        return self.at.at(keys.COMPUTE).only()

    @cached_property
    def function(self) -> str:
        """Name of the hardware function."""
        return self.compute.at(keys.FUNCTION).text()

    def references(self, key: str) -> list[int]:
        """Return operand numbers of a list of references; empty if there is no such list."""
        if key not in self.compute:
            return []
        place = self.compute.at(key)
        numbers = operand_numbers(place.value)
        if numbers is None:
            place.fail('references like "Tensor0-idx0"')
        for number in numbers:
            if number >= len(self.operands):
                place.fail(f"operands 0 to {len(self.operands) - 1}")
        return numbers

    @property
    def output(self) -> OperandJson:
        """The operand that is written."""
        outputs = self.references(keys.OUTPUTS)
        if len(outputs) != 1:
            self.compute.at(keys.OUTPUTS).fail("one operand")
        return self.operands[outputs[0]]

    @cached_property
    def constants(self) -> dict[str, Cursor]:
        """Entries of the constants by their number; empty for the text that represents no constants."""
        place = self.at.at(keys.CONSTANTS)
        return {} if place.value == "{}" else dict(place.members())

    @cached_property
    def windows(self) -> dict[str, Cursor]:
        """Dims of a pooling or convolution that a window slides over."""
        place = self.at.at(keys.SIZES)
        return dict(place.at(keys.PADDING_SIZES).members()) if keys.PADDING_SIZES in place else {}

    @cached_property
    def masks(self) -> dict[str, Cursor]:
        """Masked dims; empty if nothing is masked."""
        return dict(self.at.at(keys.MASKING).members()) if keys.MASKING in self.at else {}


@dataclass(frozen=True)
class OperandJson:
    """One operand: its entry and its allocate node.

    Args:
        dsc: the DSC.
        number: operand number.
        entry: of `labeledDs_`.
        node: of `scheduleTree_`.
    """

    dsc: DscJson
    number: int
    entry: Cursor
    node: Cursor

    @cached_property
    def layout(self) -> Cursor:
        """The layout class."""
        return self.dsc.at.at(keys.CLASSES).at(self.entry.at(keys.CLASS).text())

    @cached_property
    def scales(self) -> dict[str, int]:
        """Scale per dim of the class."""
        order, place = self.layout.at(keys.ORDER).texts(), self.entry.at(keys.SCALE)
        numbers = place.integers()
        if len(numbers) != len(order) or len(set(order)) != len(order):
            place.fail(f"one scale per dim of {order}")
        return dict(zip(order, numbers, strict=True))

    @cached_property
    def order(self) -> list[str]:
        """Dims, inner to outer, reduced ones included."""
        place = self.node.at(keys.ORDER)
        order = place.texts()
        if sorted(order) != sorted(self.scales):
            place.fail(f"the dims of the layout class, {list(self.scales)}")
        return order

    @cached_property
    def own(self) -> list[str]:
        """Dims the operand really has, inner to outer; all of them are divided dims."""
        own = [label for label in self.order if self.scales[label] > 0]
        for label in own:
            if label not in self.dsc.sizes:
                self.node.at(keys.ORDER).fail(f"dims of the work division, {list(self.dsc.sizes)}")
        return own

    @property
    def is_index(self) -> bool:
        """Return whether it holds the indices of a gather."""
        return self.entry.at(keys.CLASS).value == INDEX_CLASS

    @property
    def is_gathered(self) -> bool:
        """Return whether its addresses depend on an index tensor."""
        return keys.INDIRECT in self.node and self.node.at(keys.INDIRECT).value == "value_tensor"

    @property
    def is_plain(self) -> bool:
        """Return whether its addresses follow from sizes and slices alone.

        Not so with sticks of several dims, gathers, windows, a map of its own, or gaps of a restickify, which may be
        shortfalls.
        """
        if restickifies(self.dsc.function) and any(self.gaps.values()):
            return False
        spread = self.node.at(keys.COORDINATES).value if keys.COORDINATES in self.node else None
        own_map = isinstance(spread, dict) and bool(spread.get(keys.CORE_TO_SLICE))
        windowed = keys.PADDING in self.node or bool(self.dsc.windows)
        one_stick = len(self.layout.at(keys.STICK_DIMS).texts()) == 1
        return one_stick and not (self.is_gathered or windowed or own_map)

    @cached_property
    def stick(self) -> str:
        """The class's first stick dim."""
        place = self.layout.at(keys.STICK_DIMS)
        return place.texts()[0] if place.texts() else place.fail("a stick dim")

    @cached_property
    def lanes(self) -> int:
        """Elements per stick in the operand's own format."""
        place = self.entry.at(keys.FORMAT)
        if place.text() not in FORMATS:
            place.fail(f"one of {', '.join(FORMATS)}")
        return FORMATS[place.text()].elements_per_stick()

    @cached_property
    def component(self) -> str:
        """The memory of the operand: hbm or lx."""
        place = self.node.at(keys.COMPONENT)
        return place.text() if place.text() in (keys.HBM, keys.LX) else place.fail('"hbm" or "lx"')

    @cached_property
    def gaps(self) -> dict[str, int]:
        """Elements allocated beyond the used ones, the largest over the cores."""
        if keys.BACK_GAP not in self.node:
            return {}
        members = self.node.at(keys.BACK_GAP).members()
        return {label: max((core.number() for _, core in place.members()), default=0) for label, place in members}

    def count(self, label: str, size: int) -> int:
        """Return the steps of a size along a dim: sticks along the stick dim, elements along another."""
        return -(-size // self.lanes) if label == self.stick else size

    @cached_property
    def steps(self) -> dict[str, int]:
        """Bytes between neighbours along each dim the operand has; along the stick dim between whole sticks."""
        step, result = STICK_BYTES, dict[str, int]()
        for label in self.own:
            result[label] = step
            used = self.dsc.per_core(label) if self.component == keys.LX else self.dsc.sizes[label]
            step *= self.count(label, used + self.gaps.get(label, 0))
        return result

    @cached_property
    def box(self) -> dict[str, int]:
        """Steps of one core along each dim the operand has."""
        return {label: self.count(label, self.dsc.per_core(label)) for label in self.own}

    @property
    def touched_bytes(self) -> int:
        """Bytes from the first one a core touches to the end of the last."""
        last = sum((self.box[label] - 1) * step for label, step in self.steps.items())
        return last + STICK_BYTES

    def offset(self, core: int) -> int:
        """Return the bytes from the first slice to a core's own, by sizes and slices; 0 in a scratchpad."""
        if self.component == keys.LX:
            return 0
        row = self.dsc.sdsc.slices[core]
        return sum(row.get(label, 0) * self.box[label] * step for label, step in self.steps.items())

    @property
    def symbolic(self) -> bool:
        """Return whether start addresses are symbol ids."""
        return keys.SYMBOLIC in self.node and bool(self.node.at(keys.SYMBOLIC).value)

    @cached_property
    def starts(self) -> tuple[Cursor, ...]:
        """The start address of each core."""
        data = self.node.at(keys.START).at(keys.DATA)
        return tuple(data.at(derived_values.core_key(core)) for core in range(self.dsc.sdsc.cores))
