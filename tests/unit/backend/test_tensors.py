"""Tensor files: byte for byte as the safetensors format has them, and read by its library."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_torch
from safetensors.torch import save_file as save_torch

from spyre_mlir.backend.tensors import (
    StreamedTensor,
    map_tensor,
    map_tensors,
    read_tensors,
    tensor_names,
    whole,
    write_tensors,
)
from spyre_mlir.errors import ReadError

VALUES = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.array([1.5, -2.0], np.float32),
    "wide": np.array([7], np.int64),
    "flags": np.array([True, False, True]),
    "empty": np.zeros((0, 4), np.float16),
    "scalar": np.array(3, np.uint16),
}


def write(path: Path, values: dict[str, np.ndarray[Any, Any]] = VALUES) -> Any:
    return write_tensors(path, [whole(name, values) for name in values])


def test_the_library_reads_what_is_written(tmp_path: Path) -> None:
    write(tmp_path / "t")
    found = load_file(tmp_path / "t")
    assert set(found) == set(VALUES)
    for name, value in VALUES.items():
        assert found[name].dtype == value.dtype
        assert np.array_equal(found[name], value)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("bool", "BOOL"), ("int8", "I8"), ("int16", "I16"), ("int32", "I32"), ("int64", "I64"),
        ("uint8", "U8"), ("uint16", "U16"), ("uint32", "U32"), ("uint64", "U64"),
        ("float16", "F16"), ("float32", "F32"), ("float64", "F64"), ("complex64", "C64"),
    ],
)  # fmt: skip
def test_the_format_calls_a_type_by_its_name(dtype: str, name: str, tmp_path: Path) -> None:
    write(tmp_path / "t", {"x": np.ones(2, dtype)})
    data = (tmp_path / "t").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert header["x"] == {"dtype": name, "shape": [2], "data_offsets": [0, 2 * np.dtype(dtype).itemsize]}


def test_bytes_starts_and_digest(tmp_path: Path) -> None:
    """Wide types first, then by name; the header is padded to eight bytes."""
    written = write(tmp_path / "t")
    data = (tmp_path / "t").read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    header = data[8 : 8 + length]
    assert header == header.rstrip(b" ") + b" " * (-len(header.rstrip(b" ")) % 8)
    assert b": " not in header and b", " not in header
    assert {name: entry["data_offsets"] for name, entry in json.loads(header).items()} == {
        "wide": [0, 8],
        "a": [8, 16],
        "b": [16, 40],
        "empty": [40, 40],
        "scalar": [40, 42],
        "flags": [42, 45],
    }
    ends = {"wide": 0, "a": 8, "b": 16, "empty": 40, "scalar": 40, "flags": 42}
    assert written.starts == {name: 8 + length + start for name, start in ends.items()}
    assert data[8 + length :] == b"".join(VALUES[name].tobytes() for name in ends)
    assert written.digest == f"crc32:{zlib.crc32(data):08x}"


def test_the_order_of_the_tensors_does_not_matter(tmp_path: Path) -> None:
    write(tmp_path / "a")
    write(tmp_path / "b", dict(reversed(VALUES.items())))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_other_orders_of_bytes_and_of_elements_are_turned(tmp_path: Path) -> None:
    big = np.arange(6, dtype=">i4").reshape(2, 3)
    write(tmp_path / "t", {"turned": big, "across": VALUES["b"].T})
    found = load_file(tmp_path / "t")
    assert found["turned"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["across"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_tensor_may_come_in_pieces_of_any_shape(tmp_path: Path) -> None:
    def pieces() -> Iterable[np.ndarray[Any, Any]]:
        return (np.array([[0, 1]], np.int16), np.array(2, np.int16), np.arange(3, 6, dtype=np.int16))

    tensor = StreamedTensor("x", np.dtype(np.int16), (3, 2), pieces)
    assert tensor.bytes == 12
    write_tensors(tmp_path / "t", [tensor])
    assert load_file(tmp_path / "t")["x"].tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_large_tensor_is_written_in_pieces_of_sixteen_mebibytes() -> None:
    value = np.arange((1 << 21) + 5, dtype=np.int64)
    tensor = whole("x", {"x": value})
    assert (tensor.name, tensor.dtype, tensor.shape) == ("x", value.dtype, value.shape)
    pieces = list(tensor.pieces())
    assert [piece.size for piece in pieces] == [1 << 21, 5]
    assert np.array_equal(np.concatenate(pieces), value)


@pytest.mark.parametrize("count", [1, 3])
def test_pieces_that_are_not_the_shape_are_refused(count: int, tmp_path: Path) -> None:
    tensor = StreamedTensor("x", np.dtype(np.int8), (2,), lambda: [np.zeros(count, np.int8)])
    with pytest.raises(ValueError, match=f"x: {count} bytes for a shape of 2"):
        write_tensors(tmp_path / "t", [tensor])


def test_one_tensor_names_and_all_tensors_of_a_file_of_the_library(tmp_path: Path) -> None:
    path = tmp_path / "t"
    save_file({"x": VALUES["a"], "y": VALUES["wide"]}, path)
    assert sorted(tensor_names(path)) == ["x", "y"]
    assert map_tensor(path, "x").tolist() == [1.5, -2.0]
    assert {name: value.tolist() for name, value in read_tensors(path).items()} == {"x": [1.5, -2.0], "y": [7]}


def test_a_file_that_is_not_there_has_no_tensors_but_none_can_be_read_of_it(tmp_path: Path) -> None:
    path = tmp_path / "none"
    assert read_tensors(path) == {}
    for read in (lambda: tensor_names(path), lambda: map_tensor(path, "x")):
        with pytest.raises(ReadError, match="the tensors cannot be read"):
            read()


def test_what_is_no_file_of_tensors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"nothing")
    for read in (lambda: tensor_names(path), lambda: map_tensor(path, "x"), lambda: read_tensors(path)):
        with pytest.raises(ReadError, match="the tensors cannot be read: ") as caught:
            read()
        assert caught.value.where == str(path)
        assert caught.value.hint == "write the bundle again"
    save_file({"x": VALUES["a"]}, path)
    with pytest.raises(ReadError, match=r"the tensors cannot be read: .*z"):
        map_tensor(path, "z")


def test_narrow_floats_keep_their_bytes_and_are_read_as_float32(tmp_path: Path) -> None:
    value = np.array([[1.0, -2.5, np.inf]])
    kinds = {"b": ml_dtypes.bfloat16, "e": ml_dtypes.float8_e4m3fn, "f": ml_dtypes.float8_e5m2}
    write(tmp_path / "t", {name: value.astype(kind) for name, kind in kinds.items()})
    found = load_torch(tmp_path / "t")
    assert [str(found[name].dtype) for name in kinds] == ["torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2"]
    read = read_tensors(tmp_path / "t")
    assert read["b"].dtype == np.float32 and read["b"].tolist() == value.tolist()
    assert map_tensors(tmp_path / "t")["b"].dtype == ml_dtypes.bfloat16


def test_a_type_that_the_file_lacks_is_written_as_float32(tmp_path: Path) -> None:
    write(tmp_path / "t", {"x": np.array([0.5, 2.0]).astype(ml_dtypes.float8_e4m3fnuz)})
    assert load_file(tmp_path / "t")["x"].dtype == np.float32


def test_a_type_that_numpy_lacks_is_named(tmp_path: Path) -> None:
    save_torch({"x": torch.zeros(2, dtype=torch.float8_e8m0fnu)}, tmp_path / "t")
    with pytest.raises(ReadError, match="x is of type F8_E8M0, which numpy lacks"):
        map_tensor(tmp_path / "t", "x")


def test_mapped_tensors_are_parts_of_the_file(tmp_path: Path) -> None:
    write(tmp_path / "t", {"x": np.arange(4, dtype=np.int16), "empty": np.empty((0, 3), np.float32)})
    found = map_tensors(tmp_path / "t")
    assert found["x"].tolist() == [0, 1, 2, 3] and found["empty"].shape == (0, 3)
    assert not found["x"].flags.writeable and not found["x"].flags.owndata
    assert map_tensors(tmp_path / "none") == {}


def test_bytes_of_four_bits_take_half(tmp_path: Path) -> None:
    few = (np.arange(64 * 128) % 16 - 8).astype(np.int8).reshape(64, 128)
    values = {"few": few, "more": few * 2, "b": VALUES["b"]}
    write(tmp_path / "t", values)
    assert load_file(tmp_path / "t")["few"].shape == (64, 64)
    for found in (read_tensors(tmp_path / "t"), map_tensors(tmp_path / "t")):
        for name, value in values.items():
            assert found[name].dtype == value.dtype
            np.testing.assert_array_equal(found[name], value)
    np.testing.assert_array_equal(map_tensor(tmp_path / "t", "few"), few)
