"""Device tensors that control flow hands over: which stay, and where another reader's padding forbids it."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.kernel import FromDeviceOp, ToDeviceOp
from tests.unit.transforms.levels import passed

T = "!spyre.tensor<[4, 16] x SEN169_FP16, order [1, 0], stick 1, hbm>"
ACROSS = "!spyre.tensor<[4, 16] x SEN169_FP16, order [0, 1], stick 0, hbm>"
HOST, P = "tensor<4x16xf32>", "!spyre.tensor<[] x SEN169_FP16, order [unit], stick unit, hbm>"


def sent(name: str, value: str, kind: str = T, demand: str = "") -> str:
    return f"%{name} = spyre.kernel.to_device %{value} {demand} : {HOST} to {kind}\n"


def doubled(source: str, target: str, kind: str = T) -> str:
    uses = f"ins(%{source}[m, n] : {kind}, %{source}[m, n] : {kind}) outs(%{target}[m, n] : {kind})"
    return f'%{target} = spyre.kernel.alloc : {kind}\nspyre.kernel.compute "add" [m = 4, n = 16] {uses}\n'


def cleared(buffer: str, number: str) -> str:
    """Writes a number behind the 16 elements of the rows of a tensor."""
    mask = "!spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>"
    ins = f"%{buffer}m[n] : {mask}, %{buffer}[m, n] : {T}, %{buffer}z[] : {P}"
    return f"""%{buffer}m = spyre.kernel.constant #spyre.first_ones<16> : {mask}
    %{buffer}z = spyre.kernel.constant {number} : f64 : {P}
    spyre.kernel.compute "where3" [m = 4, n = 64] ins({ins}) outs(%{buffer}[m, n] : {T})
    """


def given(*values: str, kind: str = T) -> str:
    fetched = "".join(f"%h{n} = spyre.kernel.from_device %{v} : {kind} to {HOST}\n" for n, v in enumerate(values))
    names = ", ".join(f"%h{n}" for n in range(len(values)))
    return f"{fetched}func.return {names} : {', '.join([HOST] * len(values))}\n"


def loop(
    body: str, carried: int = 1, others: int = 0, before: str = "", behind: str = "", start: str = "x"
) -> ModuleOp:
    """A loop that reads its first carried tensor; `others` are the same in every trip."""
    count = carried + others
    types, gives = ", ".join([HOST] * count), ", ".join([HOST] * carried)
    arguments = ", ".join(f"%a{n} : {HOST}" for n in range(count))
    operands = ", ".join(f"%{start}" if n < carried else f"%y{n - carried}" for n in range(count))
    results = ", ".join(f"%r{n}" for n in range(carried))
    head = ", ".join([f"%x : {HOST}", *(f'%y{n} : {HOST} {{aten.kind = "parameter"}}' for n in range(others))])
    return passed(
        f"""func.func @main({head}) -> ({gives}) {{
        {before}
        {results} = control.while_loop @goes_on do @step({operands}) : ({types}) -> ({gives})
        {behind or f"func.return {results} : {gives}"}
        }}
        func.func private @goes_on({arguments}) -> tensor<i1> {{
        %0 = spyre.kernel.alloc : {P}
        %1 = spyre.kernel.from_device %0 : {P} to tensor<i1>
        func.return %1 : tensor<i1>
        }}
        func.func private @step({arguments}) -> ({gives}) {{
        {body}
        }}""",
        "keep-on-device",
    )


def function(module: ModuleOp, name: str) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name)


def transfers(module: ModuleOp, name: str) -> list[str]:
    """The transfers of a function in order: what is sent, and what is fetched."""
    found: list[str] = []
    for op in function(module, name).body.block.ops:
        if isinstance(op, ToDeviceOp | FromDeviceOp):
            found.append("sent" if isinstance(op, ToDeviceOp) else "fetched")
    return found


def on_device(module: ModuleOp) -> list[bool]:
    """Which results of the control flow of `main` are device tensors."""
    op = next(op for op in function(module, "main").body.block.ops if isinstance(op, ControlOp))
    return [isinstance(r.type, DeviceTensorType) for r in op.outputs]


def test_what_is_carried_is_sent_and_fetched_once() -> None:
    module = loop(sent("s", "a0") + doubled("s", "d") + given("d"))
    assert on_device(module) == [True]
    assert transfers(module, "step") == []
    assert transfers(module, "main") == ["sent", "fetched"]


def test_a_loop_begins_with_what_the_device_has() -> None:
    before = sent("i", "x") + doubled("i", "j") + f"%k = spyre.kernel.from_device %j : {T} to {HOST}\n"
    module = loop(sent("s", "a0") + doubled("s", "d") + given("d"), before=before, start="k")
    assert transfers(module, "main") == ["sent", "fetched"]


def test_a_loop_gets_its_own_where_kernels_behind_it_read_the_same() -> None:
    """The body writes zeros behind the elements, and who reads the first tensor again has written ones."""
    before = sent("i", "x") + doubled("i", "j") + cleared("j", "1.0")
    before += f"%k = spyre.kernel.from_device %j : {T} to {HOST}\n"
    behind = doubled("j", "e") + f"%h0 = spyre.kernel.from_device %e : {T} to {HOST}\nfunc.return %h0 : {HOST}\n"
    body = sent("s", "a0") + cleared("s", "0.0") + doubled("s", "d") + given("d")
    module = loop(body, before=before, behind=behind, start="k")
    assert on_device(module) == [True]
    assert transfers(module, "main") == ["sent", "fetched", "sent", "fetched"]


@pytest.mark.parametrize(
    "body",
    [
        sent("s", "a0", ACROSS) + doubled("s", "d", ACROSS) + sent("t", "a0") + doubled("t", "u") + given("u"),
        sent("s", "a0", demand="zero_padding") + doubled("s", "d") + given("d"),
        sent("s", "a0") + cleared("s", "0.0") + sent("t", "a0") + cleared("t", "1.0") + doubled("s", "d") + given("d"),
        sent("s", "a0") + given("s"),
    ],
    ids=["read in two layouts", "padding is to be 0", "two paddings", "given back as it is"],
)
def test_what_readers_do_not_agree_on_goes_through_the_host(body: str) -> None:
    module = loop(body)
    assert on_device(module) == [False]
    assert "sent" in transfers(module, "step")


def test_one_tensor_is_not_carried_twice() -> None:
    body = sent("s", "a0") + sent("t", "a1") + doubled("s", "d") + given("d", "d")
    assert on_device(loop(body, carried=2)) == [False, False]


def test_what_the_host_reads_in_a_trip_is_fetched_there() -> None:
    step = f'%o = spyre.kernel.host "aten::sin.default" (%a0) : ({HOST}) -> {HOST}\n'
    module = loop(sent("s", "a0") + doubled("s", "d") + step + sent("o2", "o") + doubled("o2", "p") + given("p"))
    assert on_device(module) == [True]
    assert transfers(module, "step") == ["fetched", "sent"]


def test_a_weight_is_sent_in_front_of_the_loop() -> None:
    body = sent("s", "a0") + sent("w", "a1", demand="zero_padding") + doubled("w", "v") + doubled("s", "d") + given("d")
    module = loop(body, others=1)
    assert transfers(module, "step") == []
    assert transfers(module, "main") == ["sent", "sent", "fetched"]


def test_zeros_that_a_body_overwrites_are_sent_in_each_trip() -> None:
    body = sent("s", "a0") + sent("w", "a1", demand="zero_padding") + cleared("w", "1.0") + doubled("s", "d")
    module = loop(body + doubled("w", "v") + given("d"), others=1)
    assert transfers(module, "step") == ["sent"]


def branches(first: str, second: str, kind: str) -> ModuleOp:
    call = f"%r = control.cond %p then @a else @b(%x) : tensor<i1>, ({HOST}) -> {HOST}"
    functions = "".join(
        f"func.func private @{n}(%a0 : {HOST}) -> {HOST} {{\n{body}\n}}\n" for n, body in (("a", first), ("b", second))
    )
    main = f'func.func @main(%p : tensor<i1>, %x : {HOST} {{aten.kind = "{kind}"}}) -> {HOST} {{'
    return passed(f"{main}\n{call}\nfunc.return %r : {HOST}\n}}\n{functions}", "keep-on-device")


BRANCHES = sent("s", "a0") + doubled("s", "d") + given("d"), sent("t", "a0", ACROSS) + doubled("t", "e", ACROSS)


def test_branches_that_agree_give_a_device_tensor() -> None:
    module = branches(BRANCHES[0], BRANCHES[0], "parameter")
    assert on_device(module) == [True]
    assert transfers(module, "main") == ["sent", "fetched"]
    assert transfers(module, "a") == transfers(module, "b") == []


def test_an_input_is_sent_by_the_branch_that_reads_it() -> None:
    module = branches(BRANCHES[0], BRANCHES[1] + given("e", kind=ACROSS), "input")
    assert on_device(module) == [False]
    assert transfers(module, "a") == transfers(module, "b") == ["sent", "fetched"]
