"""Weights bound to a program: found by name, checked, and listed where they do not fit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from spyre_mlir.errors import BindingError
from spyre_mlir.frontend import Program, import_program
from spyre_mlir.frontend.weights.binding import bind
from spyre_mlir.text.render import module_text
from tests.unit.frontend.weights.test_rebuilt import Rotary

IDS = torch.tensor([[1, 0, 2]])


class Model(nn.Module):
    """Tied embeddings, a rotary table, a buffer that calls write to, a head that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(base=100.0, size=4)
        self.embed = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embed.weight
        self.unread = nn.Linear(4, 2)
        self.rotary = Rotary(self.config)
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        angles = torch.arange(3.0)[:, None] * self.rotary.inv_freq
        return self.head(self.embed(ids) * torch.cat([angles, angles], 1).cos())


def model(seed: int = 0) -> Model:
    torch.manual_seed(seed)
    return Model().eval()


def weightless() -> Program:
    with torch.device("meta"):
        made = Model().eval()
    return import_program(made, (IDS,))


def checkpoint() -> dict[str, torch.Tensor]:
    """What Hugging Face saves: a tied tensor once, no table."""
    return {name: value for name, value in model().state_dict().items() if name != "head.weight"}


def test_a_program_without_weights_gets_those_of_a_checkpoint(tmp_path: Path) -> None:
    save_file(checkpoint(), tmp_path / "model.safetensors")
    empty, whole = weightless(), import_program(model(), (IDS,))
    assert dict(empty.values).keys() == set()
    for source in (checkpoint(), tmp_path, model(), torch.export.export(model(), (IDS,))):
        bound = bind(empty, source)
        assert module_text(bound.module) == module_text(whole.module)
        assert bound.values.keys() == whole.values.keys()
        assert all(torch.equal(bound.values[name], value) for name, value in whole.values.items())
        assert bound.stored is (source == tmp_path)


def test_the_model_behind_a_bound_program_has_the_weights() -> None:
    bound = bind(weightless(), checkpoint())
    assert isinstance(bound.reference, nn.Module)
    assert torch.equal(bound.reference(IDS), model()(IDS))


def test_a_tied_tensor_may_have_any_of_its_names() -> None:
    given = checkpoint()
    given["head.weight"] = given.pop("embed.weight")
    assert torch.equal(bind(weightless(), given).values["embed.weight"], model().embed.weight)


def test_what_calls_write_to_is_the_programs_own() -> None:
    given = checkpoint()
    bound = bind(weightless(), given)
    bound.values["calls"].add_(1)
    assert given["calls"].item() == 0
    assert bound.values["embed.weight"].data_ptr() == given["embed.weight"].data_ptr()


def test_other_weights_for_a_program_that_has_some() -> None:
    other = bind(import_program(model(1), (IDS,)), checkpoint())
    assert torch.equal(other.values["embed.weight"], model().embed.weight)
    assert set(other.recipes) <= set(other.values)


def test_everything_that_does_not_fit_is_listed() -> None:
    given = checkpoint()
    given["embed.wieght"] = given.pop("embed.weight")
    given["unread.bias"] = torch.zeros(7)  # nothing is asked of what the program does not read
    given["calls"] = torch.zeros(2)
    with pytest.raises(BindingError) as raised:
        bind(weightless(), given)
    text = str(raised.value)
    assert "1 missing: embed.weight (is it embed.wieght?)" in text
    assert "1 of another shape or type: calls: expected int64[], got float32[2]" in text
    assert "1 unexpected: embed.wieght" in text


def test_unexpected_tensors_may_be_left_out() -> None:
    given = checkpoint() | {"lora.weight": torch.ones(1)}
    with pytest.raises(BindingError, match=r"1 unexpected: lora\.weight"):
        bind(weightless(), given)
    assert "lora.weight" not in bind(weightless(), given, strict=False).values


def test_long_lists_are_cut() -> None:
    with pytest.raises(BindingError, match=r"30 unexpected: n0, n1, n2, n3, n4, n5, n6, n7, and 22 more"):
        bind(weightless(), checkpoint() | {f"n{i}": torch.ones(1) for i in range(30)})


def test_another_type_says_how_to_get_it() -> None:
    given = {n: v.to(torch.bfloat16) if v.is_floating_point() else v for n, v in checkpoint().items()}
    with pytest.raises(BindingError, match=r"float32\[5, 4\], got bfloat16\[5, 4\]\n.*model\.to\(torch\.bfloat16\)"):
        bind(weightless(), given)


class Wrapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(ids)


def test_a_prefix_is_found() -> None:
    given = {f"model.{name}": value for name, value in checkpoint().items()}
    with pytest.raises(BindingError, match=r"rename=lambda name: name\.removeprefix\('model\.'\)"):
        bind(weightless(), given)
    with pytest.raises(BindingError, match=r"rename=lambda name: 'model\.' \+ name"):
        bind(import_program(Wrapped().eval(), (IDS,)), checkpoint())


def test_names_are_those_that_rename_gives() -> None:
    given = {f"model.{name}": value for name, value in checkpoint().items()} | {"other": torch.ones(1)}
    renamed = bind(weightless(), given, rename=lambda n: n.removeprefix("model.") if "." in n else None)
    assert torch.equal(renamed.values["embed.weight"], model().embed.weight)


def test_buffers_that_no_checkpoint_has() -> None:
    empty = weightless()
    assert set(bind(empty, checkpoint()).recipes) == {"constant_0"}
    empty.reference.config = None  # type: ignore[attr-defined] # pyright: ignore[reportFunctionMemberAccess]
    with pytest.raises(BindingError) as raised:
        bind(empty, checkpoint())
    text = str(raised.value)
    assert "1 in no checkpoint, of modules that cannot be built again: rotary.inv_freq" in text
    assert "buffers=model" in text
    whole = import_program(model(), (IDS,))
    for buffers in (model(3), {"rotary.inv_freq": model().rotary.inv_freq}):
        assert torch.equal(bind(empty, checkpoint(), buffers).values["constant_0"], whole.values["constant_0"])


def test_only_buffers_come_from_the_second_source() -> None:
    given = checkpoint()
    del given["embed.weight"]
    with pytest.raises(BindingError, match=r"1 missing: embed\.weight"):
        bind(weightless(), given, buffers=model())


def test_buffers_have_the_form_that_the_model_was_compiled_with() -> None:
    for wrong in (torch.ones(3), torch.ones(2, dtype=torch.float64)):
        with pytest.raises(BindingError, match=r"rotary\.inv_freq: expected float32\[2\], got float"):
            bind(weightless(), checkpoint() | {"rotary.inv_freq": wrong})


def test_a_second_binding_replaces_the_first() -> None:
    other = {n: v + 1 if v.is_floating_point() else v for n, v in checkpoint().items()}
    second = bind(bind(weightless(), checkpoint()), other)
    assert torch.equal(second.values["embed.weight"], other["embed.weight"])
    assert isinstance(second.reference, nn.Module)
    assert torch.equal(second.reference.embed.weight, other["embed.weight"])
