"""Contents of one SuperDSC without redundancy: dims, operands, constants, and the start of each core.

The compiler makes a `Descriptor` and `build` derives the JSON from it; the machine gets one back from `describe`,
which believes the file. Plain values: no IR, no JSON. Nothing here is checked on construction, because `describe`
must be able to say what a wrong file says; `build` and the verifiers check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from math import prod

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.hw.formats import FP32, INT32, device_format
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.ops.hardware_functions import COPY, NONSTICK, function_of

Slices = tuple[Mapping[str, int], ...]


class OpClass(Enum):
    """Families of ops whose files follow different rules (order of class labels, appended dims, accumulator)."""

    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    MATMUL = "matmul"
    RESTICKIFY = "restickify"
    GATHER = "gather"
    SHUFFLE = "shuffle"
    TOP_K = "top-k"
    POOLING = "pooling"
    CONVOLUTION = "convolution"
    DEPTHWISE = "convolution by channel"


LAST_LABEL = "out"  # of the last dim of everything but products and windows
WINDOWED = frozenset({OpClass.POOLING, OpClass.CONVOLUTION, OpClass.DEPTHWISE})
# Classes whose operands list only the dims they have; torch-spyre code generation; likely beyond products.
OWN_DIMS = frozenset({OpClass.MATMUL, OpClass.GATHER, OpClass.TOP_K, *WINDOWED})
# Classes whose output is also read; torch-spyre code generation; likely.
ACCUMULATING = frozenset({OpClass.REDUCTION, OpClass.DEPTHWISE})


class Version(Enum):
    """The generation of the front end's files to write."""

    TS25 = "TS25"  # file names carry the op, no indirectAllocType_
    TS26 = "TS26"  # the default
    TSNEW = "TSNEW"  # six empty stage objects, constants as strings

    def file_name(self, index: int | str, op_func_name: str) -> str:
        """Return the name of the JSON file of op `index` in its bundle."""
        return f"sdsc_{index}_{op_func_name}.json" if self is Version.TS25 else f"sdsc_{index}.json"


class IndirectKind(Enum):
    """Role of an operand in a gather."""

    INDEX = "index_tensor"
    VALUE = "value_tensor"


@dataclass(frozen=True)
class Indirect:
    """An operand's link to its partner in a gather.

    Args:
        kind: index or value tensor.
        partner: operand index of the other one.
        max_sizes: `maxDimSizes_` per dim of the operand's order; -1 where nothing limits it.
    """

    kind: IndirectKind
    partner: int
    max_sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class SymbolicSize:
    """A size that is known only when the bundle runs; the dim's extent is the largest.

    Args:
        name: what the program calls it.
        symbol: id that `bundle.mlir` binds to the size; negative.
        granularity: what the size is a multiple of.
    """

    name: str
    symbol: int
    granularity: int = 1


@dataclass(frozen=True)
class Window:
    """Access of a windowed op to one dim of its input.

    Args:
        dim: the output dim whose input is walked over, i or j.
        over: the dim that runs over the window, ki or kj.
        total: extent of the input, padding included.
        stride: input elements from window to window.
        dilation: input elements from one place of a window to the next.
        front: padding before the data that is in no memory.
        back: padding behind it.
    """

    dim: str
    over: str
    total: int
    stride: int = 1
    dilation: int = 1
    front: int = 0
    back: int = 0

    @property
    def stored(self) -> int:
        """Extent of the input in memory."""
        return self.total - self.front - self.back

    def reach(self, outputs: int, places: int) -> int:
        """Return the input elements that `outputs` windows of `places` places cover."""
        return (outputs - 1) * self.stride + (places - 1) * self.dilation + 1


@dataclass(frozen=True)
class Dim:
    """One dimension of the iteration space.

    Args:
        label: the file's positional name (mb, x, …, out, in).
        extent: padded size over all cores.
        split: number of slices; the product over dims is the number of cores.
        valid: logical size where `coordinateMasking_` masks the padding, else None.
        symbolic: the size that is bound when the bundle runs, else None.
    """

    label: str
    extent: int
    split: int = 1
    valid: int | None = None
    symbolic: SymbolicSize | None = None

    @property
    def per_core(self) -> int:
        """Size of one core's slice."""
        return self.extent // self.split


