"""Indices of a call that name no entry are refused where eager refuses them, with the name of the operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import InputError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

f = nn.functional
X = torch.linspace(-1.0, 1.0, 20).reshape(5, 4)
ONE = torch.tensor([2.5])

# Each takes a table of 5 rows and 4 columns, and a vector of one index; with the number of places that this names.
OPERATORS: dict[str, tuple[int, Callable[[Tensor, Tensor], Tensor]]] = {
    "index": (5, lambda x, i: x[i]),
    "index_of_columns": (4, lambda x, i: x[:, i]),
    "index_of_computed": (5, lambda x, i: (x * 2)[i]),
    "select": (5, lambda x, i: x[i.view(())]),
    "two_indices": (4, lambda x, i: x[torch.tensor([1]), i]),
    "index_put": (5, lambda x, i: x.index_put((i,), ONE)),
    "index_select": (5, lambda x, i: x.index_select(0, i)),
    "index_copy": (5, lambda x, i: x.index_copy(0, i, x[:1])),
    "index_add": (5, lambda x, i: x.index_add(0, i, x[:1])),
    "index_fill": (5, lambda x, i: x.index_fill(0, i, 3.0)),
    "index_reduce": (5, lambda x, i: x.index_reduce(0, i, x[:1], "amax")),
    "gather": (4, lambda x, i: x.gather(1, i.view(1, 1))),
    "scatter": (4, lambda x, i: x.scatter(1, i.view(1, 1), ONE.view(1, 1))),
    "scatter_number": (4, lambda x, i: x.scatter(1, i.view(1, 1), 3.0)),
    "scatter_add": (4, lambda x, i: x.scatter_add(1, i.view(1, 1), ONE.view(1, 1))),
    "scatter_reduce": (4, lambda x, i: x.scatter_reduce(1, i.view(1, 1), ONE.view(1, 1), "amax")),
    "take": (20, lambda x, i: x.take(i)),
    "put": (20, lambda x, i: x.put(i, ONE)),
    "take_along_all": (20, lambda x, i: torch.take_along_dim(x, i)),
    "embedding": (5, lambda x, i: f.embedding(i, x)),
    "embedding_bag": (5, lambda x, i: f.embedding_bag(i, x, torch.tensor([0]), mode="sum")),
    "one_hot": (6, lambda x, i: f.one_hot(i, 6) + x[0, 0]),
    "nll_loss": (4, lambda x, i: f.nll_loss(x[:1], i)),
    "cross_entropy": (4, lambda x, i: f.cross_entropy(x[:1], i, ignore_index=-2)),
}


def index(number: int) -> Tensor:
    return torch.tensor([number])


def is_refused(call: Callable[[], object], error: tuple[type[Exception], ...]) -> bool:
    try:
        call()
    except error:
        return True
    return False


def compiled(function: Callable[..., Any], *args: Tensor) -> CompiledModel:
    made = spyre_mlir.compile(FunctionModel(function), args, numerics="exact")
    assert isinstance(made, CompiledModel)
    return made


@pytest.mark.parametrize("name", OPERATORS)
def test_calls_refuse_what_eager_refuses(name: str) -> None:
    places, function = OPERATORS[name]
    made = compiled(function, X, index(0))
    for number in (-places - 1, -places, -2, -1, 0, places - 1, places, 10 * places):
        refused = is_refused(lambda n=number: function(X, index(n)), (IndexError, RuntimeError))
        assert is_refused(lambda n=number: made(X, index(n)), (InputError,)) is refused, number
        if not refused:
            torch.testing.assert_close(made(X, index(number)), function(X, index(number)), equal_nan=True)


def test_entries_along_a_dimension_in_range() -> None:
    """Eager takes every index modulo the extent here; its documentation says that indices lie in the range."""
    made = compiled(lambda x, i: torch.take_along_dim(x, i.view(1, 1), 0), X, index(0))
    for number in (-5, -1, 0, 4):
        torch.testing.assert_close(made(X, index(number)), X[number : number + 1 or None])
    for number in (-6, 5):
        with pytest.raises(InputError, match=rf"holds {number} at \[0\], and aten.take_along_dim takes -5 to 4"):
            made(X, index(number))


@pytest.mark.parametrize("level", LEVELS[:-1])
@pytest.mark.parametrize("name", ["index", "gather", "index_copy", "embedding"])
def test_every_level_refuses(name: str, level: str) -> None:
    places, function = OPERATORS[name]
    module = parse_module(compiled(function, X, index(0)).mlir(level), make_context())
    (found,) = run_function(module, [X.numpy(), index(places - 1).numpy()])
    torch.testing.assert_close(torch.from_numpy(found).float(), function(X, index(places - 1)))
    with pytest.raises(InputError, match=rf"argument 1, '.*' holds {places} at \[0\], and aten\.{name}"):
        run_function(module, [X.numpy(), index(places).numpy()])


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_saved_directories_refuse(tmp_path: Path, numerics: Any) -> None:
    compiled(lambda x, i: x[:, i] + 1, X, index(0)).save(tmp_path / "bundle")
    loaded = spyre_mlir.load(tmp_path / "bundle", numerics=numerics)
    torch.testing.assert_close(loaded(X, index(-4)), X[:, :1] + 1, atol=0.01, rtol=0.01)
    with pytest.raises(InputError, match=r"holds -5 at \[0\], and aten.index.Tensor takes -4 to 3") as caught:
        loaded(X, index(-5))
    assert "at: functions.py:" in str(caught.value)


def test_programs_of_torch_compile_refuse() -> None:
    torch._dynamo.reset()
    function = torch.compile(lambda x, i: x.index_copy(0, i, x[:1] + 1), backend="spyre")
    torch.testing.assert_close(function(X, index(4)), X.index_copy(0, index(4), X[:1] + 1), atol=0.01, rtol=0.01)
    with pytest.raises(InputError, match=r"holds 5 at \[0\], and aten.index_copy takes 0 to 4"):
        function(X, index(5))


FOLLOWED: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Tensor, int, int]] = {
    "views": (lambda x, i: x[i.view(2, 1).t().expand(3, 2)], torch.tensor([0, 1]), -5, 4),
    "shorter": (lambda x, i: x[i.long()], torch.tensor([0, 1], dtype=torch.int32), -5, 4),
    "sum": (lambda x, i: x.index_select(0, 3 + i - 1), torch.tensor([0, 1]), -2, 2),
    "from_the_end": (lambda x, i: x.index_select(0, torch.where(i < 0, i + 5, i)), torch.tensor([0, 1]), -5, 4),
    "twice": (lambda x, i: x[torch.where(i < 0, i + 5, i)], torch.tensor([0, 1]), -10, 4),
    "joined": (lambda x, i: x[torch.cat([i, i + 2])], torch.tensor([0, 1]), -5, 2),
    "two_operators": (lambda x, i: x[i] + x[:, :1].gather(0, i.view(2, 1)), torch.tensor([0, 1]), 0, 4),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_indices_are_followed_to_the_argument(name: str) -> None:
    """Bounds are those of eager: the last number that it takes, and the first that it does not."""
    function, args, low, high = FOLLOWED[name]
    made = compiled(function, X, args)
    for number in (low, high):
        given = torch.full_like(args, number)
        torch.testing.assert_close(made(X, given), function(X, given))
    for number in (low - 1, high + 1):
        given = torch.tensor([0, number], dtype=args.dtype)
        assert is_refused(lambda g=given: function(X, g), (IndexError, RuntimeError)), number
        with pytest.raises(InputError, match=rf"holds {number} at \[1\]"):
            made(X, given)


# Each computes indices from a vector of two integers.
COMPUTED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "product": lambda x, i: x[i * 2 + 1],
    "embedding": lambda x, i: f.embedding(i * 2 - 2, x),
    "quotient": lambda x, i: x.index_select(0, (i + 1) // 3),
    "truncated": lambda x, i: x.index_select(0, torch.div(i, 2, rounding_mode="trunc")),
    "backwards": lambda x, i: x[4 - i],
    "several": lambda x, i: x.gather(0, (i.abs() * 3 - i.view(2, 1)).clamp(max=7)),
    "counted": lambda x, i: x[(i > 1).cumsum(0) * i],
    "replaced": lambda x, i: x.index_select(0, i.masked_fill(i == -7, 2)),
    "narrow": lambda x, i: x[(i * 2).to(torch.int32)],
    "placed": lambda x, i: x.index_add(0, i * 2, x[:2]),
    "rows_written": lambda x, i: x.index_put((i * 2,), ONE),
    "classes": lambda x, i: f.one_hot(i * 2, 6) + x[:2, :1],
    "targets": lambda x, i: f.cross_entropy(x[:2], torch.where(i < -8, -100, i * 2)),
    "part": lambda x, i: x[i[1:]],
    "last": lambda x, i: x[torch.ops.aten.slice(i, 0, -1)],
    "joined": lambda x, i: x[torch.cat([i, i * 2])],
}


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_indices_are_refused_where_eager_refuses(name: str) -> None:
    function = COMPUTED[name]
    made = compiled(function, X, torch.tensor([1, 1]))
    verdicts = set[bool]()
    for number in range(-9, 15):
        given = torch.tensor([1, number])
        refused = is_refused(lambda g=given: function(X, g), (IndexError, RuntimeError))
        assert is_refused(lambda g=given: made(X, g), (InputError,)) is refused, number
        if not refused:
            torch.testing.assert_close(made(X, given), function(X, given), equal_nan=True)
        verdicts.add(refused)
    assert verdicts == {True, False}


def test_the_message_has_the_index_that_was_computed() -> None:
    made = compiled(COMPUTED["product"], X, torch.tensor([1, 1]))
    message = r"'args_1' makes an index of 5 at \[1\], and aten.index.Tensor takes -5 to 4\n  at: functions.py:"
    with pytest.raises(InputError, match=message):
        made(X, torch.tensor([0, 2]))


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_every_level_refuses_what_it_computes(level: str) -> None:
    module = parse_module(compiled(COMPUTED["product"], X, torch.tensor([1, 1])).mlir(level), make_context())
    run_function(module, [X.numpy(), index(1).repeat(2).numpy()])
    with pytest.raises(InputError, match=r"makes an index of 7 at \[0\], and aten.index.Tensor takes"):
        run_function(module, [X.numpy(), index(3).repeat(2).numpy()])


def test_saved_directories_refuse_what_they_compute(tmp_path: Path) -> None:
    compiled(COMPUTED["product"], X, torch.tensor([1, 1])).save(tmp_path / "bundle")
    loaded = spyre_mlir.load(tmp_path / "bundle")
    torch.testing.assert_close(loaded(X, index(1).repeat(2)), X[[3, 3]], atol=0.01, rtol=0.01)
    with pytest.raises(InputError, match=r"makes an index of 7 at \[0\]"):
        loaded(X, index(3).repeat(2))


NOT_ASKED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "part": lambda x, i: x[i[:1]],
    "clamped": lambda x, i: x[i.clamp(0, 4)],
    "narrowed": lambda x, i: x[(i % 5).int()],
    "chosen": lambda x, i: x[torch.where(i < 5, i, 0)],
    "nothing": lambda x, i: x[:, :0][i],
    "masks": lambda x, i: torch.where((i > 5).view(2, 1), x[:2], x[2:4]),
    "counted_otherwise": lambda x, i: x[torch.where(i < 0, i + 4, i.clamp(max=4))],
}


@pytest.mark.parametrize("name", NOT_ASKED)
def test_numbers_that_name_nothing_are_free(name: str) -> None:
    function, given = NOT_ASKED[name], torch.tensor([2, 9])
    made = compiled(function, X, torch.tensor([0, 1]))
    torch.testing.assert_close(made(X, given), function(X, given))


def test_the_target_that_losses_pass_over() -> None:
    made = compiled(lambda x, t: f.cross_entropy(x, t), X, torch.tensor([0, 3, 1, 2, -100]))
    for targets in ([0, 3, 1, 2, -100], [-100, -100, 0, 1, 2]):
        torch.testing.assert_close(made(X, torch.tensor(targets)), f.cross_entropy(X, torch.tensor(targets)))
    with pytest.raises(InputError, match=r"holds -1 at \[2\], and aten.cross_entropy_loss takes 0 to 3, and -100"):
        made(X, torch.tensor([0, -100, -1, 2, 0]))


class Cache(nn.Module):
    """A cache whose position is a buffer that each call moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(3, 4))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.kept.index_copy_(0, self.position, x)
        self.position += 1
        return self.kept.sum(0)


