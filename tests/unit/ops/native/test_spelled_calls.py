"""The reason for a call that the host makes by name."""

from spyre_mlir.ops.native.spelled_calls import ON_COMPLEX, ON_COPIES, no_form


def test_the_operator_is_named_as_users_know_it() -> None:
    assert no_form(ON_COMPLEX, "aten.linalg_inv.default").startswith("aten.linalg_inv has no form for complex numbers")
    assert no_form(ON_COMPLEX, "aten.sum.dim_IntList").startswith("aten.sum.dim_IntList has no form")
    assert no_form(ON_COPIES, "vllm.rotary.default").startswith("vllm.rotary writes to its arguments")
