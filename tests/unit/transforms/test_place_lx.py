"""Placement in LX: bytes counted by hand, files against the schema and the oracle, values against numpy."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from spyre_mlir import compile as compile_model
from spyre_mlir.backend.directory import split_module
from spyre_mlir.backend.write import write_json
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.errors import InputError, LoweringError
from spyre_mlir.frontend import import_program
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import OFF, lower
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.oracles.superdsc_decoder import Decoder
from tests.paths import DATA
from tests.unit.dialects.superdsc.codec.test_build import schema

ALL = ("divide-work", "place-lx", "assign-pool", "convert-spyre-kernel-to-superdsc")


def through(text: str, *passes: str, options: dict[str, dict[str, Any]] | None = None) -> ModuleOp:
    context = make_context()
    module = parse_module(text, context)
    for name in passes:
        get_all_passes()[name]()(**(options or {}).get(name, {})).apply(context, module)
        verify_module(module)
    return module


def softmax(rows: int, columns: int) -> str:
    """Softmax along the sticks, one maximum and one sum per row, each in a stick of its own."""
    t = f"!spyre.tensor<[{rows}, {columns}] x SEN169_FP16, order [1, 0], stick 1, hbm>"
    s = f"!spyre.tensor<[{rows}] x SEN169_FP16, order [0, unit], stick unit, hbm>"
    host, loops = f"tensor<{rows}x{columns}xf32>", f"[m = {rows}, n = {columns}]"
    return f"""func.func @main(%x: {host}) -> {host} {{
    %0 = spyre.kernel.to_device %x : {host} to {t}
    %1 = spyre.kernel.alloc : {s}
    spyre.kernel.compute "max" {loops} ins(%0[m, n] : {t}) outs(%1[m] : {s})
    %2 = spyre.kernel.alloc : {t}
    spyre.kernel.compute "sub" {loops} ins(%0[m, n] : {t}, %1[m] : {s}) outs(%2[m, n] : {t})
    %3 = spyre.kernel.alloc : {t}
    spyre.kernel.compute "exp" {loops} ins(%2[m, n] : {t}) outs(%3[m, n] : {t})
    %4 = spyre.kernel.alloc : {s}
    spyre.kernel.compute "sum" {loops} ins(%3[m, n] : {t}) outs(%4[m] : {s})
    %5 = spyre.kernel.alloc : {t}
    spyre.kernel.compute "realdiv" {loops} ins(%3[m, n] : {t}, %4[m] : {s}) outs(%5[m, n] : {t})
    %6 = spyre.kernel.from_device %5 : {t} to {host}
    func.return %6 : {host}
    }}"""


def traffic(module: ModuleOp) -> int:
    return sum(op.hbm_bytes() for op in module.walk() if isinstance(op, KernelOp))


def local(module: ModuleOp) -> list[AllocOp]:
    return [op for op in module.walk() if isinstance(op, AllocOp) and device_tensor(op.result).space == "lx"]


def files(module: ModuleOp) -> list[dict[str, Any]]:
    return [json.loads(write_json(op)) for op in module.ops if isinstance(op, SdscOp)]


# One row is 16 sticks, 2048 bytes; its maximum and its sum are a stick each. On one core x, x - max and exp fit only
# because each takes the place of the one before: two of them are 2097152 bytes, a core has 1589376.
@pytest.mark.parametrize(("cores", "peak"), [(1, 512 * (2048 + 128)), (32, 16 * (2048 + 128))])
def test_softmax_reads_once_and_writes_once(cores: int, peak: int) -> None:
    options = {"divide-work": {"cores": cores}}
    module = through(softmax(512, 1024), *ALL[:3], options=options)
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    assert [op.function_name for op in kernels] == ["identity", "max", "sub", "exp", "sum", "realdiv"]
    assert {int(np.prod([d.split for d in op.space.data])) for op in kernels} == {cores}
    assert traffic(module) == 2 * 512 * 1024 * 2
    assert max(op.end for op in local(module)) == peak
    # In HBM: five readings and three writings of 512 rows, and each row statistic written and read.
    assert traffic(through(softmax(512, 1024), "divide-work")) == (5 + 3) * 512 * 1024 * 2 + 2 * 2 * 512 * 128


@pytest.mark.parametrize("rows", [512, 64, 32])
def test_every_level_agrees(rows: int) -> None:
    x = np.random.default_rng(1).uniform(-4, 4, (rows, 1024))
    e = np.exp(x - x.max(axis=1, keepdims=True))
    wanted = e / e.sum(axis=1, keepdims=True)
    placed = through(softmax(rows, 1024), *ALL[:3])
    assert len(local(placed)) == 5
    (got,) = run_function(placed, [x])
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    host, bundle, sdscs = split_module(through(softmax(rows, 1024), *ALL))
    (got,) = run_program(DeviceProgram(host, bundle, lambda name: describe(sdscs[name])), [x])
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("addresses", ["symbolic", "concrete"])
def test_files_are_legal_and_lx_addresses_are_numbers(addresses: str) -> None:
    options = {"convert-spyre-kernel-to-superdsc": {"addresses": addresses}}
    written = files(through(softmax(512, 1024), *ALL, options=options))
    assert len(written) == 6
    for file in written:
        jsonschema_rs.validate(schema(), file)
        symbols = {-n: (n - 1) * 2**20 for n in range(1, 200)} if addresses == "symbolic" else None
        for operand in Decoder(file, symbols).operands:
            if operand.component == "lx":
                assert not operand.symbolic
                assert len(set(operand.starts.values())) == 1, "one address for all cores"
    nodes = [
        n for f in written for d in next(iter(f.values()))["dscs_"] for n in next(iter(d.values()))["scheduleTree_"]
    ]
    assert [n["component_"] for n in nodes].count("lx") == 1 + 2 + 3 + 2 + 2 + 2
    assert all("isStartAddrSymbolic_" not in n for n in nodes if n["component_"] == "lx")


def test_slices_of_a_padded_row_leave_a_gap() -> None:
    """A core's rows of 100 elements are two sticks of a buffer of four: the oracle finds them 4 sticks apart."""
    t = "!spyre.tensor<[4, 100] x SEN169_FP16, order [0, 1], stick 1, extents [4, 256], {}>"
    h, lx = t.format("hbm"), t.format("lx")
    text = f"""func.func @main(%x: tensor<4x100xf32>) -> tensor<4x100xf32> {{
    %0 = spyre.kernel.to_device %x : tensor<4x100xf32> to {h}
    %1 = spyre.kernel.alloc at 1024 : i64 : {lx}
    spyre.kernel.compute "exp" [m = 4 over 2, n = 100] ins(%0[m, n] : {h}) outs(%1[m, n] : {lx})
    %2 = spyre.kernel.alloc : {h}
    spyre.kernel.compute "neg" [m = 4 over 2, n = 100] ins(%1[m, n] : {lx}) outs(%2[m, n] : {h})
    %3 = spyre.kernel.from_device %2 : {h} to tensor<4x100xf32>
    func.return %3 : tensor<4x100xf32>
    }}"""
    file = files(through(text, *ALL[1:]))[0]
    jsonschema_rs.validate(schema(), file)
    node = next(iter(next(iter(file.values()))["dscs_"][0].values()))["scheduleTree_"][1]
    assert node["backGapCore_"] == {"out": {"0": "128", "1": "128"}}
    decoder = Decoder(file, {-n: 0 for n in range(1, 9)})
    coords, found = decoder.addresses(1, 1)
    first = found[(coords["out"] == 0)]
    assert sorted(first.tolist()) == [1024, 1024 + 4 * 128]
    x = np.random.default_rng(2).uniform(-1, 1, (4, 100))
    (got,) = run_function(through(text, *ALL[1:3]), [x])
    np.testing.assert_allclose(got, -np.exp(x), rtol=1e-12)


