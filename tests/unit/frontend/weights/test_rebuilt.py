"""Buffers that no checkpoint has, from modules built again by their configuration."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import nn

from spyre_mlir.frontend.weights.rebuilt import rebuilt_buffers


class Rotary(nn.Module):
    def __init__(self, config: SimpleNamespace, device: torch.device | None = None) -> None:
        super().__init__()
        table = 1.0 / config.base ** (torch.arange(0, config.size, 2, device=device) / config.size)
        self.register_buffer("inv_freq", table, persistent=False)


class Fixed(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(size), persistent=False)


class Model(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.inner = nn.ModuleDict({"rotary": Rotary(config), "fixed": Fixed(3)})


def on_meta() -> Model:
    with torch.device("meta"):
        return Model(SimpleNamespace(base=100.0, size=4))


def test_a_module_is_built_from_the_configuration_around_it() -> None:
    state = torch.random.get_rng_state()
    found = rebuilt_buffers(on_meta(), ["inner.rotary.inv_freq"])
    torch.testing.assert_close(found["inner.rotary.inv_freq"], torch.tensor([1.0, 0.1]))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_the_value_has_the_type_of_the_buffer() -> None:
    found = rebuilt_buffers(on_meta().half(), ["inner.rotary.inv_freq"])
    assert found["inner.rotary.inv_freq"].dtype is torch.float16


class Scaled(nn.Module):
    """Takes more than a configuration, so that only the module around it can be built."""

    def __init__(self, size: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size))
        nn.init.normal_(self.weight)
        self.register_buffer("scale", torch.tensor(scale), persistent=False)
        self.register_buffer("unset", torch.empty(2), persistent=False)


class Around(nn.Module):
    made = 0

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList([Scaled(config.size, config.base) for _ in range(2)])
        Around.made += 1
        Around.on_meta = self.layers[0].weight.is_meta


def test_a_module_around_it_is_built_once_and_without_weights() -> None:
    with torch.device("meta"):
        model = nn.Sequential(Around(SimpleNamespace(base=100.0, size=4)))
    before = Around.made
    found = rebuilt_buffers(model, ["0.layers.0.scale", "0.layers.1.scale", "0.layers.0.unset"])
    assert {name: value.item() for name, value in found.items()} == {"0.layers.0.scale": 100, "0.layers.1.scale": 100}
    assert Around.made == before + 1 and Around.on_meta


def test_what_cannot_be_built_is_left_out() -> None:
    with torch.device("meta"):
        alone = nn.Sequential(Fixed(3))
    assert rebuilt_buffers(alone, ["0.table"]) == {}
    assert rebuilt_buffers(object(), ["inner.rotary.inv_freq"]) == {}
    broken = on_meta()
    broken.config = SimpleNamespace(base=100.0)
    assert rebuilt_buffers(broken, ["inner.rotary.inv_freq"]) == {}
    other = on_meta()
    other.config = SimpleNamespace(base=100.0, size=8)  # no longer what the model was made from
    assert rebuilt_buffers(other, ["inner.rotary.inv_freq"]) == {}
