"""Functions of regions, and their calls."""

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, UnitAttr

from spyre_mlir.dialects.argument_notes import COUNTS
from spyre_mlir.dialects.places import Source, location_of, source_of
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.regions.outlining import outline
from tests.unit.transforms.regions.programs import OPS, T, calls, functions, layer, program, stacked


def test_layers_become_calls_with_their_weights_and_places() -> None:
    module = stacked(4)
    main = functions(module)["main"]
    outline(module, main)
    verify_module(module)
    made = functions(module)["layers"]
    assert made.sym_visibility == StringAttr("private")
    assert len(list(made.body.block.ops)) == 33
    x, *weights = main.body.block.args
    found = calls(module)
    assert [list(call.arguments) for call in found] == [
        [before, weight] for before, weight in zip([x, *(c.results[0] for c in found[:3])], weights, strict=True)
    ]
    assert [source_of(call.location).module for call in found] == [f"layers.{n}.inner" for n in range(4)]
    assert [op.name for op in main.body.block.ops] == [*["func.call"] * 4, "func.return"]


def test_notes_say_which_parameters_are_weights() -> None:
    module = stacked(3)
    outline(module, functions(module)["main"])
    notes = functions(module)["layers"].arg_attrs
    assert notes is not None
    # The first is an argument of the program at the first call only.
    assert [dict(note.data) for note in notes] == [{}, {"aten.kind": StringAttr("parameter")}]


def test_what_counts_at_every_call_is_noted() -> None:
    for counting in (3, 2):
        module = stacked(3)
        main = functions(module)["main"]
        assert main.arg_attrs is not None
        noted = [DictionaryAttr(n.data | {COUNTS: UnitAttr()}) for n in main.arg_attrs.data[1 : 1 + counting]]
        main.arg_attrs = ArrayAttr([main.arg_attrs.data[0], *noted, *main.arg_attrs.data[1 + counting :]])
        outline(module, main)
        notes = functions(module)["layers"].arg_attrs
        assert notes is not None
        assert [COUNTS in note.data for note in notes] == [False, counting == 3]


def test_a_value_that_the_first_layer_reads_twice_is_two_parameters_where_others_read_two() -> None:
    """The first layer adds its own input to its result; the second reads a normalised one, and adds what it was."""
    place, names = 'loc("layers.{}.inner"("m.py":1:0))', [OPS[at % len(OPS)] for at in range(45)]

    def chain(number: int, start: str, added: str) -> list[str]:
        at = place.format(number)
        lines = [f"%v{number}_0 = aten.neg(%{start}) : ({T}) -> {T} {at}"]
        lines += [f"%v{number}_{n + 1} = aten.{op}(%v{number}_{n}) : ({T}) -> {T} {at}" for n, op in enumerate(names)]
        last = f"%v{number}_{len(names)}"
        return [*lines, f"%x{number + 1} = aten.sub.Tensor({last}, %{added}) : ({T}, {T}) -> {T} {at}"]

    between = f'%n = aten.tan(%x1) : ({T}) -> {T} loc("norm"("m.py":2:0))'
    module = program([*chain(0, "x0", "x0"), between, *chain(1, "n", "x1")], 2)
    outline(module, functions(module)["main"])
    verify_module(module)
    made = functions(module)["layers"]
    read, added = made.body.block.args
    first, *_, last, _returned = made.body.block.ops
    assert (first.operands[0], last.operands[1]) == (read, added)
    names_of = [[v.name_hint for v in call.arguments] for call in calls(module)]
    assert names_of == [["x0", "x0"], ["n", "x1"]]


def test_another_number_is_another_layer() -> None:
    module = stacked(5, scale=lambda n: 0.5 if n == 2 else 2.0)
    main = functions(module)["main"]
    outline(module, main)
    verify_module(module)
    assert [op.name for op in main.body.block.ops][:3] == ["func.call", "func.call", "aten.add.Tensor"]
    assert [source_of(call.location).module for call in calls(module)] == [f"layers.{n}.inner" for n in (0, 1, 3, 4)]


def test_two_kinds_of_layers_are_two_functions() -> None:
    ops = [OPS[n % 5] for n in range(35)]
    lines = [layer(n, ops) for n in range(3)] + [layer(n, ops[1:], path="others") for n in range(3, 6)]
    module = program(lines, 6)
    outline(module, functions(module)["main"])
    verify_module(module)
    assert sorted(functions(module)) == ["layers", "main", "others"]
    assert len(calls(module)) == 6


def test_a_name_that_is_taken_gets_a_number() -> None:
    ops = [OPS[n % 5] for n in range(35)]
    module = program([layer(n, ops, path="main") for n in range(3)], 3)
    outline(module, functions(module)["main"])
    assert sorted(functions(module)) == ["main", "main_1"]


def test_small_programs_stay_flat() -> None:
    for module in (stacked(2, ops=37), stacked(3, ops=5)):
        outline(module, functions(module)["main"])
        assert not calls(module)


def test_two_layers_are_one_function() -> None:
    module = stacked(2, ops=38)
    outline(module, functions(module)["main"])
    verify_module(module)
    assert [source_of(call.location).module for call in calls(module)] == ["layers.0.inner", "layers.1.inner"]


def test_parameters_have_names_within_their_layer() -> None:
    module = stacked(3)
    for number, weight in enumerate(functions(module)["main"].body.block.args[1:]):
        weight.name_hint = f"p_layers_{number}_inner_weight"
    outline(module, functions(module)["main"])
    assert [a.name_hint for a in functions(module)["layers"].body.block.args] == ["x0", "weight"]


def test_a_name_that_would_begin_with_a_digit_stays_whole() -> None:
    ops = [OPS[n % 5] for n in range(35)]
    module = program([layer(n, ops, path="") for n in range(3)], 3)
    for op in (op for op in module.walk() if op.name.startswith("aten.")):
        op.location = location_of(Source(module="layers"))
    for number, weight in enumerate(functions(module)["main"].body.block.args[1:]):
        weight.name_hint = f"p_layers_{number}_weight"
    outline(module, functions(module)["main"])
    (made,) = [f for name, f in functions(module).items() if name != "main"]
    assert [a.name_hint for a in made.body.block.args][1] == "p_layers_0_weight"


def test_layers_are_functions_between_collectives() -> None:
    """Each layer ends in an exchange; what stands between two of them is a function, and they stay in the program."""
    names = [OPS[at % len(OPS)] for at in range(30)]
    lines = list[str]()
    for number in range(4):
        *ops, last = layer(number, names).split("\n")
        arguments = '{reduce_op = "sum", group_name = "0", ranks = array<i64: 0, 1>}'
        exchange = f'aten.call "_c10d_functional::all_reduce"(%v{number}_{len(names)}) {arguments} : ({T}) -> {T}'
        lines += [*ops, f'{last.split(" = ", 1)[0]} = {exchange} loc("layers.{number}"("m.py":2:0))']
    module = program(lines, 4)
    outline(module, functions(module)["main"])
    verify_module(module)
    assert [op.name for op in functions(module)["main"].body.block.ops] == [
        *["func.call", "aten.call"] * 4,
        "func.return",
    ]
    assert "aten.call" not in {op.name for op in functions(module)["layers"].walk()}
