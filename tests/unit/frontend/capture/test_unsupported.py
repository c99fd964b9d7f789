"""What cannot be imported is named all at once, with the user's own lines."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.errors import DataSizesError, ImportProgramError, UnsupportedError
from spyre_mlir.frontend import import_program
from tests.functions import FunctionModel

HERE = Path(__file__).name
X = torch.arange(6.0).reshape(2, 3)


def refused(model: nn.Module, *args: Any) -> str:
    with pytest.raises(UnsupportedError) as caught:
        import_program(model, args)
    return str(caught.value)


def line_of(model: type, fragment: str) -> str:
    lines, start = inspect.getsourcelines(model)
    return f"{HERE}:{next(start + i for i, line in enumerate(lines) if fragment in line)}"


class Everything(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        noise = torch.randint_like(x, x.sum().long())
        more = torch.randint_like(x, x.sum().long())
        branch = torch.cond(x.sum(), lambda x: x + 1, lambda x: x - 1, (x,))
        chosen = x[x > 0]
        return noise + more, branch, chosen


def test_everything_at_once_with_lines_and_counts() -> None:
    text = refused(Everything(), X)
    assert "2 x aten.randint_like.Tensor: it draws random numbers that the host cannot draw for it" in text
    assert "cond: its predicate is torch.float32 of shape [], expected one truth value" in text
    assert "aten.index.Tensor: a number or a shape in it depends on the data" in text
    for fragment in ("noise =", "more =", "branch =", "chosen ="):
        assert line_of(Everything, fragment) in text, text


PRODUCTS = {
    "linear": lambda x, w: nn.functional.linear(x, w),
    "matmul": lambda x, w: x @ w,
    "mm": torch.mm,
    "addmm": lambda x, w: torch.addmm(x[0], w, w),
    "index_copy": lambda x, w: x.index_copy(0, torch.tensor([0]), w[:1]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_operands_that_eager_refuses_are_refused(name: str) -> None:
    x, w = torch.ones(3, 3).half(), torch.ones(3, 3)
    with pytest.raises(RuntimeError, match="same dtype"):
        PRODUCTS[name](x, w)
    text = refused(FunctionModel(PRODUCTS[name]), x, w)
    assert f"aten.{name}" in text and "its operands are torch.float16 and torch.float32" in text
    assert "functions.py:" in text and "try: bring them to one type" in text
    import_program(FunctionModel(PRODUCTS[name]), (w, w))


def test_a_walk_through_memory_by_symbols() -> None:
    class Walk(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.as_strided(x, (x.shape[0], 2), (x.shape[1], 1))

    exported = torch.export.export(Walk(), (X,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    with pytest.raises(UnsupportedError) as caught:
        import_program(exported)
    text = str(caught.value)
    assert "as_strided: it walks memory in steps that depend on symbols" in text
    assert line_of(Walk, "as_strided(") in text
    assert "export with a static size there" in text


def test_number_from_a_tensor() -> None:
    class Item(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * x.sum().item()

    text = refused(Item(), X)
    assert "depends on the data" in text
    assert line_of(Item, "item()") in text


def test_branch_on_data() -> None:
    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    text = refused(Branch(), X)
    assert "decides its control flow" in text
    assert line_of(Branch, "return x if") in text


def test_dropout_in_training_is_random_and_outside_it_nothing() -> None:
    assert "random::bernoulli" in str(import_program(nn.Dropout(0.5).train(), (X,)).module)
    program = import_program(nn.Dropout(0.5).eval(), (X,))
    assert "random::" not in str(program.module)


def test_the_models_own_error_passes() -> None:
    class Broken(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise LookupError("of the model")

    with pytest.raises(LookupError, match="of the model"):
        import_program(Broken(), (X,))


class Squared(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x


class Packed(nn.Module):
    """An LSTM on sequences of several lengths: torch takes a size from a tensor, in a function written in C."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x[None].expand(2, -1, -1), [2, 1], batch_first=True)
        return self.cell(packed)[0].data