def test_a_position_of_the_model_is_checked_at_every_call() -> None:
    ours, eager = Cache(), Cache()
    made = spyre_mlir.compile(ours, (X[:1],), numerics="exact")
    for row in range(3):
        torch.testing.assert_close(made(X[row : row + 1]), eager(X[row : row + 1]))
    with pytest.raises(InputError, match=r"'position' holds 3 at \[0\], and aten.index_copy takes 0 to 2"):
        made(X[:1])
    torch.testing.assert_close(ours.kept, eager.kept)


SHAPES = ({0: Dim("rows", min=2, max=64)}, None)
OF_ANY_LENGTH: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], tuple[int, ...], bool]] = {
    "read": (lambda x, i: x[i] * 2, (), True),
    "written": (lambda x, i: x.index_add(0, i, x[:1]), (), False),
    "written_in_a_bucket": (lambda x, i: x.index_add(0, i, x[:1]), (16,), False),
    "computed": (lambda x, i: x[i.expand(x.shape[0])[:1] * 1], (), True),
    "computed_in_a_bucket": (lambda x, i: x.index_add(0, i * 1, x[:1]), (16,), False),
}


def rows(count: int) -> Tensor:
    return torch.arange(count * 4.0).reshape(count, 4)


@pytest.mark.parametrize("name", OF_ANY_LENGTH)
def test_sizes_of_the_call_bound_indices(name: str) -> None:
    """In a bucket, entries that only padding has are none of the tensor's."""
    function, buckets, from_end = OF_ANY_LENGTH[name]
    model, options = FunctionModel(function), {"buckets": buckets, "numerics": "exact"}
    made = spyre_mlir.compile(model, (rows(8), index(0)), dynamic_shapes=(SHAPES,), **options)
    assert isinstance(made, DynamicModel)
    for count in (8, 11):
        low = -count if from_end else 0
        for number in (low, count - 1):
            torch.testing.assert_close(made(rows(count), index(number)), function(rows(count), index(number)))
        for number in (low - 1, count):
            with pytest.raises(InputError, match=rf" {number} at \[0\], and aten.* takes {low} to {count - 1}"):
                made(rows(count), index(number))


