"""What all kernels have in common: walks, padding, division over cores, slices, and what their verifier refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import StringAttr, f32
from xdsl.dialects.test import TestOp
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.kernel import ComputeOp, RestickifyOp
from spyre_mlir.dialects.spyre.kernel_op import KernelOp, device_tensor
from spyre_mlir.hw.sticks import UNIT, LinearExpr, StickAccess, StickError, StickLayout, StrideNest
from tests.unit.dialects.texts import function, lines_of, only, read


@irdl_op_definition
class Plain(KernelOp):
    """A kernel with nothing of its own but a function."""

    name = "tried.plain"

    @property
    def function_name(self) -> str:
        return "plain"


@irdl_op_definition
class Summing(KernelOp):
    """A kernel that sums products and keeps a loop whole."""

    name = "tried.summing"

    @property
    def function_name(self) -> str:
        return "summing"

    @property
    def is_product(self) -> bool:
        return True

    def undivided(self) -> set[str]:
        return {"whole"}


@irdl_op_definition
class Nameless(KernelOp):
    """A kernel without a function."""

    name = "tried.nameless"


M, N, K = (LinearExpr.of(name) for name in "mnk")
DL16, FP32 = "SEN169_FP16", "IEEE_FP32"


def tensor(*shape: int, form: str = DL16, space: str = "hbm", arrangement: str = "standard") -> DeviceTensor:
    """The last dimension in the lanes, the others inside of its sticks, the first innermost."""
    last = len(shape) - 1
    lanes = 32 if form == FP32 else 64
    padded = (*shape[:-1], -(-shape[-1] // lanes) * lanes)
    return DeviceTensor(shape, form, StickLayout((last, *reversed(range(last))), last, padded), space, arrangement)


TALL = DeviceTensor((127, 64), DL16, StickLayout((0, 1), 1, (127, 64)))  # one stick per row, one row after another
SPARSE = DeviceTensor((4,), DL16, StickLayout((0, UNIT), UNIT, (4,)))


def kernel(
    dims: dict[str, tuple[int, int]],
    *operands: tuple[DeviceTensor, tuple[LinearExpr, ...]],
    kind: type[KernelOp] = Plain,
    **properties: str,
) -> KernelOp:
    """A kernel over loops with an extent and cores, whose last operand is the output."""
    *inputs, output = TestOp(result_types=[DeviceTensorType(t) for t, _ in operands]).results
    space = SpaceAttr(tuple(IterDim(name, *said) for name, said in dims.items()))
    said = {name: StringAttr(value) for name, value in properties.items()}
    return kind(space, inputs, output, [IndexMapAttr(index) for _, index in operands], said)


def halves(m: int = 1, n: int = 1, *, space: str = "hbm", columns: int = 128, kind: type[KernelOp] = Plain) -> KernelOp:
    """4 rows of halves, element by element."""
    operand = (tensor(4, columns, space=space), (M, N))
    return kernel({"m": (4, m), "n": (columns, n)}, operand, operand, kind=kind)


def test_other_values_are_no_device_tensors() -> None:
    value, number = TestOp(result_types=[DeviceTensorType(SPARSE), f32]).results
    assert device_tensor(value) == SPARSE
    with pytest.raises(VerifyException, match="expected a device tensor, got f32"):
        device_tensor(number)


def test_what_a_kernel_is_unless_it_says_more() -> None:
    op = halves()
    op.verify()
    assert op.is_product is False
    assert op.undivided() == frozenset()
    assert op.may_take_over(0) is False
    assert op.divisible_pieces() == op.lane_dims() == {"n": 64}
    with pytest.raises(VerifyException, match=r"tried\.nameless names no hardware function"):
        assert halves(kind=Nameless).function_name


@pytest.mark.parametrize(
    "line",
    [
        "spyre.kernel.restickify [m = 64, n = 64] ins(%a[m, n] : !a) outs(%b[m, n] : !b)",
        "spyre.kernel.restickify [m = 64, n = 64] ins(%a[m, n] : !a) outs(%b[m, n] : !b) attributes {note}",
        'spyre.kernel.compute "add" [m = 64 over 2, n = 64] ins(%a[m, n] : !a, %a[m, n] : !a) outs(%a[m, n] : !a)',
    ],
)
def test_text(line: str) -> None:
    a, b = (f"!spyre.tensor<[64, 64] x {DL16}, order [1, 0], stick {stick}, hbm>" for stick in (1, 0))
    line = line.replace("!a", a).replace("!b", b)
    module = read(function(f"%a: {a}, %b: {b}", line))
    assert line in lines_of(module)
    op = only(module, KernelOp)  # type: ignore[type-abstract]
    assert [index.data for index in op.maps] == [(M, N)] * (len(op.inputs) + 1)


def test_kernels_that_agree_are_one() -> None:
    one = halves(2)
    assert one.identity() == halves(2).identity()
    assert one.identity() != halves(4).identity()
    assert one.identity() != halves(2, columns=256).identity()
    assert one.identity() != halves(2, space="lx").identity()
    assert one.identity() != halves(2, kind=Nameless).identity()
    assert one.tensors == (tensor(4, 128), tensor(4, 128))


def test_walks_and_padding() -> None:
    """70 columns take two sticks of halves, three of floats; the rows lie side by side."""
    op = kernel({"m": (3, 1), "n": (70, 1)}, (tensor(3, 70), (M, N)), (tensor(3, 70, form=FP32), (M, N)))
    assert op.accesses() == (StickAccess(0, {"m": 1, "n": 3}, "n"), StickAccess(0, {"m": 1, "n": 3}, "n"))
    assert op.lane_dims() == {"n": 64}
    assert op.padded_extents() == {"m": 3, "n": 128}


def test_the_widest_stick_decides_and_a_widened_one_counts_twice() -> None:
    def lanes(*operands: DeviceTensor) -> dict[str, int]:
        return dict(kernel({"m": (3, 1), "n": (64, 1)}, *((t, (M, N)) for t in operands)).lane_dims())

    floats = tensor(3, 64, form=FP32)
    assert lanes(floats, floats) == {"n": 32}
    assert lanes(tensor(3, 64), floats) == lanes(floats, tensor(3, 64)) == {"n": 64}
    assert lanes(tensor(3, 64, form=FP32, arrangement="dl16_to_fp32"), floats) == {"n": 64}
    sparse = kernel({"m": (4, 1)}, (SPARSE, (M,)), (SPARSE, (M,)))
    assert (sparse.lane_dims(), sparse.padded_extents()) == ({}, {"m": 4})


def summed(k: int, m: int, kind: type[KernelOp] = Plain) -> KernelOp:
    """Rows of a matrix, summed: the loop that the result lacks is named first."""
    return kernel({"k": (128, k), "m": (4, m)}, (tensor(4, 128), (M, K)), (SPARSE, (M,)), kind=kind)


def test_cores_take_the_loops_of_the_result_first() -> None:
    slices = [{"m": 0, "k": 0}, {"m": 1, "k": 0}, {"m": 0, "k": 1}, {"m": 1, "k": 1}]
    assert list(summed(2, 2).core_slices()) == slices
    assert summed(2, 2).space_splits() == {"k": 2, "m": 2}
    assert list(summed(1, 1).core_slices()) == [{"m": 0, "k": 0}]


def test_cores_of_a_product_take_its_summed_loop_first() -> None:
    slices = [{"m": 0, "k": 0}, {"m": 0, "k": 1}, {"m": 1, "k": 0}, {"m": 1, "k": 1}]
    assert list(summed(2, 2, Summing).core_slices()) == slices


def test_what_each_core_sees() -> None:
    op = halves(2)
    assert op.core_view(0) == op.core_view(1) == CoreView((2, 1), ((0, 0), (1, 0)))
    assert op.local_walk(1) == (StickAccess(0, {"m": 1, "n": 2}, "n"), StrideNest(("m", "n"), (2, 128), ()))
    taller = tensor(8, 128)
    with pytest.raises(StickError, match="m covers 4 of the 8 elements"):
        op.core_view(0, taller)
    turned = DeviceTensor((4, 128), DL16, StickLayout((0, 1), 1, (4, 128)))
    assert op.local_walk(0, turned) == (StickAccess(0, {"m": 2, "n": 1}, "n"), StrideNest(("n", "m"), (128, 2), ()))


def test_a_loop_in_the_lanes_of_another_operand_runs_over_its_padding() -> None:
    """127 rows are 128 elements of the other operand's lanes."""
    op = kernel({"k": (127, 1), "n": (64, 1)}, (TALL, (K, N)), (tensor(64, 127), (N, K)))
    assert op.padded_extents() == {"k": 128, "n": 64}
    with pytest.raises(StickError, match="a core walks up to stick 127 and holds 127"):
        op.local_walk(0)


