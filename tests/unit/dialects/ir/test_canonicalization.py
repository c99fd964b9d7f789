"""Which ops `canonicalize` rewrites, and that nothing loads the patterns before it runs."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
from xdsl.dialects.test import TestOp
from xdsl.ir import Operation
from xdsl.traits import HasCanonicalizationPatternsTrait

from spyre_mlir.dialects.aten import OP_CLASSES, CallOp
from spyre_mlir.dialects.ir.canonicalization import CanonicalPatterns
from spyre_mlir.dialects.spyre import Spyre
from tests.paths import ROOT

PATTERN_MODULES = (
    "spyre_mlir.dialects.aten_canonicalize",
    "spyre_mlir.dialects.spyre.canonicalization.loop",
    "spyre_mlir.dialects.spyre.canonicalization.kernel",
)
OPS: list[type[Operation]] = [*OP_CLASSES.values(), CallOp, *Spyre.operations]


def patterns_of(op: type[Operation]) -> list[str]:
    traits = op.get_traits_of_type(HasCanonicalizationPatternsTrait)
    return [type(pattern).__name__ for trait in traits for pattern in trait.get_patterns(op)]


def test_ops_have_these_patterns() -> None:
    found = {op.name: patterns for op in Spyre.operations if (patterns := patterns_of(op))}
    assert found == {
        "spyre.loop.nest": ["DropIdentityNest", "DropOverwrittenDest", "FoldConstantNest"],
        "spyre.kernel.compute": ["DropDeadStore"],
        "spyre.kernel.restickify": ["DropDeadStore", "SkipRoundTrip"],
        "spyre.kernel.convert": ["DropDeadStore", "SkipRoundTrip"],
        "spyre.kernel.gather": ["DropDeadStore"],
        "spyre.kernel.alloc": ["DropUnusedBuffer"],
        "spyre.kernel.constant": ["DropUnusedBuffer"],
        "spyre.kernel.to_device": ["DropUnusedBuffer"],
        "spyre.kernel.from_device": ["SkipDevice"],
        "spyre.kernel.tile": ["DropWholeTile"],
    }
    aten = ["DropUndoneViews", "SkipReshape", "MergePermutes", "DropCopy", "DropNeutralNumber"]
    assert {tuple(patterns_of(op)) for op in (*OP_CLASSES.values(), CallOp)} == {tuple(aten)}


@pytest.mark.parametrize("name", PATTERN_MODULES)
def test_every_op_of_a_table_names_its_module(name: str) -> None:
    for kind in import_module(name).PATTERNS:
        named = [op for op in OPS if issubclass(op, kind)]
        assert named and all(op.has_trait(CanonicalPatterns(name)) for op in named), kind


def test_an_op_outside_of_the_table_has_no_patterns() -> None:
    trait = CanonicalPatterns(PATTERN_MODULES[1])
    assert trait.get_patterns(TestOp) == () and trait.get_canonicalization_patterns() == ()


def test_patterns_are_loaded_by_the_first_who_asks() -> None:
    code = (
        "import sys; from spyre_mlir.dialects.aten import OP_CLASSES; import spyre_mlir.dialects.spyre; "
        f"print(*[name in sys.modules for name in {PATTERN_MODULES}])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * 3
