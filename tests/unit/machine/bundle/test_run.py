"""Whole bundles: text and files in, numbers out; addresses from the oracles."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.affine import Affine
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.parser import Parser

from spyre_mlir.dialects.sdscbundle import Sdscbundle
from spyre_mlir.dialects.superdsc.codec.describe import describe_json
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import InputError, MachineFault, UnsupportedError
from spyre_mlir.machine.bundle.run import run_bundle
from spyre_mlir.machine.memory.exact import ExactMemory
from tests.oracles.bundle_reader import read_bundle
from tests.oracles.superdsc_decoder import Decoder
from tests.unit.machine.programs import dsc_of, load

RNG = np.random.default_rng(3)
ADD = "a32_add_128x256_32core"
BYTES = 128 * 256 * 2
ARG = "!sdscbundle.input_arg<index>"
HEAD = f"""\
module {{
  func.func @sdsc_bundle(%pa: {ARG}, %pb: {ARG}, %pc: {ARG}) {{
    %a = sdscbundle.input_arg_extract value from %pa : {ARG} -> index
    %b = sdscbundle.input_arg_extract value from %pb : {ARG} -> index
    %c = sdscbundle.input_arg_extract value from %pc : {ARG} -> index
"""


def parsed(text: str) -> ModuleOp:
    """The module of a bundle text."""
    context = Context()
    for dialect in (Builtin, Func, Arith, Affine, Scf, Sdscbundle):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def symbolic_add(stem: str = ADD) -> tuple[dict[str, Any], list[list[int]]]:
    """An add whose three operands start at symbols -1 … -96, and each operand's byte offset per core."""
    obj = copy.deepcopy(load(stem))
    offsets: list[list[int]] = []
    for operand, node in enumerate(dsc_of(obj)["scheduleTree_"]):
        data = node["startAddressCoreCorelet_"]["data_"]
        offsets.append([int(data[f"[{c}, 0, 0]"]) - int(data["[0, 0, 0]"]) for c in range(len(data))])
        node["isStartAddrSymbolic_"] = 1
        node["startAddressCoreCorelet_"]["data_"] = {
            f"[{c}, 0, 0]": str(-1 - operand * len(data) - c) for c in range(len(data))
        }
    return obj, offsets


def launch(names: list[str], offsets: list[list[int]], first: int) -> str:
    """Text that adds each core's offset to each base, and runs the add."""
    lines: list[str] = []
    operands: list[str] = []
    for operand, (name, per_core) in enumerate(zip(names, offsets, strict=True)):
        for core, offset in enumerate(per_core):
            tag = f"{first}_{operand}_{core}"
            lines.append(f"    %o{tag} = arith.constant {offset} : index")
            lines.append(f"    %s{tag} = arith.addi %{name}, %o{tag} : index")
            operands.append(f"%s{tag}")
    ids = [-1 - i for i in range(len(operands))]
    call = f'{{sdsc_filename="sdsc_0.json", symbol_ids={ids}}}'
    return "\n".join([*lines, f"    sdscbundle.sdsc_execute ({', '.join(operands)}) {call}"]) + "\n"


def two_adds() -> tuple[str, dict[str, Any]]:
    """(a + b) into a pool, then pool + b into c."""
    obj, offsets = symbolic_add()
    text = HEAD + f"    %pool = sdscbundle.device_mem_allocate {BYTES} bytes : index\n"
    text += launch(["a", "b", "pool"], offsets, 0) + launch(["pool", "b", "c"], offsets, 1) + "    return\n  }\n}\n"
    return text, obj


def loader_of(*files: dict[str, Any]) -> Any:
    """Descriptors by file name, sdsc_0.json and on."""

    def get(filename: str) -> Descriptor:
        return describe_json(files[int(filename.removeprefix("sdsc_").removesuffix(".json"))])

    return get


def filled(bases: dict[str, int], arrays: dict[str, Any], elements: Any) -> ExactMemory:
    """A region per argument; inputs stored where the oracle says their elements are, relative to the base."""
    memory = ExactMemory()
    for name, base in bases.items():
        memory.add_region(name, base, BYTES)
        if name in arrays:
            coords, offsets = elements
            memory.store(base + offsets, arrays[name][coords], "SEN169_FP16")
    return memory


def element_offsets() -> tuple[tuple[Any, Any], Any]:
    """Coordinates and byte offsets of a whole (128, 256) operand, by the oracle."""
    decoder = Decoder(load(ADD))
    parts = [decoder.addresses(0, core) for core in decoder.cores]
    coords = tuple(np.concatenate([c[d] for c, _ in parts]) for d in ("mb", "out"))
    return (coords[0], coords[1]), np.concatenate([a for _, a in parts])


BASES = {"a": 1 << 20, "b": 5 << 20, "c": 3 << 20}


def test_a_bundle_with_a_pool() -> None:
    text, obj = two_adds()
    elements = element_offsets()
    arrays = {name: RNG.standard_normal((128, 256)) for name in ("a", "b")}
    memory = filled(BASES, arrays, elements)
    run_bundle(parsed(text), memory, list(BASES.values()), loader_of(obj))
    coords, offsets = elements
    found, written = memory.load(BASES["c"] + offsets, "SEN169_FP16")
    assert written.all()
    np.testing.assert_allclose(found, (arrays["a"] + 2 * arrays["b"])[coords])
    assert len(memory.regions) == 3


def test_the_witness_reads_the_same_addresses() -> None:
    """The output of the second launch, by the reader of the text, is where the machine wrote."""
    text, obj = two_adds()
    elements = element_offsets()
    arrays = {name: RNG.standard_normal((128, 256)) for name in ("a", "b")}
    memory = filled(BASES, arrays, elements)
    run_bundle(parsed(text), memory, list(BASES.values()), loader_of(obj))
    _, second = read_bundle(text, list(BASES.values()), [9 << 20])
    decoder = Decoder(obj, dict(second.symbols))
    coords, addresses = decoder.addresses(2, 17)
    expected = (arrays["a"] + 2 * arrays["b"])[coords["mb"], coords["out"]]
    np.testing.assert_allclose(memory.load(addresses, "SEN169_FP16")[0], expected)


def test_one_wrong_number_in_the_text_changes_the_result() -> None:
    text, obj = two_adds()
    elements = element_offsets()
    arrays = {name: RNG.standard_normal((128, 256)) for name in ("a", "b")}
    memory = filled(BASES, arrays, elements)
    wrong = text.replace("%o1_1_3 = arith.constant 1536", "%o1_1_3 = arith.constant 1024")
    assert wrong != text
    run_bundle(parsed(wrong), memory, list(BASES.values()), loader_of(obj))
    coords, offsets = elements
    found, _ = memory.load(BASES["c"] + offsets, "SEN169_FP16")
    good = np.isclose(found, (arrays["a"] + 2 * arrays["b"])[coords])
    assert not good.all()
    assert set(coords[0][~good].tolist()) <= {12, 13, 14, 15}


def test_the_pool_is_uninitialised_and_the_fault_names_the_file() -> None:
    obj, offsets = symbolic_add()
    text = HEAD + f"    %pool = sdscbundle.device_mem_allocate {BYTES} bytes : index\n"
    text += launch(["pool", "b", "c"], offsets, 0) + "    return\n  }\n}\n"
    memory = filled(BASES, {"b": np.ones((128, 256))}, element_offsets())
    with pytest.raises(MachineFault) as caught:
        run_bundle(parsed(text), memory, list(BASES.values()), loader_of(obj))
    assert caught.value.kind == "stale-read"
    assert "sdsc_0.json: op 0:add, Tensor0" in str(caught.value)
    assert caught.value.__notes__ == []


LOOP = """\
#map_0 = affine_map<(d0)[s0] -> (s0 + 128 * d0)>
module {
  func.func @sdsc_bundle(%pa: !sdscbundle.input_arg<index>, %pc: !sdscbundle.input_arg<index>) {
    %a = sdscbundle.input_arg_extract value from %pa : !sdscbundle.input_arg<index> -> index
    %c = sdscbundle.input_arg_extract value from %pc : !sdscbundle.input_arg<index> -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 3 : index
    scf.for %i = %c0 to %n step %c1 {
      %x = affine.apply #map_0(%i)[%a]
      sdscbundle.sdsc_execute (%x, %c, %c) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3]}
    }
    return
  }
}
"""


def one_stick() -> dict[str, Any]:
    """An add of one row of one stick, on one core."""
    obj, _ = symbolic_add("a1_add_128x256_1core")
    top, dsc = next(iter(obj.values())), dsc_of(obj)
    for sizes in (dsc["N_"], *dsc["dataStageParam_"]["0"].values()):
        sizes.update(mb_=1, out_=64)
    for node in dsc["scheduleTree_"]:
        for dim, factors in (("mb", [1, 1, 1, 1]), ("out", [1, 1, 1, 1, 64])):
            folds = node["coordinates_"]["coordInfo"][dim]["folds"]
            folds["dim_prop_func"][0]["Affine"]["alpha_"] = 1 if dim == "mb" else 64
            for attribute, factor in zip(folds["dim_prop_attr"], factors, strict=True):
                attribute["factor_"] = factor
    assert top["numCoresUsed_"] == 1
    return obj


def test_a_loop_advances_and_accumulates_in_place() -> None:
    """Adds three rows of one stick onto c."""
    memory = ExactMemory()
    memory.add_region("a", 1 << 20, 3 * 128)
    memory.add_region("c", 2 << 20, 128)
    rows, start = RNG.standard_normal((3, 64)), RNG.standard_normal(64)
    memory.store((1 << 20) + 2 * np.arange(192).reshape(3, 64), rows, "SEN169_FP16")
    memory.store((2 << 20) + 2 * np.arange(64), start, "SEN169_FP16")
    run_bundle(parsed(LOOP), memory, [1 << 20, 2 << 20], loader_of(one_stick()))
    found, _ = memory.load((2 << 20) + 2 * np.arange(64), "SEN169_FP16")
    np.testing.assert_allclose(found, start + rows.sum(0))


def test_scratchpads_are_undefined_at_entry() -> None:
    memory = ExactMemory()
    region = memory.add_scratchpads()
    memory.store(np.asarray([region.base]), [1.0], "SEN169_FP16")
    run_bundle(parsed("module { func.func @sdsc_bundle() { return } }"), memory, [], loader_of())
    memory.add_scratchpads()
    assert not memory.load(np.asarray([region.base]), "SEN169_FP16")[1].any()


@pytest.mark.parametrize(("text", "word"), [("module { func.func @f() { return } }", "none"), (LOOP, "takes 2")])
def test_wrong_bundles_are_input_errors(text: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        run_bundle(parsed(text), ExactMemory(), [], loader_of())


def test_loops_in_loops_advance_by_both_indices() -> None:
    """c + the sticks of a at 0, 128, 256 and 384, which two loops of two trips reach."""
    text = LOOP.replace("(d0)[s0] -> (s0 + 128 * d0)", "(d0, d1)[s0] -> (s0 + 256 * d0 + 128 * d1)")
    text = text.replace("%n = arith.constant 3", "%n = arith.constant 2")
    inner = text[text.index("      %x = ") : text.index("    }\n    return")]
    nested = f"    scf.for %j = %c0 to %n step %c1 {{\n{inner.replace('(%i)', '(%i, %j)')}    }}\n"
    memory = ExactMemory()
    memory.add_region("a", 1 << 20, 4 * 128)
    memory.add_region("c", 2 << 20, 128)
    rows = RNG.standard_normal((4, 64))
    memory.store((1 << 20) + 2 * np.arange(256).reshape(4, 64), rows, "SEN169_FP16")
    memory.store((2 << 20) + 2 * np.arange(64), np.zeros(64), "SEN169_FP16")
    run_bundle(parsed(text.replace(inner, nested)), memory, [1 << 20, 2 << 20], loader_of(one_stick()))
    np.testing.assert_allclose(memory.load((2 << 20) + 2 * np.arange(64), "SEN169_FP16")[0], rows.sum(0))


@pytest.mark.parametrize(
    ("old", "new", "message", "kind"),
    [
        ("%n = arith.constant 3", "%n = arith.constant 65536", "makes 65536 trips, the device", "trip-count"),
        ("%c1 = arith.constant 1", "%c1 = arith.constant 0", "a loop with step 0 has no end", "loop-step"),
    ],
)
def test_loops_the_device_cannot_count(old: str, new: str, message: str, kind: str) -> None:
    with pytest.raises(MachineFault, match=message) as caught:
        run_bundle(parsed(LOOP.replace(old, new)), ExactMemory(), [0, 0], loader_of())
    assert caught.value.kind == kind


def test_what_the_grammar_of_bundles_lacks_is_refused_by_name() -> None:
    text = LOOP.replace(
        "    return\n",
        "    %t = arith.cmpi slt, %c0, %c1 : index\n    scf.if %t {\n    }\n    return\n",
    )
    with pytest.raises(UnsupportedError, match=r"scf\.if is no part of a bundle"):
        run_bundle(parsed(text), ExactMemory(), [0, 0], loader_of())
    carried = LOOP.replace(
        "scf.for %i = %c0 to %n step %c1 {", "%r = scf.for %i = %c0 to %n step %c1 iter_args(%k = %c0) -> (index) {"
    )
    carried = carried.replace("symbol_ids=[-1, -2, -3]}\n", "symbol_ids=[-1, -2, -3]}\n      scf.yield %k : index\n")
    with pytest.raises(UnsupportedError, match="a loop that carries 1 values from trip to trip"):
        run_bundle(parsed(carried), ExactMemory(), [0, 0], loader_of())
