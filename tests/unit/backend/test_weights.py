"""Weights on their way to the device: which arguments have a form there, and what its bytes are."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from spyre_mlir.backend.weights import argument_names, device_weights, launched_buffers
from tests.unit.backend.programs import read

ROWS = "!spyre.tensor<[2, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>"
COLUMNS = "!spyre.tensor<[2, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>"
WIDE = "!spyre.tensor<[2, 128] x IEEE_FP32, order [1, 0], stick 1, hbm>"
OTHER = "!spyre.tensor<[2, 128] x BFLOAT16, order [1, 0], stick 1, hbm>"
INDEX = "!spyre.tensor<[2, 128] x SENUINT32, order [1, 0], stick 1, hbm>"
HOST = "tensor<2x128xf16>"
USED = f'spyre.kernel.host "aten.relu" (%w) {{self = #aten.operands<1>}} : ({HOST}) -> {HOST}'


def program(sent: list[tuple[str, str]], launch: str, arguments: str = f'%w: {HOST} {{aten.name = "w"}}') -> str:
    """Sends arguments as device tensors and launches some of these."""
    host = {name: kind.split("{")[0].strip() for name, kind in (one.split(":") for one in arguments.split(", %"))}
    kinds = [kind for _, kind in sent]
    lines = [
        f"  %{number} = spyre.kernel.to_device %{name} : {host.get(f'%{name}', host.get(name))} to {kind}"
        for number, (name, kind) in enumerate(sent)
    ]
    launched = [number.strip("% ") for number in launch.split(",")] if launch else []
    given = ", ".join(kinds[int(number)] for number in launched)
    lines += [f"  spyre.kernel.launch @sdsc_bundle({launch}) : {given}"] if launch else []
    body = "\n".join(lines)
    return f"func.func @main({arguments}) {{\n{body}\n  func.return\n}}"


def found(text: str, *held: str) -> list[tuple[str, str, int]]:
    return [(weight.name, weight.key, weight.argument) for weight in device_weights(read(text), held)]


def test_a_weight_that_is_sent_has_a_form_of_the_device() -> None:
    text = program([("w", ROWS)], "%0")
    assert found(text, "w") == [("w", "w", 0)]
    assert found(text, "x") == []
    assert found(text) == []


def test_the_argument_is_the_number_of_its_first_buffer() -> None:
    both = f'%x: {HOST} {{aten.name = "x"}}, %w: {HOST} {{aten.name = "w"}}'
    text = program([("x", ROWS), ("w", ROWS)], "%0, %1, %0, %1", both)
    assert found(text, "w") == [("w", "w", 1)]
    assert found(text, "x", "w") == [("x", "x", 0), ("w", "w", 1)]


def test_a_weight_in_two_layouts_has_a_key_for_each() -> None:
    text = program([("w", ROWS), ("w", COLUMNS)], "%1, %0")
    assert found(text, "w") == [("w", "w@0", 0), ("w", "w@1", 1)]
    first, second = device_weights(read(text), ["w"])
    assert (first.tensor.layout.order, second.tensor.layout.order) == ((0, 1), (1, 0))


@pytest.mark.parametrize("kind", [ROWS, WIDE])
def test_formats_whose_codes_are_known(kind: str) -> None:
    assert found(program([("w", kind)], "%0"), "w") == [("w", "w", 0)]


@pytest.mark.parametrize(
    "text",
    [
        program([("w", OTHER)], "%0"),  # a format whose codes are not known
        program([("w", ROWS), ("w", OTHER)], "%0, %1"),
        program([("w", INDEX)], "%0", '%w: tensor<2x128xi32> {aten.name = "w"}'),  # an index
        program([("w", ROWS)], ""),  # not launched
        program([("w", ROWS), ("w", COLUMNS)], "%0"),
        program([], ""),  # not sent
        program([("w", ROWS)], "%0").replace("func.return", f"{USED} func.return"),  # also used by the host
        program([("w", ROWS)], "%0").replace("@main", "@other"),
        f'func.func private @main({HOST}) -> ()',
    ],
)  # fmt: skip
def test_what_stays_as_the_model_has_it(text: str) -> None:
    assert found(text, "w") == []


def test_buffers_of_all_launches_in_order() -> None:
    text = program([("w", ROWS), ("w", COLUMNS)], "%1, %0").replace(
        "func.return", f"spyre.kernel.launch @sdsc_bundle_1(%1) : {COLUMNS}\n  func.return"
    )
    assert [str(buffer.type) for buffer in launched_buffers(read(text))] == [COLUMNS, ROWS, COLUMNS]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("", []),
        ("%a: index, %b: index", ["", ""]),
        ('%a: index {aten.name = "first"}, %b: index', ["first", ""]),
        ('%a: index {aten.name = 1 : i64}, %b: index {aten.name = "b"}', ["", "b"]),
    ],
)
def test_names_of_arguments(arguments: str, names: list[str]) -> None:
    (main,) = read(f"func.func @main({arguments}) {{ func.return }}").ops
    assert isinstance(main, FuncOp)
    assert argument_names(main) == names


def test_a_weight_is_written_as_codes_in_sticks() -> None:
    """Two rows of two sticks; the sticks of a column lie together. 1, 2 and 4 have the exponents 31, 32 and 33."""
    (weight,) = device_weights(read(program([("w", ROWS)], "%0")), ["w"])
    values = np.repeat([[1.0, 2.0], [4.0, np.inf]], 64, axis=1).astype(np.float16)
    tensor = weight.streamed({"w": values})
    assert (tensor.name, tensor.dtype, tensor.shape) == ("w", np.uint16, (4, 64))
    sticks = np.concatenate([piece.reshape(-1, 64) for piece in tensor.pieces()])
    # Infinity is sent as 65504, which has ten fraction bits and is rounded up to 2 ** 16.
    assert sticks.tolist() == [[exponent << 9] * 64 for exponent in (31, 33, 32, 47)]


def test_a_weight_is_rearranged_before_it_is_laid_out() -> None:
    turned = "moved [#spyre.move<[m = 2, n = 128] [n, m] -> [m, n] of [2, 128]>]"
    text = program([("w", ROWS)], "%0").replace(HOST, "tensor<128x2xf16>").replace("%w :", f"%w {turned} :")
    (weight,) = device_weights(read(text), ["w"])
    values = np.arange(256, dtype=np.float16).reshape(128, 2)
    plain = device_weights(read(program([("w", ROWS)], "%0")), ["w"])[0].streamed({"w": np.array(values.T)})
    found = weight.streamed({"w": values})
    assert found.shape == plain.shape
    assert np.concatenate(list(found.pieces())).tobytes() == np.concatenate(list(plain.pieces())).tobytes()


def test_a_weight_in_a_wider_format_keeps_its_numbers() -> None:
    (weight,) = device_weights(read(program([("w", WIDE)], "%0")), ["w"])
    values = np.arange(256, dtype=np.float16).reshape(2, 128)
    tensor = weight.streamed({"w": values})
    assert (tensor.dtype, tensor.shape) == (np.float32, (8, 32))
    sticks = np.concatenate([piece.reshape(-1, 32) for piece in tensor.pieces()])
    assert np.array_equal(sticks, values.reshape(2, 4, 32).swapaxes(0, 1).reshape(8, 32))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize("of", [ROWS, COLUMNS, WIDE])
def test_narrow_floats_become_the_codes_of_their_values(kind: type, of: str) -> None:
    bits = {1: np.uint8, 2: np.uint16}[np.dtype(kind).itemsize]
    every = np.arange(256, dtype=bits) * (1 if bits is np.uint8 else 251)
    value = every.view(kind).reshape(2, 128)
    (weight,) = device_weights(read(program([("w", of)], "%0")), ["w"])
    with np.errstate(invalid="ignore"):
        narrow, wide = (list(weight.streamed({"w": v}).pieces()) for v in (value, value.astype(np.float32)))
    assert np.concatenate(narrow).tobytes() == np.concatenate(wide).tobytes()