@torch.library.custom_op("spyre_frontend_test::faceless", mutates_args=())
def faceless(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Faceless(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return faceless(x)


@pytest.mark.parametrize(
    ("model", "args", "reason", "line"),
    [
        (Squared, (X,), "cannot trace Squared: .*same reduction dim, but got", "x @ x"),
        (Squared, (X, X), "cannot trace Squared: too many positional arguments", ""),
        (Packed, (X,), "cannot trace Packed: .*argument 'size' failed", "self.cell(packed)"),
        (Faceless, (X,), "cannot trace Faceless: There was no fake impl registered", "faceless(x)"),
    ],
)
def test_what_torch_refuses_is_told_with_the_line(
    model: type[nn.Module], args: Any, reason: str, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ImportProgramError, match=reason) as caught:
        import_program(model(), args)
    assert caught.value.hint
    if line:
        assert line_of(model, line) in str(caught.value.where)
    assert capfd.readouterr().err == "", "torch logs no traces beside our error"


def test_packed_sequences_have_their_own_hint() -> None:
    with pytest.raises(ImportProgramError) as caught:
        import_program(Packed(), (X,))
    assert str(caught.value.hint).startswith("packed sequences take sizes from tensors: give the layer padded ones")


def test_a_size_that_may_be_zero_is_one_that_data_decides() -> None:
    """The distances of selected rows: torch asks whether there are some, and the import or the model says yes."""

    def distances(x: torch.Tensor, *, checked: bool) -> torch.Tensor:
        rows = x[x.sum(-1) > 0]
        if checked:
            torch._check(rows.shape[0] != 0)
        return torch.cdist(rows, rows)

    for checked in (False, True):
        with pytest.raises(DataSizesError):
            import_program(FunctionModel(partial(distances, checked=checked)), (X,))


def test_a_model_that_asks_whether_a_size_is_zero_is_told_what_to_write() -> None:
    def sizes(x: torch.Tensor) -> torch.Tensor:
        rows = x[x.sum(-1) > 0]
        return rows.sum(0) if rows.shape[0] != 0 else x[0]

    with pytest.raises(UnsupportedError) as caught:
        import_program(FunctionModel(sizes), (X,))
    assert "write torch._check(y.shape[0] != 0) above this line" in str(caught.value.hint)


def test_custom_op_is_a_call() -> None:
    @torch.library.custom_op("spyre_frontend_test::twice", mutates_args=())
    def twice(x: torch.Tensor, times: int) -> torch.Tensor:
        return x * times

    @twice.register_fake
    def _(x: torch.Tensor, times: int) -> torch.Tensor:
        return torch.empty_like(x)

    class Custom(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return twice(x, 3)

    text = str(import_program(Custom(), (X,)).module)
    assert 'aten.call "spyre_frontend_test::twice"(%x) {x = #aten.operands<1>, times = 3 : i64}' in text


def test_import_errors_are_not_unsupported() -> None:
    assert not issubclass(ImportProgramError, UnsupportedError)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (
            lambda x: torch.ops.aten.equal.default(x, x * 2) + x,
            "1 x aten.equal: its result is a Python value that depends on the data",
        ),
        pytest.param(
            lambda x: torch.combinations(x.view(-1).repeat(100), 3),
            "has a shape that depends on the data",
            marks=pytest.mark.skipif(torch.__version__ >= (2, 14), reason="torch 2.14 traces torch.combinations"),
        ),
        (
            lambda x: torch.ops.aten._ctc_loss.default(x.view(3, 1, 2), torch.ones(1, 1, dtype=torch.long), (3,), (1,)),
            "1 x aten._ctc_loss: the shape of its result depends on the data",
        ),
    ],
)
def test_what_torch_cannot_trace_without_values_is_named(call: Any, reason: str) -> None:
    class Calling(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return call(x)

    text = refused(Calling(), X)
    assert reason in text
    assert f"{HERE}:" in text
    assert "torch.where" in text


def test_what_torch_cannot_write_without_side_effects_is_told() -> None:
    class Resizing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.resize_(1, 2) * 2

    class Walking(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x[:, :1].as_strided((1, 2), (1, 1)).add_(1)
            return x * 2

    with pytest.raises(ImportProgramError, match="without side effects") as caught:
        import_program(Resizing(), (X,))
    assert caught.value.hint
    with pytest.raises(ImportProgramError, match=r"without side effects: .* an as_strided\(\) call") as caught:
        import_program(Walking(), (X,))
    assert line_of(Walking, "add_(1)") in str(caught.value.where)


def test_strides_over_gaps_of_a_tensor_that_is_no_view_are_refused() -> None:
    class Gaps(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.split(1, 1)[1].as_strided((2,), (1,))

    assert "1 x aten.as_strided: it walks memory that its tensor has gaps in" in refused(Gaps(), X)


def test_a_collective_without_a_form_is_named() -> None:
    class Together(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops._c10d_functional.isend(x, 1, 0, "0")

    message = refused(Together(), X)
    assert "1 x _c10d_functional.isend: it is a collective without a form" in message
    assert line_of(Together, "isend") in message
    assert "all_gather_into_tensor" in message


def test_quantized_tensors_are_refused() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()

    with pytest.raises(UnsupportedError, match=r"element type torch\.qint8 has no form"):
        import_program(FunctionModel(program), (torch.ones(2),))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors_are_refused() -> None:
    assert "aten._to_sparse: layout torch.sparse_coo has no form" in refused(FunctionModel(lambda x: x.to_sparse()), X)
    for sparse in (X.to_sparse(), X.to_sparse_csr()):
        text = refused(FunctionModel(lambda x: x.to_dense()), sparse)
        assert f"an input has the layout {sparse.layout}" in text and "at: args[0]" in text


def nested(x: torch.Tensor) -> torch.Tensor:
    return torch.nested.to_padded_tensor(torch.nested.nested_tensor([x[0], x[1]]), 0.0)


def jagged(x: torch.Tensor) -> torch.Tensor:
    return torch.nested.as_nested_tensor([x[0], x[1, :2]], layout=torch.jagged).values()


@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning")
def test_nested_tensors_are_refused() -> None:
    for function in (nested, jagged):
        text = refused(FunctionModel(function), X)
        assert "nested tensors, which have no form\n  at: " in text and "to_padded_tensor" in text
    for given in (torch.nested.nested_tensor([X[0], X[1, :1]], layout=kind) for kind in (torch.strided, torch.jagged)):
        assert "an input is a nested tensor\n  at: args[0]" in refused(FunctionModel(torch.neg), given)
        with pytest.raises(UnsupportedError, match="an input is a nested tensor"):
            spyre_mlir.compile(FunctionModel(torch.neg))(given)
    with pytest.raises(UnsupportedError, match=r"an input is a nested tensor\n  at: .*test_unsupported\.py:\d+"):
        torch.compile(lambda x: x * 2, backend="spyre")(given)
    with pytest.raises(UnsupportedError, match="nested tensors, which have no form"):
        torch.compile(jagged, backend="spyre")(X)


def test_an_input_that_gets_another_shape_in_place() -> None:
    class Turned(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.add_(1).t_() * 2

    text = refused(Turned(), X)
    assert "its shape changes in place, from [2, 3] to [3, 2]" in text
    assert "return the tensor in its new shape" in text


@pytest.mark.parametrize("exponent", [True, False, torch.tensor([True, False])])
def test_powers_of_truth_values_are_refused(exponent: Any) -> None:
    """Of a Python truth value eager gives bool, where torch traces int64."""
    with pytest.raises(UnsupportedError, match=r"aten.pow.*power of truth values") as caught:
        import_program(FunctionModel(lambda mask: ~(mask**exponent)), (torch.tensor([True, False]),))
    assert "mask.long() ** exponent" in str(caught.value)
    import_program(FunctionModel(lambda mask: mask**2), (torch.tensor([True, False]),))
