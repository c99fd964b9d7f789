"""Results lie in memory as eager's do, at both entry points: strides, offsets, sharing, and views of another dtype."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch.nn import functional

import spyre_mlir
from spyre_mlir import torch_compile
from spyre_mlir.frontend.program.result_memory import MemoryPlace, ResultMemories, ResultMemory

EXACT = {"numerics": "exact", "host_fallback": "allow"}
Function = Callable[..., Any]


class _Model(nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def by_compile(function: Function, inputs: Sequence[torch.Tensor]) -> Any:
    return spyre_mlir.compile(_Model(function), tuple(inputs), **EXACT)(*inputs)


def by_torch_compile(function: Function, inputs: Sequence[torch.Tensor]) -> Any:
    return torch.compile(function, backend=torch_compile.spyre, options=EXACT)(*inputs)


ENTRY_POINTS = pytest.mark.parametrize("entry_point", [by_compile, by_torch_compile])


@pytest.fixture(autouse=True)
def fresh() -> Generator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def plain() -> torch.Tensor:
    return torch.arange(12.0).view(3, 4)


def turned() -> torch.Tensor:
    return torch.arange(12.0).view(4, 3).t()


def late() -> torch.Tensor:
    return torch.arange(20.0)[4:16].view(3, 4)


def heads() -> torch.Tensor:
    return torch.linspace(-1, 1, 64).view(1, 2, 4, 8)


def picture() -> torch.Tensor:
    return torch.linspace(-1, 1, 75).view(1, 3, 5, 5).contiguous(memory_format=torch.channels_last)


def half() -> torch.Tensor:
    return torch.arange(12.0).view(3, 4).half()


def turned_whole() -> torch.Tensor:
    return turned().int()


def late_whole() -> torch.Tensor:
    return torch.arange(20, dtype=torch.int32)[4:16].view(3, 4)


KERNEL = torch.linspace(-1, 1, 4 * 3 * 9).view(4, 3, 3, 3)
Table = dict[Callable[[], torch.Tensor], dict[str, Function]]

# One graph per input: what is computed from it, by name.
COMPUTED: Table = {
    plain: {
        "transposed": lambda x: (x + 1).t(),
        "expanded": lambda x: x.sum(0).expand(3, 4),
        "expanded in the middle": lambda x: (x + 1).unsqueeze(1).expand(3, 2, 4),
        "every second": lambda x: (x + 1)[:, ::2],
        "late row": lambda x: (x + 1)[1:],
        "last column": lambda x: (x * 2)[:, -1],
        "diagonal": lambda x: (x + 1).diagonal(),
        "windows": lambda x: (x + 1).view(-1).unfold(0, 4, 2),
        "walked": lambda x: (x + 1).as_strided((3, 3), (1, 2), 1),
        "linear, transposed": lambda x: functional.linear(x, torch.ones(2, 4)).t(),
        "one element": lambda x: (x + 1)[:1, :1].t(),
        "number": lambda x: (x + 1).sum(),
        "no elements": lambda x: (x + 1)[:, :0].t(),
        "split": lambda x: (x + 1).split(2, 1),
        "views of each other": lambda x: ((y := x + 1), y.t(), y[1:], y.view(torch.int32)),
        "twice": lambda x: ((y := x + 1), y),
        "equal, but apart": lambda x: (x + 1, x + 1),
        "softmax, transposed": lambda x: torch.softmax(x, -1).transpose(0, 1),
        "bits": lambda x: (x + 1).view(torch.int16),
    },
    turned: {
        "elementwise": lambda x: x + 1,
        "cast": lambda x: x.half(),
        "product": lambda x: x @ x.t(),
        "sorted": lambda x: x.sort(0),
        "flipped": lambda x: x.flip(0),
        "like": lambda x: torch.zeros_like(x),
        "contiguous": lambda x: x.contiguous(),
    },
    heads: {
        "attention": lambda q: functional.scaled_dot_product_attention(q, q, q).transpose(1, 2),
        "permuted": lambda q: (q * 2).permute(2, 0, 3, 1),
        "normalised": lambda q: functional.layer_norm(q.transpose(1, 2), (8,)),
    },
    picture: {
        "convolution": lambda x: functional.conv2d(x, KERNEL),
        "pool": lambda x: functional.max_pool2d(x, 2) + 1,
        "mean": lambda x: x.mean((2, 3), keepdim=True),
    },
}

VIEWS: Table = {
    plain: {
        "itself": lambda x: x,
        "int32 of float32": lambda x: x.view(torch.int32),
        "int16 of float32": lambda x: x.view(torch.int16),
        "two dtypes": lambda x: (x.view(torch.int32), x + 1, x.view(torch.int16)[0]),
    },
    turned_whole: {"transposed": lambda x: x.t(), "float32 of turned": lambda x: x.view(torch.float32).t()},
    half: {"bfloat16 of half": lambda x: x.view(torch.bfloat16), "int32 of half": lambda x: x.view(torch.int32)},
    late_whole: {
        "bytes": lambda x: x.view(torch.uint8),
        "part": lambda x: x[1:].view(torch.int16)[:, 3:],
        "view of a view": lambda x: x.view(torch.int16)[:, 2:].view(torch.int32),
        "every second": lambda x: x.view(torch.int16)[:, ::2],
    },
}


def check(got: Any, wanted: Any, name: str = "") -> None:
    """Equal values, dtypes, shapes, strides and offsets, and the same sharing among the results."""
    for mine, eager in zip(leaves(got), leaves(wanted), strict=True):
        assert (mine.dtype, mine.shape) == (eager.dtype, eager.shape), name
        assert (mine.stride(), mine.storage_offset()) == (eager.stride(), eager.storage_offset()), name
        torch.testing.assert_close(mine, eager, rtol=1e-4, atol=1e-5, msg=name or None, equal_nan=True)
    assert sharing(got) == sharing(wanted), name


def leaves(results: Any) -> list[torch.Tensor]:
    return torch.utils._pytree.tree_leaves(results)


def sharing(results: Any) -> list[int]:
    """For every tensor the first one in whose storage it lies."""
    storages = [x.untyped_storage()._cdata for x in leaves(results)]
    return [storages.index(s) for s in storages]


def all_of(functions: dict[str, Function]) -> Function:
    return lambda x: tuple(function(x) for function in functions.values())


@ENTRY_POINTS
@pytest.mark.parametrize("make", COMPUTED)
def test_results_lie_as_eager_ones_do(make: Callable[[], torch.Tensor], entry_point: Function) -> None:
    function = all_of(COMPUTED[make])
    got, wanted = entry_point(function, [make()]), function(make())
    for name, mine, eager in zip(COMPUTED[make], got, wanted, strict=True):
        check(mine, eager, name)
    assert sharing(got) == sharing(wanted)


@ENTRY_POINTS
@pytest.mark.parametrize("make", VIEWS)
def test_views_of_an_input_are_views_of_it(make: Callable[[], torch.Tensor], entry_point: Function) -> None:
    function, x, twin = all_of(VIEWS[make]), make(), make()
    got, wanted = entry_point(function, [x]), function(twin)
    for _ in range(2):
        for name, mine, eager in zip(VIEWS[make], got, wanted, strict=True):
            check([x, mine], [twin, eager], name)
        x.fill_(3)
        twin.fill_(3)


@ENTRY_POINTS
def test_an_input_is_written_through_a_view_of_another_dtype(entry_point: Function) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x.add_(1)
        bits = x.view(torch.int16)
        bits[:, ::2] = 0
        return x, bits, x * 2

    x, twin = plain() / 3, plain() / 3
    check([x, entry_point(function, [x])], [twin, function(twin)])


@ENTRY_POINTS
def test_a_view_of_a_weight_is_the_weight(entry_point: Function) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 2))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x @ self.weight, self.weight.t()

    model, x = Tied(), plain()
    inner = model if entry_point is by_torch_compile else model.forward
    program = spyre_mlir.compile(model, (x,), **EXACT) if entry_point is by_compile else None
    product, weight = program(x) if program else entry_point(inner, [x])
    check([model.weight.detach(), product, weight], [model.weight.detach(), *model(x)])


def test_a_program_follows_the_strides_of_a_call() -> None:
    program = spyre_mlir.compile(_Model(lambda x: (x + 1, x.t())), (plain(),), **EXACT)
    for make in (plain, turned, late, lambda: torch.zeros(3, 8)[:, ::2]):
        x = make()
        check([x, program(x)], [x, (x + 1, x.t())])


def test_results_of_one_memory_move_together() -> None:
    shared = torch.arange(12.0)
    first, second = shared[:6].view(2, 3), shared[6:].view(3, 2)
    turned_second = MemoryPlace(torch.float32, (3, 2), (1, 3), 6)
    memory = ResultMemory(False, {}, ({0: MemoryPlace.of(first), 1: turned_second},))
    placed = memory.applied([first, second], [])
    assert [(p.stride(), p.storage_offset(), p.tolist()) for p in placed] == [
        ((3, 1), 0, [[0, 1, 2], [3, 4, 5]]),
        ((1, 3), 6, [[6, 7], [8, 9], [10, 11]]),
    ]
    assert len({p.untyped_storage().data_ptr() for p in (*placed, shared)}) == 2


def test_strides_that_the_model_itself_refuses_are_those_of_the_examples() -> None:
    program = spyre_mlir.compile(_Model(lambda x: (x.view(-1) + 1).view(4, 3).t()), (plain(),), **EXACT)
    assert program(turned()).stride() == (1, 3)


def test_a_graph_for_all_sizes_follows_the_strides_of_a_call() -> None:
    fast = torch.compile(lambda x: (x.t(), x + 1), backend=torch_compile.spyre, options=EXACT, dynamic=True)
    for rows in (3, 5, 6):
        for x in (torch.ones(rows, 4), torch.ones(4, rows).t(), torch.ones(rows, 9)[:, 1:5]):
            check([x, fast(x)], [x, (x.t(), x + 1)])


def test_saved_programs_keep_their_strides(tmp_path: Any) -> None:
    exported = torch.export.export(_Model(lambda x: (x + 1).t()), (plain(),))
    torch.export.save(exported, tmp_path / "model.pt2")
    assert spyre_mlir.compile(tmp_path / "model.pt2", **EXACT)(plain()).stride() == (1, 4)


@pytest.mark.parametrize(
    "after",
    [
        lambda y: y.t().view(-1) * 2,
        lambda y: y.as_strided((6,), (2,)) + 1,
        lambda y: y.untyped_storage().nbytes() + y,
    ],
)
def test_code_after_a_break_finds_the_strides_it_asks_for(after: Function) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = (x + 1).t()
        torch._dynamo.graph_break()
        return after(y)

    check(by_torch_compile(function, [plain()]), function(plain()))


def test_writes_after_a_break_reach_the_input_through_another_dtype() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        bits = x.view(torch.int16)
        torch._dynamo.graph_break()
        bits.add_(1)
        return bits

    x, twin = plain(), plain()
    check([by_torch_compile(function, [x]), x], [function(twin), twin])


@ENTRY_POINTS
def test_a_result_of_a_custom_operator_is_no_argument_whatever_its_shape_function_returns(
    entry_point: Function,
) -> None:
    with torch.library._scoped_library("result_memory", "FRAGMENT") as library:
        library.define("raised(Tensor x, Tensor y) -> (Tensor, Tensor)")
        library.impl("raised", lambda x, y: (x + 1, y + 2), "CPU")
        library._register_fake("raised", lambda x, y: (x, y))

        def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return torch.ops.result_memory.raised(x * 2, y), x.t()

        x, y = plain(), plain() + 7
        (raised, other), turned = entry_point(function, [x, y])
        assert torch.equal(raised, x * 2 + 1) and torch.equal(other, y + 2)
        assert sharing([x, y, raised, other, turned]) == [0, 1, 2, 3, 0]


def conjugates(z: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Views that change signs when they are read, of an input and of a new tensor."""
    return z.conj(), z.imag, z.real, z.mH, z.conj().imag, (z * 2).conj(), (z * 2).conj().imag


