"""Decomposition call by call: the program is the one that torch makes of the whole graph."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

import spyre_mlir
from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.capture import decomposition
from spyre_mlir.frontend.capture.operator_tracing import Tables
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.capture.value_memory import Unfollowed
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.table import Family
from spyre_mlir.text.render import module_text
from tests.emitted import let_pass
from tests.functions import FunctionModel

X = torch.randn(4, 6)


def test_an_operator_stays_that_python_takes_apart_otherwise() -> None:
    """Torch's kernel of Python for derivatives takes what ends the labels for labels of class 0."""
    labels = torch.tensor([[1, 0, -1, 2, 3, 4], [3, -1, 0, 0, 0, 0], [-1, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5]])
    model = FunctionModel(lambda x: torch.ops.aten.multilabel_margin_loss_forward(x, labels, 0)[0])
    wanted = model(X)
    compiled = spyre_mlir.compile(model, (X,), numerics="exact")
    torch.testing.assert_close(compiled(X), wanted)
    torch.testing.assert_close(model(X), wanted)


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_losses_of_symbolic_rows_have_as_many_elements(name: str) -> None:
    """What torch takes for a form of `nll_loss` with symbols reads the reduction as another argument."""
    model = FunctionModel(lambda x, labels: getattr(nn.functional, name)(x, labels, reduction="none"))
    rows = {0: torch.export.Dim.AUTO}
    compiled = spyre_mlir.compile(
        model, (X, torch.tensor([0, 5, 2, 2])), dynamic_shapes=((rows, rows),), numerics="exact"
    )
    for given in ((X, torch.tensor([0, 5, 2, 2])), (X[:3], torch.tensor([1, 1, 0]))):
        torch.testing.assert_close(compiled(*given), model(*given))


