"""The order in which a bundle runs its files: loops, buffers and places in the model, read off without a run."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import InputError
from spyre_mlir.machine.bundle.schedule import BundleLoop, Items, Launch, launches, read_schedule, source_line, unrolled
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

ARG = "!sdscbundle.input_arg<index>"
EXECUTE = 'sdscbundle.sdsc_execute () {{sdsc_filename="{}"}}\n'
COUNTS = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 2, 3, 12))


def descriptor(*operands: Operand) -> Descriptor:
    return Descriptor(0, "neg", "sfp", OpClass.POINTWISE, (Dim("out", 64),), operands)


def operand(*start: int, component: str = "hbm", symbolic: bool = False) -> Operand:
    first = tuple(map(str, start))
    return Operand(("out",), (64,), "out", "SEN169_FP16", first, component=component, symbolic=symbolic)


def schedule(*bodies: str, arguments: str = "", of: Descriptor | None = None) -> Items:
    """The program of one bundle function, or of several with numbers behind their names."""
    names = ["sdsc_bundle"] if len(bodies) == 1 else [f"sdsc_bundle_{n}" for n in range(len(bodies))]
    texts = [
        f"func.func @{name}({arguments}) {{\n{COUNTS}{body}func.return\n}}\n"
        for name, body in zip(names, bodies, strict=True)
    ]
    return read_schedule(
        parse_module("\n".join(texts), make_context(), "test.mlir"), lambda _: of or descriptor()
    ).items


def run(name: str) -> str:
    return EXECUTE.format(name)


def loop(low: int, high: int, step: int, *body: str) -> str:
    return f"scf.for %i{len(''.join(body))} = %c{low} to %c{high} step %c{step} {{\n{''.join(body)}}}\n"


@pytest.mark.parametrize(
    ("location", "line"),
    [
        ('loc("/home/me/model.py":12:3)', "model.py:12"),
        ('loc("layers.0"("/a/model.py":7:0))', "model.py:7"),
        ('loc(callsite("a.py":1:1 at "b.py":22:1))', "b.py:22"),
        ("loc(unknown)", ""),
    ],
)
def test_the_innermost_place_of_a_location(location: str, line: str) -> None:
    assert source_line(location) == line


def test_launches_are_in_the_order_of_the_text() -> None:
    program = schedule(run("a") + loop(2, 12, 3, run("b"), run("c")) + run("d"))
    assert [one.file for one in launches(program)] == ["a", "b", "c", "d"]
    assert [one.file for one in unrolled(program)] == ["a", *["b", "c"] * 4, "d"]
    assert isinstance(program[1], BundleLoop)
    assert program[1].trips == 4  # 2, 5, 8 and 11


@pytest.mark.parametrize(("low", "high", "step", "trips"), [(0, 12, 1, 12), (1, 12, 3, 4), (0, 0, 1, 0), (12, 3, 1, 0)])
def test_how_often_a_loop_runs(low: int, high: int, step: int, trips: int) -> None:
    (found,) = schedule(loop(low, high, step, run("a")))
    assert isinstance(found, BundleLoop)
    assert found.trips == trips
    assert len(list(unrolled((found,)))) == trips


def test_a_loop_whose_length_only_the_run_knows_counts_once() -> None:
    body = "%n = sdscbundle.input_arg_extract value from %p : ARG -> index\n".replace("ARG", ARG)
    for bounds in ("%n to %c12 step %c1", "%c0 to %n step %c1", "%c0 to %c12 step %n", "%c0 to %c12 step %c0"):
        text = body + f"scf.for %i = {bounds} {{\n{run('a')}{run('b')}}}\n"
        (found,) = schedule(text, arguments=f"%p: {ARG}")
        assert isinstance(found, BundleLoop)
        assert found.trips is None
        assert [(one.file, one.loops, one.trips) for one in unrolled((found,))] == [
            ("a", (None,), 1),
            ("b", (None,), 1),
        ]
    (found,) = schedule(
        body + loop(0, 3, 1, f"scf.for %j = %c0 to %n step %c1 {{\n{run('a')}}}\n"), arguments=f"%p: {ARG}"
    )
    assert [one.trips for one in launches((found,))] == [3]


def test_loops_in_loops() -> None:
    """The inner loop begins with the outer one; what stands behind it begins none."""
    inner = loop(0, 3, 1, run("b"), run("c"))
    program = schedule(run("a") + loop(0, 2, 1, inner, run("d")) + run("e"))
    found = {one.file: one for one in launches(program)}
    assert [one.loops for one in found.values()] == [(), (2, 3), (2, 3), (2,), ()]
    assert [one.opens for one in found.values()] == [0, 2, 0, 0, 0]
    assert [one.trips for one in found.values()] == [1, 6, 6, 2, 1]
    assert [one.iterations for one in found.values()] == [0, 2 + 6, 0, 0, 0]
    behind = schedule(loop(0, 2, 1, run("a"), loop(0, 3, 1, run("b"))))
    assert [(one.opens, one.iterations) for one in launches(behind)] == [(1, 2), (1, 6)]


def test_a_launch_says_its_file_and_its_place() -> None:
    text = run("sdsc_7.json").rstrip("\n") + ' loc("/home/me/model.py":12:3)\n'
    (one,) = schedule(text, of=descriptor(operand(128)))
    assert isinstance(one, Launch)
    assert (one.file, one.source, one.part) == ("sdsc_7.json", "model.py:12", 0)
    assert one.descriptor == descriptor(operand(128))


def test_a_bundle_has_a_function() -> None:
    module = parse_module("func.func @other() {\nfunc.return\n}", make_context(), "test.mlir")
    with pytest.raises(InputError, match=r"a bundle has a func\.func @sdsc_bundle, this module has none"):
        read_schedule(module, lambda _: descriptor())


def test_operations_of_several_functions_follow_each_other() -> None:
    program = schedule(run("a"), run("b"), loop(0, 3, 1, run("c")))
    assert [(one.file, one.part) for one in launches(program)] == [("a", 0), ("b", 1), ("c", 2)]


# --- buffers


def buffers(*operands: Operand, body: str = "", symbols: dict[int, str] | None = None, parts: int = 1) -> list[str]:
    """The buffers of a launch in the last of some functions; symbols are bound to values of the body."""
    given = symbols or {}
    bound = ", ".join(f"%{value}" for value in given.values())
    ids = f", symbol_ids={list(given)}" if given else ""
    execute = f'sdscbundle.sdsc_execute ({bound}) {{sdsc_filename="a"{ids}}}\n'
    text = "%x = sdscbundle.input_arg_extract value from %p : ARG -> index\n".replace("ARG", ARG)
    text += "%y = sdscbundle.input_arg_extract value from %q : ARG -> index\n".replace("ARG", ARG)
    text += "%pool = sdscbundle.device_mem_allocate 4096 bytes : index\n"
    text += body.replace("EXECUTE", execute) if "EXECUTE" in body else body + execute
    program = schedule(*[""] * (parts - 1), text, arguments=f"%p: {ARG}, %q: {ARG}", of=descriptor(*operands))
    return list(list(launches(program))[-1].buffers)


def test_buffers_at_fixed_places() -> None:
    found = buffers(operand(1024, 2048), operand(256, 256, component="lx"), operand(), operand(component="lx"))
    assert found == ["memory 1024", "scratchpad 256", "memory 0", "scratchpad 0"]


def test_buffers_of_arguments_and_of_the_pool() -> None:
    body = (
        "%c512 = arith.constant 512 : index\n%z = arith.addi %c512, %y : index\n%s = arith.addi %pool, %c512 : index\n"
    )
    operands = [operand(n, -9, symbolic=True) for n in (-1, -2, -3)]
    found = buffers(*operands, body=body, symbols={-1: "x", -2: "z", -3: "s"})
    assert found == ["argument 0", "argument 1 + 512", "pool + 512"]


def test_a_symbol_that_nothing_is_bound_to_is_a_place_in_memory() -> None:
    assert buffers(operand(-1, symbolic=True), operand(-2, symbolic=True), symbols={-2: "x"}) == [
        "memory -1",
        "argument 0",
    ]
    assert buffers(operand(-2), symbols={-2: "x"}) == ["memory -2"]


def test_a_buffer_of_which_a_loop_takes_a_part() -> None:
    body = """scf.for %i = %c0 to %c12 step %c3 {
      %step = arith.muli %i, %c2 : index
      %at = arith.addi %step, %y : index
      EXECUTE}
    """
    assert buffers(operand(-1, symbolic=True), body=body, symbols={-1: "at"}) == ["argument 1 + loop + 2"]


def test_buffers_of_one_function_are_not_those_of_another() -> None:
    operands = [operand(n, symbolic=True) for n in (-1, -2)]
    found = buffers(*operands, symbols={-1: "y", -2: "pool"}, parts=3)
    assert found == ["argument 1 of launch 2", "pool of launch 2"]
