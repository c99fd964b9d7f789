"""Registration of the device with PyTorch: when it is asked for, who may have it already, and what comes to it."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest
import torch
from torch.fx import Graph, GraphModule
from torch.utils import backend_registration

import spyre_mlir.device  # noqa: F401 - switches the device on
from spyre_mlir.errors import RegistrationError
from spyre_mlir.torch_device import registration
from spyre_mlir.torch_device.module import DeviceModule

TORCH, CORE = cast(Any, torch), cast(Any, torch)._C
HINT = 'torch.compile(model, backend="spyre") needs no device; or import spyre_mlir.device in another process'


@pytest.fixture
def off(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process had not switched the device on itself."""
    monkeypatch.setattr(registration, "_state", {})


@pytest.fixture
def free(off: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nobody had switched it on."""
    monkeypatch.setattr(CORE, "_get_privateuse1_backend_name", lambda: "privateuseone")
    monkeypatch.setattr(CORE, "_dispatch_has_kernel_for_dispatch_key", lambda *_: False)
    monkeypatch.delattr(torch, "spyre")


def test_the_device_is_ours() -> None:
    assert registration.is_on()
    assert isinstance(TORCH.spyre, DeviceModule)
    assert CORE._get_privateuse1_backend_name() == "spyre"


def test_switching_on_again_changes_nothing() -> None:
    before = TORCH.spyre
    registration.switch_on()
    assert TORCH.spyre is before


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(2, 3, device="spyre"),
        lambda: torch.empty_strided((2, 3), (3, 1), device="spyre"),
        lambda: torch.tensor([[1, 2, 3], [4, 5, 6]], device="spyre"),
        lambda: torch.zeros(2, 3, device="spyre"),
        lambda: torch.rand(2, 3, device="spyre"),
    ],
)
def test_what_has_no_tensor_of_ours_is_made_there(make: Any) -> None:
    made = make()
    assert (str(made.device), tuple(made.shape)) == ("spyre:0", (2, 3))


@pytest.mark.parametrize("asked", [None, "", "0"])
def test_the_device_stays_off_unless_it_is_asked_for(asked: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "switch_on", switched := mock.Mock())
    monkeypatch.delenv("SPYRE_MLIR_DEVICE", raising=False)
    if asked is not None:
        monkeypatch.setenv("SPYRE_MLIR_DEVICE", asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registration.register()
    assert not switched.called


def told(monkeypatch: pytest.MonkeyPatch, asked: str) -> tuple[list[str], bool]:
    """What is warned about when torch is imported, and whether the device was switched on."""
    monkeypatch.setattr(registration, "switch_on", switched := mock.Mock())
    monkeypatch.setenv("SPYRE_MLIR_DEVICE", asked)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        registration.register()
    assert all(w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught], switched.called


def test_asked_for_it_is_switched_on(free: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, "1") == ([], True)


def test_another_value_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, "yes") == (["SPYRE_MLIR_DEVICE is 1 or 0, got 'yes': the device stays off"], False)


def test_a_device_of_others_is_a_warning(off: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,), switched = told(monkeypatch, "1")
    assert not switched
    assert text.startswith("SPYRE_MLIR_DEVICE=1: PyTorch has room for one device from outside, and 'spyre', ")
    assert text.endswith(f" is there already; {HINT}")


def owner_of() -> str:
    with pytest.raises(RegistrationError) as refused:
        registration.switch_on()
    assert refused.value.hint == HINT
    before, after = "PyTorch has room for one device from outside, and ", " is there already"
    assert refused.value.message.startswith(before)
    assert refused.value.message.endswith(after)
    return refused.value.message.removeprefix(before).removesuffix(after)


def test_a_device_of_others_is_refused(off: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert owner_of() == f"'spyre', {TORCH.spyre!r},"
    monkeypatch.setattr(CORE, "_get_privateuse1_backend_name", lambda: "acme")
    assert owner_of() == "'acme'"
    assert not registration.is_on()


def test_what_has_no_name_is_refused_too(free: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "spyre", "a module", raising=False)
    assert owner_of() == "a module torch.spyre, 'a module',"
    monkeypatch.delattr(torch, "spyre")
    asked = mock.Mock(return_value=True)
    monkeypatch.setattr(CORE, "_dispatch_has_kernel_for_dispatch_key", asked)
    assert owner_of() == "an extension without a name"
    asked.assert_called_with("aten::empty.memory_format", "PrivateUse1")


def test_what_pytorch_is_told(free: None, monkeypatch: pytest.MonkeyPatch) -> None:
    named, libraries = mock.Mock(), mock.Mock()
    monkeypatch.setattr(backend_registration, "_setup_privateuseone_for_python_backend", named)
    monkeypatch.setattr(torch.library, "Library", libraries)
    wrapper = TORCH._TorchCompileInductorWrapper
    monkeypatch.setattr(wrapper, "__call__", before := wrapper.__call__)
    registration.switch_on()
    ((_, told_),) = named.call_args_list
    assert told_["rename"] == "spyre"
    assert isinstance(told_["backend_module"], DeviceModule)
    assert libraries.call_args_list == [mock.call("aten", "IMPL"), mock.call("_", "IMPL")]
    kernels = [call.args for call in libraries.return_value.impl.call_args_list]
    assert [name for name, _, _ in kernels] == ["empty.memory_format", "empty_strided", "copy_"]
    assert {key for _, _, key in kernels} == {"PrivateUse1"}
    assert libraries.return_value.fallback.call_args.args[1] == "PrivateUse1"
    assert wrapper.__call__ is not before
    assert registration.is_on()


def captured(device: str) -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(x)
    x.meta["example_value"] = torch.ones(2, device=device)
    return GraphModule(torch.nn.Module(), graph)


def test_graphs_on_the_device_come_to_our_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    back_end: Any = SimpleNamespace(config={"a": 1, "b": 2}, name=None)
    call, graph, inputs = TORCH._TorchCompileInductorWrapper.__call__, captured("spyre"), [torch.ones(2)]
    monkeypatch.setattr("spyre_mlir.torch_compile.default.compile_on_device", ours := mock.Mock(return_value="ours"))
    assert call(back_end, graph, inputs) == "ours"
    assert call(back_end, graph, inputs, config_patches={"b": 3}) == "ours"
    assert [c.args for c in ours.call_args_list] == [
        (graph, {"a": 1, "b": 2}),
        (graph, {"a": 1, "b": 3}),
    ]


def test_graphs_of_the_host_stay_inductors(monkeypatch: pytest.MonkeyPatch) -> None:
    back_end: Any = SimpleNamespace(config={"a": 1}, name=None)
    call, graph, inputs = TORCH._TorchCompileInductorWrapper.__call__, captured("cpu"), [torch.ones(2)]
    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", theirs := mock.Mock(return_value="inductor's"))
    assert call(back_end, graph, inputs, config_patches={"b": 3}) == "inductor's"
    ((args, named),) = theirs.call_args_list
    assert (args, named["config_patches"]) == ((graph, inputs), {"a": 1, "b": 3})