class CountingModel(nn.Module):
    """Writes to a buffer, and reads it afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x.sum(0))
        return x * self.count


FOLLOWED: dict[str, nn.Module] = {
    "kept composites": nn.Sequential(nn.Linear(6, 3), nn.GELU(), nn.LayerNorm(3), nn.Softmax(-1)),
    "functional operators": FunctionModel(lambda x: torch.relu(x + 1).sum(0).permute(0)),
    "several results": FunctionModel(lambda x: torch.aminmax(x.amax(0), dim=0)[0] + x.topk(2)[0].sum()),
    "an alias": FunctionModel(lambda x: (x.permute(1, 0), x)),
    "composite": FunctionModel(lambda x: x.reshape(-1)),
    "a copy by strides": FunctionModel(lambda x: x.t().reshape(-1) + x.reshape(-1)),
    "in place": FunctionModel(lambda x: (x + 1).mul_(2)),
    "in place on an input": FunctionModel(lambda x: x.mul_(2) + x),
    "in place on a buffer": CountingModel(),
    "in place by another type": FunctionModel(lambda x: (torch.zeros(4, 6, dtype=torch.int64).copy_(x), x)),
    "in the table": FunctionModel(torch.deg2rad),
    "constants": FunctionModel(lambda x: x[[0, 1], :, None] + x[:, [0, 1]].sum()),
    "no result": FunctionModel(lambda x: (x.argmax(), torch.relu(x))[1]),
    "strides": FunctionModel(lambda x: x[1:].as_strided((2, 2), (6, 1)) + x[0, :2]),
    "numbers that are equal": FunctionModel(lambda x: (x.add(1), x.add(1.0), x.add(True), x * 0.0, x * -0.0)),
    "lists": FunctionModel(lambda x: torch.cat(x.chunk(3, 1)[::-1], 1)),
}
BY_TORCH: dict[str, Callable[[torch.Tensor], Any]] = {
    "through a view": lambda x: (y := x + 1, y[0].fill_(3), y)[0],
    "behind a view": lambda x: (y := x + 1, z := y[0], y.mul_(2), z)[3],
    "both sides of a write": lambda x: (y := x + 1, y[1:].add_(y[0]), y)[2],
    "a part of several": lambda x: (parts := (x + 1).split(2), parts[0].mul_(2), parts[1].sum())[1],
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ExportedProgram]:
    """Collects the programs that torch is asked to decompose as a whole."""
    found: list[ExportedProgram] = []
    original = ExportedProgram.run_decompositions

    def noted(program: ExportedProgram, *args: Any, **kwargs: Any) -> ExportedProgram:
        found.append(program)
        return original(program, *args, **kwargs)

    monkeypatch.setattr(ExportedProgram, "run_decompositions", noted)
    return found


def shown(model: nn.Module) -> tuple[str, list[str], list[list[float]]]:
    program = import_program(model, (X,))
    values = [value.double().reshape(-1).tolist() for value in program.values.values()]
    return module_text(program.module), [str(op.location) for op in program.module.walk()], values


@pytest.mark.parametrize("name", FOLLOWED)
def test_call_by_call_a_program_is_as_torch_makes_it(
    name: str, asked: list[ExportedProgram], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = shown(FOLLOWED[name])
    again = shown(FOLLOWED[name])
    assert not asked

    def unfollowed(*_: object) -> None:
        raise Unfollowed("all of it")

    monkeypatch.setattr(decomposition, "functional_program", unfollowed)
    monkeypatch.setattr(Tables, "given_to_torch", lambda _: nullcontext())  # torch as it is
    assert shown(FOLLOWED[name]) == ours == again
    assert len(asked) == 1


@pytest.mark.parametrize("name", BY_TORCH)
def test_writes_that_show_elsewhere_are_torchs_to_follow(name: str, asked: list[ExportedProgram]) -> None:
    compiled = spyre_mlir.compile(FunctionModel(BY_TORCH[name]), (X,), numerics="exact")
    assert asked
    with let_pass("result-read"):  # a copy of what is overwritten later, and a part that is not returned
        torch.testing.assert_close(compiled(X.clone()), BY_TORCH[name](X.clone()))


def test_secret_writes_of_a_norm_are_results() -> None:
    mean, variance, weight = torch.zeros(6), torch.ones(6), torch.ones(6)

    def norm(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.native_batch_norm(x, weight, weight, mean, variance, True, 0.5, 1e-5)[0]

    program = import_program(FunctionModel(norm), (X, mean, variance))
    assert list(program.mutations.values()) == ["args_1", "args_2"]


def test_torch_takes_apart_no_operation_that_the_table_computes() -> None:
    named = {o if "." in o else f"{o}.default" for e in ATEN if e.family is not Family.VIEW for o in e.overloads}
    missing = {name for name in named if "::" not in name} - decomposition.whole_overloads()
    # They may give their input's memory, which torch follows; but for the first, torch has no other form of them.
    assert missing == {"contiguous.default", "as_strided.default", "diagonal.default", "unfold.default"}


@pytest.mark.parametrize("name", ["view", "permute", "_unsafe_view", "contiguous"])
def test_views_are_torchs_to_take_apart(name: str) -> None:
    assert ATEN.find(name) is not None
    assert f"{name}.default" not in decomposition.whole_overloads()


@pytest.mark.parametrize(
    "line",
    [
        lambda x: torch.linspace(4.3, -3, 50, dtype=torch.int64) + x,
        lambda x: torch.linspace(-4.7, 9.9, 50, dtype=torch.int32) + x,
        lambda x: torch.linspace(x, -3, 50, dtype=torch.int64),
        lambda x: torch.linspace(-0.3, 0.7, 7) * x,
    ],
)
@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_lines_of_integers_between_float_ends(line: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.tensor(4.3)
    compiled = spyre_mlir.compile(FunctionModel(line), (x,), numerics="exact")
    torch.testing.assert_close(compiled(x), line(x))


def test_a_map_that_cannot_be_taken_apart_leaves_no_level_of_vmap() -> None:
    """The next model is compiled as if nothing had happened."""
    library = torch.library.Library("levels", "DEF")
    library.define("halved(Tensor x) -> Tensor")
    left = [1000]

    def halved(x: torch.Tensor) -> torch.Tensor:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("too often")
        return x * 0.5

    library.impl("halved", halved, "CompositeImplicitAutograd")
    x, model = torch.ones(4, 6), FunctionModel(lambda x: torch.vmap(torch.ops.levels.halved)(x))
    exported = torch.export.export(model, (x,))
    left[0] = 0
    with pytest.raises(ImportProgramError, match="too often"):
        import_program(exported)
    assert torch._C._functorch.maybe_current_level() is None
    import_program(FunctionModel(lambda x: torch.vmap(lambda row: row.softmax(0))(x)), (x,))


def test_no_other_thread_traces_while_functions_of_torch_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = list[bool]()

    def trace() -> None:
        with torch_noise_hidden():
            replaced.append(inside[0])

    inside, given = [False], Tables.given_to_torch
    with ThreadPoolExecutor(1) as pool:

        @contextmanager
        def told(tables: Tables) -> Generator[None]:
            with given(tables):
                inside[0] = True
                tracing = pool.submit(trace)
                with pytest.raises(TimeoutError):
                    tracing.result(0.2)
                yield
            inside[0] = False

        monkeypatch.setattr(Tables, "given_to_torch", told)
        import_program(FunctionModel(lambda x: (y := x + 1, y[0].fill_(3), y)[0]), (X,))
    assert replaced == [False]
