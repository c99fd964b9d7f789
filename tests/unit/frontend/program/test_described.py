"""Programs from what their modules say of how they are called."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from spyre_mlir.errors import ReadError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.program.described import described_program
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context

X = torch.ones(2, 3)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x: torch.Tensor, factor: float, *, flag: bool = True) -> Any:
        self.count += 1
        return [x * factor, (x.to(torch.bfloat16), None, "done")]


def text_of() -> str:
    return module_text(import_program(Model(), (X, 2.5), {"flag": True}).module)


def test_a_module_says_all_that_a_call_needs() -> None:
    program = import_program(Model(), (X, 2.5), {"flag": True})
    found = described_program(parse_module(module_text(program.module), make_context(), "m"), {})
    assert found.name == "Model"
    assert [(a.name, a.kind, a.shape, a.dtype, a.mutated) for a in found.arguments] == [
        ("x", "input", (2, 3), torch.float32, False),
        ("count", "buffer", (), torch.int64, True),
    ]
    assert (found.results, found.mutations) == (program.results, program.mutations)
    assert (found.input_tree, found.output_tree) == (program.input_tree, program.output_tree)
    assert found.flatten((X, 2.5), {"flag": True})[0] is X
    outputs = [torch.full((2, 3), 2.5), X.to(torch.bfloat16)]
    assert found.unflatten([*outputs, torch.tensor(1)])[1][1:] == (None, "done")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("aten.kind", "kind", "does not say what its arguments are"),
        ("@main", "@other", "does not say what its arguments and results are"),
        ("aten.input_leaves", "leaves", "the program has no aten.input_leaves"),
        ('aten.input_leaves = ["x"', 'aten.input_leaves = ["y"', "the program has no argument y"),
        ("aten.input_tree", "tree", "of classes that are not loaded"),
    ],
)
def test_what_does_not_say_so_is_refused(old: str, new: str, message: str) -> None:
    assert old in text_of()
    module = parse_module(text_of().replace(old, new), make_context(), "m")
    with pytest.raises(ReadError, match=message):
        described_program(module, {})


def test_outputs_without_a_tree_are_a_tuple() -> None:
    module = parse_module(text_of().replace("aten.output_tree", "tree"), make_context(), "m")
    given = described_program(module, {}).unflatten([1, 2, 3])
    assert given == (1, 2, None, "done")


class Nothing(nn.Module):
    def forward(self) -> tuple[()]:
        return ()


def test_a_program_may_have_neither_arguments_nor_results() -> None:
    text = module_text(import_program(Nothing(), ()).module)
    found = described_program(parse_module(text, make_context(), "m"), {})
    assert (found.arguments, found.results, found.unflatten([])) == ((), (), ())
