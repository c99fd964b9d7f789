"""Names of operations: every spelling means the same, and a name that ATen lacks is refused once torch is there."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops.operator_names import canonical, check_name, exists, is_aten_packet


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("sigmoid", "sigmoid"),
        ("aten::sigmoid", "sigmoid"),
        ("aten.sigmoid", "sigmoid"),
        ("aten.sigmoid.default", "sigmoid"),
        ("sigmoid.default", "sigmoid"),
        ("aten::sigmoid.default", "sigmoid"),
        ("max.dim", "max.dim"),
        ("aten::max.dim", "max.dim"),
        ("aten.max.dim", "max.dim"),
        ("acme::blend", "acme::blend"),
        ("acme.blend", "acme::blend"),
        ("acme.blend.default", "acme::blend"),
        ("acme::blend.default", "acme::blend"),
        ("acme.blend.out", "acme::blend.out"),
        ("my_custom_op", "my_custom_op"),
        ("my_custom_op.default", "my_custom_op"),
        (torch.ops.aten.max.dim, "max.dim"),
        (torch.ops.aten.sigmoid, "sigmoid"),
        (torch.ops.aten.sigmoid.default, "sigmoid"),
    ],
)
def test_spellings(spelling: object, name: str) -> None:
    assert canonical(spelling) == name


@pytest.mark.parametrize("wrong", [None, 3, "", ["relu"], torch.relu])
def test_what_is_no_name_is_refused(wrong: object) -> None:
    with pytest.raises(RegistrationError, match="an operation is named by text or an operator of torch, got "):
        canonical(wrong)


@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        ("sigmoyd", "a function is registered for sigmoyd, and ATen has no operator sigmoyd", "did you mean sigmoid?"),
        ("aten::sigmoyd", "and ATen has no operator sigmoyd", "did you mean sigmoid?"),
        ("aten.xyzzy", "a function is registered for aten.xyzzy, and ATen has no operator xyzzy", "'erfinv'"),
        ("max.dimm", "and aten::max has no overload dimm", "its overloads: default, dim, dim_max, other"),
        ("add", "and aten::add has no overload default", "its overloads: Scalar, Scalar_out, Tensor, out"),
    ],
)
def test_names_that_aten_lacks_are_refused_with_a_suggestion(wrong: str, message: str, hint: str) -> None:
    with pytest.raises(RegistrationError) as refused:
        check_name(wrong)
    assert message in refused.value.message
    assert (refused.value.hint or "").startswith(hint)


@pytest.mark.parametrize(
    "name", ["sigmoid", "max.dim", "linalg_det", "acme::blend", "nosuch.op", "my_custom_op", "special_bessel_j1"]
)
def test_other_names_are_taken(name: str) -> None:
    assert check_name(name)


def test_what_exists() -> None:
    library = torch.library.Library("named", "DEF")
    library.define("here(Tensor self) -> Tensor")
    known = {
        n: exists(n) for n in ("relu", "special_bessel_j1", "max.dim", "max.dimm", "named::here", "named::gone", "x")
    }
    assert known == {
        "relu": True, "special_bessel_j1": True, "max.dim": True, "max.dimm": False,
        "named::here": True, "named::gone": False, "x": False,
    }  # fmt: skip
    assert [is_aten_packet(n) for n in ("max", "special_bessel_j1", "acme")] == [True, True, False]


def test_before_torch_is_loaded_only_the_op_table_speaks() -> None:
    program = """
import sys
from spyre_mlir.ops.operator_names import canonical, check_name, exists
print(check_name("sigmoid"), check_name("sigmoyd"), check_name("acme::x"), canonical("aten.sigmoid"), canonical("a.b"))
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["True False True sigmoid a::b", "False"]