@pytest.mark.parametrize("bounded", [False, True])
def test_indices_that_padding_makes_are_not_the_callers(bounded: bool) -> None:
    """Zeros of padding would be rows before the first one."""

    def before(x: Tensor, i: Tensor) -> Tensor:
        return f.embedding((i[i > 0] if bounded else i) * 2 - 2, x)

    def filled(*numbers: int) -> Tensor:
        return torch.tensor(numbers + (0,) * (8 - len(numbers)) * bounded)

    one_size = {"max_size": 8, "host_fallback": "allow"}
    options = one_size if bounded else {"buckets": (8,), "dynamic_shapes": ((None, {0: Dim("n", max=8)}),)}
    made = spyre_mlir.compile(FunctionModel(before), (X, filled(1, 1, 1)), numerics="exact", **options)
    for given in (filled(1, 2, 3), filled(3, 1, 3, 2, 1), filled(*[1] * 8)):
        torch.testing.assert_close(made(X, given), before(X, given))
    for given in (filled(1, 2, 4), filled(*[1] * 7, 4)):
        with pytest.raises(InputError, match=r"makes an index of 6 at .*, and aten.embedding takes 0 to 4"):
            made(X, given)


def test_a_cache_refuses_positions_behind_its_end() -> None:
    def step(x: Tensor, cache: Tensor, start: Tensor) -> Tensor:
        cache.index_copy_(0, torch.arange(2) + start, x)
        return cache @ cache.T

    x, cache = X[:2], torch.zeros(5, 4)
    made = compiled(step, x, cache.clone(), torch.tensor(0))
    for start in range(-1, 6):
        given, other = cache.clone(), cache.clone()
        refused = is_refused(lambda: step(x, other, torch.tensor(start)), (IndexError, RuntimeError))  # noqa: B023
        assert refused == (not 0 <= start <= 3)
        assert is_refused(lambda: made(x, given, torch.tensor(start)), (InputError,)) == refused  # noqa: B023
        assert torch.equal(given, cache if refused else other)  # eager may have begun to write


