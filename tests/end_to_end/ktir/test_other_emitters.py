"""KTIR as other emitters write it: short forms, what they leave out, and accumulators that nobody filled."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.errors import InputError, MachineFault
from spyre_mlir.machine.ktdp import run_ktir
from spyre_mlir.text.ktir import ktir_text
from tests.unit.machine.ktdp.ktir_programs import box, copy, function, halves, read, run, store, tile, view
from tests.unit.machine.ktdp.test_arithmetic import computed

X = halves(3, 4, 8)


@pytest.mark.parametrize(("combiner", "wanted"), [("arith.addf", np.sum), ("arith.maxnumf", np.max)])
def test_a_combiner_by_its_name(combiner: str, wanted: object) -> None:
    body = f"""
      %e = tensor.empty() : tensor<4xf16>
      %r = linalg.reduce {{ {combiner} }} ins(%x : tensor<4x8xf16>) outs(%e : tensor<4xf16>) dimensions = [1]
    """
    assert callable(wanted)
    np.testing.assert_allclose(computed(body, "r", "f16", (4,), x=X), wanted(X.astype(np.float64), 1), atol=2e-2)


def test_a_reduction_starts_from_what_is_filled() -> None:
    body = """
      %ten = arith.constant dense<10.0> : tensor<4xf16>
      %r = linalg.reduce { arith.addf } ins(%x : tensor<4x8xf16>) outs(%ten : tensor<4xf16>) dimensions = [1]
    """
    np.testing.assert_allclose(computed(body, "r", "f16", (4,), x=X), X.astype(np.float64).sum(1) + 10, atol=2e-2)


def test_a_product_into_an_empty_tensor() -> None:
    y = halves(4, 8, 6)
    body = """
      %e = tensor.empty() : tensor<4x6xf16>
      %r = linalg.matmul ins(%x, %y : tensor<4x8xf16>, tensor<8x6xf16>) outs(%e : tensor<4x6xf16>) -> tensor<4x6xf16>
    """
    np.testing.assert_allclose(
        computed(body, "r", "f16", (4, 6), x=X, y=y), X.astype(np.float64) @ y.astype(np.float64), atol=1e-2
    )


def test_an_accumulator_with_gaps_is_a_fault() -> None:
    body = """
      %e = tensor.empty() : tensor<4xf16>
      %one = arith.constant dense<1.0> : tensor<1xf16>
      %s = tensor.insert_slice %one into %e[0] [1] [1] : tensor<1xf16> into tensor<4xf16>
      %r = linalg.reduce { arith.addf } ins(%x : tensor<4x8xf16>) outs(%s : tensor<4xf16>) dimensions = [1]
    """
    with pytest.raises(MachineFault, match="uninitialised-read"):
        computed(body, "r", "f16", (4,), x=X)


def test_one_carried_type_without_parentheses() -> None:
    body = """
      %two = arith.constant 2 : index
      %one = arith.constant 1 : index
      %r = scf.for %i = %c0 to %two step %one iter_args(%a = %x) -> tensor<4x8xf16> {
        %b = arith.addf %a, %x : tensor<4x8xf16>
        scf.yield %b : tensor<4x8xf16>
      }
    """
    np.testing.assert_allclose(computed(body, "r", "f16", (4, 8), x=X), 3 * X.astype(np.float64), atol=2e-2)


def test_places_of_a_generic() -> None:
    body = """
      %e = tensor.empty() : tensor<4x8xi32>
      %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
          outs(%e : tensor<4x8xi32>) {
      ^bb0(%o: i32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %ten = arith.constant 10 : index
        %t = arith.muli %i, %ten : index
        %s = arith.addi %t, %j : index
        %n = arith.index_cast %s : index to i32
        linalg.yield %n : i32
      } -> tensor<4x8xi32>
    """
    wanted = 10 * np.arange(4)[:, None] + np.arange(8)
    assert np.array_equal(computed(body, "r", "i32", (4, 8), x=X), wanted)


def test_dimensions_of_one_core_need_no_number() -> None:
    text = "func.func @f() attributes {grid = [8, 1, 1]} { %p = ktdp.get_compute_tile_id : index  func.return }"
    read(text)
    with pytest.raises(VerifyException, match="one result per dimension"):
        read(text.replace("[8, 1, 1]", "[8, 2, 1]"))


def test_a_view_without_a_set_has_all_coordinates() -> None:
    bare = view("iv", "ip", (16,)).replace(f"coordinate_set = {box(16)}, ", "")
    assert "coordinate_set" not in bare
    tiles = tile("it", "iv", ["c0"], (16,), (16,)) + tile("ot", "ov", ["c0"], (16,), (16,))
    module = function("%ip: index, %op: index", bare, view("ov", "op", (16,)), tiles, copy("it", "ot", (16,)))
    assert ktir_text(module).count("affine_set<(d0) : (d0 >= 0, -d0 + 15 >= 0)>") == 4
    x = halves(1, 16)
    assert np.array_equal(run(module, ip=x, op=np.zeros_like(x))["op"], x)


DYNAMIC = """
  %VV = ktdp.construct_memory_view %VP, sizes: [%n], strides: [1]
    {coordinate_set = affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)>, memory_space = #ktdp.memory_space<global>}
    : memref<?xf16>
  %VT = ktdp.construct_access_tile %VV[%START] {access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 15 >= 0)>,
    access_tile_order = affine_map<(d0) -> (d0)>} : memref<?xf16> -> !ktdp.access_tile<16xindex>
