"""Programs from nodes and a signature: bounds of constants, and symbols of the function."""

from dataclasses import replace

import pytest
import torch

from spyre_mlir.dialects.aten_sizes import SymbolRange
from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.capture.folding.constant_folding import Earlier
from spyre_mlir.frontend.capture.liveness import live_nodes
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.lowering.assembly import _bounds, _counts, assemble
from spyre_mlir.frontend.lowering.signature import read_signature
from spyre_mlir.frontend.symbolic.sizes import Sizes
from spyre_mlir.text.render import module_text
from tests.functions import FunctionModel
from tests.unit.frontend.graphs import exported


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (torch.tensor([3, -4, 7]), (-4, 7)),
        (torch.tensor([5]), (5, 5)),
        (torch.tensor([2.0, 0.0]), (0, 2)),
        (torch.tensor([1.0, 0.0]), None),
        (torch.tensor([2.5, 0.0]), None),
        (torch.tensor([0.0, 2.0**24]), (0, 2**24)),
        (torch.tensor([0.0, 2.0**24 + 2]), None),
        (torch.tensor([True, False]), None),
        (torch.tensor([1 + 2j]), None),
        (torch.tensor([2.0, 0.0]).to(torch.float8_e4m3fn), None),
        (torch.tensor([3, 65535], dtype=torch.uint16), (3, 65535)),
        (torch.tensor([3, 2**64 - 1], dtype=torch.uint64), (3, 2**64 - 1)),
        (torch.empty(0), None),
        (torch.tensor([0.0, float("inf")]), None),
        (torch.tensor([0.0, float("nan")]), None),
        (None, None),
    ],
)
def test_integers_and_what_counts_has_bounds(value: torch.Tensor | None, bounds: tuple[int, int] | None) -> None:
    found = _bounds(value)
    assert found == ({} if bounds is None else {"aten.bounds": bounds})
    assert all(type(b) is int for b in found.get("aten.bounds", ()))


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        (torch.arange(3), True),
        (torch.arange(3, dtype=torch.int32), True),
        (torch.arange(3).float(), False),
        (torch.tensor([0, 2, 1]), False),
        (torch.arange(1, 4), False),
        (torch.arange(3)[None], False),
        (None, False),
    ],
)
def test_vectors_that_count_are_noted(value: torch.Tensor | None, counts: bool) -> None:
    assert _counts(value) == ({"aten.counts": True} if counts else {})


def test_a_function_declares_its_symbols_and_guards() -> None:
    program = exported(FunctionModel(torch.exp), torch.ones(3))
    functional = decompose(program)
    made = assemble(
        "p",
        live_nodes(list(functional.graph.nodes)),
        read_signature(functional, Sizes()),
        Sizes({}, {"s0": SymbolRange(2, 9), "s1": SymbolRange(0)}),
        guards=["s0 != s1"],
        reference=torch.exp,
        memory=import_program(program).memory,
    )
    text = module_text(made.module)
    assert "attributes {aten.symbols = {s0 = array<i64: 2, 9>, s1 = array<i64: 0>}}" in text
    assert text.index('aten.guard "s0 != s1"') < text.index("aten.exp")


def test_what_was_folded_before_is_no_argument_of_the_model() -> None:
    program = exported(FunctionModel(torch.add), torch.ones(3), torch.ones(3))
    functional = decompose(program)
    signature = read_signature(functional, Sizes())
    first, second = signature.slots
    made = assemble(
        "p",
        live_nodes(list(functional.graph.nodes)),
        replace(signature, slots=(first,), input_leaves=(first.argument,)),
        Sizes(),
        earlier=Earlier({second.node: torch.tensor([1.0, 2.0, 3.5])}),
        reference=torch.add,
        memory=import_program(program).memory,
    )
    assert [(a.name, a.kind) for a in made.arguments] == [(first.argument.name, "input"), ("constant_0", "constant")]
    assert made.values["constant_0"].tolist() == [1.0, 2.0, 3.5]
