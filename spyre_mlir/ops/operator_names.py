"""Names under which operations are registered: every spelling torch has for them, and names torch does not have.

A registered name is kept as the op table spells it: ``max.dim`` of ATen, ``namespace::name`` of another library, or a
plain word that only plugins use.
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from functools import cache
from typing import Any

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops.aten import ATEN

# A word this close to the name of an ATen operator is a typing error, not the name of a plugin's own operation.
_CLOSE = 0.8
_HINT = "'erfinv', 'max.dim' or 'aten::max.dim' of ATen, 'namespace::name' or 'namespace.name' of others"


def canonical(op: object) -> str:
    """Return the name of an operation in the spelling of the op table.

    Args:
        op: ``aten::max.dim``, ``aten.max.dim``, ``max.dim``, ``acme::blend``, ``acme.blend``, each with or without
            ``.default``; an operator of torch; or a word of a plugin's own.

    Raises:
        RegistrationError: it is no name.
    """
    text = str(op) if type(op).__module__ == "torch._ops" else op
    if not isinstance(text, str) or not text:
        raise RegistrationError(f"an operation is named by text or an operator of torch, got {op!r}", hint=_HINT)
    namespace, found, name = text.partition("::")
    if not found:
        first, dot, rest = text.partition(".")
        has_namespace = bool(dot) and (first == "aten" or (rest != "default" and not is_aten_packet(first)))
        namespace, name = (first, rest) if has_namespace else ("aten", text)
    name = name.removesuffix(".default")
    return name if namespace == "aten" else f"{namespace}::{name}"


def check_name(op: object) -> bool:
    """Return whether the name of an operation could be checked: torch knows its operators once it is loaded.

    Raises:
        RegistrationError: ATen has no operator of this name.
    """
    name = canonical(op)
    if "::" in name or ATEN.find(name) is not None:
        return True
    if "torch" not in sys.modules:
        return False
    packet, _, overload = name.partition(".")
    if not is_aten_packet(packet):
        _refuse_packet(op, packet)
    elif (overload or "default") not in (known := _overloads(packet)):
        raise RegistrationError(
            f"a function is registered for {op}, and aten::{packet} has no overload {overload or 'default'}",
            hint=f"its overloads: {', '.join(sorted(known))}",
        )
    return True


def _refuse_packet(op: object, packet: str) -> None:
    """Raises RegistrationError for a name that is said to be ATen's, or looks like one of ATen's."""
    near = get_close_matches(packet, _packets(), n=1, cutoff=_CLOSE)
    if near or str(op).startswith("aten"):
        raise RegistrationError(
            f"a function is registered for {op}, and ATen has no operator {packet}",
            hint=f"did you mean {near[0]}?" if near else _HINT,
        )


def is_aten_packet(name: str) -> bool:
    """Return whether ATen has an operator of a name without overload, as far as is known before torch is loaded."""
    return name in _packets() or bool(_overloads(name))


def exists(name: str) -> bool:
    """Return whether torch or the op table has an operation, given its canonical name; torch has to be loaded."""
    namespace, _, operator = name.rpartition("::")
    packet, _, overload = operator.partition(".")
    return ATEN.find(name) is not None or (overload or "default") in _overloads(packet, namespace or "aten")


@cache
def _packets() -> frozenset[str]:
    """Names of operators without overload that the op table has, those of plugins apart."""
    names = (name for entry in ATEN if not entry.owner for name in entry.overloads if "::" not in name)
    return frozenset(name.partition(".")[0] for name in names)


def _overloads(packet: str, namespace: str = "aten") -> list[str]:
    """Overloads of an operator of torch that concern tensors; none before torch is loaded, which no name shall do."""
    if "torch" not in sys.modules or not packet.isidentifier():
        return []
    operator: Any = getattr(getattr(sys.modules["torch"].ops, namespace), packet, None)
    names: list[str] = operator.overloads() if hasattr(operator, "overloads") else []
    return [name for name in names if "Tensor" in str(getattr(operator, name)._schema)]


__all__ = ["canonical", "check_name", "exists", "is_aten_packet"]