"""


def test_a_set_with_symbols_masks() -> None:
    """Eleven of sixteen elements count: the others are neither read nor written, though the arrays have them."""
    views = "".join(DYNAMIC.replace("%V", f"%{name}").replace("START", "c0") for name in "io")
    module = function("%iP: index, %oP: index, %n: index", views, copy("iT", "oT", (16,)))
    x = halves(2, 16)
    got = run_ktir(module, None, {"iP": x, "oP": np.full_like(x, 7), "n": 11})["oP"]
    assert np.array_equal(got, np.where(np.arange(16) < 11, x, 7))


def test_a_masked_element_has_no_value() -> None:
    x = halves(2, 16)
    views = DYNAMIC.replace("%V", "%i").replace("START", "c0") + view("ov", "oP", (16,))
    whole = function(
        "%iP: index, %oP: index, %n: index", views, tile("ot", "ov", ["c0"], (16,), (16,)), copy("iT", "ot", (16,))
    )
    with pytest.raises(MachineFault, match="have no value"):
        run_ktir(whole, None, {"iP": x, "oP": x, "n": 11})


REDUCED = """
  %v = ktdp.construct_memory_view %mine, sizes: [1, 8], strides: [8, 1] {memory_space = #ktdp.memory_space<global>}
    : memref<1x8xf16>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {access_tile_set = SET, access_tile_order =
    affine_map<(d0, d1) -> (d0, d1)>} : memref<1x8xf16> -> !ktdp.access_tile<1x8xindex>
  %x = ktdp.load %t : <1x8xindex> -> tensor<1x8xf16>
  %zero = arith.constant dense<0.0> : tensor<1x8xf16>
  %f = ktdp.inter_tile_produce producer_tiles_per_group = TEAM -> <(tensor<1x8xf16>), groups = GROUP> {
  ^bb0(%g: index):
    ktdp.yield_partial %x : tensor<1x8xf16>
  }
  %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = TEAM, identity(%zero : tensor<1x8xf16>)
    : <(tensor<1x8xf16>), groups = GROUP> -> tensor<8xf16> {
  ^bb0(%a: tensor<1x8xf16>, %b: tensor<1x8xf16>):
    %s = arith.addf %a, %b : tensor<1x8xf16>
    ktdp.yield_reduced %s : tensor<1x8xf16>
  }
  %first = arith.cmpi eq, %core, %c0 : index
  scf.if %first {
    STORE
  }
"""


def test_what_is_reduced_may_lose_dimensions_of_one() -> None:
    out = view("ov", "op", (8,)) + tile("ot", "ov", ["c0"], (8,), (8,)) + store("r", "ot", (8,))
    body = REDUCED.replace("SET", box(1, 8)).replace("STORE", out)
    body = body.replace("TEAM", "affine_set<(i)[g] : (i - 4*g >= 0, -i + 4*g + 3 >= 0)>")
    body = body.replace("GROUP", "affine_set<(g) : (g == 0)>")
    start = "%at = arith.muli %core, %c8 : index\n %mine = arith.addi %ip, %at : index\n"
    module = function("%ip: index, %op: index", start, body, grid="[4]")
    x = halves(6, 4, 8)
    got = run(module, ip=x, op=np.zeros(8, np.float16))["op"]
    np.testing.assert_allclose(got, x.astype(np.float64).sum(0), atol=5e-3)
    other = body.replace(out, "").replace("-> tensor<8xf16>", "-> tensor<4xf16>")
    with pytest.raises(VerifyException, match="the result is"):
        function("%ip: index, %op: index", start, other, grid="[4]")


def test_a_pointer_may_be_a_number_where_arrays_have_places() -> None:
    tiles = tile("it", "iv", ["c0"], (16,), (16,)) + tile("ot", "ov", ["c0"], (16,), (16,))
    views = view("iv", "ip", (16,)) + view("ov", "op", (16,))
    module = function("%ip: index, %op: index", views, tiles, copy("it", "ot", (16,)))
    x = halves(1, 16)
    given = {"ip": 4096, "op": 8192, "x": x, "y": np.zeros_like(x)}
    assert np.array_equal(run_ktir(module, None, given, places={"x": 8192, "y": 16384})["y"], x)
    with pytest.raises(InputError, match="points to an array, got a number"):
        run_ktir(module, None, {"ip": 4096, "op": x})


def test_pages_by_division() -> None:
    """Row 4 p + r of the result is row r of page `table[p]`."""
    pages, table = halves(7, 5, 4, 8), np.array([3, 0, 4], np.int32)
    views = view("pv", "pp", (5, 4, 8)) + view("tv", "tp", (3,), "i32") + view("ov", "op", (12, 8))
    gather = f"""
      %gt = ktdp.construct_indirect_access_tile intermediate_variables(%m, %n)
        %pv[ind(%tv[%m floordiv 4]), (%m mod 4), (%n)] {{variables_space_set = {box(12, 8)},
        variables_space_order = affine_map<(d0, d1) -> (d0, d1)>}}
        : memref<5x4x8xf16>, memref<3xi32> -> !ktdp.access_tile<12x8xindex>
    """
    out = tile("ot", "ov", ["c0", "c0"], (12, 8), (12, 8))
    module = function("%pp: index, %tp: index, %op: index", views, gather, out, copy("gt", "ot", (12, 8)))
    again = read(ktir_text(module))
    for one in (module, again):
        got = run(one, pp=pages, tp=table, op=np.zeros((12, 8), np.float16))["op"]
        assert np.array_equal(got, pages[table].reshape(12, 8))
