"""One operator as a program of its own: which are programs, which are kept, and what the host does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
import torch

import spyre_mlir.device  # noqa: F401 - switches the device on
from spyre_mlir import api
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.torch_tracing import tracing_alone
from spyre_mlir.torch_device import run
from spyre_mlir.torch_device.run import run_operator
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning

SPYRE = cast(Any, torch).spyre
aten = torch.ops.aten
X = torch.tensor([1.0, 1.0 + 2**-12])


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The options of every compilation of a test; each begins without programs."""
    monkeypatch.setattr(run, "_programs", {})
    monkeypatch.setattr(SPYRE, "numerics", "device")
    seen: list[dict[str, Any]] = []
    compile_ = api.compile

    def observed(*args: Any, **options: Any) -> Any:
        seen.append(options)
        return compile_(*args, **options)

    monkeypatch.setattr(api, "compile", observed)
    SPYRE.host_steps.clear()
    with torch.no_grad():
        yield seen


def test_a_program_rounds_as_the_device_and_is_kept(compiled: list[dict[str, Any]]) -> None:
    for _ in range(2):
        assert run_operator(aten.mul.Tensor, (X, 1.5), {}).tolist() == [1.5, 1.5]
    assert compiled == [{"host_fallback": "allow", "numerics": "device", "on_overflow": "warn"}]
    assert not SPYRE.host_steps


def test_programs_are_kept_by_operator_arguments_and_settings(
    compiled: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_operator(aten.mul.Tensor, (X, 1.5), {})
    assert run_operator(aten.mul.Tensor, (X, 2.5), {}).tolist() == [2.5, 2.5]
    assert run_operator(aten.add.Tensor, (X, 2.0), {"alpha": 2}).tolist() == [5, 5]
    monkeypatch.setattr(SPYRE, "numerics", "exact")
    assert run_operator(aten.mul.Tensor, (X, 1.5), {}).tolist() == (X * 1.5).tolist()
    monkeypatch.setattr(SPYRE, "on_overflow", "ignore")
    run_operator(aten.mul.Tensor, (X, 1.5), {})
    assert [c["numerics"] for c in compiled] == ["device"] * 3 + ["exact"] * 2
    assert [c["on_overflow"] for c in compiled] == ["warn"] * 4 + ["ignore"]


def test_what_mutates_gives_its_operand_back() -> None:
    x = torch.tensor([1.0, 2.0])
    assert run_operator(aten.mul_.Tensor, (x, 2.0), {}) is x
    assert x.tolist() == [2, 4]
    assert run_operator(aten.mul.Tensor, (x, 2.0), {}) is not x


def test_what_is_written_may_be_read_as_well() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    assert run_operator(aten.mul_.Tensor, (x, x), {}) is x
    assert x.tolist() == [1, 4, 9]
    run_operator(aten.addcmul_.default, (x, x.view(3), torch.ones(3)), {"value": 0.5})
    assert x.tolist() == [1.5, 6, 13.5]
    with pytest.raises(InputError, match="shares memory"):
        run_operator(aten.mul_.Tensor, (x[1:], x[:-1]), {})


def test_what_is_written_by_name_may_be_read_as_well() -> None:
    x, y = torch.tensor([1.0, 5.0]), torch.tensor([3.0, 2.0])
    run_operator(aten.maximum.out, (x, y), {"out": x})
    assert x.tolist() == [3, 5]


def test_results_without_a_size_get_one(compiled: list[dict[str, Any]]) -> None:
    values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]])
    run_operator(aten.max.dim_max, (x, 1), {"max": values, "max_values": places})
    assert (values.tolist(), places.tolist(), len(compiled)) == ([5, 3], [1, 0], 1)


def test_a_name_that_ends_like_those_that_mutate_is_not_enough() -> None:
    x = torch.tensor([7, -3, 2])
    for shifted in (aten.__lshift__.Scalar, aten.__ilshift__.Scalar):
        assert run_operator(shifted, (x, 1), {}).tolist() == [14, -6, 4]
    assert x.tolist() == [14, -6, 4]


