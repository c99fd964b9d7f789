"""Tiles of device tensors in loops: where they start, what belongs to them, and what their verifier refuses."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType
from spyre_mlir.dialects.spyre.kernel import ComputeOp, FromDeviceOp
from spyre_mlir.dialects.spyre.kernel_loop import ByteOrigin, TileOp, is_written, launch_origin, uses_with_tiles
from spyre_mlir.hw.sticks import StickLayout
from tests.unit.dialects.texts import function, lines_of, only, read


def tensor(rows: int, columns: int, more: str = ", extents [512, 128], hbm") -> str:
    return f"!spyre.tensor<[{rows}, {columns}] x SEN169_FP16, order [1, 0], stick 1{more}>"


# Two columns of 512 sticks of 64 halves; a tile of rows, and one column of its sticks.
WHOLE, ROWS, PART = tensor(512, 128, ", hbm"), tensor(128, 128), tensor(128, 64)
SHORT = tensor(128, 128, ", hbm")  # it reserves 128 rows only
VECTOR = "!spyre.tensor<[512] x SEN169_FP16, order [0], stick 0, hbm>"


def tile(
    what: str = "%p = spyre.kernel.tile %d dim 0 at %i * 128", whole: str = WHOLE, part: str = ROWS, more: str = ""
) -> str:
    return f"{what}{more} : {whole} to {part}"


def looped(*body: str, values: range = range(4), name: str = "i") -> list[str]:
    said = {"lower": values.start, "upper": values.stop, "step": values.step}
    constants = [f"%{name}_{bound} = arith.constant {value} : index" for bound, value in said.items()]
    head = f"scf.for %{name} = %{name}_lower to %{name}_upper step %{name}_step {{"
    return [*constants, head, *body, "}"]


def program(*body: str, values: range = range(4), whole: str = WHOLE) -> ModuleOp:
    return read(function(f"%d: {whole}", *looped(*body, values=values)))


def compute(ins: str, outs: str, extents: str = "m = 128, n = 128", type_: str = ROWS) -> str:
    return f'spyre.kernel.compute "exp" [{extents}] ins({ins}[m, n] : {type_}) outs({outs}[m, n] : {type_})'


def device_type(shape: tuple[int, int], extents: tuple[int, int] = (512, 128)) -> DeviceTensorType:
    return DeviceTensorType(DeviceTensor(shape, "SEN169_FP16", StickLayout((1, 0), 1, extents)))


@pytest.mark.parametrize("line", [tile(), tile(more=" {note}")])
def test_text(line: str) -> None:
    module = program(line)
    assert line in lines_of(module)
    op = only(module, TileOp)
    assert (op.dim.value.data, op.step.value.data) == (0, 128)
    again = TileOp(op.source, 0, op.index, 128, op.result.type)
    assert again.properties == op.properties and list(again.operands) == list(op.operands)


@pytest.mark.parametrize("numbers", ["dim true at %i * 128", "dim 0 at %i * true", "dim 0 at %i"])
def test_text_that_is_no_tile(numbers: str) -> None:
    with pytest.raises(ParseError):
        program(tile(f"%p = spyre.kernel.tile %d {numbers}"))


@pytest.mark.parametrize(
    ("line", "step_bytes", "window"),
    [
        (tile(), 128 * 128, (128, 128)),
        (tile("%p = spyre.kernel.tile %d dim 1 at %i * 64", part=tensor(512, 64)), 512 * 128, (512, 64)),
    ],
)
def test_a_tile_is_a_part_of_the_same_memory(line: str, step_bytes: int, window: tuple[int, int]) -> None:
    op = only(program(line, values=range(2)), TileOp)
    assert op.step_bytes == step_bytes
    assert op.window() == window
    assert op.compact() == DeviceTensor(window, "SEN169_FP16", StickLayout((1, 0), 1, window))


def test_a_tile_has_whole_sticks_of_what_is_not_cut() -> None:
    """Columns 0 to 99 of 100 take two sticks each."""
    narrow = tensor(512, 100, ", hbm")
    op = only(program(tile(whole=narrow, part=tensor(128, 100)), whole=narrow), TileOp)
    assert op.window() == (128, 128)
    assert op.compact().layout.extents == (128, 128)
    assert TileOp(op.source, 1, op.index, 64, device_type((512, 40))).window() == (512, 64)


NESTED = [
    tile("%p = spyre.kernel.tile %d dim 0 at %i * 128"),
    *looped(
        tile("%q = spyre.kernel.tile %p dim 1 at %j * 64", ROWS, PART),
        compute("%q", "%q", "m = 128, n = 64", PART),
        values=range(2),
        name="j",
    ),
    compute("%p", "%p"),
]


def tiles_of(module: ModuleOp) -> tuple[SSAValue, TileOp, TileOp]:
    rows, part = (op for op in module.walk() if isinstance(op, TileOp))
    return rows.source, rows, part


def test_origin_of_a_tile_of_a_tile() -> None:
    whole, rows, part = tiles_of(program(*NESTED))
    assert launch_origin(whole) == ByteOrigin(whole)
    assert launch_origin(rows.result) == ByteOrigin(whole, ((rows.index, 16_384),))
    assert launch_origin(part.result) == ByteOrigin(whole, ((rows.index, 16_384), (part.index, 65_536)))
    assert hash(launch_origin(rows.result)) == hash(ByteOrigin(whole, ((rows.index, 16_384),)))
    assert part.window() == (128, 64)


def test_uses_of_a_buffer_through_its_tiles() -> None:
    whole, rows, part = tiles_of(program(*NESTED))
    for value, count in ((whole, 4), (rows.result, 4), (part.result, 2)):
        uses = list(uses_with_tiles(value))
        assert len(uses) == count
        assert all(isinstance(use.operation, ComputeOp) for use in uses)
        assert sorted(is_written(use) for use in uses) == [False] * (count // 2) + [True] * (count // 2)


def test_a_buffer_that_comes_back_is_not_written() -> None:
    line = f"%h = spyre.kernel.from_device %d : {WHOLE} to tensor<512x128xf16>"
    (use,) = only(read(function(f"%d: {WHOLE}", line)), FromDeviceOp).source.uses
    assert not is_written(use)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            tile(whole=WHOLE.replace("hbm", "lx"), part=ROWS.replace("hbm", "lx")),
            "a tile of a tensor in LX cannot advance from trip to trip; try hbm for the tensor",
        ),
        (tile("%p = spyre.kernel.tile %d dim 2 at %i * 128"), "dimension 2 of a tensor of rank 2"),
        (
            tile(part=SHORT),
            rf"the tile is {re.escape(SHORT)}, expected {re.escape(ROWS)}: a tile keeps format, layout and res",
        ),
        (tile(part=PART), "the tile is .* smaller in dimension 0 only"),
        (tile(part=tensor(128, 128, ", extents [512, 128], lx")), "the tile is .* smaller in dimension 0 only"),
        (
            tile(
                "%p = spyre.kernel.tile %d dim 1 at %i * 64",
                part=VECTOR,
            ),
            r"expected !spyre\.tensor<\[512, 0\]",
        ),
        (
            tile("%p = spyre.kernel.tile %d dim 0 at %i * 129"),
            "the tiles run over elements 0 to 515 of dimension 0, which has 512; try fewer trips, or a smaller step",
        ),
        (tile("%p = spyre.kernel.tile %d dim 0 at %i * -1"), "the tiles run over elements -3 to 128 of dimension 0"),
        (
            tile("%p = spyre.kernel.tile %d dim 0 at %i_step * 128"),
            "the start of a tile is a multiple of",
        ),
    ],
)
def test_tiles_that_are_no_part_of_their_tensor(line: str, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        program(line, whole=WHOLE.replace("hbm", "lx") if "lx" in line.partition(" to ")[0] else WHOLE)


@pytest.mark.parametrize(
    ("values", "step", "columns", "said"),
    [
        (range(1), 32, 64, "tiles of 64 elements, 32 apart, cut the sticks of 64 of dimension 1; try multiples of 64"),
        (range(1, 2, 2), 32, 64, "tiles of 64 elements, 64 apart, cut the sticks of 64"),
        (range(1), 64, 40, "tiles of 40 elements, 64 apart, cut the sticks of 64"),
    ],
)
def test_tiles_are_whole_sticks_in_the_lanes(values: range, step: int, columns: int, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        program(tile(f"%p = spyre.kernel.tile %d dim 1 at %i * {step}", part=tensor(512, columns)), values=values)


def test_rows_need_not_be_whole_sticks() -> None:
    program(tile("%p = spyre.kernel.tile %d dim 0 at %i * 3", part=tensor(5, 128)), values=range(1, 9, 3))


def test_tiles_start_and_end_inside_their_tensor() -> None:
    """The last of four tiles of 128 rows ends with row 511; a trip further it would not."""
    program(tile(), values=range(4))
    with pytest.raises(VerifyException, match="the tiles run over elements 0 to 640 of dimension 0, which has 512"):
        program(tile(), values=range(5))
    with pytest.raises(VerifyException, match="the tiles run over elements -128 to 512 of dimension 0"):
        program(tile(), values=range(-1, 4))


def test_tiles_may_run_backwards_from_an_element() -> None:
    line = tile("%p = spyre.kernel.tile %d dim 0 at %i * -128 from 384")
    module = program(line)
    module.verify()
    only_tile = only(module, TileOp)
    assert line in lines_of(module)
    assert (only_tile.first_element, only_tile.first_bytes, only_tile.step_bytes) == (384, 384 * 128, -128 * 128)
    assert launch_origin(only_tile.result).first == 384 * 128
    with pytest.raises(VerifyException, match="the tiles run over elements -1 to 511 of dimension 0, which has 512"):
        program(tile("%p = spyre.kernel.tile %d dim 0 at %i * -128 from 383")).verify()
    with pytest.raises(VerifyException, match="the tiles run over elements 1 to 513 of dimension 0, which has 512"):
        program(tile("%p = spyre.kernel.tile %d dim 0 at %i * -128 from 385")).verify()


def test_the_loop_of_a_tile_is_one_of_the_device() -> None:
    with pytest.raises(VerifyException, match="makes 65536 trips, the device counts 1 to 65535"):
        program(tile("%p = spyre.kernel.tile %d dim 0 at %i * 0"), values=range(65_536))


def test_a_tile_stands_in_its_loop() -> None:
    module = program(tile())
    op, loop = only(module, TileOp), only(module, scf.ForOp)
    outside = TileOp(op.source, 0, op.index, 128, op.result.type)
    block = loop.parent_block()
    assert block is not None
    block.insert_op_after(outside, loop)
    with pytest.raises(VerifyException, match="the start of a tile is a multiple of the induction variable"):
        outside.verify_()


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (
            compute("%p", "%p", "m = 129, n = 128"),
            "exp walks index m up to 128, the tile has 128 elements in dimension 0",
        ),
        (
            f"%h = spyre.kernel.from_device %p : {ROWS} to tensor<128x128xf16>",
            r"spyre\.kernel\.from_device cannot use a tile; try the whole tensor",
        ),
    ],
)
def test_kernels_stay_inside_a_tile(use: str, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        program(tile(), use)


def test_a_kernel_may_fill_a_tile_and_padding_counts() -> None:
    program(tile(), compute("%p", "%p"))
    one_stick = tile("%p = spyre.kernel.tile %d dim 1 at %i * 64", part=tensor(512, 64))
    narrow = compute("%p", "%p", "m = 512, n = 60", tensor(512, 64))
    program(one_stick, narrow, values=range(2))
    wide = compute("%p", "%p", "m = 512, n = 65", tensor(512, 64))
    with pytest.raises(VerifyException, match="exp walks index n up to 127, the tile has 64 elements in dimension 1"):
        program(one_stick, wide, values=range(2))
