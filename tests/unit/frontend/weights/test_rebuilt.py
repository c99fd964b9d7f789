"""Buffers that no checkpoint has, from modules built again by their configuration."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from spyre_mlir.frontend.weights.rebuilt import rebuilt_buffers


class Rotary(torch.nn.Module):
    def __init__(self, config: SimpleNamespace, device: torch.device | None = None) -> None:
        super().__init__()
        table = 1.0 / config.base ** (torch.arange(0, config.size, 2, device=device) / config.size)
        self.register_buffer("inv_freq", table, persistent=False)


class Fixed(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(size), persistent=False)


class Model(torch.nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.inner = torch.nn.ModuleDict({"rotary": Rotary(config), "fixed": Fixed(3)})


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


def test_what_cannot_be_built_is_left_out() -> None:
    assert rebuilt_buffers(on_meta(), ["inner.fixed.table"]) == {}
    assert rebuilt_buffers(object(), ["inner.rotary.inv_freq"]) == {}
    broken = on_meta()
    broken.config = SimpleNamespace(base=100.0)
    assert rebuilt_buffers(broken, ["inner.rotary.inv_freq"]) == {}
    other = on_meta()
    other.config = SimpleNamespace(base=100.0, size=8)  # no longer what the model was made from
    assert rebuilt_buffers(other, ["inner.rotary.inv_freq"]) == {}
