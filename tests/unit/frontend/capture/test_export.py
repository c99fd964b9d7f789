"""Export: what torch cannot trace is said in our words, and examples and models stay what they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.while_loop import while_loop

import spyre_mlir
from spyre_mlir.errors import ImportProgramError, UnsupportedError
from spyre_mlir.frontend.capture.export import export_model
from tests.functions import FunctionModel
from tests.unit.frontend.graphs import exported

X = torch.ones(2, 3)


def test_strides_over_the_gaps_of_an_input_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="it walks memory that its tensor has gaps in"):
        spyre_mlir.compile(FunctionModel(lambda x: x.as_strided((4,), (1,))), (torch.ones(12)[::3],))


def test_a_model_on_meta_is_exported_as_on_the_cpu_and_stays_on_meta() -> None:
    model = nn.Linear(3, 2, device="meta")
    values = [node.meta["val"] for node in exported(model, X).graph.nodes if node.op == "placeholder"]
    assert {value.device.type for value in values} == {"cpu"}
    assert model.weight.device.type == "meta"


def test_a_model_on_meta_may_make_tensors_there() -> None:
    """As a static cache of transformers does, which keeps the device it was made on."""

    class Positions(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x)[torch.arange(1, device=torch.device("meta"))]

    values = [
        node.meta["val"] for node in exported(Positions(3, 2, device="meta"), X).graph.nodes if "val" in node.meta
    ]
    assert {value.device.type for value in values} == {"cpu"}


def test_a_loop_over_rows_that_data_counts_is_refused() -> None:
    def chosen(x: Tensor) -> Tensor:
        return sum((x[row[0]] for row in x.sum(1).nonzero()), torch.zeros(3))

    with pytest.raises(UnsupportedError, match="decides its control flow or a shape by the values") as error:
        exported(FunctionModel(chosen), X)
    assert error.value.hint is not None
    assert error.value.hint.startswith("loop over what has a known count")


def test_a_branch_by_values_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="values"):
        exported(FunctionModel(lambda x: x if x.sum() > 0 else -x), X)


def test_a_write_to_a_tensor_that_nobody_registered_is_refused() -> None:
    table = torch.zeros(3)
    with pytest.raises(ImportProgramError, match="neither a buffer, a parameter nor an input"):
        exported(FunctionModel(lambda x: table.add_(x[0])), X)


def test_an_infinity_in_an_integer_tensor_is_refused_by_its_line() -> None:
    counts = torch.zeros(3, dtype=torch.int64)
    with pytest.raises(ImportProgramError, match="cannot convert float infinity to integer") as refused:
        exported(FunctionModel(lambda x: x.masked_fill(x == 0, float("inf"))), counts)
    assert str(refused.value.where).startswith(__file__)


@pytest.mark.filterwarnings("ignore")
def test_modules_of_torchscript_are_refused_by_name() -> None:
    scripted = torch.jit.script(nn.Linear(3, 2))
    with pytest.raises(ImportProgramError, match="the model is compiled by TorchScript") as whole:
        export_model(scripted, (X,), {})
    assert whole.value.where == "Linear"
    traced = torch.jit.trace(nn.Linear(3, 2), X)
    with pytest.raises(ImportProgramError, match="its part 1 is compiled by TorchScript"):
        export_model(nn.Sequential(nn.ReLU(), traced), (X,), {})


@pytest.mark.parametrize(
    ("branch", "reason"),
    [
        (
            lambda x: x.int(),
            r"two branches' output in torch.cond, expected same dtype but got torch.int32 and torch.float",
        ),
        (lambda x: x @ x, "a and b must have same reduction dim"),
        (lambda x: x * 2 if x.sum() > 1 else x + 2, "Data-dependent branching: Detected data-dependent branching"),
    ],
)
def test_a_branch_that_torch_refuses_has_its_reason(branch: Callable[[Tensor], Tensor], reason: str) -> None:
    x = torch.ones(2, 3)
    with pytest.raises(ImportProgramError, match=reason) as refused:
        exported(FunctionModel(lambda x: torch.cond(x.sum() > 0, branch, lambda x: x + 1, (x,))), x)
    assert "\n" not in refused.value.message


def test_a_body_that_changes_what_it_carries_has_the_reason() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        return while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x[:1].clone()), (torch.tensor(0), x))

    with pytest.raises(ImportProgramError, match=r"same metadata but found: pair\[1\] differ in 'shape"):
        exported(FunctionModel(model), torch.ones(2, 3))


class Ends(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:3] + x[-3:]


def test_sizes_that_a_model_does_not_take_are_said_with_a_range() -> None:
    shapes = ({0: torch.export.Dim("rows", min=2, max=9)},)
    with pytest.raises(
        ImportProgramError, match=r"\(rows\)\n  Not all values of rows = .* satisfy .* 3 <= "
    ) as refused:
        export_model(Ends(), (torch.zeros(7),), {}, dynamic_shapes=shapes)
    assert refused.value.hint == "as torch suggests, rows = Dim('rows', min=3, max=9)"