@ENTRY_POINTS
@pytest.mark.parametrize("conjugated", [False, True])
def test_conjugates_share_memory_as_eagers_do(entry_point: Callable[..., Any], *, conjugated: bool) -> None:
    z = torch.polar(torch.linspace(0.5, 2, 12), torch.linspace(0, 3, 12)).view(3, 4)
    z = z.conj() if conjugated else z
    got, wanted = entry_point(conjugates, (z,)), conjugates(z)
    for ours, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(ours.resolve_conj().resolve_neg(), theirs.resolve_conj().resolve_neg())
        if not conjugated:
            assert (ours.is_conj(), ours.is_neg(), ours.stride()) == (
                theirs.is_conj(),
                theirs.is_neg(),
                theirs.stride(),
            )
            assert (ours.data_ptr() == z.data_ptr()) == (theirs.data_ptr() == z.data_ptr())


def test_state_of_a_graph_is_not_written_when_its_results_are_placed() -> None:
    """An optimizer's count of steps is an attribute of the graph: placing the results must not count a step."""
    state, view = torch.zeros(2), torch.zeros(3, 2)

    def run(x: torch.Tensor) -> list[torch.Tensor]:
        torch._foreach_add_([state.add_(1)], 1)
        view[1].mul_(2).add_(x)
        return [x + state]

    found = ResultMemories(run)([torch.ones(2)])
    assert (state.tolist(), view.sum().item()) == ([0, 0], 0)
    assert not found.views and len(found.own) == 1


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_in_training_writes_its_statistics(training: bool) -> None:
    """Its schema does not say so."""

    def run(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> list[torch.Tensor]:
        return [nn.functional.batch_norm(x, mean, variance, training=training)]

    found = ResultMemories(run)([torch.ones(2, 3, 4), torch.zeros(3), torch.ones(3)])
    assert found.writes == (frozenset({1, 2}) if training else frozenset())


def test_where_a_loop_ends_data_decides() -> None:
    """Also if it begins with a constant, whose number torch knows: the row that it names is none of the input's."""

    class Counted(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            (place,) = while_loop(lambda i: i < x[0, 0], lambda i: (i + 1,), (torch.tensor(0),))
            return place, x[place % 3]

    compiled = spyre_mlir.compile(Counted(), (torch.zeros(3, 2),), numerics="exact")
    for count in (2.0, 0.0, 1.0):
        x = torch.tensor([[count, 7.0], [3.0, 4.0], [5.0, 6.0]])
        place, row = compiled(x)
        assert place == count and torch.equal(row, x[int(count)])
        assert row.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