class Table(nn.Module):
    """Indices that the model knows, and a buffer."""

    def __init__(self, known: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.register_buffer("order", torch.tensor([0, 3]))
        self.known = known

    def forward(self, x: Tensor) -> Tensor:
        return x[self.known(self.order)] * 2


KNOWN: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "constant": (lambda _: torch.tensor([0, 7]), r"7 at \[1\]"),
    "from_the_end": (lambda _: torch.tensor([2, -6]), r"-6 at \[1\]"),
    "counted": (lambda _: torch.arange(4) * 2, r"6 at \[3\]"),
    "read": (lambda order: order.new_tensor([5]), r"5 at \[0\]"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_indices_that_the_model_knows_are_refused_at_import(name: str) -> None:
    known, found = KNOWN[name]
    with pytest.raises(IndexError):
        Table(known)(X)
    message = rf"an index of the model is {found}, and aten.index.Tensor takes -5 to 4\n  at: test_indices_outside.py:"
    with pytest.raises(InputError, match=message):
        spyre_mlir.compile(Table(known), (X,))
    rows = torch.arange(32.0).reshape(8, 4)
    made = spyre_mlir.compile(Table(known), (rows,), numerics="exact")
    torch.testing.assert_close(made(rows), Table(known)(rows))


def test_indices_of_a_buffer_are_refused_in_calls() -> None:
    """A checkpoint may have others."""
    model = Table(lambda order: order * 2 - 1)
    made = spyre_mlir.compile(model, (X,), numerics="exact")
    with pytest.raises(InputError, match=r"'order' makes an index of 5 at \[1\]"):
        made(X)
    made = made.bind({"order": torch.tensor([1, 2])})
    torch.testing.assert_close(made(X), X[[1, 3]] * 2)


@pytest.mark.parametrize("buckets", [(), (16,)])
@pytest.mark.parametrize("name", ["constant", "counted"])
def test_sizes_of_the_call_bound_indices_that_the_model_knows(name: str, buckets: tuple[int, ...]) -> None:
    model = Table(KNOWN[name][0])
    rows = torch.arange(64.0).reshape(16, 4)
    options = {"dynamic_shapes": ({0: Dim("n", min=2, max=64)},), "buckets": buckets, "numerics": "exact"}
    made = spyre_mlir.compile(model, (rows,), **options)
    torch.testing.assert_close(made(rows[:9]), model(rows[:9]))
    with pytest.raises(InputError, match=r"takes for granted that .* >= [78], got .* = 5"):
        made(rows[:5])


def test_negative_indices_that_the_model_knows_name_nothing_in_any_size() -> None:
    """`index_select` counts no number from the end."""
    model = FunctionModel(lambda x: x.index_select(0, torch.tensor([0, -3])))
    with pytest.raises(IndexError):
        model(X)
    with pytest.raises(
        InputError, match=r"an index of the model is -3 at \[1\], and aten.index_select takes 0 and more"
    ):
        spyre_mlir.compile(model, (X,), dynamic_shapes=(({0: Dim("n", min=2, max=64)},),))
