"""Checkpoints on disk: safetensors, files of `torch.save`, and directories of them as Hugging Face lays them out.

Tensors are parts of memory-mapped files, so that nothing is read before it is used, and nothing stays in memory.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, cast

import torch

from spyre_mlir.errors import BindingError
from spyre_mlir.frontend.capture.archive import load_pt2
from spyre_mlir.hw.few_bits import names_in, unpacked

_INDEX = ".index.json"
_TORCH_FILES = (".bin", ".pt", ".pth")
_SAFETENSORS = ".safetensors"
# What a directory may hold, the first that is there counts; a star stands for one file only.
_IN_DIRECTORIES = (
    "model.safetensors.index.json",
    "model.safetensors",
    "*.safetensors.index.json",
    "*.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)
_HINT = "name a directory with model.safetensors or its index, a .safetensors, .pt2, .bin, .pt or .pth file"


def read_checkpoint(path: Path) -> Mapping[str, torch.Tensor]:
    """Return the tensors of a checkpoint by name, as parts of memory-mapped files where the format allows it.

    Raises:
        BindingError: there is no such checkpoint, or a file of it cannot be read.
        ImportProgramError: a ``.pt2`` file cannot be read.
    """
    if path.is_dir():
        return read_checkpoint(_in_directory(path))
    if not path.is_file():
        raise BindingError("there is no such checkpoint", where=str(path), hint=_HINT)
    if path.name.endswith(_INDEX):
        return _sharded(path)
    if path.suffix == _SAFETENSORS:
        return _safetensors(path)
    if path.suffix == ".pt2":
        program = load_pt2(path)
        return {**program.state_dict, **{n: v for n, v in program.constants.items() if isinstance(v, torch.Tensor)}}
    if path.suffix in _TORCH_FILES:
        return _torch_file(path)
    raise BindingError("this is no checkpoint of a known format", where=str(path), hint=_HINT)


def _in_directory(directory: Path) -> Path:
    for pattern in _IN_DIRECTORIES:
        found = sorted(p for p in directory.glob(pattern) if p.is_file())
        if len(found) > 1:
            names = ", ".join(p.name for p in found[:4])
            raise BindingError(
                f"the directory has several checkpoints: {names}", where=str(directory), hint="name one of the files"
            )
        if found:
            return found[0]
    raise BindingError("the directory has no checkpoint", where=str(directory), hint=_HINT)


def _sharded(index: Path) -> dict[str, torch.Tensor]:
    """The tensors that an index names, each from its file."""
    shards: dict[str, list[str]] = {}
    for name, file in _weight_map(index).items():
        shards.setdefault(file, []).append(name)
    found: dict[str, torch.Tensor] = {}
    for file, names in shards.items():
        path = index.parent / file
        if Path(file).name != file or not path.is_file():
            raise BindingError(f"the index names {file}, which is not there", where=str(index), hint="download it too")
        tensors = read_checkpoint(path)
        if missing := [name for name in names if name not in tensors]:
            text = f"the index says that {file} has {missing[0]}, which it has not"
            raise BindingError(text, where=str(index), hint="download both again")
        found |= {name: tensors[name] for name in names}
    return found


def _weight_map(index: Path) -> dict[str, str]:
    try:
        content: object = json.loads(index.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BindingError(f"the index cannot be read: {error}", where=str(index), hint="download it again") from error
    listed = cast("dict[str, object]", content).get("weight_map") if isinstance(content, dict) else None
    files = cast("dict[str, object]", listed) if isinstance(listed, dict) else None
    if files is None or not all(isinstance(file, str) for file in files.values()):
        raise BindingError("the index has no weight_map of names and files", where=str(index), hint="download it again")
    return cast("dict[str, str]", files)


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError, safe_open  # pyright: ignore[reportUnknownVariableType] # no full types

    try:
        opened: Any = safe_open(os.fspath(path), framework="pt")
        with opened as file:
            few = names_in(file.metadata())
            found: dict[str, torch.Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            return {name: _wide(tensor) if name in few else tensor for name, tensor in found.items()}
    except (SafetensorError, OSError) as error:
        raise BindingError(
            f"the tensors cannot be read: {error}", where=str(path), hint="download the file again"
        ) from error


def _wide(pairs: torch.Tensor) -> torch.Tensor:
    """Four-bit integers of a bundle, a byte each again."""
    return torch.as_tensor(unpacked(pairs.numpy()))


def _reason(error: Exception) -> str:
    """The part of torch's text that says why; the rest recommends to run the pickle."""
    text = str(error).strip()
    if found := re.search(r"Unsupported global: GLOBAL (\S+)", text):
        return f"it holds more than tensors by name, an object of {found[1]}"
    found = re.search(r"WeightsUnpickler error: (.*)", text)
    return found[1] if found else text.split("\n", 1)[0]


def _torch_file(path: Path) -> dict[str, torch.Tensor]:
    """What `torch.save` wrote of a state dict; its pickle is read without running anything of it."""
    mapped = zipfile.is_zipfile(path)  # the older format cannot be mapped
    try:
        content: object = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except (RuntimeError, OSError, EOFError, UnpicklingError, ValueError) as error:
        raise BindingError(
            f"the state dict cannot be read: {_reason(error)}",
            where=str(path),
            hint="save it with torch.save(model.state_dict())",
        ) from error
    tensors = cast("dict[object, object]", content) if isinstance(content, dict) else {}
    if not tensors or not all(isinstance(n, str) and isinstance(t, torch.Tensor) for n, t in tensors.items()):
        raise BindingError(
            "the file holds something else than tensors by name",
            where=str(path),
            hint="load it, and bind the state dict in it",
        )
    return cast("dict[str, torch.Tensor]", tensors)