@dataclass(frozen=True)
class Operand:
    """One tensor operand.

    Args:
        order: the dims the operand really has, inner to outer; the stick dim stands at the place of its stick index.
        extents: allocated elements per entry of `order`: over all cores in HBM, of one core in LX. At least the
            dim's extent (LX: its slice); the rest is the back gap.
        stick: label of the dim in the lanes; None for a sparse operand, which has one valid lane per stick.
        format: `dataFormat_`.
        start: start address per core: decimal bytes, or negative symbol ids.
        symbolic: whether `start` holds symbol ids.
        component: "hbm" or "lx".
        indirect: the gather link, if any.
        second_stick: a second dim in the stick and how many of its elements, innermost in the stick; `stick` then
            has the rest of the lanes. FP8 weights only.
        slices: the operand's own distribution over the cores, where it is not the operation's. Empty: it is.
    """

    order: tuple[str, ...]
    extents: tuple[int, ...]
    stick: str | None
    format: str
    start: tuple[str, ...]
    symbolic: bool = False
    component: str = keys.HBM
    indirect: Indirect | None = None
    second_stick: tuple[str, int] | None = None
    slices: Slices = field(default=(), hash=False)

    @property
    def elements_per_stick(self) -> int:
        """Lanes of one stick in the operand's own format."""
        return device_format(self.format).elements_per_stick()

    def counts(self) -> tuple[int, ...]:
        """Steps along each entry of `order`: sticks for dims in the stick, elements for the others."""
        lanes = self.stick_lanes
        return tuple(-(-size // lanes.get(label, 1)) for label, size in zip(self.order, self.extents, strict=True))

    @property
    def stick_lanes(self) -> dict[str, int]:
        """Elements of each dim of the stick in one stick, inner to outer; empty for a sparse operand."""
        if self.stick is None:
            return {}
        if self.second_stick is None:
            return {self.stick: self.elements_per_stick}
        label, count = self.second_stick
        return {label: count, self.stick: self.elements_per_stick // count}

    def stick_strides(self) -> dict[str, int]:
        """Sticks between neighbours along each dim of `order`; neighbours of the stick dim are whole sticks."""
        counts = self.counts()
        return {label: prod(counts[:place]) for place, label in enumerate(self.order)}

    def allocated_sticks(self) -> int:
        """Sticks of the whole allocation (HBM), or of one core's (LX)."""
        return prod(self.counts())


@dataclass(frozen=True)
class Constant:
    """A named scalar the op reads; `bits` is its word in `format`."""

    name: str
    format: str
    bits: int


@dataclass(frozen=True)
class Descriptor:
    """One operation on all its cores.

    Args:
        index: position in the bundle.
        op_func: name of the hardware function without the "nonstick" suffix, which follows from the layouts.
        unit: "sfp" or "pt".
        op_class: the family.
        dims: the iteration space in iteration order.
        operands: inputs in call order (index tensors first), then the one output.
        constants: in file order; the mask constant, if any, included.
        mask_constant: which constant fills masked lanes; -1 for none.
        op_format: `attributes_.dataFormat_`; None means the first data operand's format.
        windows: how a windowed op walks over its input.
        slices: which slice of each dim each core works on. Empty means the rule of `core_slices`; `describe` always
            fills it with what the file says.
    """

    index: int
    op_func: str
    unit: str
    op_class: OpClass
    dims: tuple[Dim, ...]
    operands: tuple[Operand, ...]
    constants: tuple[Constant, ...] = ()
    mask_constant: int = -1
    op_format: str | None = None
    windows: tuple[Window, ...] = ()
    slices: Slices = field(default=(), compare=False)

    @property
    def cores(self) -> int:
        """Number of cores that take part."""
        return prod(dim.split for dim in self.dims)

    @property
    def output(self) -> Operand:
        """The last operand."""
        return self.operands[-1]

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """All operands but the output, in call order."""
        return self.operands[:-1]

    @property
    def core_slices(self) -> Slices:
        """Per core, the slice number of each dim: the file's table, or the rule where there is none."""
        return self.slices or core_slices(self.dims, self.op_class)

    @property
    def reference(self) -> Operand:
        """The operand whose dims the others are compared with: a reduction's input, otherwise the output."""
        reduces = self.op_class in (OpClass.REDUCTION, OpClass.TOP_K, OpClass.POOLING, OpClass.DEPTHWISE)
        return self.operands[0] if reduces else self.operands[-1]

    @property
    def stick(self) -> str:
        """The op's stick dim: the reference operand's, else any operand's, else the last dim (all sparse)."""
        for operand in (self.reference, *self.operands):
            if operand.stick is not None:
                return operand.stick
        return self.dims[-1].label

    @property
    def op_func_name(self) -> str:
        """Name in the file, with "nonstick" where a reduction keeps its stick dim."""
        function = function_of(self.op_func)
        if self.op_class is not OpClass.REDUCTION or (function is not None and not function.nonstick):
            return self.op_func
        return self.op_func + NONSTICK if self.stick in self.output.order else self.op_func

    def dim(self, label: str) -> Dim:
        """Return the dim called `label`.

        Raises:
            KeyError: there is none.
        """
        for dim in self.dims:
            if dim.label == label:
                return dim
        raise KeyError(label)


def labelled_format(function: str, form: str) -> str:
    """Return the format that a file gives to operands of a function that are stored in a format.

    Copies of 32-bit integers are labelled FP32, and move their bits (torch-spyre code generation; likely): the
    published list has no integers under `identity`.
    """
    return FP32.name if function == COPY and form == INT32.name else form


def slice_order(dims: Sequence[Dim], op_class: OpClass) -> tuple[Dim, ...]:
    """Dims from the one that varies fastest over core ids to the slowest.

    The first iteration dim is fastest, except that a matmul whose reduction (last) dim is split puts that one first,
    so that the cores that add up one result are neighbours on the ring (real files; certain).
    """
    if op_class is OpClass.MATMUL and dims and dims[-1].split > 1:
        return (dims[-1], *dims[:-1])
    return tuple(dims)


def core_slices(dims: Sequence[Dim], op_class: OpClass) -> Slices:
    """Return per core the slice number of each dim, keys in the order of files."""
    return _counted(tuple([(dim.label, dim.split) for dim in slice_order(dims, op_class)]))


@lru_cache(maxsize=1 << 12)
def _counted(splits: tuple[tuple[str, int], ...]) -> Slices:
    """The slices of dims whose first counts fastest; kernels of a program share few tables."""
    table: list[Mapping[str, int]] = []
    for core in range(prod([split for _, split in splits])):
        row: dict[str, int] = {}
        rest = core
        for label, split in splits:
            rest, row[label] = divmod(rest, split)
        table.append(row)
    return tuple(table)


def start_offsets(dims: Sequence[Dim], operand: Operand, op_class: OpClass, table: Slices = ()) -> tuple[int, ...]:
    """Return the bytes from the operand's base to each core's first element; by the rule where there is no table.

    One slice of a dim is (elements per core) strides of that dim, in sticks; in LX every core starts at the base.
    `operand.start` is not read, so a caller can fill it from the result: `str(base + offset)`.
    """
    slices = table or core_slices(dims, op_class)
    if operand.component == keys.LX:
        return (0,) * len(slices)
    lanes = operand.stick_lanes
    strides = operand.stick_strides()
    step = {
        dim.label: strides[dim.label] * (dim.per_core // lanes.get(dim.label, 1))
        for dim in dims
        if dim.label in strides
    }
    return tuple(STICK_BYTES * sum(step[label] * row[label] for label in step) for row in slices)
