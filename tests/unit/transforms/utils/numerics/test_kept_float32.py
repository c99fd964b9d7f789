"""Float32 kept for modules, lines and operations: as close as float32 there, DL16 elsewhere, and wrong names."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
import torch

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import AbsentNamesError, InputError
from spyre_mlir.transforms.loop_to_kernel.precision_loss import NarrowedWarning

THIS = Path(__file__).name


class Growing(torch.nn.Module):
    """Beyond DLFloat16 on its way."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        big = x * 1e5
        return torch.sqrt(big * big + 1) * 1e-5  # grows here


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Tanh(), Growing(), Growing()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


X = torch.linspace(1, 2, 4 * 64).reshape(4, 64)
LINE = (
    f"{THIS}:{next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if '# grows here' in text)}"
)


def compiled(*names: str, model: torch.nn.Module | None = None) -> CompiledModel:
    made = spyre_mlir.compile(Layers() if model is None else model, (X,), keep_float32_in=names, on_overflow="ignore")
    assert isinstance(made, CompiledModel)
    return made


def formats(model: CompiledModel) -> list[str]:
    """The format of the result of every function, in order."""
    pattern = r'compute "[^"]*".* outs\([^:]*: !spyre\.tensor<\[[^]]*\] x (\w+)'
    return re.findall(pattern, model.mlir("spyre.kernel"))


def error(model: CompiledModel, module: torch.nn.Module) -> float:
    wanted = module(X.double())
    return float((model(X).double() - wanted).abs().max() / wanted.abs().max())


def test_a_part_is_as_close_as_float32() -> None:
    part = compiled("mul", "add", "sqrt", model=Growing())
    whole = spyre_mlir.compile(Growing(), (X,), keep_float32=True)
    assert isinstance(whole, CompiledModel)
    # What comes back from the host's own float32 is DL16: ten bits at the door, none lost on the way.
    assert error(compiled(model=Growing()), Growing()) > 0.5 > 2e-3 > error(part, Growing())
    assert error(whole, Growing()) < 1e-6
    assert set(formats(part)) == {"IEEE_FP32"} and part.verify(X)


@pytest.mark.parametrize(
    ("names", "wide"),
    [
        (("layers.1",), [False, *[True] * 5, *[False] * 5]),
        (("layers.2", "layers.1"), [False, *[True] * 10]),
        (("layers",), [False, *[True] * 10]),
        (("sqrt",), [False, *([False] * 3 + [True, False]) * 2]),
        ((LINE,), [False, *([False] + [True] * 4) * 2]),
    ],
)
def test_what_goes_by_a_name_is_kept_and_nothing_else(names: tuple[str, ...], wide: list[bool]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NarrowedWarning)
        model = compiled(*names)
    assert [form == "IEEE_FP32" for form in formats(model)] == wide
    assert model.verify(X)


def test_a_function_without_a_form_on_float32_is_named() -> None:
    with pytest.warns(NarrowedWarning, match="1 kernel computes in DL16.*\n  1 x tanh"):
        compiled("layers.0")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("layer.1", "did you mean layers.1 or "),
        ("torch.tanh", "did you mean tanh?"),
        ("aten::sqr", "did you mean sqrt?"),
        (
            "softmax",
            (
                "name a module as layers.0.norm, a line as model.py:7, "
                "an operator of the model (add, mul, sqrt, tanh), or an operation of its kernels (add, mul, sqrt, tanh)"
            ),
        ),
    ],
)
def test_a_name_of_nothing_is_refused(name: str, hint: str) -> None:
    with pytest.raises(InputError, match=f"keep_float32_in: nothing of the program is called '{name}'") as refused:
        compiled("layers.1", name)
    assert (refused.value.hint or "").startswith(hint)


def test_what_a_name_with_a_question_mark_stands_for_may_be_absent() -> None:
    assert formats(compiled("softmax?", "sqrt?")) == formats(compiled("sqrt"))
    assert formats(compiled("softmax?")) == formats(compiled())


def test_all_absent_names_are_in_the_error() -> None:
    with pytest.raises(AbsentNamesError) as refused:
        compiled("layers.1", "softmax", "nobody")
    assert refused.value.names == ("softmax", "nobody")


class Composed(torch.nn.Module):
    """Operators that are compositions."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.norm(x), -1) * 2 + 1


FP32, DL16 = "IEEE_FP32", "SEN169_FP16"
SOFTMAX = ["max", "sub", "exp", "sum", "realdiv"]  # its kernels
CONVERSIONS = ["dl16tofp32", "fp32todl16"]  # made where it meets the rest


@pytest.mark.parametrize("name", ["softmax", "aten.softmax", "aten::softmax", "softmax.int", "aten.softmax.int"])
def test_an_operator_keeps_float32_in_all_of_its_composition(name: str) -> None:
    model = compiled(name, model=Composed())
    text = model.mlir("spyre.kernel", locations=True)
    kernel = r'compute "([^"]*)".* outs\([^:]*: !spyre\.tensor<\[[^]]*\] x (\w+).*loc\("@([^"]*)"'
    kernels = [found.groups() for found in re.finditer(kernel, text)]
    assert {(name, form) for name, form, of in kernels if of == "aten.softmax.int"} >= {(n, FP32) for n in SOFTMAX}
    assert {form for name, form, of in kernels if of != "aten.softmax.int" and name not in CONVERSIONS} == {DL16}
    assert {of for *_, of in kernels} == {"aten.layer_norm", "aten.softmax.int", "aten.mul.Tensor", "aten.add.Tensor"}
    assert model.verify(X)


def test_names_of_operators_are_those_of_the_program() -> None:
    with pytest.raises(InputError, match="called '_softmax'\n  try: did you mean softmax"):
        compiled("_softmax", model=Composed())
    names = r"\(add, layer_norm, mul, softmax\), or an operation of its kernels \(add, div, exp, mul, rsqrt, sub\)"
    with pytest.raises(InputError, match=names):
        compiled("embedding", model=Composed())


def test_an_operator_of_halves_has_no_float32_to_keep() -> None:
    class Halves(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x.half(), -1).float() * 2

    compiled("mul", model=Halves())
    with pytest.raises(InputError, match=r"nothing called 'softmax' has float32 tensors\n  try: leave it out.* f16"):
        compiled("softmax", model=Halves())


@pytest.mark.parametrize("names", ["layers.1", ["layers.1"], (1,), ("",)])
def test_names_are_a_tuple_of_texts(names: object) -> None:
    with pytest.raises(InputError, match="keep_float32_in must be a tuple of names, got "):
        spyre_mlir.compile(Growing(), (X,), keep_float32_in=names)


def test_equal_layers_may_differ() -> None:
    """Regions would be one function for all of them."""
    model = torch.nn.Sequential(*(Growing() for _ in range(8)))
    kept = compiled("3", model=model)
    assert formats(kept).count("IEEE_FP32") == 5 and len(formats(kept)) == 40


class Patches(torch.nn.Module):
    """A tensor of six dimensions whose sticks change: three loops bring one of them into the order of float32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.unfold(x.exp(), 2).reshape(5, -1)


def test_a_change_of_sticks_of_a_tensor_of_six_dimensions_has_labels_for_all_loops() -> None:
    x = torch.linspace(-1, 1, 5 * 4 * 33 * 3).reshape(5, 4, 33, 3)
    made = spyre_mlir.compile(Patches(), (x,), keep_float32=True)
    torch.testing.assert_close(made(x), Patches()(x))