def test_lists_of_tensors_are_inputs() -> None:
    result = run_operator(aten.addcmul.default, (X, torch.tensor([2.0, 4.0]), torch.ones(2)), {"value": 0.5})
    assert result.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("operator", "args", "wanted"),
    [
        (aten.clone.default, (X,), X.tolist()),
        (aten._to_copy.default, (X,), X.tolist()),
        (aten.detach.default, (X,), X.tolist()),
        (aten.alias.default, (X,), X.tolist()),
        (aten.lift_fresh.default, (X,), X.tolist()),
        (aten.slice.Tensor, (X, 0, 1), X[1:].tolist()),
        (aten.zeros_like.default, (X,), [0, 0]),
        (aten.ones_like.default, (X,), [1, 1]),
        (aten.full_like.default, (X, 3), [3, 3]),
        (aten.new_zeros.default, (X, [1]), [0]),
        (aten.ones.default, ([2],), [1, 1]),
        (aten.arange.default, (3,), [0, 1, 2]),
        (aten.zero_.default, (X.clone(),), [0, 0]),
        (aten.fill_.Scalar, (X.clone(), 2), [2, 2]),
        (aten.copy_.default, (X.clone(), torch.zeros(2)), [0, 0]),
        (aten.unsqueeze_.default, (torch.zeros(2), 0), [[0, 0]]),
        (aten.arange.out, (2,), [0, 1]),
    ],
)
def test_memory_is_the_hosts(
    operator: Any, args: tuple[Any, ...], wanted: object, compiled: list[dict[str, Any]]
) -> None:
    named = {"out": torch.empty(0, dtype=torch.int64)} if operator is aten.arange.out else {}
    assert run_operator(operator, args, named).tolist() == wanted
    assert not compiled
    assert not SPYRE.host_steps


@pytest.mark.parametrize(
    ("operator", "args", "wanted"),
    [
        (aten._local_scalar_dense.default, (torch.tensor(2.5),), 2.5),
        (aten.is_nonzero.default, (torch.tensor(2.5),), True),
        (aten.equal.default, (X, X), True),
    ],
)
def test_single_numbers_come_to_python_without_a_program(
    operator: Any, args: tuple[Any, ...], wanted: object, compiled: list[dict[str, Any]]
) -> None:
    assert run_operator(operator, args, {}) == wanted
    assert not compiled


@pytest.mark.parametrize(
    "operator", [aten.rand_like.default, aten.randn_like.default, aten.empty_like.default, aten.bernoulli.default]
)
def test_random_numbers_and_allocations_are_the_hosts(operator: Any, compiled: list[dict[str, Any]]) -> None:
    assert run_operator(operator, (torch.zeros(2),), {}).shape == (2,)
    assert run_operator(aten.uniform_.default, (torch.zeros(2),), {}).shape == (2,)
    assert run_operator(aten.normal_.default, (torch.zeros(2),), {}).shape == (2,)
    assert not compiled


def test_what_the_device_cannot_do_is_said_once_and_counted(compiled: list[dict[str, Any]]) -> None:
    with pytest.warns(HostStepWarning, match=r"aten\.special_bessel_j0\.default runs on the host: .+") as told:
        result = run_operator(aten.special_bessel_j0.default, (X,), {})
    assert len(told) == 1
    assert torch.equal(result, torch.special.bessel_j0(X))
    run_operator(aten.special_bessel_j0.default, (X,), {})
    assert len(compiled) == 1
    assert SPYRE.host_steps == {"aten.special_bessel_j0.default": 2}


def test_what_cannot_be_imported_runs_on_the_host() -> None:
    with pytest.warns(HostStepWarning, match=r"aten\.nonzero\.default runs on the host: .+"):
        assert run_operator(aten.nonzero.default, (torch.tensor([0.0, 2.0]),), {}).tolist() == [[1]]
    assert SPYRE.host_steps == {"aten.nonzero.default": 1}


def test_what_torch_computes_while_it_traces_is_the_hosts(compiled: list[dict[str, Any]]) -> None:
    with tracing_alone():
        assert run_operator(aten.mul.Tensor, (X, 1.5), {}).tolist() == (X * 1.5).tolist()
    assert (compiled, SPYRE.host_steps["aten.mul.Tensor"]) == ([], 1)


def test_what_computes_nothing_is_the_hosts_without_a_word(compiled: list[dict[str, Any]]) -> None:
    result = run_operator(aten.add.Tensor, (torch.empty(0), 1), {})
    assert result.shape == (0,)
    assert len(compiled) == 1
    assert SPYRE.host_steps == {"aten.add.Tensor": 1}
