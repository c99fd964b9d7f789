"""Sizes that data decides: the host makes them, what follows is specialised; at every level and in `torch.compile`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.parted.model import PartedModel
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning
from tests.end_to_end.importing.against_eager import close, results
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")


def masked_sum(x: Tensor, _i: Tensor) -> Any:
    return x[x > 0].sum()


def places(x: Tensor, _i: Tensor) -> Any:
    return torch.nonzero(x * 2 > 0.5)


def selected(x: Tensor, _i: Tensor) -> Any:
    return torch.masked_select(x, x > 0.2) * 2 + 1


def rows_of_a_mask(x: Tensor, _i: Tensor) -> Any:
    return torch.softmax(x[x.sum(-1) > 0] @ x.t(), -1)


def two_masks(x: Tensor, _i: Tensor) -> Any:
    positive, negative = x[x > 0], x[x < 0]
    return positive.exp().sum() - negative.exp().sum(), torch.cat([negative, positive])


def different_values(_x: Tensor, i: Tensor) -> Any:
    values, inverse, counts = torch.unique(i, return_inverse=True, return_counts=True)
    return values + 1, inverse, counts * 0.5


def runs(_x: Tensor, i: Tensor) -> Any:
    return torch.unique_consecutive(i) * 2


def repeated(x: Tensor, i: Tensor) -> Any:
    return torch.tanh(torch.repeat_interleave(x, i, dim=0))


def first_rows(x: Tensor, i: Tensor) -> Any:
    return x[: i.max().item()].sum(0)


def counted_to(x: Tensor, i: Tensor) -> Any:
    count = i.max().item()
    torch._check(count >= 0)
    torch._check(count < 8)
    return torch.arange(count) * 0.5 + x.sum()


def written_places(x: Tensor, _i: Tensor) -> Any:
    found = torch.nonzero(x.sum(-1) > 0).squeeze(1)
    out = x.clone()
    out[found] = out[found] * 3
    return out


def sizes_of_sizes(x: Tensor, i: Tensor) -> Any:
    """The second mask is made of what the first has selected."""
    y = x[x > -0.5] * 2
    return y[y < 1].reshape(-1, 1) + 1


def selected_of_repeated(x: Tensor, _i: Tensor) -> Any:
    """More elements than either tensor has before they broadcast."""
    return torch.masked_select(x[0, :3] * 2, (x > -3)[:, :3]).sum(), x[:, None, :2].masked_select((x > -3)[:, :2])


def chosen_by_one_mask(x: Tensor, _i: Tensor) -> Any:
    """Torch remembers the size that a mask has made, and gives it to all that the mask selects."""
    chosen = x > 0.2
    return x[chosen] * 2, (x + 1)[chosen], torch.where(chosen)[0]


def split_at_places(x: Tensor, i: Tensor) -> Any:
    return [part * 2 for part in x.reshape(-1).tensor_split(i.cumsum(0))]


def as_many_classes(_x: Tensor, i: Tensor) -> Any:
    return nn.functional.one_hot(i) * 2


PROGRAMS: tuple[Callable[..., Any], ...] = (
    masked_sum, places, selected, rows_of_a_mask, two_masks, different_values, runs, repeated, first_rows, counted_to,
    written_places, sizes_of_sizes, selected_of_repeated, chosen_by_one_mask, split_at_places,
)  # fmt: skip
# Dynamo does not capture it.
NOT_OF_DYNAMO: tuple[Callable[..., Any], ...] = (as_many_classes,)
MANY = torch.linspace(-1.0, 1.0, 24).reshape(4, 6), torch.tensor([3, 1, 3, 0])
NONE = -torch.linspace(1.0, 2.0, 24).reshape(4, 6), torch.tensor([0, 0, 0, 0])
ONE = NONE[0] + torch.eye(24)[0].reshape(4, 6) * 20, torch.tensor([0, 1, 0, 0])


def parted(model: nn.Module, args: tuple[Tensor, ...], **options: Any) -> PartedModel:
    made = spyre_mlir.compile(model, args, numerics="exact", **options)
    assert isinstance(made, PartedModel)
    return made


@pytest.mark.parametrize("program", PROGRAMS + NOT_OF_DYNAMO, ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    """Sizes of 0 and 1, for which torch traces other programs, too."""
    compiled = parted(FunctionModel(program), MANY)
    for args in (MANY, NONE, ONE):
        close(results(compiled, args), results(program, args))
    verification = compiled.verify(*MANY)
    assert verification, str(verification)


def test_classes_below_zero_are_an_error_of_the_call() -> None:
    compiled = parted(FunctionModel(as_many_classes), MANY)
    with pytest.raises(InputError, match="gives a number of -1 in this call, expected 0 at least"):
        compiled(MANY[0], torch.tensor([0, -1, 2, 1]))


@pytest.fixture
def sizes_captured() -> Iterator[None]:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        torch._dynamo.reset()
        yield
        torch._dynamo.reset()


@pytest.mark.usefixtures("sizes_captured")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_torch_compile_in_one_graph(program: Callable[..., Any]) -> None:
    compiled = torch.compile(FunctionModel(program), backend="spyre", fullgraph=True, options={"numerics": "exact"})
    for args in (MANY, ONE):
        close(results(compiled, args), results(program, args))


class Experts(nn.Module):
    """A layer of experts as Mixtral has it: each computes the rows that chose it, however many these are."""

    def __init__(self, count: int = 3, width: int = 16) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.gate = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(count)
        )

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        mask = nn.functional.one_hot(chosen, len(self.experts)).permute(2, 1, 0)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            place, row = torch.where(mask[number])
            out.index_add_(0, row, expert(x[row]) * weights[row, place, None])
        return out


def test_experts_compute_the_rows_that_chose_them() -> None:
    model = Experts().eval()
    torch.manual_seed(6)
    x = torch.randn(5, 16)
    compiled = parted(model, (x,))
    rows = torch.ones(5, 16)  # one expert has none of them
    close(results(compiled, (rows,)), results(model, (rows,)))
    verification = compiled.verify(x)
    assert verification, str(verification)


def test_what_follows_is_imported_once() -> None:
    compiled = parted(FunctionModel(selected), MANY, specializations=2)
    behind = compiled.parts[-1]
    assert isinstance(behind, DynamicModel)
    for count in (3, 5, 7, 9):
        x = NONE[0].clone()
        x.view(-1)[:count] = 0.5
        close(results(compiled, (x, MANY[1])), results(selected, (x, MANY[1])))
    assert len(behind.programs) == 2


def test_the_text_has_symbols_and_names_what_the_host_makes() -> None:
    text = parted(FunctionModel(selected), MANY).mlir()
    assert "tensor<?xf32, #aten.extents<" in text
    assert "// the host: %masked_select = aten.masked_select(" in text


def test_an_exported_program_is_divided() -> None:
    exported = torch.export.export(FunctionModel(masked_sum), MANY, strict=False)
    compiled = spyre_mlir.compile(exported, numerics="exact")
    for args in (MANY, ONE):
        close(results(compiled, args), results(masked_sum, args))


DOORS = ("accuracy", "ktir", "graphs", "python", "explain", "report", "timeline", "probe", "bind")


@pytest.fixture(scope="module")
def dividing() -> PartedModel:
    return parted(FunctionModel(masked_sum), MANY)


@pytest.mark.parametrize("door", DOORS)
def test_what_is_of_one_program_says_so(door: str, dividing: PartedModel) -> None:
    with pytest.raises(
        UnsupportedError, match=f"{door} is of one program, and data divides FunctionModel into 2 parts"
    ):
        getattr(dividing, door)


def test_it_is_copied_and_pickled(dividing: PartedModel) -> None:
    close(results(copy.copy(dividing), MANY), results(masked_sum, MANY))
    again = pickle.loads(pickle.dumps(dividing))
    assert isinstance(again, PartedModel)
    assert [r.tolist() for r in results(again, MANY)] == [r.tolist() for r in results(dividing, MANY)]
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        _ = dividing.frobnicate


def test_a_part_is_saved_and_read_again(dividing: PartedModel, tmp_path: Path) -> None:
    results(dividing, MANY)
    part = dividing.programs[0]
    loaded = spyre_mlir.load(part.save(tmp_path / "part"), numerics="exact")
    assert torch.equal(results(loaded, MANY[:1])[0], MANY[0] > 0)


def test_other_inputs_are_refused(dividing: PartedModel) -> None:
    with pytest.raises(InputError, match=r"argument 'args_0': expected float32\[4, 6\], got float32\[3, 6\]"):
        dividing(MANY[0][:3], MANY[1])
    with pytest.raises(InputError, match="the call has inputs"):
        dividing(MANY[0])


def test_host_steps_can_be_refused() -> None:
    with pytest.raises(UnsupportedError, match="a step of this program would run on the host") as no:
        parted(FunctionModel(masked_sum), MANY, host_fallback="error")
    assert "aten.index.Tensor: data decides the size of its result" in str(no.value)


def test_host_steps_are_told() -> None:
    with pytest.warns(HostStepWarning, match=r"1 x aten\.nonzero: data decides the size of its result"):
        parted(FunctionModel(places), MANY)


def test_a_check_of_the_model_holds() -> None:
    compiled = parted(FunctionModel(counted_to), MANY)
    with pytest.raises(InputError, match="gives a number of 9 in this call, expected 7 at most"):
        compiled(MANY[0], torch.tensor([9, 1, 3, 0]))


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        found = x[x > 0]
        self.seen.add_(found.sum())
        return found


class Counting(nn.Module):
    """Reads what it wrote in the call before, and an input that it writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("least", torch.full((6,), 9.0))

    def forward(self, x: Tensor, _i: Tensor) -> Any:
        rows = x[(x > self.least.amin()).any(-1)]
        self.calls += 1
        self.least.copy_(torch.minimum(self.least, x.amin(0)))
        x.mul_(0.5)
        return rows * 2, self.calls + rows.shape[0]


