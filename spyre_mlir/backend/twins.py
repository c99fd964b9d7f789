"""Descriptors of SuperDSC files; files that differ in their number and start addresses only are read once.

Most files of a model are twins: an operation comes in every layer. What is left of a text without these numbers settles
everything but the numbers themselves, so a twin of a file that was read, checked and described needs none of that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from spyre_mlir.backend.json_file import load_text, read_text
from spyre_mlir.backend.read import read_json
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import SpyreError
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec

_KEPT = 1 << 12
_MEMBER = f'"{keys.DATA}": 0}}'
# A file's root key begins with its number.
_ROOT = re.compile(r'\A(\{\s*")(0|[1-9][0-9]{0,17})(_)')
# An object of start addresses: its other members, and its numbers.
_STARTS = re.compile(rf'"{keys.START}": (\{{.*?)"{keys.DATA}": (\{{[^{{}}]*\}})', re.DOTALL)
# One number among them, as the front end spells it.
_NUMBER = re.compile(r'(": ")(0|-?[1-9][0-9]{0,17})(?=")')


@dataclass(frozen=True)
class _Skeleton:
    """A text without its number and start addresses.

    Attributes:
        digest: of the rest.
        index: the number.
        starts: the addresses of every allocate node, in their order.
    """

    digest: bytes
    index: int
    starts: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(text: str) -> _Skeleton | None:
        """Return the skeleton of a text; None if its numbers are not spelled as the front end does."""
        root = _ROOT.match(text)
        if root is None:
            return None
        rest, starts = [root[1], root[3]], list[tuple[int, ...]]()
        at = root.end()
        for found in _STARTS.finditer(text, at):
            pieces = _NUMBER.split(found[2])
            rest += [text[at : found.start(2)], *pieces[::3], *pieces[1::3]]
            starts.append(tuple(map(int, pieces[2::3])))
            at = found.end()
        rest.append(text[at:])
        return _Skeleton(blake2b("\0".join(rest).encode(), digest_size=16).digest(), int(root[2]), tuple(starts))


@dataclass(frozen=True)
class _Read:
    """A file that was read.

    Attributes:
        view: its descriptor.
        nodes: per allocate node, the operand that it is of.
    """

    view: Descriptor
    nodes: tuple[int, ...]

    def twin(self, skeleton: _Skeleton) -> Descriptor | None:
        """Return the descriptor of a file with the same rest; None if its addresses are not what they should be."""
        operands = list(self.view.operands)
        for number, starts in zip(self.nodes, skeleton.starts, strict=True):
            symbolic = operands[number].symbolic
            if any(start >= 0 if symbolic else start < 0 or start % STICK_BYTES for start in starts):
                return None
            operands[number] = replace(operands[number], start=tuple(map(str, starts)))
        return replace(self.view, index=skeleton.index, operands=tuple(operands))


_read: dict[tuple[bytes, SpyreSpec], _Read] = {}


def read_descriptor(path: Path, spec: SpyreSpec) -> Descriptor:
    """Return the descriptor of a SuperDSC file.

    Args:
        path: the file.
        spec: the card it is for.

    Raises:
        ReadError: the file is missing, no SuperDSC, or contradicts itself.
        UnsupportedError: the file uses a feature without a known meaning.
    """
    text = read_text(path)
    skeleton = _Skeleton.of(text)
    if skeleton is not None and (known := _read.get((skeleton.digest, spec))) is not None:
        view = known.twin(skeleton)
        if view is not None:
            return view
    view = describe(read_json(text, str(path), spec))
    if skeleton is not None and (nodes := _nodes(text, str(path))) is not None:
        read = _Read(view, nodes)
        # Only if the numbers that were cut out are those that the descriptor has.
        if len(nodes) == len(skeleton.starts) == len(view.operands) and read.twin(skeleton) == view:
            if len(_read) >= _KEPT:
                _read.clear()
            _read[skeleton.digest, spec] = read
    return view


def _nodes(text: str, name: str) -> tuple[int, ...] | None:
    """The operands of a file's allocate nodes, in order; None for a file of another form."""
    try:
        for found in _STARTS.finditer(text):
            load_text(f"{found[1]}{_MEMBER}", name)  # or the numbers are of an object further inside
        (_, root), *_ = Cursor(load_text(text, name), "$").members()
        (_, dsc), *_ = root.at(keys.DSCS).only().members()
        return tuple(node.at(keys.INDEX).integer() for node in dsc.at(keys.SCHEDULE_TREE).items())
    except (SpyreError, ValueError):
        return None
