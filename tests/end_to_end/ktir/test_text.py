"""KTIR as text: it comes back equal, and stays inside the grammar of its narrow readers."""

import re
from pathlib import Path

import pytest
from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, IndexType, ModuleOp, f16
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet

from spyre_mlir.dialects.ktdp import ConstructAccessTileOp, ConstructIndirectAccessTileOp, ConstructMemoryViewOp, LoadOp
from spyre_mlir.dialects.ktdp.affine import (
    AffineError,
    bounds_of,
    box_set,
    expr_text,
    map_text,
    normal_set,
    order_map,
    set_text,
    simplified,
)
from spyre_mlir.dialects.ktdp.attributes import memory_space
from spyre_mlir.text.ktir import ktir_text
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context
from tests.paths import DATA

FILES = sorted((DATA / "ktir").glob("*.mlir"))


def read(text: str) -> ModuleOp:
    module = parse_module(text, make_context())
    verify_module(module)
    return module


def set_of(text: str) -> AffineSet:
    (attribute,) = (
        op.attributes["s"] for op in read(f"func.func @f() attributes {{s = {text}}} {{ func.return }}").ops
    )
    assert isinstance(attribute, AffineSetAttr)
    return normal_set(attribute).data


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_programs_come_back(path: Path) -> None:
    module = read(path.read_text())
    for text in (module_text(module), module_text(module, generic=True), ktir_text(module)):
        again = read(text)
        assert again.is_structurally_equivalent(module)
    assert ktir_text(read(ktir_text(module))) == ktir_text(module)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("older", [False, True])
def test_text_is_what_narrow_readers_take(path: Path, older: bool) -> None:
    """The text rules of ktir-cpu's default reader."""
    text = ktir_text(read(path.read_text()), older_spaces=older)
    assert '"' not in text  # no generic form
    assert not re.search(r"\belse\b|affine\.apply|\?", text)
    assert re.search(r"grid = \[\d+(, \d+)*\]", text)
    for line in text.splitlines():
        for dictionary in re.findall(r"\{([^{}]*)\}", line):
            assert "%" not in dictionary
        assert "{" not in re.sub(r"\{[^{}]*\}", "", line).rstrip()[:-1]  # a region's brace ends its line
        assert "}" not in line or line.strip() == "}" or re.search(r"\{[^{}]*\}", line)
        assert not re.search(r"-\d", line.split("sizes")[0]) or "constant" in line  # a minus stands apart from numbers
    for name in re.findall(r"%(\S+?)[\s,:()\[\]{}]", text):
        assert re.fullmatch(r"\w+", name)
    assert not re.search(r"func\.func @\w+\([^)]*\([^)]*\)", text)
    assert ("spyre_memory_space" in text) == older


def test_names_with_other_signs_are_dropped() -> None:
    text = ktir_text(read("func.func @f(%a.b: index) { %c-d = arith.addi %a.b, %a.b : index func.return }"))
    assert "a.b" not in text
    assert "c-d" not in text
    read(text)


def test_spaces_differ() -> None:
    """Each says something else."""
    spaces = [
        memory_space("global"),
        memory_space("ct_local"),
        memory_space("ct_local", 3),
        memory_space("ct_local", 4),
    ]
    spaces += [memory_space("global", older=True), memory_space("ct_local", 3, older=True)]
    assert len(set(spaces)) == len(spaces)
    assert memory_space("ct_local", 3) == memory_space("ct_local", 3)
    assert [str(one) for one in spaces[3:]] == [
        "#ktdp.memory_space<ct_local, ct_id = 4>",
        "#ktdp.spyre_memory_space<HBM>",
        "#ktdp.spyre_memory_space<LX, core = 3>",
    ]


# --- affine text and bounds ---------------------------------------------------------------------------------------