def test_the_real_file_of_a_restickify_in_lx() -> None:
    a = "!spyre.tensor<[4, 4096, 128] x SEN169_FP16, order [0, 1, 2], stick 2, lx>"
    b = "!spyre.tensor<[4, 4096, 128] x SEN169_FP16, order [0, 2, 1], stick 1, lx>"
    text = f"""func.func @main() {{
    %0 = spyre.kernel.alloc at 0 : i64 : {a}
    %1 = spyre.kernel.alloc at 131072 : i64 : {b}
    spyre.kernel.restickify [h = 4 over 4, m = 4096 over 8, n = 128] ins(%0[h, m, n] : {a}) outs(%1[h, m, n] : {b})
    func.return
    }}"""
    wanted = json.loads((DATA / "superdsc_real/06_ReStickifyOpLx_lx.json").read_text())
    (found,) = files(
        through(text, "convert-spyre-kernel-to-superdsc", options={ALL[3]: {"version": "TSNEW", "first": 104}})
    )
    wanted["104_ReStickifyOpLx"].pop("lxRelayoutClassifications_")  # an extension of the program that wrote the file
    assert json.dumps(found) == json.dumps(wanted)


def test_no_more_cores_than_the_card_has() -> None:
    with pytest.raises(InputError, match="33 cores, the card has 32"):
        through(softmax(64, 64), "divide-work", options={"divide-work": {"cores": 33}})


