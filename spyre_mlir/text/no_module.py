"""Attributes that a compiled model lacks, because it is no module of torch; the message says what takes their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

_FOR_LIBRARIES = 'where a library wants a module, give it torch.compile(model, backend="spyre")'
_INSTEAD = {
    **dict.fromkeys(("eval", "train", "requires_grad_"), "call {name} of the model, and compile it then"),
    **dict.fromkeys(
        ("to", "half", "float", "double", "bfloat16", "type"), "call {name} of the model, and compile it then"
    ),
    **dict.fromkeys(("cpu", "cuda"), "its tensors stay on the host; calls take tensors of the host or of spyre"),
    **dict.fromkeys(("parameters", "named_parameters", "buffers", "modules", "children"), "the model has them"),
    **dict.fromkeys(("state_dict", "load_state_dict"), "the model has them; bind() gives the program other weights"),
    **dict.fromkeys(
        ("config", "device", "dtype", "training", "named_modules", "named_buffers", "register_forward_hook"),
        f"the model has it; {_FOR_LIBRARIES}",
    ),
    "generate": f"compile(model, generation=…) gives what generates; {_FOR_LIBRARIES}",
    "forward": f"call the compiled model itself; {_FOR_LIBRARIES}",
}


def missing(kind: str, name: str) -> AttributeError:
    """Return the error for an attribute that a compiled model lacks."""
    instead = f"; it is no torch.nn.Module: {_INSTEAD[name].format(name=name)}" if name in _INSTEAD else ""
    return AttributeError(f"{kind} has no attribute {name!r}{instead}")


class IsNoModule:
    """Base of objects that take the place of a module in calls, without being one."""

    if not TYPE_CHECKING:  # a type checker is to find wrong names by itself

        def __getattr__(self, name: str) -> None:
            """Raises AttributeError, with what to do for attributes of modules."""
            raise missing(type(self).__name__, name)
