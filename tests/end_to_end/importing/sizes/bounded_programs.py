"""Programs whose sizes data decides, which one program with a bound computes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

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


def filled_up(x: Tensor, _i: Tensor) -> Any:
    """As many rows for each call, those behind the caller's being a number; at the end, and between others."""
    rows = positive(x)
    first, last, middle, known = torch.zeros(7, 6), torch.full((7, 6), -1.0), torch.ones(8, 6), torch.zeros(7)
    first[: rows.shape[0]] = rows
    last[-rows.shape[0] :] = rows * 2
    middle[2 : rows.shape[0] + 2, :3] = rows[:, :3]
    known[: rows.shape[0]] = 1.0
    return first * 2, last * 2, middle.sum(0), known


def among_the_rows(x: Tensor, _i: Tensor) -> Any:
    """Rows of a selection are written where a second one says, as boxes by the level of a pyramid."""
    rows = positive(x)
    made, known = torch.zeros(rows.shape[0], 6), torch.full((rows.shape[0],), -1)
    for level, least in enumerate((0.1, 0.25)):
        there = torch.where(rows[:, 4] > least)[0]
        made[there] = rows[there] * (level + 2)
        known[there - rows.shape[0]] = level
    made[rows[:, 0] < 0.2] = -1.0
    many, other = rows[:, 4] < 0.6, rows * 2
    other[many] = rows[many] - 1.0
    return made, known, other


def best_few(x: Tensor, _i: Tensor) -> Any:
    """Three rows, or as many as there are; and one row more than there are."""
    rows = positive(x)
    values, order = rows[:, 1].topk(min(3, rows.shape[0]))
    return values * 2, rows[order].sum(0), order, torch.cat([x, x])[: rows.shape[0] + 1] * 2


def looked_up(x: Tensor, _i: Tensor) -> Any:
    """An element of each row, and some elements of each; rows and columns of a table that two masks name."""
    rows = positive(x)
    count, best = torch.arange(rows.shape[0]), rows.topk(2)[1]
    chosen, columns = torch.nonzero(x.sum(-1) > 0)[:, 0], torch.nonzero(x[0] != 0)[:, 0]
    return rows[count, best[:, 0]] * 2, rows[count[:, None], best], x[chosen[:, None], columns[None]] * 2


def grouped(x: Tensor, i: Tensor) -> Any:
    """Bags, segments, and parts of a sequence; a segment of all rows, and one of none."""
    rows, lengths = positive(x), torch.stack([i.sum(), i.sum() * 0])
    line = (rows[:, 0] * 20).long() % 6
    return (
        nn.functional.embedding_bag(line, WEIGHT, torch.tensor([0, 1]), mode="mean"),
        torch.segment_reduce(rows, "max", lengths=lengths, axis=0, initial=0.25),
        nn.functional.adaptive_avg_pool1d(rows.t()[None], 3),
    )


def paired(x: Tensor, _i: Tensor) -> Any:
    """Pairs of rows in a line and back, and a loss whose classes are rows."""
    rows = positive(x)
    count, both = rows.shape[0], rows[:, None] - rows[None]
    line = torch.relu(both.reshape(-1, 6) @ WEIGHT)
    loss = nn.functional.cross_entropy(rows @ rows.t(), torch.arange(count))
    return line.view(count, count, 5).sum(1), (rows @ rows.t()).flatten().softmax(0), loss


def images(x: Tensor, _i: Tensor) -> Any:
    """Of as many lines as rows; and extremes of rows at a few places."""
    rows = positive(x)
    place = torch.arange(rows.shape[0]) % 2
    convolved = nn.functional.conv2d(rows[None, None], WEIGHT[:3, :3].reshape(1, 1, 3, 3), padding=1)
    return convolved, torch.zeros(3, 6).index_reduce(0, place, rows, "amin"), convolved.relu().mean((2, 3))


PROGRAMS = (
    looked_up, grouped, paired, images,
    filled_up, among_the_rows, best_few,
    merged, rolled, pooled, mean_of_each_group, branches, divided_by_a_size, windows, attention_by_groups,
    parted_by_counts, losses, masked_twice, each_second, spread,
    parts, padded, steps, multiplied, overwritten, put_by_a_mask, in_order, extremes,
    rows_by_a_weight, softmax_over_rows, attention_to_rows, attention_to_two_selections, means, selected,
    places, different_values, repeated,
    first_rows, counted_to, written_rows, two_sizes, sorted_numbers, sorted_rows, order_of_integers,
)  # fmt: skip