def test_a_required_buffer_that_finds_no_room() -> None:
    """Two buffers of 1 MiB each are needed on one core by one add."""
    t = "!spyre.tensor<[512, 1024] x SEN169_FP16, order [1, 0], stick 1, {}>"
    h, lx = t.format("hbm"), t.format("lx")
    text = f"""func.func @main(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {{
    %0 = spyre.kernel.to_device %x : tensor<512x1024xf32> to {h}
    %1 = spyre.kernel.alloc : {lx}
    spyre.kernel.compute "exp" [m = 512, n = 1024] ins(%0[m, n] : {h}) outs(%1[m, n] : {lx})
    %2 = spyre.kernel.alloc : {lx}
    spyre.kernel.compute "neg" [m = 512, n = 1024] ins(%0[m, n] : {h}) outs(%2[m, n] : {lx})
    %3 = spyre.kernel.alloc : {h}
    spyre.kernel.compute "add" [m = 512, n = 1024] ins(%1[m, n] : {lx}, %2[m, n] : {lx}) outs(%3[m, n] : {h})
    %4 = spyre.kernel.from_device %3 : {h} to tensor<512x1024xf32>
    func.return %4 : tensor<512x1024xf32>
    }}"""
    with pytest.raises(LoweringError, match="no 1048576 bytes of the scratchpad's 1589376 are free"):
        through(text, "place-lx")
    # If it may stay in HBM, the first of the two does: the second takes over the place of a copy of x.
    copy, second = local(through(text.replace("lx>", "hbm>"), "place-lx"))
    users = {user.function_name for u in copy.result.uses if isinstance(user := u.operation, KernelOp)}
    assert users == {"identity", "exp", "neg"}
    assert copy.offset == second.offset


def test_placement_does_not_depend_on_the_run() -> None:
    first, second = (str(through(softmax(512, 1024), *ALL[:3])) for _ in range(2))
    assert first == second


def test_placed_text_goes_through_again() -> None:
    once = through(softmax(512, 1024), "divide-work", "place-lx")
    assert str(through(str(once), "place-lx")) == str(once)


