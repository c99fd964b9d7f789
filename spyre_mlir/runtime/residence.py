"""Tensors of the host that the card has as well: what a call need not send, and what it need not bring back.

Decision: docs/decisions/0123-tensors-stay-on-the-card.md
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spyre_mlir.errors import InputError
from spyre_mlir.machine.arrays import Array
from spyre_mlir.machine.bundle.kept_tensors import CardResult, KeptTensor

if TYPE_CHECKING:
    from spyre_mlir.frontend import HostValues, Tensor, TensorState


@dataclass
class _Entry:
    """The copies of a tensor.

    Attributes:
        storage: its memory on the host.
        kept: the copies.
        state: of the tensor when the copies were made.
        held: whether programs write to the card alone.
        ahead: whether the host has not yet what the card has.
        digest: of the tensor when the copies were made, as calls of all programs digest their weights; None if no call
            has done so yet.
    """

    storage: weakref.ref[object]
    kept: KeptTensor
    state: TensorState
    held: bool = False
    ahead: bool = False
    digest: bytes | None = None


@dataclass
class Residence:
    """The tensors that a card has beside the host, as long as the host's are there and unchanged."""

    _entries: dict[tuple[object, ...], _Entry] = field(default_factory=dict[tuple[object, ...], _Entry])
    _lasting: dict[int, weakref.ref[object]] = field(default_factory=dict[int, "weakref.ref[object]"])
    _digests: dict[tuple[object, ...], bytes] = field(default_factory=dict[tuple[object, ...], bytes])

    def expect(self, tensor: Tensor) -> None:
        """Take a tensor for one that programs read again, such as a weight that no parameter of the host is."""
        from spyre_mlir.frontend import storage_of

        storage = storage_of(tensor)
        number = id(storage)
        if number not in self._lasting:
            self._lasting[number] = weakref.ref(storage, lambda _: self._lasting.pop(number, None))

    def lasts(self, tensor: Tensor) -> bool:
        """Return whether the card keeps a tensor between calls: a parameter, a held one, or all of an expected one.

        Of an expected tensor whose memory has more elements, the copies would be as many as the views that calls read.
        """
        from spyre_mlir.frontend import fills_memory, is_parameter, storage_of

        expected = id(storage_of(tensor)) in self._lasting and fills_memory(tensor)
        return expected or is_parameter(tensor) or self.is_held(tensor)

    def of(self, tensor: Tensor, *, contents: bool = True) -> KeptTensor:
        """Return the copies of a tensor; none, if it has been changed since they were made.

        Tensors with the same elements of the same memory have the same copies. The memory has to be there when the
        numbers are asked for.

        Args:
            tensor: on the host.
            contents: whether its elements say that it has been changed; else torch's count of writes does.

        Raises:
            InputError: the host has written to a tensor whose value only the card has.
        """
        from spyre_mlir.frontend import TensorState, place_of, reader_of, storage_of

        place = place_of(tensor)
        entry = self._entries.get(place)
        if entry is None or not _is_current(entry, tensor, contents=contents):
            storage = weakref.ref(storage_of(tensor), self._forget)
            held = entry is not None and entry.held
            state = TensorState.of(tensor, contents=contents)
            digest = self._digests.get(place)
            entry = self._entries[place] = _Entry(storage, KeptTensor(reader_of(tensor)), state, held, digest=digest)
        return entry.kept

    def is_held(self, tensor: Tensor) -> bool:
        """Return whether programs write a tensor to the card alone."""
        from spyre_mlir.frontend import place_of

        entry = self._entries.get(place_of(tensor))
        return entry is not None and entry.held

    def hold(self, tensor: Tensor) -> None:
        """Let programs write a tensor to the card alone, until `release`."""
        from spyre_mlir.frontend import place_of

        self.of(tensor)
        self._entries[place_of(tensor)].held = True

    def release(self, tensor: Tensor) -> None:
        """Bring a tensor back to the host, if the card is ahead; from now on programs write to both."""
        from spyre_mlir.frontend import assign, place_of

        entry = self._entries.pop(place_of(tensor), None)
        if entry is not None and entry.ahead and entry.kept.host is not None:
            assign(tensor, entry.kept.host())

    def finds_changes(self, values: HostValues) -> bool:
        """Return whether tensors of a program have been modified since it last asked; the card's copies go then.

        Copies that another program has made go also, if the tensor has other numbers by now.
        """
        from spyre_mlir.frontend import place_of

        modified = values.modified()
        for tensor in modified or ():
            if not self.is_held(tensor):
                self.forget(tensor)
        self._digests = {place_of(tensor): digest for tensor, digest in values.digests}
        for tensor, digest in values.digests:
            self._compare(tensor, digest)
        return modified is not None

    def _compare(self, tensor: Tensor, digest: bytes) -> None:
        """Drops copies that were made of other numbers."""
        from spyre_mlir.frontend import place_of

        entry = self._entries.get(place_of(tensor))
        if entry is None or entry.held or entry.digest == digest:
            return
        if entry.digest is None and entry.state.lasts(tensor):
            entry.digest = digest
        else:
            self.forget(tensor)

    def forget(self, tensor: Tensor) -> None:
        """Drop the copies of a tensor."""
        from spyre_mlir.frontend import place_of

        self._entries.pop(place_of(tensor), None)

    def wrote(self, tensor: Tensor, result: CardResult, read: Array | None) -> None:
        """Take a result for the new value of a tensor.

        Args:
            tensor: on the host.
            result: on the card.
            read: the numbers, if they have been written to the tensor.
        """
        from spyre_mlir.frontend import TensorState, holds, place_of

        place = place_of(tensor)
        if (entry := self._entries.get(place)) is None:
            return
        if read is not None and not holds(tensor, read):
            del self._entries[place]  # the host has rounded it, and later calls compute on that
            return
        entry.kept.becomes(result)
        entry.ahead, entry.digest = read is None, None
        entry.state = TensorState.of(tensor, contents=read is not None)

    @property
    def card_bytes(self) -> int:
        """Bytes of the card that all copies take."""
        return sum(entry.kept.card_bytes for entry in self._entries.values())

    def _forget(self, gone: weakref.ref[object]) -> None:
        """Drops the copies of tensors whose memory is gone."""
        for place, entry in list(self._entries.items()):  # in place: another thread may be adding one
            if entry.storage is gone:
                self._entries.pop(place, None)


def _is_current(entry: _Entry, tensor: Tensor, *, contents: bool) -> bool:
    """Return whether the copies are those of the tensor as it is."""
    same = entry.state.lasts(tensor, contents=contents and not entry.ahead)
    if entry.ahead and not same:
        raise InputError(
            f"the host has written to a tensor of shape {tuple(tensor.shape)} whose value only the card has",
            hint="bring it back before: to_host()",
        )
    return same


CARD = Residence()

__all__ = ["CARD", "Residence"]
