"""The `spyre` device in eager mode and under `torch.compile`, against the same on the CPU."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Generator
from typing import Any, cast

import pytest
import torch
from torch import nn

import spyre_mlir.device  # noqa: F401 - switches the device on
from spyre_mlir import torch_compile
from spyre_mlir.errors import InputError, OverflowFault, UnsupportedError
from spyre_mlir.machine.overflows import DL16OverflowWarning
from spyre_mlir.runtime.residence import CARD
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning

SPYRE = cast(Any, torch).spyre


@pytest.fixture(autouse=True)
def exact() -> Generator[None]:
    SPYRE.numerics = "exact"
    SPYRE.host_steps.clear()
    with torch.no_grad():
        yield
    SPYRE.numerics = "device"


def close(got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert got.device.type == "spyre"
    torch.testing.assert_close(got.cpu(), wanted, rtol=1e-4, atol=1e-5)


def test_there_and_back() -> None:
    x = torch.randn(3, 4)
    y = x.to("spyre")
    assert str(y.device) == "spyre:0"
    assert torch.equal(y.cpu(), x)
    assert torch.equal(copy.deepcopy(y).cpu(), x)


PARTS = {"whole": lambda x: x, "turned": lambda x: x.T, "from within": lambda x: x[1:, 2:], "number": lambda x: x[2, 3]}


@pytest.mark.parametrize("part", PARTS)
def test_copies_of_any_part_have_its_elements(part: str) -> None:
    x = PARTS[part](torch.arange(12.0).reshape(3, 4))
    y = PARTS[part](torch.arange(12.0).reshape(3, 4).to("spyre"))
    shared, apart, read = copy.copy(y), copy.deepcopy(y), pickle.loads(pickle.dumps(y))
    y.add_(1)
    for made, wanted in ((shared, x + 1), (apart, x), (read, x)):
        assert type(made) is type(y) and made.stride() == x.stride() and torch.equal(made.cpu(), wanted)


def test_copies_keep_what_is_shared_and_gradients() -> None:
    x = torch.arange(4.0).to("spyre")
    whole, part = copy.deepcopy((x, x[1:]))
    part.zero_()
    assert whole.tolist() == [0, 0, 0, 0] and x.tolist() == [0, 1, 2, 3]
    parameter = nn.Parameter(x[1:])
    parameter.grad = torch.ones(3).to("spyre")
    for made in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert isinstance(made, nn.Parameter) and made.requires_grad and made.tolist() == [1, 2, 3]
    assert copy.deepcopy(parameter).grad.tolist() == [1, 1, 1]
    with torch.enable_grad(), pytest.raises(RuntimeError, match="created explicitly by the user"):
        copy.deepcopy(parameter * 2)


def test_printing_shows_the_elements_and_the_device() -> None:
    assert repr(torch.ones(2).to("spyre")) == "tensor([1., 1.], device='spyre:0')"


def test_arithmetic_runs_on_the_machine_and_rounds_as_it_does() -> None:
    x = torch.tensor([1.0, 1.0 + 2**-12])
    SPYRE.numerics = "device"
    assert (x.to("spyre") * 1.5).cpu().tolist() == [1.5, 1.5], "DL16 has nine bits behind the point"
    SPYRE.numerics = "exact"
    close(x.to("spyre") * 1.5, x * 1.5)
    assert not SPYRE.host_steps


def test_views_write_through() -> None:
    x = torch.zeros(3, 4)
    y = x.to("spyre")
    y[1].add_(1)
    y.t()[0] = 5
    x[1].add_(1)
    x.t()[0] = 5
    close(y, x)


def test_views_in_place() -> None:
    x = torch.arange(6.0).view(2, 3).to("spyre")
    assert x.t_().shape == (3, 2)
    assert x.unsqueeze_(0).squeeze_().shape == (3, 2)
    assert x.cpu().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_tensor_is_resized_and_views_keep_its_memory() -> None:
    x = torch.arange(6.0).to("spyre")
    row = x[:2]
    assert x.resize_(2, 2) is x
    assert x.shape == (2, 2)
    row.add_(5)
    close(x + 1, torch.tensor([[6.0, 7.0], [3.0, 4.0]]))
    assert x.resize_as_(torch.empty(3, 1, device="spyre")).shape == (3, 1)
    with pytest.raises(RuntimeError, match="require grad"):
        torch.ones(4, device="spyre", requires_grad=True).resize_(2)


def test_results_are_written_where_they_are_asked_for_whatever_the_size() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for operation in (lambda a, out: torch.add(a, 1, out=out), lambda a, out: torch.cat([a, a], out=out)):
        wanted, got = torch.empty(0), torch.empty(0, device="spyre")
        operation(x, wanted)
        assert operation(x.to("spyre"), got) is got
        assert (got.shape, got.stride()) == (wanted.shape, wanted.stride())
        close(got.t() * 2, wanted.t() * 2)


def test_a_function_of_torch_that_resizes_its_scratch_tensors() -> None:
    layer, x = nn.CrossMapLRN2d(3), torch.randn(1, 6, 2, 2)
    close(layer(x.to("spyre")), layer(x))


def test_data_of_a_tensor_is_replaced_with_its_elements() -> None:
    x = torch.nn.Parameter(torch.ones(2).to("spyre"))
    x.data = torch.full((3,), 2.0, device="spyre")
    assert (x.shape, x.cpu().tolist(), x.data.tolist()) == ((3,), [2, 2, 2], [2, 2, 2])
    x.data.add_(1)
    assert x.tolist() == [3, 3, 3]
    with pytest.raises(InputError, match="cannot be on cpu"):
        x.data = torch.ones(3)


def test_factories_that_take_after_a_tensor_make_it_where_they_are_asked_to() -> None:
    x = torch.ones(2, device="spyre")
    assert torch.zeros_like(x, device="cpu").device.type == "cpu"
    assert x.new_zeros(2, device="cpu").device.type == "cpu"
    assert torch.zeros_like(x).device.type == "spyre"


def test_numbers_are_formatted() -> None:
    assert f"{torch.tensor(1.5).to('spyre'):.2f}" == "1.50"


def test_factories() -> None:
    close(torch.zeros(2, 3, device="spyre") + 1, torch.ones(2, 3))
    close(torch.arange(4, device="spyre"), torch.arange(4))
    assert torch.rand(3, device="spyre").device.type == "spyre"


@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.tensor([1.0, 2.0], device=device),
        lambda device: torch.as_tensor(3, device=device),
        lambda device: torch.eye(3, device=device),
        lambda device: torch.linspace(0, 1, 3, device=device),
        lambda device: torch.ones(2).to(device).new_tensor([4, 5]),
    ],
)
def test_tensors_are_made_there(make: Any, recwarn: pytest.WarningsRecorder) -> None:
    close(make("spyre"), make("cpu"))
    assert not recwarn.list


def test_autocast_is_switched_off_with_a_warning() -> None:
    x = torch.ones(2, 2).to("spyre")
    with torch.autocast("spyre", enabled=False):
        close(x @ x, torch.full((2, 2), 2.0))
    with pytest.warns(
        UserWarning, match=r"Disabling autocast.\n.* only supports dtypes of none \(.*model.half\(\)"
    ) as told:
        off = torch.autocast("spyre")
    assert len(told) == 1
    with off:
        assert not torch.is_autocast_enabled("spyre")
        close(x @ x, torch.full((2, 2), 2.0))


def test_autocast_of_the_device_leaves_compiled_functions_as_they_are() -> None:
    torch.compiler.reset()
    model, x = torch.nn.Linear(4, 3).to("spyre"), torch.ones(2, 4).to("spyre")

    @torch.compile
    def inside(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("spyre"):
            return model(x)

    with torch.no_grad(), pytest.warns(UserWarning, match="Disabling autocast"):
        got = inside(x)
    with torch.no_grad():
        close(got, model(x).cpu())
    assert got.dtype == torch.float32


def test_values_for_python() -> None:
    x = torch.tensor([[1.5, 2.0]]).to("spyre")
    assert x.tolist() == [[1.5, 2.0]]
    with pytest.raises(InputError, match="is no array") as caught:
        x.numpy()
    assert "x.cpu().numpy()" in str(caught.value)
    assert x.numpy(force=True).tolist() == [[1.5, 2.0]]
    assert x.to("meta").device.type == "meta"


def test_item_and_truth() -> None:
    assert torch.tensor([2.5]).to("spyre").item() == 2.5
    assert bool(torch.tensor(True).to("spyre"))


def test_what_the_device_cannot_do_is_warned_about_once_and_counted() -> None:
    x = torch.rand(3)
    with pytest.warns(HostStepWarning, match="special_bessel_j0.default runs on the host: the op table has no entry"):
        y = torch.special.bessel_j0(x.to("spyre"))
    close(y, torch.special.bessel_j0(x))
    torch.special.bessel_j0(x.to("spyre"))
    assert SPYRE.host_steps["aten.special_bessel_j0.default"] == 2


def test_mixed_devices_are_an_error() -> None:
    x = torch.randn(3)
    with pytest.raises(InputError, match="tensors on spyre:0 and on cpu"):
        x.to("spyre") + x
    close(x.to("spyre") + torch.tensor(2.0), x + 2)


def test_parameters_stay_on_the_card_and_writes_to_them_are_seen() -> None:
    layer = nn.Linear(64, 8)
    there, x = copy.deepcopy(layer).to("spyre"), torch.randn(2, 64)
    given = x.to("spyre")
    for write in (lambda w: None, lambda w: w.mul_(2), lambda w: w.data.add_(1), lambda w: w[3].zero_()):
        write(layer.weight)
        write(there.weight)
        for _ in range(2):
            close(there(given), layer(x))
        # The product reads the weight turned.
        assert CARD.of(cast(Any, there.weight).host.T).transfers == 1


@pytest.mark.usefixtures("only_new_garbage")
def test_copies_of_parameters_go_with_their_module() -> None:
    before = CARD.card_bytes
    there, given = nn.Linear(64, 8).to("spyre"), torch.randn(2, 64).to("spyre")
    there(given)
    assert CARD.card_bytes > before
    del there
    gc.collect()
    assert CARD.card_bytes == before


def test_a_module_moves_and_runs_eagerly_and_compiled() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    x, wanted = (x := torch.randn(3, 4)), model(x)
    moved = copy.deepcopy(model).to("spyre")
    close(moved(x.to("spyre")), wanted)
    compiled = torch.compile(moved, backend=torch_compile.spyre, options={"numerics": "exact"})
    close(compiled(x.to("spyre")), wanted)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_layers_run_step_by_step(kind: Any, bias: bool) -> None:
    layer, x = kind(3, 4, bias=bias), torch.randn(2, 3)
    close(copy.deepcopy(layer).to("spyre")(x.to("spyre"))[0], layer(x)[0])
    assert not SPYRE.host_steps


def test_a_module_that_makes_tensors_on_its_device_compiles() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * torch.arange(4, device=x.device)

    compiled = torch.compile(function, backend=torch_compile.spyre, options={"numerics": "exact"})
    x = torch.randn(3, 4)
    close(compiled(x.to("spyre")), function(x))


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (lambda x, y: (torch.ones(3, device="spyre") + 1, x.cpu()), ("spyre", "cpu")),
        (lambda x, y: (x * 2, y + 1), ("spyre", "cpu")),
        (lambda x, y: ((x * 2).cpu(), y.to("spyre") * 2), ("cpu", "spyre")),
        (lambda x, y: (x.cpu().add_(1), y.to("spyre").add_(1)), ("cpu", "spyre")),
    ],
)
def test_compiled_results_are_where_the_model_has_them(model: Any, wanted: tuple[str, ...]) -> None:
    torch._dynamo.reset()
    there, here = torch.ones(2, 3).to("spyre"), torch.ones(2, 3)
    got = torch.compile(model, backend=torch_compile.spyre)(there, here)
    assert tuple(x.device.type for x in got) == wanted
    for x, eager in zip(got, model(there, here), strict=True):
        torch.testing.assert_close(x.cpu(), eager.cpu())
    assert there.cpu().eq(1).all(), "a copy of another device was written, not the tensor itself"
    assert here.eq(1).all()


def test_backward_of_a_compiled_graph_on_the_device_is_refused() -> None:
    model = nn.Linear(4, 4).to("spyre")
    with torch.enable_grad():
        out = torch.compile(model, backend=torch_compile.spyre)(torch.randn(3, 4).to("spyre"))
        with pytest.raises(UnsupportedError, match="backward pass"):
            out.sum().backward()


def test_inference_mode_takes_tensors_from_outside_and_modules() -> None:
    layer, x = nn.Linear(4, 3), torch.randn(2, 4)
    there = x.to("spyre")
    with torch.inference_mode():
        close(there.view(-1)[1:] * 2, x.view(-1)[1:] * 2)
        close(there.t(), x.t())
        wanted = layer(x)
        close(copy.deepcopy(layer).to("spyre")(there), wanted)
    there.view(-1).mul_(2)
    close(there, x * 2)


def test_random_numbers_are_the_hosts() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with torch.random.fork_rng():  # saves and restores the generators of every device there is
        torch.rand(4)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(devices=[0], device_type="spyre"):
        torch.rand(4)
    assert torch.equal(SPYRE.get_rng_state(), before)
    SPYRE.empty_cache()
    with pytest.raises(InputError, match="no device spyre:1"):
        SPYRE.get_rng_state(1)
    with pytest.raises(InputError, match="no device spyre:1"):
        SPYRE.set_rng_state(before, 1)


def test_another_device_number_is_refused() -> None:
    for other in (1, "spyre:1", torch.device("spyre:1")):
        with pytest.raises(InputError, match="no device spyre:1"):
            SPYRE.set_device(other)
    for mine in (0, "spyre", "spyre:0", torch.device("spyre")):
        SPYRE.set_device(mine)
    with pytest.raises(InputError, match="no device cpu"):
        SPYRE.set_device("cpu")
    for make in (lambda: torch.ones(2).to("spyre:1"), lambda: torch.ones(2, device="spyre:1")):
        with pytest.raises(InputError, match="no device spyre:1"):
            make()


def test_numbers_beyond_the_range_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SPYRE, "numerics", "device")
    large = torch.full((3, 64), 3e5).to("spyre")
    with pytest.warns(DL16OverflowWarning, match=r"192 results of \d:mul are beyond DLFloat16"):
        large * large
    monkeypatch.setattr(SPYRE, "on_overflow", "raise")
    with pytest.raises(OverflowFault):
        large * large
