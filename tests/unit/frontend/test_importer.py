"""From a model in any form to a program: names, attributes of the module, bounds of constants, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.errors import DataSizesError, InputError, UnsupportedError
from spyre_mlir.frontend.importer import identifier, import_program, root_class
from spyre_mlir.frontend.program.plain_trees import tree_of_text
from spyre_mlir.frontend.program.program import Program, TreeConstant
from spyre_mlir.text.render import module_text
from tests.functions import FunctionModel
from tests.unit.frontend.graphs import exported

X = torch.arange(6.0).reshape(2, 3)


class TwoPartModel(nn.Module):
    """Has a table, a weight and a count, and gives constants beside its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor, scale: float, *, extra: object = None) -> Any:
        self.count.add_(1)
        return {"sum": x * scale + self.weight + torch.tensor([4.0, 9.0, -2.0]), "rest": (None, 7)}


def entries(attributes: ArrayAttr[DictionaryAttr] | None) -> list[dict[str, Any]]:
    assert attributes is not None
    return [dict(entry.data) for entry in attributes]


def main_of(program: Program) -> func.FuncOp:
    program.module.verify()
    (main,) = program.module.ops
    assert isinstance(main, func.FuncOp)
    return main


@pytest.fixture(scope="module")
def model() -> TwoPartModel:
    return TwoPartModel()


@pytest.fixture(scope="module")
def program(model: TwoPartModel) -> Program:
    return import_program(model, (X, 2.5), {"extra": None})


def test_a_program_says_how_it_is_called(program: Program, model: TwoPartModel) -> None:
    assert program.name == "TwoPartModel"
    assert [(a.name, a.kind, a.mutated) for a in program.arguments] == [
        ("x", "input", False),
        ("weight", "parameter", False),
        ("count", "buffer", True),
        ("constant_0", "constant", False),
    ]
    assert program.results == ("sum", "new.count")
    assert program.mutations == {1: "count"}
    assert program.output_leaves == (0, TreeConstant("rest.0", None), TreeConstant("rest.1", 7))
    assert [leaf.name for leaf in program.input_leaves] == ["x", "scale", "extra"]
    assert program.reference is model
    assert set(program.values) == {"weight", "count", "constant_0"}


def test_the_module_says_it_too(program: Program) -> None:
    main, attributes = main_of(program), program.module.attributes
    assert (program.module.sym_name, main.sym_name.data) == (StringAttr("TwoPartModel"), "main")
    texts = {name: to_attribute(name) for name in ("x", "weight", "count", "constant_0", "sum", "new.count")}
    kinds = {name: to_attribute(name) for name in ("input", "parameter", "buffer", "constant")}
    assert entries(main.arg_attrs) == [
        {"aten.name": texts["x"], "aten.kind": kinds["input"]},
        {"aten.name": texts["weight"], "aten.kind": kinds["parameter"]},
        {"aten.name": texts["count"], "aten.kind": kinds["buffer"]},
        {"aten.name": texts["constant_0"], "aten.kind": kinds["constant"], "aten.bounds": to_attribute((-2, 9))},
    ]
    assert entries(main.res_attrs) == [
        {"aten.name": texts["sum"]},
        {"aten.name": texts["new.count"], "aten.mutates": texts["count"]},
    ]
    assert str(attributes["aten.input_leaves"]) == '["x", {value = 2.500000e+00 : f64}, {value = #aten.none}]'
    assert str(attributes["aten.output_leaves"]) == "[0 : i64, {value = #aten.none}, {value = 7 : i64}]"
    for key, tree in (("aten.input_tree", program.input_tree), ("aten.output_tree", program.output_tree)):
        text = attributes[key]
        assert isinstance(text, StringAttr)
        assert tree_of_text(text.data, tree.num_leaves) == tree
    assert [str(t) for t in main.function_type.outputs] == ["tensor<2x3xf32>", "tensor<1xf32>"]


