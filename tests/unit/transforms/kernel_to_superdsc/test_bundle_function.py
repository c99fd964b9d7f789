"""Bundle functions: symbols of addresses, files shared or not, segments; addresses by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, UnknownLoc
from xdsl.ir import Block, Operation

from spyre_mlir.dialects.sdscbundle import DeviceMemAllocateOp, InputArgExtractOp, SdscExecuteOp
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.static_loop import LoopBounds
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.spec import SPYRE, USER_SEGMENTS, segment_base
from spyre_mlir.transforms.kernel_to_superdsc.bundle_function import LABELS, Base, ConcreteBundle, SymbolicBundle
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import Placed, describe_kernel
from tests.unit.transforms.levels import ops, passed

T = "!spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"
NOWHERE = UnknownLoc()
# Four rows of a stick, two on each of two cores: the second starts at byte 256.
SECOND = 256


def placed(number: int = 0, function: str = "neg") -> Placed:
    uses = f"ins(%a[m, n] : {T}) outs(%b[m, n] : {T})"
    text = f"""func.func @main() {{
      %a = spyre.kernel.alloc : {T}
      %b = spyre.kernel.alloc : {T}
      spyre.kernel.compute "{function}" [m = 4 over 2, n = 64] {uses}
      func.return
    }}"""
    (op,) = ops(passed(text), KernelOp)
    return describe_kernel(op, number)


def starts(op: SdscOp) -> list[tuple[str, ...]]:
    return [operand.start for operand in describe(op).operands]


def body(function: func.FuncOp) -> list[Operation]:
    return list(function.body.block.ops)


def symbolic(share: bool = False, pool: int = 4096) -> SymbolicBundle:
    return SymbolicBundle(2, pool, Version.TS26, share)


def test_every_core_has_a_symbol_of_its_own() -> None:
    bundle = symbolic()
    bundle.add(placed(), [Base(0), Base(1)], NOWHERE)
    function = bundle.function("sdsc_bundle")
    assert function.sym_name.data == "sdsc_bundle" and len(function.body.block.args) == 2
    assert [a.name_hint for a in function.body.block.args] == ["arg_0_base_addr", "arg_1_base_addr"]
    one, number, at_one, other, at_other, launch, end = body(function)
    assert isinstance(one, InputArgExtractOp) and one.operands[0] is function.body.block.args[0]
    assert isinstance(other, InputArgExtractOp) and other.operands[0] is function.body.block.args[1]
    assert isinstance(number, arith.ConstantOp) and number.value == IntegerAttr(SECOND, IndexType())
    for start, base in ((at_one, one), (at_other, other)):
        assert isinstance(start, arith.AddiOp) and tuple(start.operands) == (base.results[0], number.result)
    assert isinstance(launch, SdscExecuteOp) and isinstance(end, func.ReturnOp)
    assert list(launch.operands) == [o.results[0] for o in (one, at_one, other, at_other)]
    (file,) = bundle.sdscs
    assert starts(file) == [("-1", "-2"), ("-3", "-4")]
    assert all(operand.symbolic for operand in describe(file).operands)
    assert file.attributes[LABELS].data == {v: StringAttr(n) for n, v in placed().labels.items()}
    assert [o.results[0].name_hint for o in (one, at_one, number)] == ["arg0", "arg0_at256", "c256"]


def test_equal_addresses_of_one_launch_share_a_symbol() -> None:
    bundle = symbolic()
    bundle.add(placed(), [Base(0), Base(0)], NOWHERE)
    bundle.add(placed(1), [Base(0), Base(1, SECOND)], NOWHERE)
    assert [starts(file) for file in bundle.sdscs] == [
        [("-1", "-2"), ("-1", "-2")],
        [("-3", "-4"), ("-5", "-6")],
    ]
    launches = [op for op in body(bundle.function("f")) if isinstance(op, SdscExecuteOp)]
    assert [len(op.operands) for op in launches] == [2, 4]


def test_the_pool_is_allocated_once() -> None:
    bundle = symbolic(pool=8192)
    bundle.add(placed(), [Base(None), Base(None, 1024)], NOWHERE)
    made = body(bundle.function("f"))
    (pool,) = [op for op in made if isinstance(op, DeviceMemAllocateOp)]
    assert pool.results[0].name_hint == "pool" and "8192" in str(pool)
    numbers = [op.value for op in made if isinstance(op, arith.ConstantOp)]
    assert numbers == [IntegerAttr(n, IndexType()) for n in (SECOND, 1024, 1024 + SECOND)]


def test_scratchpads_have_numbers() -> None:
    bundle = symbolic()
    bundle.add(placed(), [Base(0), Base(None, 512, local=True)], NOWHERE)
    (file,) = bundle.sdscs
    assert starts(file) == [("-1", "-2"), ("512", str(512 + SECOND))]
    assert [operand.symbolic for operand in describe(file).operands] == [True, False]
    assert Base(None, 512, local=True).local_starts((0, 8)) == ("512", "520")


@pytest.mark.parametrize(("share", "files"), [(False, 3), (True, 1)])
def test_launches_that_differ_in_ids_only_may_share_a_file(share: bool, files: int) -> None:
    bundle = symbolic(share)
    for number in range(3):
        bundle.add(placed(number), [Base(0), Base(1, number * 1024)], NOWHERE)
    assert len(bundle.sdscs) == files
    launches = [op for op in body(bundle.function("f")) if isinstance(op, SdscExecuteOp)]
    assert len(launches) == 3 and len({str(op.properties) for op in launches}) == files


def test_what_the_machine_knows_by_its_file_keeps_files_apart() -> None:
    bundle, one = symbolic(share=True), placed()
    # Another function, another name of a loop, numbers that are watched, and an element type that is kept.
    others = [placed(function="abs"), replace(one, labels={**one.labels, "k": "x"}), replace(one, watched=64)]
    for number, file in enumerate([one, *others, replace(one, element=IndexType())]):
        bundle.add(replace(file, descriptor=replace(file.descriptor, index=number)), [Base(0), Base(1)], NOWHERE)
    assert len(bundle.sdscs) == 5
    assert [starts(file)[0][0] for file in bundle.sdscs] == [str(-1 - 4 * n) for n in range(5)]
    shared = symbolic(share=True)
    shared.add(one, [Base(0), Base(1)], NOWHERE)
    shared.add(one, [Base(0), Base(0)], NOWHERE)  # fewer symbols
    assert len(shared.sdscs) == 2


def test_loops_move_addresses() -> None:
    bundle = symbolic()
    (index,) = Block(arg_types=[IndexType()]).args
    nest = bundle.open_loop(LoopBounds(0, 4, 2), index)
    bundle.add(placed(), [Base(0, 0, steps=((index, 512),)), Base(1)], NOWHERE)
    nest.close()
    made = body(bundle.function("f"))
    (loop,) = [op for op in made if isinstance(op, scf.ForOp)]
    assert [str(v.name_hint) for v in (loop.lb, loop.ub, loop.step)] == ["c0", "c4", "c2"]
    assert [op.name for op in loop.body.block.ops] == ["affine.apply"] * 2 + [SdscExecuteOp.name, "scf.yield"]


def concrete(arguments: int = 2, pool: int = 0, segments: tuple[int | None, ...] = ()) -> ConcreteBundle:
    return ConcreteBundle(arguments, pool, Version.TS26, SPYRE, segments)


@pytest.mark.parametrize(
    ("pool", "segments", "wanted"),
    [
        (0, (), [0, 1]),
        (4096, (), [1, 2]),
        (0, (5,), [5, 1]),
        (0, (0, 6), [0, 6]),
        (4096, (None, 3), [1, 3]),
    ],
)
def test_arguments_have_segments(pool: int, segments: tuple[int | None, ...], wanted: list[int]) -> None:
    bundle = concrete(2, pool, segments)
    assert [bundle.segment(n) for n in range(2)] == wanted
    bundle.add(placed(), [Base(0), Base(1, 1024)], NOWHERE)
    (file,) = bundle.sdscs
    first, second = (segment_base(n) for n in wanted)
    assert starts(file) == [(str(first), str(first + SECOND)), (str(second + 1024), str(second + 1024 + SECOND))]
    assert not any(operand.symbolic for operand in describe(file).operands)
    launch, end = body(bundle.function("f"))
    assert isinstance(launch, SdscExecuteOp) and not launch.operands and isinstance(end, func.ReturnOp)


def test_the_pool_is_in_front_and_scratchpads_are_of_no_segment() -> None:
    bundle = concrete(1, 4096)
    bundle.add(placed(), [Base(None, 512), Base(None, 512, local=True)], NOWHERE)
    base = segment_base(0) + 512
    assert starts(bundle.sdscs[0]) == [(str(base), str(base + SECOND)), ("512", str(512 + SECOND))]


def test_more_arguments_than_segments_are_refused() -> None:
    most = USER_SEGMENTS
    concrete(most)
    concrete(most - 1, 4096)
    for arguments, pool in ((most + 1, 0), (most, 4096)):
        with pytest.raises(LoweringError, match=f"a segment per argument: {most + 1}, the card has {most}") as refused:
            concrete(arguments, pool)
        assert refused.value.hint == "use addresses=symbolic"
