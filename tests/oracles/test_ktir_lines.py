"""The line checker of KTIR text: a sound program passes, and each rule finds the text that breaks it."""

from __future__ import annotations

import pytest

from tests.oracles.ktir_lines import problems

SOUND = """
// one core
builtin.module {
  func.func @main(%x: index, %n: i32) attributes {grid = [4, 8]} {
    %i, %j = ktdp.get_compute_tile_id : index, index
    %v = ktdp.construct_memory_view %x, sizes: [64], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0)>, memory_space = #ktdp.memory_space<ct_local, ct_id = 3>} : memref<64xf16>
    %r = linalg.reduce ins(%a:tensor<64xf32>) outs(%b:tensor<1xf32>) dimensions = [0]
    (%p: f32, %q: f32) {
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    %g = linalg.generic {iterator_types = ["parallel"]} ins(%a : tensor<4xf16>) outs(%b : tensor<4xf16>) {
    ^bb0(%8: f16):
      linalg.yield %8 : f16
    } -> tensor<4xf16>
    scf.for %k = %c0 to %c4 step %c1 {
    }
    func.return
  }
}
"""  # noqa: E501


def test_a_sound_program_passes() -> None:
    assert problems(SOUND) == []


BREAKS = {
    "generic assembly": ("arith.addf %p, %q : f32", '"arith.addf"(%p, %q) : (f32, f32) -> f32'),
    "does not end its line": ("step %c1 {", "step %c1 { scf.yield"),
    "`}` is followed by": ("} -> tensor<4xf16>", "} : tensor<4xf16>"),
    "has %": ('{iterator_types = ["parallel"]}', "{start = %c0}"),
    "parentheses inside argument types": ("%n: i32", "%n: memref<4xf16, affine_map<(d0) -> (d0)>>"),
    "`else` is dropped": ("    func.return", "    scf.if %c {\n    } else {\n    }\n    func.return"),
    "`affine.apply` is dropped": ("    func.return", "    %m = affine.apply #map(%i)\n    func.return"),
    "`?` in an access tile": ("    func.return", "    %t = ktdp.load %x : !ktdp.access_tile<?xindex> -> tensor<4xf16>"),
    "unknown element type bf16": ("memref<64xf16>", "memref<64xbf16>"),
    "no operation is known of": ("arith.addf %p", "spyreop.exp %p"),
    "a grid of [5, 8]": ("grid = [4, 8]", "grid = [5, 8]"),
    "`func.func @name(args)": ("grid = [4, 8]", "grid = [4 : i64]"),
    "is read as device memory": ("#ktdp.memory_space<ct_local, ct_id = 3>", "#ktdp.spyre_memory_space<LX>"),
    "unbalanced braces": ("    func.return\n  }", "    func.return"),
    "a brace closes nothing": ("    func.return\n  }\n}", "    func.return\n  }\n}\n}"),
}


@pytest.mark.parametrize("what", BREAKS)
def test_a_broken_rule_is_found(what: str) -> None:
    before, after = BREAKS[what]
    assert before in SOUND
    found = problems(SOUND.replace(before, after, 1))
    assert any(what in line for line in found), found


def test_the_older_spelling_is_read_by_older_readers_only() -> None:
    older = SOUND.replace("#ktdp.memory_space<ct_local, ct_id = 3>", "#ktdp.spyre_memory_space<LX>")
    assert problems(older, older_spaces=True) == []
    assert problems(SOUND, older_spaces=True) != []


LOCAL = """
builtin.module {
  func.func @main() attributes {grid = [1]} {
    %c0 = arith.constant 0 : index
    %v = ktdp.construct_memory_view %c0, sizes: [8], strides: [1] {memory_space = #ktdp.memory_space<ct_local>} : memref<8xf16>
    %w = ktdp.construct_memory_view %c0, sizes: [4], strides: [2] {memory_space = #ktdp.memory_space<ct_local>} : memref<4xf16>
    %s = ktdp.construct_access_tile %v[%c0] {} : memref<8xf16> -> !ktdp.access_tile<8xindex>
    %t = ktdp.construct_access_tile %w[%c0] {} : memref<4xf16> -> !ktdp.access_tile<4xindex>
    ktdp.store %a, %s : tensor<8xf16>, !ktdp.access_tile<8xindex>
    ktdp.store %b, %t : tensor<4xf16>, !ktdp.access_tile<4xindex>
    func.return
  }
}
"""  # noqa: E501


def test_a_store_in_parts_needs_a_whole_one_before() -> None:
    assert problems(LOCAL) == []
    first, second = (next(line for line in LOCAL.splitlines() if f"ktdp.store %{n}" in line) for n in "ab")
    turned = LOCAL.replace(first, "FIRST").replace(second, first).replace("FIRST", second)
    assert problems(turned) == ["line 9: a store in parts to LX at 0, which no whole store has made"]


def test_an_array_in_the_scratchpad_keeps_its_size() -> None:
    smaller = LOCAL.replace("sizes: [4], strides: [2]", "sizes: [4], strides: [1]")
    first, second = (next(line for line in LOCAL.splitlines() if f"ktdp.store %{n}" in line) for n in "ab")
    turned = smaller.replace(first, "FIRST").replace(second, first).replace("FIRST", second)
    assert problems(turned) == ["line 10: 8 elements to LX at 0, where an array of 4 stays"]


def test_two_functions_in_a_module_are_found() -> None:
    body = LOCAL.split("builtin.module {")[1].rsplit("}", 1)[0]
    text = "builtin.module {" + body + body.replace("@main", "@other") + "}"
    assert any("2 functions in a module" in line for line in problems(text))