def test_the_first_line_that_anybody_prints_is_short_and_has_nothing_escaped() -> None:
    for model, inputs in ((nn.Linear(3, 2), (X,)), (FunctionModel(lambda x, y: x + y), (X, X))):
        first = module_text(import_program(model, inputs).module).splitlines()[0]
        assert first.endswith('aten.input_tree = "positional", aten.output_tree = "single"} {')
        assert len(first) < 200


def test_an_exported_program_and_its_file_are_models_too(tmp_path: Path) -> None:
    saved = exported(nn.ReLU(), X)
    torch.export.save(saved, tmp_path / "relu.pt2")
    for given in (saved, tmp_path / "relu.pt2", str(tmp_path / "relu.pt2")):
        found = import_program(given)
        assert [op.overload for op in found.module.walk() if isinstance(op, AtenOp)] == ["relu"]
        assert isinstance(found.reference, torch.export.ExportedProgram)
    assert import_program(saved).reference is saved


def test_the_memory_of_results_is_that_of_the_program() -> None:
    found = import_program(FunctionModel(lambda x: x.t()), (X,))
    memory, _ = found.memory({"args_0": X})
    assert list(memory.views) == [0]


class Tables(nn.Module):
    """Non-persistent buffers that a value could turn into numbers, bounds and repetitions."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("ids", torch.arange(4)[None], persistent=False)
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)
        self.register_buffer("mask", torch.ones(2, 3, dtype=torch.bool), persistent=False)
        self.twin = nn.Module()
        self.twin.register_buffer("ids", self.ids, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.ids[:, :3].expand(2, 3)
        return torch.where(self.mask, x * self.scale, x) + rows + (self.twin.ids[:, :3] + 1).expand(2, 3)


def test_no_value_of_a_buffer_decides_how_a_model_is_imported() -> None:
    with torch.device("meta"):
        empty = Tables()
    empty.twin.ids = empty.ids
    whole, weightless = import_program(Tables(), (X,)), import_program(empty, (X,))
    text = module_text(whole.module)
    assert module_text(weightless.module) == text
    assert "aten.bounds" not in text and "aten.where" in text and "%b_scale" in text
    forms = {a.name: (a.kind, a.shape) for a in whole.arguments}
    # Of repeated rows one is kept; the copies differ in their types.
    assert forms == {
        "x": ("input", (2, 3)),
        "scale": ("buffer", ()),
        "mask": ("buffer", (2, 3)),
        "constant_0": ("constant", (1, 3)),
        "constant_1": ("constant", (1, 3)),
    }
    assert set(weightless.values) == set() and set(whole.values) == set(forms) - {"x"}
    assert whole.values["constant_0"].tolist() == [[0, 1, 2]] and whole.values["constant_1"].tolist() == [[1, 2, 3]]
    assert {name: recipe.leaves for name, recipe in weightless.recipes.items()} == {
        "constant_0": ("ids",),
        "constant_1": ("ids",),
    }
    assert whole.ties == {"twin.ids": "ids"}


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        import_program(lambda x: x, (X,))  # type: ignore[arg-type]
    assert refused.value.message == "a model is a module, an exported program or a .pt2 file, got function"
    assert refused.value.hint == "call a function from the forward of a torch.nn.Module"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (nn.ReLU, "make a module of the class first: ReLU(…)"),
        (nn.Linear(2, 2).state_dict(), "give the module; weights go to its load_state_dict"),
        (None, "give a torch.nn.Module"),
    ],
)
def test_a_model_in_another_form_is_named(given: Any, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        import_program(given, (X,))
    assert refused.value.hint is not None and refused.value.hint.startswith(hint)


def test_a_compiled_model_is_no_model() -> None:
    compiled = spyre_mlir.compile(nn.ReLU(), (X,))
    with pytest.raises(InputError, match="it is compiled: call it"):
        spyre_mlir.compile(compiled, (X,))


def test_a_module_needs_example_arguments() -> None:
    with pytest.raises(InputError) as refused:
        import_program(nn.ReLU())
    assert refused.value.message == "a module needs example arguments, and ReLU got none"
    assert refused.value.hint == "give them as a tuple behind the model: (x,) for one input x, () if it takes none"
    assert import_program(FunctionModel(lambda: torch.ones(2) * 2), ()).inputs == ()
    assert len(import_program(nn.ReLU(), None, {"input": X}).inputs) == 1


@pytest.mark.parametrize("given", [{"args": (X,)}, {"kwargs": {"x": X}}, {"args": ()}])
def test_an_exported_program_needs_none(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="an exported program knows its example arguments") as refused:
        import_program(exported(nn.ReLU(), X), **given)
    assert refused.value.hint == "pass the program alone"


def test_what_has_no_form_is_refused_before_anything_is_built() -> None:
    with pytest.raises(UnsupportedError, match=r"aten\.rand\.generator"):
        import_program(FunctionModel(lambda x: x + torch.rand(1, generator=torch.Generator())), (X,))


def test_a_check_of_the_model_is_a_step_of_the_host() -> None:
    def checked(x: torch.Tensor) -> torch.Tensor:
        torch._assert_async((x > -1).all())
        return x + 1

    found = import_program(FunctionModel(checked), (X,))
    assert [op.overload for op in found.module.walk() if isinstance(op, AtenOp)] == [
        "gt.Scalar",
        "all",
        "host::holds",
        "add.Tensor",
    ]


@pytest.mark.parametrize(("function", "marked"), [(lambda x: x.half().float(), [True, True]), (lambda x: -x, [False])])
def test_programs_in_half_precision_keep_float32_wide(function: Callable[..., Any], marked: list[bool]) -> None:
    found = import_program(FunctionModel(function), (X,))
    assert [op.is_wide for op in found.module.walk() if isinstance(op, AtenOp)] == marked


class Unserialised:
    def __init__(self, part: object) -> None:
        self.part = part


def test_a_structure_that_torch_cannot_write_down_is_left_out() -> None:
    _pytree.register_pytree_node(Unserialised, lambda u: ([u.part], None), lambda parts, _: Unserialised(*parts))
    found = import_program(FunctionModel(lambda x: Unserialised(x + 1)), (X,))
    assert "aten.output_tree" not in found.module.attributes
    assert "aten.input_tree" in found.module.attributes


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("ViT", "ViT"),
        ("GPT2Model", "GPT2Model"),
        ("<lambda>", "lambda"),
        ("a-b.c", "a_b_c"),
        ("_", "program"),
        ("", "program"),
    ],
)
def test_programs_are_named_as_their_class(name: str, program: str) -> None:
    assert identifier(name) == program


@pytest.mark.parametrize(
    ("stack", "name"),
    [
        ({"L__self__": ("", "models.LlamaModel"), "L__self___mlp": ("mlp", "models.LlamaMLP")}, "LlamaModel"),
        ({"L__self__": ("", nn.ReLU)}, "ReLU"),
        ({"L__self__": ("", 3)}, "program"),
        ({}, "program"),
        (None, "program"),
    ],
)
def test_an_exported_program_is_called_as_its_outermost_class(stack: Any, name: str) -> None:
    saved = exported(nn.ReLU(), X)
    for node in saved.graph.nodes:
        node.meta["nn_module_stack"] = stack
    assert root_class(saved) == name


def test_data_that_decides_sizes_is_refused_with_the_exported_program() -> None:
    model = FunctionModel(lambda x: x[x > 1])
    with pytest.raises(DataSizesError, match="depends on the data") as refused:
        import_program(model, (X,))
    assert refused.value.name == "FunctionModel"
    assert torch.equal(refused.value.exported.module()(X), X[X > 1])


def test_other_refusals_are_not_about_sizes() -> None:
    with pytest.raises(UnsupportedError) as refused:
        import_program(FunctionModel(lambda x: x.to_sparse()), (X,))
    assert type(refused.value) is UnsupportedError