D0, D1, S0 = AffineExpr.dimension(0), AffineExpr.dimension(1), AffineExpr.symbol(0)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (-D0 + 63, "-d0 + 63"),
        (D0 * 3 - D1 * 2 - 1, "3 * d0 - 2 * d1 - 1"),
        ((D0 + D1) * 2 - D0, "d0 + 2 * d1"),
        (D0 - D0, "0"),
        (-D0 - 5, "-d0 - 5"),
        (S0 * 4 + D0, "d0 + 4 * s0"),
        (D0 // 64, "d0 floordiv 64"),
        ((D0 + 3) % 8, "(d0 + 3) mod 8"),
        (D1 // 4 + D0 * 2, "(d1 floordiv 4) + (2 * d0)"),
    ],
)
def test_text_of_expressions(expr: AffineExpr, text: str) -> None:
    assert expr_text(expr) == text
    assert expr_text(simplified(expr)) == text
    for point in ((0, 0), (5, 3), (17, 250)):
        assert simplified(expr).eval(point, [7]) == expr.eval(point, [7])
    again = read(f"func.func @f() attributes {{m = affine_map<(d0, d1)[s0] -> ({text})>}} {{ func.return }}")
    (attribute,) = (op.attributes["m"] for op in again.ops)
    assert isinstance(attribute, AffineMapAttr)
    assert expr_text(attribute.data.results[0]) == text


@pytest.mark.parametrize(
    ("text", "low", "high", "rules"),
    [
        ("affine_set<(i, j) : (i >= 0, -i + 3 >= 0, j - 4 >= 0, 9 - j >= 0)>", (0, 4), (3, 9), 0),
        ("affine_set<(i) : (i == 5)>", (5,), (5,), 0),
        ("affine_set<(i) : (2 * i - 3 >= 0, -3 * i + 10 >= 0)>", (2,), (3,), 0),
        ("affine_set<(i) : (i <= 7, i >= 1, i >= 3)>", (3,), (7,), 0),
        ("affine_set<(i, j) : (i >= 0, i <= 3, j >= 0, j <= 3, i - j >= 0)>", (0, 0), (3, 3), 1),
    ],
)
def test_bounds(text: str, low: tuple[int, ...], high: tuple[int, ...], rules: int) -> None:
    found = bounds_of(set_of(text))
    assert (found.low, found.high, len(found.rules)) == (low, high, rules)


def test_bounds_with_symbols() -> None:
    text = "affine_set<(i)[n] : (i - n >= 0, -i + 2 * n - 1 >= 0)>"
    assert bounds_of(set_of(text), [16]).low == (16,)
    assert bounds_of(set_of(text), [16]).high == (31,)
    with pytest.raises(AffineError, match="1 symbols and 0 values"):
        bounds_of(set_of(text))
    with pytest.raises(AffineError, match="d0 has no lower and upper bound"):
        bounds_of(set_of("affine_set<(i) : (i >= 0)>"))


# --- constructors -------------------------------------------------------------------------------------------------


def test_ops_are_made_without_text() -> None:
    """What a lowering does: a view, a tile and a load, and a gather, all verified."""
    block = Block(arg_types=[IndexType(), IndexType()])
    pointer, start = block.args
    view = ConstructMemoryViewOp(pointer, [64, 128], [128, 1], box_set([64, 128]), memory_space("global"), f16)
    tile = ConstructAccessTileOp(view.result, [start, start], box_set([8, 16]), order_map([1, 0]), [16, 8])
    data = LoadOp(tile.result, f16)
    index = ConstructMemoryViewOp(pointer, [8], [1], box_set([8]), memory_space("ct_local", 3), IndexType())
    gather = ConstructIndirectAccessTileOp(
        view.result,
        [(index.result, AffineMap(2, 1, (D0 + S0,))), AffineMap(2, 1, (D1,))],
        [start],
        box_set([8, 128]),
        order_map([0, 1]),
        [8, 128],
    )
    for op in (view, tile, data, index, gather, ReturnOp()):
        block.add_op(op)
    module = ModuleOp([FuncOp("f", ([IndexType(), IndexType()], []), Region(block))])
    module.verify()
    assert read(ktir_text(module)).is_structurally_equivalent(module)
    assert (
        set_text(view.coordinate_set.data) == "affine_set<(d0, d1) : (d0 >= 0, -d0 + 63 >= 0, d1 >= 0, -d1 + 127 >= 0)>"
    )
    assert map_text(tile.access_tile_order.data) == "affine_map<(d0, d1) -> (d1, d0)>"
    assert re.search(r"\[ind\(%\w+\[%_iv0 \+ %\w+\]\), \(%_iv1\)\]", ktir_text(module))
