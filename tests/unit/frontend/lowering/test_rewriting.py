"""Nodes said with other ops: which ops, worked out by hand, and that torch computes the same by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph
from xdsl.ir import SSAValue

from spyre_mlir.frontend.lowering.rewriting import rewrite
from tests.unit.frontend.graphs import calls, traced
from tests.unit.frontend.lowering.values import TorchValues

X = torch.arange(24.0).reshape(4, 6)
CUBE = torch.arange(24.0).reshape(2, 3, 4)
aten = torch.ops.aten
Ops = list[tuple[str, dict[str, Any]]]


def rewritten(
    target: Any, function: Callable[..., Any], *examples: torch.Tensor, known: tuple[int, ...] = (), host: bool = False
) -> tuple[Any, Ops]:
    """The tensors that replace the one node of a function that calls `target`, and the ops they are made by."""
    graph = traced(function, *examples)
    graph.eliminate_dead_code()
    (node,) = [n for n in calls(graph) if n.target is target]
    values = TorchValues(graph, examples, known=known, host=host)
    made = rewrite(node, values)
    if made is None:
        return None, values.ops
    if isinstance(made, SSAValue):
        return values.tensors[made], values.ops
    return {number: values.tensors[value] for number, value in made.items()}, values.ops


def test_other_operators_stay_what_they_are() -> None:
    assert rewritten(aten.relu.default, torch.relu, X) == (None, [])


def part(dim: int, start: int, end: int) -> tuple[str, dict[str, Any]]:
    return "slice.Tensor", {"dim": dim, "start": start, "end": end}


@pytest.mark.parametrize(
    ("target", "function", "ops"),
    [
        (
            aten.split_with_sizes.default,
            lambda x: torch.split(x, [1, 3, 2], 1),
            [part(1, 0, 1), part(1, 1, 4), part(1, 4, 6)],
        ),
        (aten.split.Tensor, lambda x: torch.split(x, 4, 1), [part(1, 0, 4), part(1, 4, 6)]),
        (aten.split.Tensor, lambda x: torch.split(x, 2, -2), [part(-2, 0, 2), part(-2, 2, 4)]),
        (
            aten.unbind.int,
            lambda x: torch.unbind(x[:, 1:3], 1),
            [("select.int", {"dim": 1, "index": 0}), ("select.int", {"dim": 1, "index": 1})],
        ),
    ],
)
def test_parts_are_slices(target: Any, function: Callable[..., Any], ops: Ops) -> None:
    made, found = rewritten(target, function, X)
    assert found == ops
    wanted = function(X)
    assert list(made) == list(range(len(wanted)))
    assert all(torch.equal(made[i], w) for i, w in enumerate(wanted))


def cut(dim: int, start: int, end: int, step: int = 1) -> tuple[str, dict[str, Any]]:
    return "slice.Tensor", {"dim": dim, "start": start, "end": end, "step": step}


def of(*indices: Any) -> list[torch.Tensor]:
    return [torch.tensor(i) for i in indices]


COLUMN = [[0], [1]]


def at(form: str, *indices: Any) -> list[torch.Tensor | None]:
    """The indices of ``x[form]``, where a colon keeps a dimension whole."""
    queue = iter(of(*indices))
    return [None if part.strip() == ":" else next(queue) for part in form.split(",")]


VIEWS: dict[str, tuple[torch.Tensor, list[torch.Tensor | None], Ops]] = {
    "a range": (X, at(":, i", [1, 2]), [cut(1, 1, 3)]),
    "counted from the end": (X, at("i", [-3, -2]), [cut(0, 1, 3)]),
    "every other": (X, at(":, i", [1, 3, 5]), [cut(1, 1, 6, 2)]),
    "one place": (X, at("i", 2), [cut(0, 2, 3), ("permute", {"dims": (1, 0)}), ("squeeze.dims", {"dim": (1,)})]),
    "one place, often": (
        X,
        at(":, i", [2, 2, 2]),
        [cut(1, 2, 3), ("squeeze.dims", {"dim": (1,)}), ("unsqueeze", {"dim": 1}), ("expand", {"size": (4, 3)})],
    ),
    "a block": (X, at("i, j", COLUMN, [2, 3, 4]), [cut(0, 0, 2), cut(1, 2, 5)]),
    "a block turned": (
        X,
        at("i, j", [1, 2, 3], COLUMN),
        [cut(0, 1, 4), cut(1, 0, 2), ("permute", {"dims": (1, 0)})],
    ),
    "side by side at the end": (CUBE, at(":, i, j", COLUMN, [1, 2]), [cut(1, 0, 2), cut(2, 1, 3)]),
    "apart, so in front": (
        CUBE,
        at("i, :, j", COLUMN, [1, 2]),
        [cut(0, 0, 2), cut(2, 1, 3), ("permute", {"dims": (0, 2, 1)})],
    ),
    "apart, behind one that stays": (
        CUBE[None],
        at(":, i, :, j", COLUMN, [1, 2]),
        [cut(1, 0, 2), cut(3, 1, 3), ("permute", {"dims": (1, 3, 0, 2)})],
    ),
    "one place beside a range": (
        CUBE,
        at(":, i, j", 1, [0, 1, 2]),
        [cut(1, 1, 2), cut(2, 0, 3), ("permute", {"dims": (0, 2, 1)}), ("squeeze.dims", {"dim": (2,)})],
    ),
    "two places": (
        CUBE,
        at("i, j", 1, 2),
        [cut(0, 1, 2), cut(1, 2, 3), ("permute", {"dims": (2, 0, 1)}), ("squeeze.dims", {"dim": (1, 2)})],
    ),
    "along the second of two axes": (X, at("i", [[0, 1, 2]]), [cut(0, 0, 3), ("unsqueeze", {"dim": 0})]),
    "repeated along the first of two axes": (
        X,
        at("i", [[0, 1], [0, 1]]),
        [cut(0, 0, 2), ("unsqueeze", {"dim": 0}), ("expand", {"size": (2, 2, 6)})],
    ),
}


def indexed(
    source: torch.Tensor,
    *indices: torch.Tensor | None,
    known: tuple[int, ...] = (),
    host: bool = False,
    operator: Any = aten.index.Tensor,
) -> tuple[Any, Ops]:
    """The tensor that replaces indexing with tensors, and the ops it is made by."""
    given = [i for i in indices if i is not None]
    graph = Graph()
    x = graph.placeholder("x")
    nodes = iter([graph.placeholder(f"i{n}") for n in range(len(given))])
    node = graph.call_function(operator, (x, [None if i is None else next(nodes) for i in indices]))
    for named, value in zip(graph.nodes, (source, *given, source[tuple(map(_whole, indices))]), strict=True):
        named.meta["val"] = value
    values = TorchValues(graph, (source, *given), known=known, host=host)
    made = rewrite(node, values)
    assert made is None or isinstance(made, SSAValue)
    return None if made is None else values.tensors[made], values.ops


def _whole(index: torch.Tensor | None) -> torch.Tensor | slice:
    return slice(None) if index is None else index.long() if index.dtype is torch.uint8 else index


@pytest.mark.parametrize("name", VIEWS)
def test_known_ranges_are_views(name: str) -> None:
    source, indices, ops = VIEWS[name]
    made, found = indexed(source, *indices, known=(1, 2))
    assert found == ops
    assert torch.equal(made, source[tuple(map(_whole, indices))])


@pytest.mark.parametrize(
    "indices",
    [
        of([2, 1, 0]),
        of([0, 1, 3]),
        of([0, 1, 1]),
        [torch.tensor([], dtype=torch.int64)],
        of([[0, 1], [1, 2]]),
        of([0, 1], [0, 1]),
        of([True, False, True, True]),
        [torch.tensor([1, 0, 1, 1], dtype=torch.uint8)],
    ],
)
def test_other_known_indices_are_no_views(indices: list[torch.Tensor]) -> None:
    assert indexed(X, *indices, known=(1, 2)) == (None, [])


ROW = ("index_select", {"dim": 0})


@pytest.mark.parametrize(
    ("index", "ops"),
    [
        (torch.tensor([3, 0, 0]), [ROW, ("view", {"size": (3, 6)})]),
        (torch.tensor([[3], [0]]), [("view", {"size": (-1,)}), ROW, ("view", {"size": (2, 1, 6)})]),
        (torch.tensor(2), [("view", {"size": (-1,)}), ROW, ("view", {"size": (6,)})]),
    ],
)
@pytest.mark.parametrize("operator", [aten.index.Tensor, aten._unsafe_index.Tensor])
def test_rows_of_what_the_host_provides_are_chosen(index: torch.Tensor, ops: Ops, operator: Any) -> None:
    made, found = indexed(X, index, host=True, operator=operator)
    assert found == ops
    assert torch.equal(made, X[index])


def test_known_rows_that_are_no_range_are_chosen_too() -> None:
    made, found = indexed(X, torch.tensor([2, 0]), known=(1,), host=True)
    assert found == [ROW, ("view", {"size": (2, 6)})]
    assert torch.equal(made, X[[2, 0]])


def test_what_is_not_known_is_no_view() -> None:
    i, j = of([0, 1], [1])
    assert indexed(X, i) == (None, []), "computed on the device"
    assert indexed(X, None, i, host=True) == (None, []), "columns"
    assert indexed(X[0], i, host=True) == (None, []), "no rows"
    assert indexed(X, i, j, host=True, known=(1,)) == (None, []), "two of them"


@pytest.mark.parametrize(
    ("target", "function", "ops"),
    [
        (
            aten.as_strided.default,
            lambda x: x.t().as_strided((3, 3), (2, 5), 1),
            [("permute", {"dims": (1, 0)}), ("as_strided", {"size": (3, 3), "stride": (2, 5), "storage_offset": 1})],
        ),
        (
            aten.as_strided.default,
            lambda x: x[1:3].as_strided((2, 2), (6, 1), 0),
            [("as_strided", {"size": (2, 2), "stride": (6, 1), "storage_offset": 0})],
        ),
        (
            aten.as_strided.default,
            lambda x: x[1:3].as_strided((2, 2), (6, 1), 7),
            [("as_strided", {"size": (2, 2), "stride": (6, 1), "storage_offset": 1})],
        ),
        (aten.as_strided.default, lambda x: x.as_strided((2, 2), (6, 1), 1), None),
        (aten.as_strided.default, lambda x: x.as_strided((2, 2), (6, 1)), None),
        (aten.as_strided.default, lambda x: x[1:3].as_strided((2, 2), (6, 1)), None),
        (aten.as_strided_copy.default, lambda x: torch.as_strided_copy(x, (2, 2), (6, 1), 1), None),
        (
            aten.as_strided_copy.default,
            lambda x: torch.as_strided_copy(x.t(), (2, 2), (6, 1)),
            [("permute", {"dims": (1, 0)}), ("as_strided", {"size": (2, 2), "stride": (6, 1), "storage_offset": 0})],
        ),
        (
            aten.as_strided_scatter.default,
            lambda x: torch.as_strided_scatter(x.view(2, 3, 4).permute(2, 0, 1), x[:2, :2] + 50, (2, 2), (6, 2), 1),
            [
                ("permute", {"dims": (1, 2, 0)}),
                ("as_strided_scatter", {"size": (2, 2), "stride": (6, 2), "storage_offset": 1}),
                ("permute", {"dims": (2, 0, 1)}),
            ],
        ),
        (
            aten.as_strided_scatter.default,
            lambda x: torch.as_strided_scatter(x[1:], x[:2, :2] + 50, (2, 2), (6, 2), 7),
            [("as_strided_scatter", {"size": (2, 2), "stride": (6, 2), "storage_offset": 1})],
        ),
        (
            aten.as_strided_scatter.default,
            lambda x: torch.as_strided_scatter(x[:, ::2], x[:2, :2], (2, 2), (6, 2), 0),
            None,
        ),
    ],
)
def test_walks_go_through_tensors_in_row_major_order(
    target: Any, function: Callable[..., Any], ops: Ops | None
) -> None:
    made, found = rewritten(target, function, X)
    assert found == (ops or [])
    assert made is None if ops is None else torch.equal(made, function(X))


WEIGHT = torch.arange(8.0).reshape(4, 2) ** 2


def bag(weight: torch.Tensor, places: torch.Tensor, offsets: torch.Tensor, *more: Any, **said: Any) -> torch.Tensor:
    return aten._embedding_bag_forward_only(weight, places, offsets, *more, **said)[0]


@pytest.mark.parametrize(("mode", "fold"), [(0, "sum.dim_IntList"), (1, "mean.dim"), (2, "amax")])
def test_bags_of_one_size_are_rows_and_a_reduction(mode: int, fold: str) -> None:
    def function(*args: torch.Tensor) -> torch.Tensor:
        return bag(*args, False, mode)  # type: ignore[arg-type]

    places, offsets = of([3, 0, 1, 1, 2, 3], [0, 3])
    made, found = rewritten(aten._embedding_bag_forward_only.default, function, WEIGHT, places, offsets, known=(2,))
    assert found == [("embedding", {}), ("view", {"size": (2, 3, 2)}), (fold, {"dim": (1,)})]
    assert list(made) == [0]
    assert torch.equal(made[0], function(WEIGHT, places, offsets))


@pytest.mark.parametrize(
    ("function", "offsets", "known"),
    [
        (bag, [0, 3], ()),
        (bag, [0, 2], (2,)),
        (bag, [1, 3], (2,)),
        (bag, [0, 1, 2, 3], (2,)),
        (lambda w, p, o: bag(w, p, o, padding_idx=0), [0, 3], (2,)),
        (lambda w, p, o: bag(w, p, o, per_sample_weights=torch.ones(6)), [0, 3], (2,)),
        (lambda w, p, o: bag(w, p, o, include_last_offset=True), [0, 3], (2,)),
        (lambda w, p, o: aten._embedding_bag_forward_only(w, p, o)[1], [0, 3], (2,)),
    ],
)
def test_other_bags_stay(function: Callable[..., Any], offsets: list[int], known: tuple[int, ...]) -> None:
    places, starts = of([3, 0, 1, 1, 2, 3], offsets)
    target = aten._embedding_bag_forward_only.default
    assert rewritten(target, function, WEIGHT, places, starts, known=known) == (None, [])


@pytest.mark.parametrize("offsets", [[0], [0, 0]])
def test_bags_without_rows_stay(offsets: list[int]) -> None:
    """A mean of no rows is 0 here, and the largest, too."""
    places, starts = torch.empty(0, dtype=torch.int64), torch.tensor(offsets)
    target = aten._embedding_bag_forward_only.default
    assert rewritten(target, bag, WEIGHT, places, starts, known=(2,)) == (None, [])


def test_no_bags_at_all_stay() -> None:
    places = starts = torch.empty(0, dtype=torch.int64)
    target = aten._embedding_bag_forward_only.default
    assert rewritten(target, bag, WEIGHT, places, starts, known=(2,)) == (None, [])


def grouped(rows: torch.Tensor, matrices: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return torch._grouped_mm(rows, matrices, offs=ends)


def test_grouped_products_are_those_of_transformers() -> None:
    """Whose operator calls take for every other type of numbers."""
    pytest.importorskip("transformers.integrations.moe")
    rows, matrices = (torch.randn(*shape).bfloat16() for shape in ((7, 16), (3, 16, 32)))
    made, ops = rewritten(aten._grouped_mm.default, grouped, rows, matrices, torch.tensor([2, 2, 7], dtype=torch.int32))
    assert ops == [("transformers::grouped_mm_fallback", {})]
    torch.testing.assert_close(made, torch.cat([rows[:2] @ matrices[0], rows[2:] @ matrices[2]]))


def test_products_of_groups_of_columns_stay() -> None:
    rows, columns = torch.randn(16, 32).bfloat16(), torch.randn(32, 16).bfloat16()
    made, _ = rewritten(aten._grouped_mm.default, grouped, rows, columns, torch.tensor([16, 32], dtype=torch.int32))
    assert made is None