def drawn(x: Tensor, _i: Tensor) -> Any:
    first = torch.rand(6)
    rows = x[(x > 0).any(-1)] + first
    return rows * torch.randint(0, 5, (6,)), torch.nn.functional.dropout(x, 0.5, training=True) + torch.rand(4, 6)


@pytest.mark.parametrize("model", [Remembering(), Counting()], ids=["one", "several"])
def test_what_a_call_writes_is_eagers(model: nn.Module) -> None:
    """Three calls of the model and of its copy: results, buffers and inputs stay equal."""
    eager, inputs = copy.deepcopy(model), MANY[: 1 if isinstance(model, Remembering) else 2]
    compiled = parted(model, inputs)
    for call in range(3):
        own, theirs = ([x.clone() + call if x.is_floating_point() else x for x in inputs] for _ in range(2))
        close(results(compiled, own), results(eager, theirs))
        close([*own, *model.buffers()], [*theirs, *eager.buffers()])


def test_a_call_that_fails_writes_nothing() -> None:
    class Checked(Remembering):
        def forward(self, x: Tensor, i: Tensor) -> Tensor:
            found = super().forward(x)
            return found[: i[0].item()] if torch._check(i[0].item() < 5) is None else found

    model = Checked()
    compiled = parted(model, MANY)
    with pytest.raises(InputError, match="gives a number of 9 in this call, expected 4 at most"):
        compiled(MANY[0], torch.tensor([9, 1, 3, 0]))
    assert model.seen.item() == 0


def test_numbers_that_are_drawn_are_eagers() -> None:
    compiled = parted(FunctionModel(drawn), MANY)
    for _ in range(2):
        close(results(compiled, MANY), results(drawn, MANY))
        after = torch.get_rng_state()
        results(drawn, MANY)
        assert torch.equal(torch.get_rng_state(), after)


@pytest.mark.parametrize("model", [Counting(), FunctionModel(drawn)], ids=["writes", "draws"])
def test_verification_leaves_all_as_it_was(model: nn.Module) -> None:
    inputs = tuple(x.clone() for x in MANY)
    compiled = parted(model, inputs)
    before, state = [x.clone() for x in (*inputs, *model.buffers())], torch.get_rng_state()
    assert compiled.verify(*inputs)
    close([*inputs, *model.buffers()], before)
    assert torch.equal(torch.get_rng_state(), state)
