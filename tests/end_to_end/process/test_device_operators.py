"""One operator on tensors of the device: which device its tensors are on, and where its result is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
import torch

import spyre_mlir.device  # noqa: F401 - switches the device on
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.torch_private import FakeTensorMode
from spyre_mlir.torch_device import tensor as dispatching
from spyre_mlir.torch_device.tensor import SpyreTensor, dispatch

SPYRE = cast(Any, torch).spyre
aten = torch.ops.aten


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The operators that ran as programs; here the host computes them."""
    seen: list[Any] = []

    def run(operator: Any, args: Any, kwargs: Any) -> Any:
        seen.append(operator)
        return operator(*args, **kwargs)

    monkeypatch.setattr(dispatching, "run_operator", run)
    with torch.no_grad():
        yield seen


def there(*numbers: float) -> SpyreTensor:
    return SpyreTensor(torch.tensor(numbers))


def test_results_are_on_the_device(ran: list[Any]) -> None:
    result = dispatch(aten.add.Tensor, (there(1, 2), there(3, 4)), {"alpha": 10})
    assert isinstance(result, SpyreTensor)
    assert result.tolist() == [31, 42]
    assert ran == [aten.add.Tensor]
    values, places = dispatch(aten.max.dim, (there(1, 2), 0), {})
    assert (type(values), values.item(), type(places), places.item()) == (SpyreTensor, 2, SpyreTensor, 1)


def test_what_mutates_gives_its_operand_back() -> None:
    x = there(1, 2)
    assert dispatch(aten.add_.Tensor, (x, 1), {}) is x
    assert x.tolist() == [2, 3]


def test_views_share_their_elements() -> None:
    x = there(1, 2, 3)
    part = dispatch(aten.slice.Tensor, (x, 0, 1), {})
    x.host.zero_()
    assert part.tolist() == [0, 0]


def test_types_are_compatible_where_both_are_on_the_device_or_neither(ran: list[Any]) -> None:
    asked, host = aten._has_compatible_shallow_copy_type.default, torch.ones(2)
    assert dispatch(asked, (there(1), there(2)), {}) is True
    assert dispatch(asked, (there(1), host), {}) is False
    assert dispatch(asked, (host, there(1)), {}) is False
    assert dispatch(asked, (host, host), {}) is True
    assert not ran


def test_tensors_of_two_devices_are_refused() -> None:
    host = torch.ones(2)
    for args in ((there(1, 2), host), (host, there(1, 2))):
        with pytest.raises(InputError) as refused:
            dispatch(aten.add.Tensor, args, {})
        assert refused.value.message == "aten::add got tensors on spyre:0 and on cpu"
        assert refused.value.hint == 'bring them to one device, e.g. x.to("spyre")'
    assert dispatch(aten.add.Tensor, (there(1, 2), torch.tensor(3.0)), {}).tolist() == [4, 5], "a number"


def test_copies_go_between_devices() -> None:
    x, host = there(1, 2), torch.zeros(2)
    assert dispatch(aten.copy_.default, (host, x), {}) is host
    assert host.tolist() == [1, 2]
    assert dispatch(aten.copy_.default, (x, torch.tensor([3.0, 4.0])), {}) is x
    assert x.tolist() == [3, 4]
    assert dispatch(aten.copy.default, (x, host), {}).tolist() == [1, 2]


def test_a_result_is_where_it_is_asked_for() -> None:
    back = dispatch(aten._to_copy.default, (there(1, 2),), {"device": torch.device("cpu")})
    assert (type(back), back.tolist()) == (torch.Tensor, [1, 2])
    made = dispatch(aten._to_copy.default, (torch.ones(2),), {"device": torch.device("spyre")})
    assert (type(made), made.tolist()) == (SpyreTensor, [1, 1])
    made = dispatch(aten.ones.default, ([2],), {"device": "spyre:0"})
    assert (type(made), made.tolist()) == (SpyreTensor, [1, 1])
    with pytest.raises(InputError, match="there is no device spyre:1"):
        dispatch(aten.ones.default, ([2],), {"device": torch.device("spyre:1")})


def test_cells_are_made_of_other_operators(ran: list[Any]) -> None:
    gates, cell = there(0, 0, 0, 0).view(1, 4), there(2).view(1, 1)
    ran.clear()
    state, after, _ = dispatch(aten._thnn_fused_lstm_cell.default, (gates, gates, cell), {})
    assert after.tolist() == [[1]], "half of the cell is kept, and half of nothing is new"
    assert state.item() == pytest.approx(0.5 * torch.tensor(1.0).tanh().item())
    assert aten._thnn_fused_lstm_cell.default not in ran


def test_what_is_traced_is_not_run(ran: list[Any]) -> None:
    with FakeTensorMode() as mode:
        fake = SpyreTensor(mode.from_tensor(torch.ones(2)))
        result = dispatch(aten.sin.default, (fake,), {})
    assert (type(result), tuple(result.shape), ran) == (SpyreTensor, (2,), [])


def test_inference_tensors_come_of_inference_tensors() -> None:
    plain = there(1, 2)
    with torch.inference_mode():
        inferred = there(1, 2)
        assert dispatch(aten.sin.default, (inferred,), {}).is_inference()
        assert not dispatch(aten.slice.Tensor, (plain, 0, 1), {}).is_inference()
    assert not dispatch(aten.sin.default, (plain,), {}).is_inference()
