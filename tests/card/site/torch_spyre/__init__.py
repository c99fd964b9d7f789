"""A STAND-IN for torch-spyre: importing it makes `tensor.to("spyre")` a copy that stays on the host.

Not torch-spyre, and no part of the compiler: see `tests/card/stand_in.py`. It is for a process of its own.
"""

from typing import Any

import torch

_to = torch.Tensor.to


def _copied(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return tensor.clone() if args == ("spyre",) else _to(tensor, *args, **kwargs)


torch.Tensor.to = _copied
