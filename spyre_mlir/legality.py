"""Legal forms of each level: classes of ops, and the types of their operands, results and block arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects import affine, arith, func, scf
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, Dialect, Operation, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_sizes import GuardOp
from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.sdscbundle import InputArgType, Sdscbundle
from spyre_mlir.dialects.spyre import host, kernel, loop
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.dialects.spyre.loop_blocks import BlockOp, PutOp
from spyre_mlir.dialects.spyre.scalars import ApplyOp, scalar_classes
from spyre_mlir.dialects.superdsc import Superdsc
from spyre_mlir.dialects.tensors import ELEMENTS
from spyre_mlir.errors import LoweringError
from spyre_mlir.transforms.utils.rebuild import describe_location

_KNOWN = frozenset(ELEMENTS.values())


@dataclass(frozen=True)
class Types:
    """Types that values may have.

    Attributes:
        text: how messages call them.
        hold: whether a type is one of them.
    """

    text: str
    hold: Callable[[Attribute], bool]

    def __or__(self, other: Types) -> Types:
        """Either of two."""
        return Types(f"{self.text} and {other.text}", lambda type_: self.hold(type_) or other.hold(type_))


def _of(text: str, *classes: type[Attribute]) -> Types:
    return Types(text, lambda type_: isinstance(type_, classes))


TENSORS = Types(
    "ranked tensors of known elements", lambda t: isinstance(t, TensorType) and t.get_element_type() in _KNOWN
)
SCALARS = Types("scalars of known types", lambda type_: type_ in _KNOWN)
DEVICE = _of("!spyre.tensor", DeviceTensorType)
INDEX = _of("index", IndexType)
NO_TYPES = Types("none", lambda _: False)


@dataclass(frozen=True)
class OpFamily:
    """Ops of a level whose values have types of one kind.

    Attributes:
        name: how messages call them.
        classes: their classes; subclasses count.
        types: of their operands and results.
        inside: of the arguments of their blocks.
    """

    name: str
    classes: tuple[type[Operation], ...]
    types: Types
    inside: Types = NO_TYPES


@dataclass(frozen=True)
class LegalForms:
    """Ops and types that may stand at a level.

    Attributes:
        level: its name.
        made: makes the families of its ops when first asked for; a level may load dialects that few programs use.
        remedy: what to try where something else stands there.
    """

    level: str
    made: Callable[[], tuple[OpFamily, ...]]
    remedy: str
    _found: dict[type[Operation], OpFamily | None] = field(
        default_factory=dict[type[Operation], OpFamily | None], init=False, compare=False
    )

    @cached_property
    def families(self) -> tuple[OpFamily, ...]:
        """The ops of the level."""
        return self.made()

    def family(self, kind: type[Operation]) -> OpFamily | None:
        """The first family that a class of ops belongs to; None if it is illegal."""
        if kind not in self._found:
            self._found[kind] = next((f for f in self.families if issubclass(kind, f.classes)), None)
        return self._found[kind]

    def check(self, module: ModuleOp) -> None:
        """Check the ops of a module and the types of their values, in one walk.

        Raises:
            LoweringError: an op or a type is illegal.
        """
        legal = dict[int, set[int]]()  # types by their ids, by that of the family: most ops share a few
        for op in ops_in(module):
            family = self.family(type(op))
            if family is None:
                names = ", ".join(f.name for f in self.families)
                raise LoweringError(
                    f"{op.name} is not legal at the level {self.level}",
                    where=describe_location(op),
                    hint=f"legal are {names}; {self.remedy}",
                )
            types = {id(value.type): value.type for value in (*op.operands, *op.results)}
            known = legal.setdefault(id(family), set())
            if op.regions or not all(family.types.hold(types[n]) for n in types.keys() - known):
                self._check_values(op, family)
            known.update(types)

    def _check_values(self, op: Operation, family: OpFamily) -> None:
        for what, values, types in _values(op, family):
            for number, value in enumerate(values):
                if not types.hold(value.type):
                    raise self._illegal(op, f"{what} {number}", value.type, types)

    def _illegal(self, op: Operation, what: str, type_: Attribute, types: Types) -> LoweringError:
        return LoweringError(
            f"{what} of {op.name} is {type_}, which is not legal at the level {self.level}",
            where=describe_location(op),
            hint=f"legal there: {types.text}; {self.remedy}",
        )


def _values(op: Operation, family: OpFamily) -> list[tuple[str, tuple[SSAValue, ...], Types]]:
    """The values of an op and of the heads of its blocks, with the types that they may have."""
    found: list[tuple[str, tuple[SSAValue, ...], Types]] = [
        ("operand", tuple(op.operands), family.types),
        ("result", tuple(op.results), family.types),
    ]
    for region in op.regions:
        found += [("block argument", tuple(block.args), family.inside) for block in region.blocks]
    return found


def _dialect(dialect: Dialect, types: Types, inside: Types = NO_TYPES) -> OpFamily:
    return OpFamily(f"{dialect.name}.*", tuple(dialect.operations), types, inside)


def _around(types: Types) -> tuple[OpFamily, ...]:
    """The module and its functions, whose arguments and results are of these types."""
    return OpFamily("builtin.module", (ModuleOp,), NO_TYPES), _dialect(func.Func, types, types)


_REMEDY = "try spyre-opt -p {} first, and see what the passes of plugins leave"
_COUNTED = OpFamily("scf.for, scf.yield, arith.constant", (scf.ForOp, scf.YieldOp, arith.ConstantOp), INDEX, INDEX)
_TRANSFERS = OpFamily(
    "spyre.kernel.to_device, spyre.kernel.from_device", (kernel.ToDeviceOp, kernel.FromDeviceOp), TENSORS | DEVICE
)
_HOST_STEPS = OpFamily("spyre.kernel.host", (host.KernelHostOp,), TENSORS)
_TILES = OpFamily("spyre.kernel.tile", (TileOp,), DEVICE | INDEX)
_BLOCK_NUMBERS = OpFamily("spyre.kernel.block_number", (BlockNumberOp,), TENSORS | INDEX)
_CONTROL = "control.cond, control.while_loop, control.for_loop"

ATEN = LegalForms(
    "aten",
    lambda: (
        *_around(TENSORS),
        OpFamily("aten.*", (AtenOp,), TENSORS),
        OpFamily(_CONTROL, (ControlOp,), TENSORS),
        OpFamily("aten.guard", (GuardOp,), NO_TYPES),
    ),
    "try aten.call for an operator without a class, and tensors of the element types that aten has",
)
LOOP = LegalForms(
    "spyre.loop",
    lambda: (
        *_around(TENSORS),
        OpFamily("spyre.loop.nest", (loop.NestOp,), TENSORS, SCALARS),
        OpFamily(_CONTROL, (ControlOp,), TENSORS),
        OpFamily(
            "spyre.loop.gather, spyre.loop.empty, spyre.loop.constant, spyre.loop.host",
            (loop.LoopGatherOp, loop.EmptyOp, loop.LoopConstantOp, host.LoopHostOp),
            TENSORS,
        ),
        OpFamily("spyre.loop.block, spyre.loop.put", (BlockOp, PutOp), TENSORS),
        OpFamily(
            "in bodies spyre.loop.yield, spyre.loop.apply and ops of arith and math with a hardware function",
            (loop.YieldOp, ApplyOp, *scalar_classes()),
            SCALARS,
        ),
    ),
    _REMEDY.format("convert-aten-to-spyre-loop"),
)
KERNEL = LegalForms(
    "spyre.kernel",
    lambda: (
        *_around(TENSORS | DEVICE),
        _TRANSFERS,
        _HOST_STEPS,
        OpFamily(_CONTROL, (ControlOp,), TENSORS | DEVICE),
        OpFamily(
            "kernels, spyre.kernel.alloc, spyre.kernel.free, spyre.kernel.constant, spyre.kernel.view",
            (kernel.KernelOp, kernel.AllocOp, kernel.FreeOp, kernel.KernelConstantOp, ViewOp),
            DEVICE,
        ),
        _TILES,
        _BLOCK_NUMBERS,
        _COUNTED,
    ),
    _REMEDY.format("convert-spyre-loop-to-spyre-kernel"),
)
SUPERDSC = LegalForms(
    "superdsc",
    lambda: (
        *_around(TENSORS | DEVICE | _of("!sdscbundle.input_arg", InputArgType)),
        _TRANSFERS,
        _HOST_STEPS,
        OpFamily(_CONTROL, (ControlOp,), TENSORS | DEVICE),
        OpFamily(
            "spyre.kernel.launch, spyre.kernel.alloc, spyre.kernel.constant",
            (kernel.LaunchOp, kernel.AllocOp, kernel.KernelConstantOp),
            DEVICE,
        ),
        _TILES,
        _BLOCK_NUMBERS,
        _dialect(Superdsc, INDEX | _of("types of superdsc", *Superdsc.attributes)),
        _dialect(Sdscbundle, INDEX | _of("!sdscbundle.input_arg", InputArgType)),
        OpFamily("arith.addi, affine.apply", (arith.AddiOp, affine.ApplyOp), INDEX),
        _COUNTED,
    ),
    _REMEDY.format("convert-spyre-kernel-to-superdsc"),
)


def _ktir() -> tuple[OpFamily, ...]:
    from xdsl.dialects import linalg, math, tensor

    from spyre_mlir.dialects.ktdp import Ktdp, Spyreop

    own = (*Ktdp.attributes, *Spyreop.attributes)
    types = Types(
        "index, integers, floats, tensors, memrefs and types of ktdp",
        lambda t: isinstance(t, (IndexType, IntegerType, AnyFloat, TensorType, MemRefType, *own)),
    )
    dialects = (Ktdp, arith.Arith, math.Math, linalg.Linalg, tensor.Tensor, scf.Scf)
    return (*_around(types), *(_dialect(one, types, types) for one in dialects))


KTIR = LegalForms("ktir", _ktir, _REMEDY.format("convert-spyre-kernel-to-ktdp"))