def test_bytes_of_operands() -> None:
    """8 sticks of halves, 4 sparse ones; what lies in the scratchpads is not counted."""
    op = summed(1, 1)
    assert (op.operand_bytes(0), op.operand_bytes(1)) == (8 * 128, 4 * 128)
    assert op.hbm_bytes() == 12 * 128
    assert halves(space="lx").hbm_bytes() == 0


PAIR = (tensor(4, 128), (M, N))
SPACE = {"m": (4, 1), "n": (128, 1)}


def test_as_many_operands_as_the_hardware_takes() -> None:
    kernel(SPACE, *[PAIR] * 8).verify()
    with pytest.raises(VerifyException, match="9 operands, the hardware takes 8"):
        kernel(SPACE, *[PAIR] * 9).verify()


def test_one_map_per_operand() -> None:
    op = halves()
    op.properties["maps"] = type(op.maps)([*op.maps, op.maps.data[0]])
    with pytest.raises(VerifyException, match="3 maps for 1 inputs and one output"):
        op.verify()


@pytest.mark.parametrize(
    ("operand", "said"),
    [
        (
            (tensor(4, 256), (M, N.shifted(1))),
            r"plain: index n \+ 1 starts inside a stick of 64; try a restickify",
        ),
        ((tensor(4, 128), (M, M)), "plain: m is in the lanes and in another dimension: a diagonal; try a restickify"),
        (
            (tensor(8, 128), (LinearExpr(0, (("m", 1), ("j", 1))), N)),
            "plain: m of extent 4 runs into j after 1 steps; try",
        ),
    ],
)
def test_operands_that_sticks_cannot_express(operand: tuple[DeviceTensor, tuple[LinearExpr, ...]], said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        kernel({**SPACE, "j": (4, 1)}, operand, PAIR).verify()


def test_a_padded_loop_stays_inside_of_every_operand() -> None:
    rows, lanes = (TALL, (K, N)), (tensor(64, 127), (N, K))
    said = "plain: {} is walked up to stick 127 and has 127: loops run over whole sticks; try larger extents"
    dims = {"k": (127, 1), "n": (64, 1)}
    with pytest.raises(VerifyException, match=said.format("input 0")):
        kernel(dims, rows, lanes).verify()
    with pytest.raises(VerifyException, match=said.format("the output")):
        kernel(dims, lanes, rows).verify()
    taller = replace(TALL, layout=TALL.layout.reserving(0, 128))
    kernel(dims, (taller, (K, N)), lanes).verify()
    with pytest.raises(VerifyException, match="input 0 is walked up to stick 128 and has 128"):
        kernel(dims, (taller, (K.shifted(1), N)), lanes).verify()


def test_lanes_are_checked_by_the_kind_of_kernel() -> None:
    with pytest.raises(VerifyException, match="a restickify moves one dimension out of the lanes and another in"):
        halves(kind=RestickifyOp).verify()


def test_work_is_divided_in_whole_sticks_over_the_cores_of_the_card() -> None:
    for m, n in ((4, 2), (2, 1), (1, 2)):
        halves(m, n).verify()
    with pytest.raises(VerifyException, match="n has 128 elements, not divisible over 4 cores in pieces of 64; try"):
        halves(1, 4).verify()
    with pytest.raises(VerifyException, match="m has 4 elements, not divisible over 3 cores in pieces of 1; try a div"):
        halves(3).verify()
    halves(1, 32, columns=2048).verify()
    with pytest.raises(VerifyException, match="work is divided over 64 cores, the card has 32"):
        halves(2, 32, columns=2048).verify()


def test_a_loop_may_have_to_stay_whole() -> None:
    whole = LinearExpr.of("whole")

    def op(split: int) -> KernelOp:
        operand = (tensor(4, 128), (whole, N))
        return kernel({"whole": (4, split), "n": (128, 2)}, operand, operand, kind=Summing)

    op(1).verify()
    with pytest.raises(VerifyException, match="whole is divided over 2 cores and must be whole on every core; try"):
        op(2).verify()


@pytest.mark.parametrize(("places", "said"), [(("lx", "hbm"), "input 0"), (("hbm", "lx"), "the output")])
def test_operands_in_the_scratchpads_have_slices(places: tuple[str, str], said: str) -> None:
    """A row that every core reads cannot be in the scratchpad of each."""
    rows = [(tensor(128, space=space), (N,)) if space == "lx" else PAIR for space in places]
    op = kernel({"m": (4, 2), "n": (128, 1)}, *rows)
    with pytest.raises(VerifyException, match=f"plain: {said} is in LX: m is divided over 2 cores .*; try another"):
        op.verify()
    kernel({"m": (4, 1), "n": (128, 1)}, *rows).verify()
    halves(2, space="lx").verify()


def test_the_loops_around_a_kernel_are_loops_of_the_device() -> None:
    type_ = f"!spyre.tensor<[4, 128] x {DL16}, order [1, 0], stick 1, hbm>"
    lines = [
        "scf.for %i = %n to %n step %n {",
        f'spyre.kernel.compute "exp" [m = 4, n = 128] ins(%a[m, n] : {type_}) outs(%a[m, n] : {type_})',
        "}",
    ]
    with pytest.raises(VerifyException, match="the lower bound of the loop is no constant"):
        read(function(f"%a: {type_}, %n: index", *lines))


def test_properties_of_a_kind_are_kept() -> None:
    op = kernel(SPACE, PAIR, PAIR, kind=ComputeOp, function="exp")
    op.verify()
    assert op.function_name == "exp"
    assert (op.space.extents, len(op.inputs), op.output.type) == ({"m": 4, "n": 128}, 1, DeviceTensorType(PAIR[0]))
