"""The reason for a call on complex numbers."""

from spyre_mlir.ops.native.complex_calls import no_form


def test_the_operator_is_named_as_users_know_it() -> None:
    assert no_form("aten.linalg_inv.default").startswith("aten.linalg_inv has no form")
    assert no_form("aten.sum.dim_IntList").startswith("aten.sum.dim_IntList has no form")
