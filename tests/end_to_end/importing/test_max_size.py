"""Sizes that data decides, with a bound: one program for all of them, padded and masked, in `torch.compile`, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.parted.model import PartedModel
from spyre_mlir.torch_compile import history
from tests.end_to_end.importing.against_eager import close, results
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")

torch.manual_seed(5)
WEIGHT = torch.randn(6, 5)
NUMBERS = torch.linspace(0.1, 1.0, 24).reshape(4, 6)


def call(count: int) -> tuple[Tensor, Tensor]:
    """Four rows, of which so many are positive; as many different numbers, and numbers whose sum or largest it is."""
    return torch.where(torch.arange(4)[:, None] < count, NUMBERS, -NUMBERS), torch.tensor([count, 0, 0, 0])


def positive(x: Tensor) -> Tensor:
    return x[x.sum(-1) > 0]


def rows_by_a_weight(x: Tensor, _i: Tensor) -> Any:
    return torch.relu(positive(x) @ WEIGHT)


def softmax_over_rows(x: Tensor, _i: Tensor) -> Any:
    return torch.softmax(positive(x), 0)


def attention_to_rows(x: Tensor, _i: Tensor) -> Any:
    rows = positive(x)
    return torch.softmax(x @ rows.t(), -1) @ rows


def attention_to_two_selections(x: Tensor, _i: Tensor) -> Any:
    """Keys and values of a mask that is made twice."""
    keys, values = (rows[x.sum(-1) > 0].view(-1, 2, 3).transpose(0, 1)[None] for rows in (x, x * 2))
    return nn.functional.scaled_dot_product_attention(x.view(1, 2, 4, 3), keys, values)


def means(x: Tensor, _i: Tensor) -> Any:
    rows = positive(x)
    return rows.mean(0), rows.sum() / rows.shape[0], rows.amax(0)


def selected(x: Tensor, _i: Tensor) -> Any:
    return torch.masked_select(x, x > 0).exp().sum()


def places(x: Tensor, _i: Tensor) -> Any:
    return torch.softmax(torch.nonzero(x > 0) * 0.5, 0)


def different_values(_x: Tensor, i: Tensor) -> Any:
    return torch.unique(i).float().sum()


def repeated(x: Tensor, i: Tensor) -> Any:
    return torch.softmax(torch.repeat_interleave(x, i, dim=0), 0) @ WEIGHT


def first_rows(x: Tensor, i: Tensor) -> Any:
    return (x[: i.max().item()] * 2).exp().sum(0)


def counted_to(x: Tensor, i: Tensor) -> Any:
    count = i.max().item()
    torch._check(count >= 0)
    torch._check(count <= 8)
    return (torch.arange(count) * 0.5 + x.sum()).amin()


def written_rows(x: Tensor, _i: Tensor) -> Any:
    row = torch.nonzero(x.sum(-1) > 0).squeeze(1)
    return torch.zeros(4, 6).index_add_(0, row, x[row] + 1)


def two_sizes(x: Tensor, _i: Tensor) -> Any:
    above, below = x[x > 0], x[x < 0.7]
    return torch.outer(above, below).exp().sum(0)


def sorted_numbers(x: Tensor, _i: Tensor) -> Any:
    return x[x > 0].sort()[0]


def sorted_rows(x: Tensor, _i: Tensor) -> Any:
    values, places = (positive(x) * 4).round().sort(dim=0, descending=True, stable=True)
    return values * 2, places


def order_of_integers(x: Tensor, _i: Tensor) -> Any:
    return torch.argsort(torch.nonzero(x > 0)[:, 1] * 7 % 5, stable=True)


def overwritten(x: Tensor, _i: Tensor) -> Any:
    """The last of the numbers in a row stays."""
    out, row = x.clone(), torch.nonzero(x > 0)[:, 0]
    out[row] = torch.arange(row.shape[0])[:, None] * 0.5 + out[row]
    return out


def put_by_a_mask(x: Tensor, _i: Tensor) -> Any:
    chosen = x.sum(-1) > 0
    out = torch.zeros(4, 6)
    out[chosen] = x[chosen] * 2 + 1
    return out


def in_order(x: Tensor, _i: Tensor) -> Any:
    rows = positive(x)
    return rows[torch.argsort(rows[:, 0], descending=True)], rows[-1]


def merged(x: Tensor, _i: Tensor) -> Any:
    """Rows of two kinds behind each other, and columns."""
    rows = torch.stack([x, -x])[:, x.sum(-1) > 0]
    return rows.flatten(0, 1) @ WEIGHT, positive(x).t().reshape(-1).softmax(0)


def rolled(x: Tensor, _i: Tensor) -> Any:
    rows = positive(x)
    return rows.roll(1, 0) - rows, rows[:, 0].roll(-2) * 2


def extremes(x: Tensor, _i: Tensor) -> Any:
    rows = positive(x)
    torch._check(rows.shape[0] != 0)
    return *rows.max(0), rows.argmin(), (rows > 0.5).any(0), rows.median(0)[0]


def parts(x: Tensor, _i: Tensor) -> Any:
    rows = torch.cat([positive(x), x[:1], x[x[:, 1] < 0.5]])
    return torch.softmax(x @ rows.t(), -1) @ rows, torch.cat([rows[:, 0], rows[:, 1], x[x > 0]]) * 2


def padded(x: Tensor, _i: Tensor) -> Any:
    rows = nn.functional.pad(positive(x), (0, 0, 1, 2), value=0.5)
    return rows.exp(), rows.logsumexp(0), nn.functional.pad(positive(x), (0, 0, 0, 4 - positive(x).shape[0]))


def steps(x: Tensor, _i: Tensor) -> Any:
    place = torch.nonzero(x > 0)[:, 1]
    return place[1:] - place[:-1], x[x > 0].diff().abs().sum()


def multiplied(x: Tensor, _i: Tensor) -> Any:
    return positive(x).prod(0), (x[x > 0] + 0.5).cumprod(0)


def losses(x: Tensor, _i: Tensor) -> Any:
    rows = positive(x)
    classes = torch.nonzero(x.sum(-1) > 0)[:, 0]
    return nn.functional.cross_entropy(rows, classes), nn.functional.nll_loss(rows, classes, reduction="sum")


def masked_twice(x: Tensor, i: Tensor) -> Any:
    """Torch knows two sizes, and that they are equal."""
    row = torch.repeat_interleave(torch.arange(4), i)
    return x[x > 0] + (x * 2)[x > 0], torch.zeros(4, 6).index_add(0, row, torch.repeat_interleave(x, i, dim=0))


def each_second(x: Tensor, _i: Tensor) -> Any:
    return x[x > 0][::2] * 2, x[x > 0][1::3].sum()


def spread(x: Tensor, _i: Tensor) -> Any:
    numbers = x[x > 0]
    return numbers.quantile(0.3), torch.histc(numbers, 5, 0.0, 2.0)


def parted_by_counts(x: Tensor, _i: Tensor) -> Any:
    """Rows behind each other by their kind, and then put back."""
    rows = torch.cat([x, -x.abs()])
    kind = (rows.sum(-1) > 0).long()
    order = kind.argsort(stable=True)
    some, others = rows[order].split(nn.functional.one_hot(kind, 2).sum(0).tolist())
    return torch.zeros(8, 6).index_copy(0, order, torch.cat([some * 2, others.exp()])), others.sum(0)


def divided_by_a_size(x: Tensor, i: Tensor) -> Any:
    """The first rows, all other ones, and as many of the largest."""
    count = i.max().item()
    torch._check(count >= 0)
    torch._check(count <= 5)
    rows = torch.cat([x, x[:1] + 1])
    some, others = rows.split([count, 5 - count])
    return some.softmax(0), others.sum(0), rows[count:] * 2, rows.topk(count)[0]


def windows(x: Tensor, i: Tensor) -> Any:
    frames = torch.repeat_interleave(x, i, dim=0).t()[None]
    return nn.functional.conv1d(frames, WEIGHT.t()[:, :, None].repeat(1, 1, 3), padding=1).relu().mean(-1)


def pooled(x: Tensor, _i: Tensor) -> Any:
    frames = x[x > 0][None, None]
    return nn.functional.max_pool1d(frames, 2), nn.functional.adaptive_avg_pool1d(frames, 1)


def mean_of_each_group(x: Tensor, i: Tensor) -> Any:
    """As many groups as the largest number says; and features for the tokens of a kind, as models for images have."""
    count = i.max().item() + 1
    sums = torch.zeros(count, 6).index_add(0, i, x)
    means = sums / torch.zeros(count).index_add(0, i, torch.ones(4)).clamp(min=1)[:, None]
    kind = x.sum(-1) > 0
    return means, x.masked_scatter(kind[:, None].expand(4, 6), torch.tanh(x[kind] * 2))


def attention_by_groups(x: Tensor, _i: Tensor) -> Any:
    """Softmax of scores over the rows that go to the same place."""
    score, place = positive(x)[:, 0], torch.nonzero(x.sum(-1) > 0)[:, 0] // 2
    most = torch.full((2,), -9.0).scatter_reduce(0, place, score, "amax")
    above = (score - most[place]).exp()
    return above / torch.zeros(2).scatter_add(0, place, above)[place]


def branches(x: Tensor, _i: Tensor) -> Any:
    """With a reduction along the size, in one branch, and a loop that ends by it."""
    rows = positive(x)
    rows = torch.cond(x[0].sum() > 3, lambda a: a.softmax(0), lambda a: a * 2, (rows,))
    _, rows = torch.while_loop(
        lambda k, a: (k < 4) & (a.abs().sum() > 1), lambda k, a: (k + 1, a / 2), (torch.tensor(0), rows)
    )
    return rows


PROGRAMS = (
    merged, rolled, pooled, mean_of_each_group, branches, divided_by_a_size, windows, attention_by_groups,
    parted_by_counts, losses, masked_twice, each_second, spread,
    parts, padded, steps, multiplied, overwritten, put_by_a_mask, in_order, extremes,
    rows_by_a_weight, softmax_over_rows, attention_to_rows, attention_to_two_selections, means, selected,
    places, different_values, repeated,
    first_rows, counted_to, written_rows, two_sizes, sorted_numbers, sorted_rows, order_of_integers,
)  # fmt: skip


def bounded(program: Callable[..., Any], **options: Any) -> PartedModel:
    made = spyre_mlir.compile(FunctionModel(program), call(3), **{"max_size": 24, "numerics": "exact", **options})
    assert isinstance(made, PartedModel)
    return made


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_one_program_is_eager_for_every_size(program: Callable[..., Any]) -> None:
    """Nothing is compiled at a call, for a size of 1 either, for which torch traces another program."""
    compiled = bounded(program)
    before = compiled.programs
    for count in (3, 4, 2, 1):
        close(results(compiled, call(count)), results(program, call(count)))
    assert compiled.programs == before
    assert compiled.verify(*call(2))


def first_of_rows(x: Tensor, _i: Tensor) -> Any:
    rows = positive(x)
    return (rows * (torch.arange(rows.shape[0]) == 0)[:, None]).sum(0), (torch.arange(rows.shape[0]) == 0).sum()


def test_no_element_is_a_size_too() -> None:
    for program in (attention_to_rows, first_of_rows, sorted_rows):
        compiled = bounded(program)
        for count in (0, 1):
            close(results(compiled, call(count)), results(program, call(count)))


def three(x: Tensor, _i: Tensor) -> Any:
    numbers = x[x > 0.55]
    torch._check(numbers.shape[0] >= 3)
    return numbers.topk(3)


def test_a_least_size_is_that_of_the_program() -> None:
    compiled = bounded(three)
    before = compiled.programs
    for count in (4, 3):
        close(results(compiled, call(count)), results(three, call(count)))
    assert compiled.programs == before
    with pytest.raises(InputError):
        compiled(*call(2))


def test_what_eager_refuses_is_refused() -> None:
    with pytest.raises(InputError, match=r"aten\.index\.Tensor gives a size of 0 in this call, expected 1 at least"):
        bounded(means)(*call(0))


@pytest.mark.parametrize("program", [softmax_over_rows, counted_to], ids=lambda p: p.__name__)
def test_device_numerics(program: Callable[..., Any]) -> None:
    compiled = bounded(program, numerics="device")
    for count in (3, 1):
        torch.testing.assert_close(compiled(*call(count)), program(*call(count)), rtol=0.01, atol=0.01)


def test_a_larger_size_is_an_error_of_the_call() -> None:
    compiled = bounded(rows_by_a_weight, max_size=3)
    close(results(compiled, call(3)), results(rows_by_a_weight, call(3)))
    with pytest.raises(InputError, match=r"aten\.index\.Tensor gives a size of 4 .*, expected 3 at most") as no:
        compiled(*call(4))
    assert no.value.where is not None
    assert "functions.py:" in no.value.where


def test_bounds_are_those_that_the_program_says() -> None:
    """A mask of four rows selects four at most, and the model checks a number itself."""
    assert "// FunctionModel_1 is compiled once for u0 <= 4" in bounded(rows_by_a_weight, max_size="known").mlir()
    assert "u0 <= 8" in bounded(counted_to, max_size="known").mlir()
    with pytest.raises(InputError, match=r"not say how large the size is that aten\.repeat_interleave\.Tensor makes"):
        bounded(repeated, max_size="known")


def in_bins(x: Tensor, _i: Tensor) -> Any:
    """Between the least and the largest number."""
    return torch.histc(x[x > 0], 5)


def pairs_in_a_line(x: Tensor, _i: Tensor) -> Any:
    rows = positive(x)
    return (rows[:, None] * rows[None]).reshape(-1, 6) * 2


def divided_by_a_number(x: Tensor, i: Tensor) -> Any:
    return x / i.max().float().item()


@pytest.mark.parametrize(
    ("program", "because"),
    [
        (in_bins, r"aten\.histc: arith\.minimumf takes in padding"),
        (pairs_in_a_line, "for another length"),
        (divided_by_a_number, "is a number of the data that is no size"),
    ],
    ids=["bins", "pairs", "number"],
)
def test_what_padding_would_reach_is_refused(program: Callable[..., Any], because: str) -> None:
    with pytest.raises(UnsupportedError, match=because) as no:
        bounded(program)
    assert " has no program for all sizes: " in str(no.value)
    assert no.value.hint == "leave out max_size: each size then has a program of its own"


def test_a_bound_needs_a_size_of_data() -> None:
    with pytest.raises(InputError, match="max_size is of sizes that data decides, and the model has none"):
        spyre_mlir.compile(nn.ReLU(), (torch.ones(3),), max_size=3)
    with pytest.raises(InputError, match="max_size must be a number above 0, 'known' or None, got 0"):
        spyre_mlir.compile(nn.ReLU(), (torch.ones(3),), max_size=0)


def test_infinite_padding_shows() -> None:
    """The logarithm of padding, 0, times 0, is no number: the call has a program of its own, and eager's result.

    That the padding is 0 again behind the sum, the proof does not know.
    """

    def logarithms(x: Tensor, _i: Tensor) -> Any:
        rows = positive(x)
        return rows.t() @ (rows + torch.relu(-x.abs()).sum(0)).log()

    close(results(bounded(logarithms), call(2)), results(logarithms, call(2)))


def test_a_saved_bound_is_read_again(tmp_path: Path) -> None:
    compiled = bounded(attention_to_rows)
    loaded = spyre_mlir.load(compiled.save(tmp_path / "saved"), numerics="exact")
    assert isinstance(loaded, PartedModel)
    before = loaded.programs
    for count in (3, 1, 4):
        close(results(loaded, call(count)), results(attention_to_rows, call(count)))
    assert loaded.programs == before


@pytest.mark.parametrize(
    "program", [rows_by_a_weight, means, counted_to, sorted_rows, overwritten], ids=lambda p: p.__name__
)
def test_torch_compile_in_one_graph(program: Callable[..., Any]) -> None:
    options = {"numerics": "exact", "max_size": "known"}
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        torch._dynamo.reset()
        compiled = torch.compile(FunctionModel(program), backend="spyre", fullgraph=True, options=options)
        programs = list[Any]()
        for count in (3, 2, 1):
            close(results(compiled, call(count)), results(program, call(count)))
            programs.append(history.programs(compiled))
        torch._dynamo.reset()
    assert programs[0]
    assert programs == [programs[0]] * 3


def test_other_graphs_of_the_function_need_no_size() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(nn.ReLU(), backend="spyre", options={"max_size": 3})
    assert compiled(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    torch._dynamo.reset()
