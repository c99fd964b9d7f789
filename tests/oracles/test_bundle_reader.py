"""The bundle reader on texts whose addresses are worked out by hand."""

from __future__ import annotations

import pytest

from tests.oracles.bundle_reader import BundleSyntaxError, argument_count, pool_bytes, read_bundle
from tests.paths import DATA

TWO_OPS = """\
module {
  func.func @sdsc_bundle(%a_arg: !sdscbundle.input_arg<index>, %b_arg: !sdscbundle.input_arg<index>) {
    %pool = sdscbundle.device_mem_allocate 65536 bytes : index
    %a = sdscbundle.input_arg_extract value from %a_arg : !sdscbundle.input_arg<index> -> index
    %b = sdscbundle.input_arg_extract value from %b_arg : !sdscbundle.input_arg<index> -> index
    %o = arith.constant 32768 : index
    %a1 = arith.addi %a, %o : index
    %p1 = arith.addi %pool, %o : index
    sdscbundle.sdsc_execute (%a, %a1, %pool, %p1) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3, -4]}
    sdscbundle.sdsc_execute (%p1, %b) {sdsc_filename="sdsc_1.json", symbol_ids=[-5, -6]}
    return
  }
}
"""

LOOP = """\
#map_0 = affine_map<(d0)[s0] -> (s0 + 65536*d0)>
module {
  func.func @sdsc_bundle(%p: !sdscbundle.input_arg<index>) {
    %a = sdscbundle.input_arg_extract value from %p : !sdscbundle.input_arg<index> -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 3 : index
    scf.for %i = %c0 to %n step %c1 {
      %x = affine.apply #map_0(%i)[%a]
      sdscbundle.sdsc_execute (%x) {sdsc_filename="sdsc_0.json", symbol_ids=[-1]}
    }
    return
  }
}
"""


def test_addresses_of_a_pool_and_two_ops() -> None:
    first, second = read_bundle(TWO_OPS, [1000, 5000], [900000])
    assert (first.filename, first.symbols) == ("sdsc_0.json", {-1: 1000, -2: 33768, -3: 900000, -4: 932768})
    assert second.symbols == {-5: 932768, -6: 5000}
    assert argument_count(TWO_OPS) == 2
    assert pool_bytes(TWO_OPS) == [65536]


def test_loop_advances_by_the_map() -> None:
    assert [r.symbols[-1] for r in read_bundle(LOOP, [128])] == [128, 65664, 131200]


def test_real_bundle_runs_four_files_in_order() -> None:
    launches = read_bundle((DATA / "superdsc_real" / "10_bundle.mlir").read_text(), [])
    assert [r.filename for r in launches] == [
        "sdsc_0_ReStickifyOpHBM.json",
        "sdsc_1_add.json",
        "sdsc_2_add.json",
        "sdsc_3_ReStickifyOpHBM.json",
    ]


def test_operand_count_must_equal_symbol_count() -> None:
    with pytest.raises(BundleSyntaxError, match="2 operands and 1 symbol ids"):
        read_bundle(TWO_OPS.replace("symbol_ids=[-5, -6]", "symbol_ids=[-5]"), [0, 0], [0])


def test_an_unknown_line_is_refused() -> None:
    with pytest.raises(BundleSyntaxError, match="not in the grammar"):
        read_bundle(TWO_OPS.replace("    return\n", "    scf.if %c { }\n    return\n"), [0, 0], [0])


NESTED = LOOP.replace("(d0)[s0] -> (s0 + 65536*d0)", "(d0, d1)[s0] -> (s0 + 4096*d0 + 128*d1)").replace(
    """      %x = affine.apply #map_0(%i)[%a]
      sdscbundle.sdsc_execute (%x) {sdsc_filename="sdsc_0.json", symbol_ids=[-1]}
""",
    """      scf.for %j = %c1 to %n step %c1 {
        %x = affine.apply #map_0(%i, %j)[%a]
        sdscbundle.sdsc_execute (%x) {sdsc_filename="sdsc_0.json", symbol_ids=[-1]}
      }
      sdscbundle.sdsc_execute (%a) {sdsc_filename="sdsc_1.json", symbol_ids=[-2]}
""",
)


def test_loops_in_loops_run_in_order() -> None:
    launches = read_bundle(NESTED, [1000])
    assert [r.filename[5] for r in launches] == list("001" * 3)
    assert [r.symbols[-1] for r in launches if -1 in r.symbols] == [
        1000 + 4096 * i + 128 * j for i in range(3) for j in (1, 2)
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("%n = arith.constant 3", "%n = arith.constant 65536"), "a loop of 65536 trips"),
        (("%n = arith.constant 3", "%n = arith.constant 0"), "a loop of 0 trips"),
        (("to %n step", "to %a step"), "the bounds of a loop are not all constants"),
    ],
)
def test_loops_that_the_back_end_would_refuse(change: tuple[str, str], message: str) -> None:
    with pytest.raises(BundleSyntaxError, match=message):
        read_bundle(LOOP.replace(*change), [128])
