"""Host steps: what the device cannot run runs on the host, between launches, and the program stays right."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
# No decomposition of it into what the device can do is known to PyTorch or to us.
bessel = torch.special.bessel_j1


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def compiled(function: Callable[..., Any], *args: Tensor, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(FunctionModel(function), args, **options)
    assert isinstance(made, CompiledModel)
    return made


def launches(model: CompiledModel) -> int:
    return model.mlir("superdsc").count("spyre.kernel.launch @")


def both(x: Tensor, w: Tensor) -> Tensor:
    q, r = torch.linalg.qr(torch.relu(x) @ w)
    return torch.exp(q) @ r


def alive(x: Tensor, w: Tensor) -> Tensor:
    a, b = torch.exp(x), torch.tanh(x @ w)
    return bessel(b @ w) @ w + a.sum(-1, keepdim=True) * b[:, :1]


def waits(x: Tensor, w: Tensor) -> Tensor:
    """The second product waits for no host step, and belongs before the first of them."""
    a = bessel(x @ w)
    b = torch.relu(x @ w.t())
    return bessel(a @ w) + b @ w


# name: function, shapes, host steps, launches
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], int, int]] = {
    "start": (lambda x, w: bessel(x) @ w, ((4, 16), (16, 8)), 1, 1),
    "end": (lambda x, w: bessel(x @ w), ((4, 16), (16, 8)), 1, 1),
    "middle": (lambda x, w: bessel(x @ w) @ w, ((16, 16), (16, 16)), 1, 2),
    "two in a row": (lambda x: bessel(bessel(torch.relu(x))) * 2, ((4, 16),), 2, 2),
    "nothing else": (lambda x: bessel(x), ((4, 16),), 1, 0),
    "several results": (both, ((8, 16), (16, 8)), 1, 2),
    "alive across": (alive, ((16, 16), (16, 16)), 1, 2),
    "few launches": (waits, ((16, 16), (16, 16)), 2, 3),
    "a view for the host": (lambda x: bessel(x.t()[1:3]) * 2, ((8, 4),), 1, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_every_level_gives_what_torch_gives(name: str) -> None:
    function, shapes, steps, launched = CASES[name]
    args = [random(*shape) for shape in shapes]
    model = compiled(function, *args)
    assert (outcome := model.verify(*args)), str(outcome)
    assert (len(model.host_steps), launches(model)) == (steps, launched)
    assert model.report().stages[-1].host_steps == steps
    assert model.accuracy(*args).worst < 0.01


def test_a_list_with_holes_and_keywords() -> None:
    def function(x: Tensor, i: Tensor, j: Tensor) -> Tensor:
        chosen = torch.ops.aten.index.Tensor(x.double(), [None, i, j])
        found = torch.kthvalue(chosen, k=2, dim=0, keepdim=True)
        return torch.relu(found.values.float()) + found.indices

    args = (random(3, 5, 6), torch.tensor([0, 2, 4]), torch.tensor([1, 1, 5]))
    model = compiled(function, *args)
    assert (outcome := model.verify(*args)), str(outcome)


def test_a_custom_operator_runs_on_the_host() -> None:
    @torch.library.custom_op("hosttest::mirror", mutates_args=())
    def mirror(x: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        return x.flip(-1) * scale, torch.argsort(x, -1)

    @mirror.register_fake
    def _(x: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        return torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64)

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        values, order = torch.ops.hosttest.mirror(torch.relu(x), 2.0)
        return values * 2, order

    x = random(4, 16)
    model = compiled(function, x)
    assert (outcome := model.verify(x)), str(outcome)
    assert [step.op for step in model.host_steps] == ["hosttest::mirror"]


def test_a_type_is_known_by_the_schema_whatever_its_name() -> None:
    @torch.library.custom_op("hosttest::summed", mutates_args=())
    def summed(x: Tensor, kept: torch.dtype) -> Tensor:
        return x.sum(-1, dtype=kept)

    @summed.register_fake
    def _(x: Tensor, kept: torch.dtype) -> Tensor:
        return x.new_empty(x.shape[:-1], dtype=kept)

    x = random(4, 16)
    got = compiled(lambda x: torch.ops.hosttest.summed(x, torch.float16), x)(x)
    assert torch.equal(got, x.sum(-1, dtype=torch.float16))


def test_double_precision_stays_on_the_host_and_exact() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x.double() / 3 + y, torch.relu(x)

    x, y = random(4, 16), random(4, 16, dtype=torch.float64)
    model = compiled(function, x, y)
    assert "xf64> to !spyre.tensor" not in model.mlir("spyre.kernel")
    assert all("f64" in step.reason for step in model.host_steps)
    # Device numerics: the sum never was on the device, and has all its digits.
    assert np.array_equal(model(x, y)[0].numpy(), (x.double() / 3 + y).numpy())


def test_integers_keep_their_width_on_the_host() -> None:
    x = torch.tensor([250, 7, 130], dtype=torch.uint8)
    model = compiled(lambda x: (x + x, x.float() * 2), x)
    assert model(x)[0].tolist() == [244, 14, 4]  # eight bits wrap, on the host as in torch
    assert model.verify(x)


def test_a_weight_of_a_host_step_does_not_go_to_the_device() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.own, self.linear = torch.nn.Parameter(random(16, 16)), torch.nn.Linear(16, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x @ torch.linalg.inv(self.own))

    x = random(4, 16)
    model = spyre_mlir.compile(Model(), (x,))
    assert isinstance(model, CompiledModel)
    assert "to_device %own" not in model.mlir("spyre.kernel")
    assert model.verify(x)
    assert model.accuracy(x).worst < 0.01


def test_what_lives_across_launches_is_a_tensor_of_its_own() -> None:
    """Neither a pool nor a scratchpad keeps its contents from one launch to the next."""
    args = (random(16, 16), random(16, 16))
    text = compiled(alive, *args).mlir("spyre.kernel")
    before, _, behind = text.partition("spyre.kernel.host")
    made = [line.split()[0] for line in before.splitlines() if "spyre.kernel.alloc at" in line]
    assert not [name for name in made if f"{name}[" in behind]
    own = [line.split()[0] for line in before.splitlines() if "spyre.kernel.alloc :" in line]
    assert [name for name in own if f"{name}[" in behind]


def test_what_no_kernel_can_walk_goes_to_the_host() -> None:
    """Nine loops are more than a kernel has, which shows only below the loop level."""
    shape = (2, 3, 2, 3, 2, 3, 2, 3, 2)
    x, y = random(*shape), random(*shape)

    def function(x: Tensor, y: Tensor) -> Tensor:
        for _ in range(3):  # what several steps read is copied to the scratchpads, by a kernel of no op of the model
            x = x.permute(8, 7, 6, 5, 4, 3, 2, 1, 0) + y
        return x

    model = compiled(function, x, y)
    assert [step.op for step in model.host_steps] == ["aten.add.Tensor"] * 3
    assert model.verify(x, y)


def test_a_composition_above_the_cap_goes_to_the_host() -> None:
    program = import_program(FunctionModel(lambda x: torch.softmax(x, -1)), (random(4, 16),))

    def steps(**options: object) -> tuple[str, ...]:
        lowered = lower(program.module, make_context(), until="spyre.loop", options={"decompose-aten": options})
        return tuple(step.reason for step in lowered.host_steps)

    assert steps(cap=2) == ("it would take more than 2 kernels",)
    assert steps(cap=2, prefer_device=True) == ()
    assert steps() == ()


def test_people_are_told_once_with_the_place(recwarn: pytest.WarningsRecorder) -> None:
    warnings.simplefilter("always")
    x = random(4, 16)
    compiled(lambda x: bessel(bessel(x) * 2), x)
    (told,) = [w for w in recwarn if w.category is HostStepWarning]
    assert "2 x aten.special_bessel_j1: the op table has no entry for it" in str(told.message)
    assert "tests/functions.py:" in str(told.message)
    assert told.filename == __file__
    recwarn.clear()
    compiled(lambda x: bessel(x), x, host_fallback="allow")
    assert not [w for w in recwarn if w.category is HostStepWarning]


def test_host_steps_can_be_forbidden() -> None:
    def function(x: Tensor) -> Tensor:
        return bessel(x) + torch.special.bessel_y0(x)

    with pytest.raises(UnsupportedError) as refused:
        compiled(function, random(4, 16), host_fallback="error")
    text = str(refused.value)
    for name in ("aten.special_bessel_j1", "aten.special_bessel_y0"):
        assert f"1 x {name}: the op table has no entry for it" in text
    assert "tests/functions.py:" in text


def test_the_report_lists_them() -> None:
    model = compiled(lambda x: bessel(torch.relu(x)), random(4, 16))
    text = str(model.report())
    assert "on the host, because the device cannot" in text
    assert "1 x aten.special_bessel_j1" in text


DEVICE: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    lambda a, b: a @ b.t() @ b,
    lambda a, b: torch.relu(a) - b,
    lambda a, b: torch.tanh(a) * b,
    lambda a, b: a.t().reshape(b.shape) + 1,
)
HOST: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    lambda a, b: bessel(a) + 0 * b,
    lambda a, b: torch.special.bessel_j0(a.t()).t(),
    lambda a, b: torch.frexp(a).mantissa,
)


@settings(max_examples=5)
@given(st.data())
def test_random_graphs_of_both_kinds(data: st.DataObject) -> None:
    steps = data.draw(
        st.lists(st.tuples(st.sampled_from(DEVICE + HOST), st.integers(0, 7), st.integers(0, 7)), max_size=7)
    )

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        known = [x, y]
        for step, a, b in steps:
            known.append(step(known[a % len(known)], known[b % len(known)]))
        return known[-1] * 2, known[len(known) // 2] + 1

    args = (random(8, 8) / 4, random(8, 8) / 3)
    outcome = compiled(function, *args).verify(*args)
    assert outcome, str(outcome)


DRAWS = """
func.func @main(%x: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xi64>, tensor<2xf32>, tensor<4x4xf32>) {
  %a = aten.call "aten.rand"() {size = array<i64: 4>} : () -> tensor<4xf32>
  %e = aten.exp(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = aten.call "aten.multinomial"(%e) {self = #aten.operands<1>, num_samples = 1 : i64} : (tensor<4x4xf32>)
    -> tensor<4x1xi64>
  %v = aten.squeeze.dim(%b) {dim = 1 : i64} : (tensor<4x1xi64>) -> tensor<4xi64>
  %c = aten.call "aten.rand"() {size = array<i64: 2>} : () -> tensor<2xf32>
  %j = aten.call "aten.special_bessel_j1"(%x) {self = #aten.operands<1>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %a, %v, %c, %j : tensor<4xf32>, tensor<4xi64>, tensor<2xf32>, tensor<4x4xf32>
}
"""


def test_draws_keep_their_order() -> None:
    """The last draw waits for the one before it, which waits for the device; the step that draws nothing does not."""
    modules = lower(parse_module(DRAWS, make_context()), make_context()).modules
    for level in ("spyre.loop", "spyre.kernel", "superdsc"):
        steps = [op.overload for op in modules[level].walk() if isinstance(op, HostOp) and op.reason is not None]
        assert steps == ["rand", "special_bessel_j1", "multinomial", "rand"]


def test_a_returned_view_of_too_many_loops_is_a_step_of_the_host() -> None:
    def windows(x: Tensor) -> Tensor:
        return x.unfold(2, 4, 2).unfold(3, 4, 2).reshape(-1)

    x = random(2, 3, 12, 9)
    program = compiled(windows, x, keep_float32=True, numerics="exact")
    assert [step.op for step in program.host_steps] == ["aten.view"]
    assert torch.equal(program(x), windows(x))
