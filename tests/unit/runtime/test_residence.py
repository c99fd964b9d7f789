"""Tensors beside the host: one copy for all programs, none after a write, and what only the card has."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.runtime.residence import CARD, Residence


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> Residence:
    """The card of the process, with nothing on it."""
    for name, empty in vars(Residence()).items():
        monkeypatch.setattr(CARD, name, empty)
    return CARD


class Product(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(64.0 * 64).reshape(64, 64) / 4096)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


class Added(nn.Module):
    """Adds to a tensor of the caller."""

    def forward(self, x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        x.add_(by)
        return by * 2


WEIGHT_BYTES = 64 * 128  # 64 rows of a stick of DLFloat16


def made(model: nn.Module, *inputs: Any, **options: Any) -> CompiledModel:
    program = spyre_mlir.compile(model.eval(), inputs, **{"numerics": "exact", **options})
    assert isinstance(program, CompiledModel)
    return program


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_programs_share_the_weights_of_a_model(numerics: str, card: Residence) -> None:
    model = Product()
    for rows in (1, 3):
        x = torch.ones(rows, 64)
        torch.testing.assert_close(made(model, x, numerics=numerics)(x), model(x), rtol=0.01, atol=0.01)
    assert card.of(model.weight, contents=numerics == "exact").transfers == 1
    assert card.card_bytes == WEIGHT_BYTES


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_specialisations_share_them_too(numerics: str, card: Residence) -> None:
    model: Any = Product()
    rows = torch.export.Dim("rows", min=2, max=9)
    program = spyre_mlir.compile(model, (torch.ones(5, 64),), dynamic_shapes=({0: rows},), numerics=numerics)
    for count in (2, 4):
        program(torch.ones(count, 64))
    assert card.card_bytes == WEIGHT_BYTES


@pytest.mark.parametrize("how", ["counted", "by data"])
def test_a_weight_that_is_written_is_sent_again(how: str, card: Residence) -> None:
    model, x = Product(), torch.ones(1, 64)
    program = made(model, x)
    before = program(x)
    with torch.no_grad():
        (model.weight if how == "counted" else model.weight.data).mul_(2)
    torch.testing.assert_close(program(x), 2 * before)


@pytest.mark.parametrize("how", ["counted", "by data"])
def test_a_weight_of_the_files_that_is_written_is_sent_again_by_all_programs(how: str, card: Residence) -> None:
    model, x = Product(), torch.ones(1, 64)
    programs = [made(model, x, numerics="device") for _ in range(2)]
    before, _ = (program(x) for program in programs)
    with torch.no_grad():
        (model.weight if how == "counted" else model.weight.data).mul_(2)
    for program in programs:
        torch.testing.assert_close(program(x), 2 * before, rtol=0.01, atol=0.01)
    assert card.card_bytes == WEIGHT_BYTES


def test_numerics_of_one_weight_do_not_mix(card: Residence) -> None:
    model, x = Product(), torch.ones(1, 64)
    exact, device = made(model, x), made(model, x, numerics="device")
    for _ in range(2):
        torch.testing.assert_close(exact(x), model(x))
        assert not torch.equal(device(x), model(x))
    assert card.card_bytes == 2 * WEIGHT_BYTES


def test_files_are_read_again_on_request(card: Residence) -> None:
    x = torch.ones(1, 64)
    program = made(model := Product(), x, numerics="device")
    program(x)
    program.reload()
    assert card.card_bytes == 0
    program(x)
    assert card.of(model.weight, contents=False).transfers == 1


def test_what_a_call_has_written_is_on_the_card_for_the_next(card: Residence) -> None:
    x, by = torch.zeros(4, 64), torch.ones(4, 64)
    program = made(Added(), x, by)
    for _ in range(3):
        program(x, by)
    assert (x == 3).all()
    assert card.of(x).transfers == 1
    x.fill_(10)
    program(x, by)
    assert (x == 11).all()


def test_what_the_host_rounds_is_sent_again(card: Residence) -> None:
    x, by = torch.ones(4, 64, dtype=torch.bfloat16), torch.full((4, 64), 2.0**-8, dtype=torch.bfloat16)
    program = made(Added(), x, by)
    program(x, by)  # 1 + 2**-8 is no bfloat16, and the card has it as it is
    assert (x == 1).all()
    assert card.of(x).transfers == 0


def test_a_held_tensor_is_written_on_the_card_alone(card: Residence) -> None:
    x, by = torch.zeros(4, 64), torch.ones(4, 64)
    program = made(Added(), x, by)
    card.hold(x)
    for _ in range(3):
        program(x, by)
    assert (x == 0).all()
    assert card.is_held(x)
    card.release(x)
    assert (x == 3).all()
    assert not card.is_held(x)
    program(x, by)
    assert (x == 4).all()


def test_a_write_to_what_only_the_card_has_is_refused(card: Residence) -> None:
    x, by = torch.zeros(4, 64), torch.ones(4, 64)
    program = made(Added(), x, by)
    card.hold(x)
    program(x, by)
    x.add_(1)
    with pytest.raises(InputError, match=r"the host has written to a tensor of shape \(4, 64\)"):
        program(x, by)


def test_a_held_tensor_may_be_written_before_the_card_does(card: Residence) -> None:
    x, by = torch.zeros(4, 64), torch.ones(4, 64)
    card.hold(x)
    x.fill_(5)
    program = made(Added(), x, by)
    program(x, by)
    assert (x == 5).all()
    card.release(x)
    assert (x == 6).all()


def test_an_expected_input_stays_and_a_write_to_it_is_seen(card: Residence) -> None:
    program = made(Added(), x := torch.zeros(1, 64), table := torch.ones(1, 64))
    card.expect(table)
    for _call in (1, 2):
        assert (program(x, table) == 2 * table).all()
        assert card.of(table).transfers == 1
        assert (program(x, table) == 2 * table).all()
        assert card.of(table).transfers == 1, "it was there"
        table.data.add_(1)
    assert x[0, 0] == 1 + 1 + 2 + 2


def test_parts_of_an_expected_tensor_do_not_stay(card: Residence) -> None:
    """Rows of an embedding would be as many copies as there are rows."""
    table = torch.ones(4, 64)
    card.expect(table)
    assert card.lasts(table)
    assert card.lasts(table.T)
    assert not card.lasts(table[1:])
    assert not card.lasts(torch.ones(4, 64))


@pytest.mark.usefixtures("only_new_garbage")
def test_expected_tensors_are_forgotten_with_their_memory(card: Residence) -> None:
    program = made(Added(), x := torch.zeros(1, 64), table := torch.ones(1, 64))
    card.expect(table)
    program(x, table)
    before = card.card_bytes
    del table
    gc.collect()
    assert card.card_bytes < before
    assert not card._lasting


@pytest.mark.usefixtures("only_new_garbage")
def test_copies_go_with_their_tensor(card: Residence) -> None:
    x = torch.ones(1, 64)
    program = made(model := Product(), x)
    program(x)
    del program, model
    gc.collect()
    assert card.card_bytes == 0


def test_a_tensor_that_is_gone_cannot_be_sent(card: Residence) -> None:
    kept = card.of(torch.ones(2))
    assert kept.host is not None
    with pytest.raises(InputError, match="the tensor is gone"):
        kept.host()


def test_unknown_tensors_are_nobodys(card: Residence) -> None:
    x = torch.ones(2)
    assert not card.is_held(x)
    card.release(x)
    assert card.card_bytes == 0


@pytest.mark.parametrize("order", ["a+b", "a+ba", "a+b-a", "a+b-ab", "ab+b-a", "a+ab-b"])
@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_programs_do_not_take_over_what_another_one_has_sent_of_other_numbers(numerics: str, order: str) -> None:
    """Torch counts no write by `.data`: each program sees it by its own calls, and the copies are of all programs."""
    model, x, more = Product(), torch.ones(2, 64), torch.linspace(-3.0, 3.0, 64 * 64).reshape(64, 64)
    programs = dict[str, CompiledModel]()
    for step in order:
        if step in "+-":
            model.weight.data.copy_(model.weight.data + (more if step == "+" else -more))
            continue
        if step not in programs:
            programs[step] = made(model, x, numerics=numerics)
        torch.testing.assert_close(programs[step](x), model(x), rtol=0.01, atol=0.05)


def test_programs_share_a_copy_until_there_is_a_write(card: Residence) -> None:
    model, x = Product(), torch.ones(2, 64)
    first, second = (made(model, x, numerics="device") for _ in range(2))
    for program in (first, second, first):
        program(x)
    assert card.of(model.weight, contents=False).transfers == 1
    model.weight.data.mul_(2)
    for program in (first, second, first, second):
        program(x)
    assert card.of(model.weight, contents=False).transfers == 1, "a new copy, made once"
