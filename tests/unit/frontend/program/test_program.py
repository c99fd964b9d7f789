"""An imported program: what a call of it must look like, what it gives back, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten
from xdsl.dialects.builtin import ModuleOp

import spyre_mlir
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.program.program import Argument, Placement, Program, TreeConstant

X, Y = torch.zeros(2, 3), torch.ones(4)
WANTED_X = Argument("x", "input", (2, 3), torch.float32)
WANTED_Y = Argument("y", "input", (4,), torch.float32)


def never(*_: object) -> Any:
    raise AssertionError("a call is checked, not made")


# A model called with (x, {"a": 7}, k=y, flag=None), which gives {"sum": …, "rest": (None, …)} and writes to y.
PROGRAM = Program(
    module=ModuleOp([]),
    name="model",
    arguments=(WANTED_Y, WANTED_X, Argument("weight", "parameter", (4,), torch.float32)),
    values={"weight": torch.ones(4)},
    results=("sum", "rest.1", "new.y"),
    mutations={2: "y"},
    input_leaves=(WANTED_X, TreeConstant("a", 7), WANTED_Y, TreeConstant("flag", None)),
    output_leaves=(0, TreeConstant("rest.0", None), 1),
    input_tree=tree_flatten(((X, {"a": 7}), {"k": Y, "flag": None}))[1],
    output_tree=tree_flatten({"sum": 0, "rest": (1, 2)})[1],
    reference=never,
    memory=never,
)


def refusal(*args: Any, program: Program = PROGRAM, **kwargs: Any) -> InputError:
    with pytest.raises(InputError) as refused:
        program.flatten(args, kwargs)
    return refused.value


def test_inputs_are_the_arguments_that_a_caller_gives() -> None:
    assert PROGRAM.inputs == (WANTED_Y, WANTED_X)


@pytest.mark.parametrize("value", [WANTED_X, TreeConstant("a", 7), PROGRAM, Placement((1,), 0)])
def test_a_program_and_its_parts_do_not_change(value: object) -> None:
    with pytest.raises(FrozenInstanceError):
        value.name = "other"  # type: ignore[attr-defined]


def test_a_program_is_shown_without_what_runs_it() -> None:
    assert "never" not in repr(PROGRAM)


def test_tensors_come_in_the_order_of_the_arguments() -> None:
    y, x = PROGRAM.flatten((X, {"a": 7}), {"flag": None, "k": Y})
    assert x is X
    assert y is Y


def test_a_program_without_inputs_is_called_with_nothing() -> None:
    program = replace(PROGRAM, arguments=(), input_leaves=(), mutations={}, input_tree=tree_flatten(((), {}))[1])
    assert program.flatten() == []
    error = refusal(X, program=program)
    assert error.message == "expected 0 positional arguments, got 1; the inputs are none"
    assert refusal(k=X, program=program).message == "unknown keyword arguments k; expected none"


@pytest.mark.parametrize("value", [8, 7.0, True, None])
def test_constants_are_those_the_program_was_made_for(value: object) -> None:
    error = refusal(X, {"a": value}, k=Y, flag=None)
    assert error.message == f"argument 'a' is {value!r}, but the program was made for 7"
    assert error.hint == "compile the model again with this value"


def test_positional_arguments_are_counted() -> None:
    assert refusal(X, k=Y, flag=None).message == "expected 2 positional arguments, got 1; the inputs are x, a, y, flag"
    wrong = refusal(X, k=Y, flag=None, aa=7).message
    assert wrong == "expected 2 positional arguments and no input called aa, got 1; the inputs are x, a, y, flag"


def test_positional_tensors_may_come_by_their_names() -> None:
    tree = tree_flatten(((X, {"a": 7}, Y), {"flag": None}))[1]
    leaves = (WANTED_X, TreeConstant("a", 7), WANTED_Y, TreeConstant("flag", None))
    program = replace(PROGRAM, input_tree=tree, input_leaves=leaves)
    y, x = program.flatten((X, {"a": 7}), {"flag": None, "y": Y})
    assert x is X and y is Y
    # What has a structure or no tensor has no name of its own, and what is behind a gap no place.
    assert refusal(a=7, x=X, y=Y, flag=None, program=program).message.startswith(
        "expected 3 positional arguments, got 1"
    )
    assert refusal({"a": 7}, x=X, y=Y, flag=None, program=program).message.startswith("expected 3 positional arguments")
    # One argument has one value.
    assert refusal(X, {"a": 7}, Y, y=Y, flag=None, program=program).message.startswith("unknown keyword arguments y")


def test_a_model_is_called_by_the_names_of_its_arguments() -> None:
    class Difference(torch.nn.Module):
        def forward(self, minuend: torch.Tensor, subtrahend: torch.Tensor) -> torch.Tensor:
            return minuend - subtrahend

    one, two = torch.ones(2, 64), torch.full((2, 64), 2.0)
    compiled = spyre_mlir.compile(Difference(), (one, one))
    assert torch.equal(compiled(subtrahend=two, minuend=one), one - two)
    assert torch.equal(compiled(one, subtrahend=two), one - two)
    assert compiled.verify(subtrahend=two, minuend=one)


def test_keyword_arguments_are_named() -> None:
    error = refusal(X, {"a": 7}, k=Y, flags=None, more=1)
    assert error.message == "missing keyword arguments flag; unknown keyword arguments flags, more; expected k, flag"
    assert refusal(X, {"a": 7}, k=Y).message == "missing keyword arguments flag; expected k, flag"
    assert refusal(X, {"a": 7}, k=Y, flag=None, more=1).message == "unknown keyword arguments more; expected k, flag"


def test_a_complex_tensor_is_one_of_pairs_for_the_program() -> None:
    wanted = Argument("z", "input", (2, 3, 2), torch.float32, is_complex=True)
    tree = tree_flatten(((X,), {}))[1]
    program = replace(PROGRAM, arguments=(wanted,), input_leaves=(wanted,), mutations={}, input_tree=tree)
    given = torch.complex(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3))
    (pairs,) = program.flatten((given,))
    assert torch.equal(pairs, torch.view_as_real(given))
    assert refusal(X, program=program).message == "argument 'z': expected complex64[2, 3], got float32[2, 3]"


def test_other_structures_are_refused() -> None:
    error = refusal(X, [7], k=Y, flag=None)
    assert error.message.startswith("the arguments are nested otherwise than in the example: args[1]: expected ")
    assert error.hint == "the inputs are x, a, y, flag"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "argument 'x': expected a tensor float32[2, 3], got int"),
        (torch.zeros(2, 4), "argument 'x': expected float32[2, 3], got float32[2, 4]"),
        (torch.zeros(2, 3).half(), "argument 'x': expected float32[2, 3], got float16[2, 3]"),
        (
            torch.zeros(2, 3).to_sparse(),
            "argument 'x': expected float32[2, 3], got a tensor of layout torch.sparse_coo",
        ),
        (torch.zeros(2, 3, device="meta"), "argument 'x': expected float32[2, 3], got a tensor without elements"),
        (
            torch.nested.nested_tensor([torch.zeros(3), torch.zeros(2)], layout=torch.jagged),
            "argument 'x': expected float32[2, 3], got a tensor of tensors",
        ),
    ],
)
def test_tensors_are_those_the_program_was_made_for(value: object, message: str) -> None:
    assert refusal(value, {"a": 7}, k=Y, flag=None).message == message


def test_hints_say_what_to_give_instead() -> None:
    assert refusal(X.to_sparse(), {"a": 7}, k=Y, flag=None).hint == "give a dense tensor of numbers"
    assert "compile the model again" in str(refusal(Y, {"a": 7}, k=Y, flag=None).hint)


def test_what_is_written_shares_no_memory() -> None:
    memory = torch.zeros(6)
    assert "shares memory" in refusal(memory.view(2, 3), {"a": 7}, k=memory[:4], flag=None).message


@pytest.mark.parametrize(
    ("start", "given", "found"),
    [
        (None, torch.zeros(3, 2).t(), "strides (1, 2)"),
        (0, torch.zeros(8)[2:].view(2, 3), "strides (3, 1) from element 2 of its storage"),
    ],
)
def test_a_tensor_that_is_walked_lies_as_the_example(start: int | None, given: torch.Tensor, found: str) -> None:
    walked = replace(WANTED_X, placement=Placement((3, 1), start))
    program = replace(PROGRAM, arguments=(WANTED_Y, walked), input_leaves=(walked, *PROGRAM.input_leaves[1:]))
    assert program.flatten((X, {"a": 7}), {"k": Y, "flag": None})[1] is X
    error = refusal(given, {"a": 7}, program=program, k=Y, flag=None)
    assert (
        error.message
        == f"argument 'x': the model walks its memory (as_strided), made for {walked.placement}, got {found}"
    )
    assert "a clone has its own storage" in str(error.hint)


@pytest.mark.parametrize(
    ("tensor", "absolute", "placement", "text"),
    [
        (torch.zeros(2, 3), True, Placement((3, 1), 0), "strides (3, 1) from element 0 of its storage"),
        (torch.zeros(2, 3)[1:], True, Placement((1,), 3), "strides (1,) from element 3 of its storage"),
        (torch.zeros(2, 3)[1:], False, Placement((1,), None), "strides (1,)"),
        (torch.zeros(0, 3), False, Placement((), None), "strides ()"),
        (torch.zeros(2, 3).t(), False, Placement((1, 3), None), "strides (1, 3)"),
    ],
)
def test_a_placement_is_strides_and_start(
    tensor: torch.Tensor, absolute: bool, placement: Placement, text: str
) -> None:
    assert Placement.of(tensor, absolute=absolute) == placement
    assert str(placement) == text


def test_results_come_back_in_the_structure_of_the_model() -> None:
    assert PROGRAM.unflatten(["s", "r", "y"]) == {"sum": "s", "rest": (None, "r")}


@pytest.mark.parametrize("outputs", [["s", "r"], ["s", "r", "y", "more"]])
def test_results_are_counted(outputs: Sequence[str]) -> None:
    with pytest.raises(InputError) as refused:
        PROGRAM.unflatten(outputs)
    assert refused.value.message == f"expected 3 results (sum, rest.1, new.y), got {len(outputs)}"


def test_an_argument_is_only_read_unless_said_otherwise() -> None:
    assert (WANTED_X.mutated, WANTED_X.placement) == (False, None)


@pytest.mark.parametrize("value", [7, 0.0, -0.0, float("nan"), "text", None, True])
def test_a_constant_is_itself_and_no_other_value_of_its_kind(value: object) -> None:
    constant = TreeConstant("a", value)
    constant.check(value)
    constant.check(float("nan") if isinstance(value, float) and value != value else value)
    for other in (8, 0.0, -0.0, "other", False, 7.0, X):
        if repr(other) != repr(value):
            with pytest.raises(InputError, match=r"argument 'a' is .*, but the program was made for"):
                constant.check(other)


def test_a_tensor_in_the_place_of_a_constant_is_described() -> None:
    with pytest.raises(InputError, match=r"'a' is a tensor float32\[2, 3\], but the program was made for 7"):
        TreeConstant("a", 7).check(X)


def test_sizes_of_tensors_are_tuples() -> None:
    class Reshaped(torch.nn.Module):
        def forward(self, x: torch.Tensor, size: Any) -> torch.Tensor:
            return x.reshape(size)

    compiled, lazy = spyre_mlir.compile(Reshaped(), (X, X.shape)), spyre_mlir.compile(Reshaped())
    for call in (compiled, lazy):
        assert call(X, X.shape).shape == call(X, (2, 3)).shape == (2, 3)


def test_tensors_with_masks_are_refused() -> None:
    with pytest.warns(UserWarning, match="prototype"):
        masked = torch.masked.masked_tensor(X, X > 0)
    with pytest.raises(InputError, match=r"'x': expected float32\[2, 3\], got a tensor with a mask"):
        PROGRAM.flatten((masked, {"a": 7}), {"k": Y, "flag": None})