@pytest.mark.parametrize("planned", [False, True])
def test_readers_of_different_parts_share_no_copy(planned: bool) -> None:
    """A copy of both halves would be read once: nothing but the reads would move to another kernel."""

    def halves(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.exp(x[:, :64]), torch.neg(x[:, 64:])

    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.exp(x), torch.neg(x)

    def functions(model: Any) -> list[str]:
        program = import_program(FunctionModel(model), (torch.zeros(8192, 128),))
        options = {"plan": {"together": planned}, "stage-transfers": OFF}
        made = lower(program.module, make_context(), until="spyre.kernel", options=options).modules["spyre.kernel"]
        return [op.function_name for op in made.walk() if isinstance(op, KernelOp)]

    assert functions(halves) == ["exp", "neg"]
    assert functions(twice) == ["identity", "exp", "neg"]


@pytest.mark.parametrize(("divided", "copies"), [("b = 2 over 2, a = 4 over 4", 1), ("a = 4 over 4, b = 2 over 2", 0)])
def test_two_loops_of_readers_may_divide_one_dimension(divided: str, copies: int) -> None:
    """A copy has one loop for the rows that two loops of its readers divide, if it numbers the cores as they do."""
    t = "!spyre.tensor<[8, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"
    r = "!spyre.tensor<[4, 2, 64] x SEN169_FP16, order [2, 1, 0], stick 2, hbm>"
    loops, rows = f"[{divided}, n = 64]", f"%0[a * 2 + b, n] : {t}"
    text = f"""func.func @main(%x: tensor<8x64xf32>) -> (tensor<4x2x64xf32>, tensor<4x2x64xf32>) {{
    %0 = spyre.kernel.to_device %x : tensor<8x64xf32> to {t}
    %1 = spyre.kernel.alloc : {r}
    spyre.kernel.compute "exp" {loops} ins({rows}) outs(%1[a, b, n] : {r})
    %2 = spyre.kernel.alloc : {r}
    spyre.kernel.compute "neg" {loops} ins({rows}) outs(%2[a, b, n] : {r})
    %3 = spyre.kernel.from_device %1 : {r} to tensor<4x2x64xf32>
    %4 = spyre.kernel.from_device %2 : {r} to tensor<4x2x64xf32>
    func.return %3, %4 : tensor<4x2x64xf32>, tensor<4x2x64xf32>
    }}"""
    module = through(text, "place-lx", "assign-pool")
    names = [op.function_name for op in module.walk() if isinstance(op, KernelOp)]
    assert names == ["identity"] * copies + ["exp", "neg"]
    x = np.linspace(-1, 1, 8 * 64, dtype=np.float32).reshape(8, 64)
    exp, neg = run_function(module, [x])
    np.testing.assert_allclose(exp, np.exp(x).reshape(4, 2, 64), rtol=1e-5)
    np.testing.assert_array_equal(neg, -x.reshape(4, 2, 64))


def test_every_second_element_of_what_cores_divide_is_read_from_device_memory() -> None:
    """A file cannot say which slice of the scratchpads a core of the reader has."""
    x = torch.linspace(-1, 1, 2 * 31 * 16).reshape(2, 31, 16).bfloat16()

    def halves(x: Tensor) -> tuple[Tensor, ...]:
        return x[:, :, ::2].relu(), x[:, :, ::2].exp(), x[:, :, ::2] * 2

    compiled = compile_model(FunctionModel(halves), (x,), numerics="exact")
    torch.testing.assert_close(compiled(x), halves(x))


def test_a_buffer_is_copied_for_readers_of_other_slices_than_its_writers() -> None:
    """A gather divides over 2 cores; the many steps that read the words divide over more, and share one copy."""

    def bent(ids: Tensor, words: Tensor) -> Tensor:
        x = y = torch.nn.functional.embedding(ids, words)
        for _ in range(24):
            y = torch.tanh(y) + x
        return y

    inputs = torch.arange(64) % 32, torch.randn(32, 256).half()
    compiled = compile_model(FunctionModel(bent), inputs)
    gathered, readers = gather_and_readers(compiled.mlir("spyre.kernel"))
    assert device_tensor(gathered).space == "hbm"
    assert [device_tensor(op.output).space for op in readers] == ["lx"]
    assert compiled.verify(*inputs)


def test_gathered_rows_stay_in_the_scratchpads() -> None:
    """The cores that gather rows are those that use them: no row goes through device memory."""

    def normed(ids: Tensor, words: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(words[ids], (64,))

    inputs = torch.arange(1024).reshape(32, 32).flip(0) % 100, torch.randn(100, 64)
    compiled = compile_model(FunctionModel(normed), inputs)
    gathered, readers = gather_and_readers(compiled.mlir("spyre.kernel"))
    assert device_tensor(gathered).space == "lx" and len(readers) > 1
    assert compiled.verify(*inputs)


def gather_and_readers(program: str) -> tuple[SSAValue, list[KernelOp]]:
    """The result of the gather of a program, and the kernels that read it."""
    ops = parse_module(program, make_context()).walk()
    gathered = next(op for op in ops if isinstance(op, GatherOp)).output
    users = [use.operation for use in gathered.uses]
    return gathered, [op for op in users if isinstance(op, KernelOp) and gathered in op.inputs]
